/* Writes the page as large as allowed. */
#include <errno.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/web/page.h"
#include "harness/web/timeline/encode.h"

enum {
	BYTES_MAX = 15000000,
	BYTES_A_SLICE = 10, /* estimate for the first attempt */
	BYTES_A_POINT = 32, /* for a counter; counters take at most a third of the page */
	TRIES = 8,
};

static uint64_t size_on_page(const struct encoder *c, const json_t *index)
{
	uint64_t size = page_json_size(index);

	for (size_t i = 0; i < N_BLOCKS; i++)
		size += c->packed[i].size / 3 * 4 + 128;
	return size;
}

/* Writes as many slices as fit into 'bytes_max', approximately: the next number of slices is
 * derived from the last size. */
static int encode_within(struct encoder *c, uint64_t bytes_max, json_t **index, struct err *e)
{
	uint64_t all = spill_count(&c->t->slices), slices = bytes_max / BYTES_A_SLICE, size = 0;
	bool grown = false;
	int rc;

	c->points_max = bytes_max / BYTES_A_POINT;
	for (int i = 0; i < TRIES; i++) {
		double next = .95;

		slices = slices < all ? slices : all;
		rc = encode(c, slices, index, e);
		if (rc)
			return rc;
		size = size_on_page(c, *index);
		if (size <= bytes_max && (slices == all || size > bytes_max * 2 / 3 || grown))
			return 0;
		if (size <= bytes_max) {
			grown = true;
			next = .85;
		}
		json_decref(*index);
		*index = NULL;
		slices = (uint64_t)((double)slices * (double)bytes_max / (double)size * next);
	}
	return err_set(e, -EINVAL,
		"the timeline needs %llu bytes, more than the %llu allowed, without most of its "
		"slices; narrow it in time or to some nodes",
		(unsigned long long)size, (unsigned long long)bytes_max);
}

static int put_page(struct encoder *c, struct page *p, const json_t *index, FILE *f, struct err *e)
{
	char *title = alloc_format("%s - culprit timeline", words_text(&c->t->words, c->t->title));
	int rc = page_begin(p, title, index, f, e);

	for (size_t i = 0; i < N_BLOCKS && !rc; i++)
		rc = page_packed(encode_names[i], c->packed[i].data, c->packed[i].size, f, e);
	free(title);
	return rc ? rc : page_end(p, f, e);
}

int timeline_html(struct timeline *t, FILE *f, uint64_t bytes_max, struct err *e)
{
	struct encoder c;
	struct page *p = NULL;
	json_t *index = NULL;
	uint64_t own;
	int rc = timeline_failed(t, e);

	if (!rc)
		rc = page_new(&page_of_timeline, &p, e);
	if (rc)
		return rc;
	own = page_size(p);
	if (!bytes_max)
		bytes_max = BYTES_MAX;
	encode_init(&c, t);
	rc = encode_within(&c, bytes_max > own ? bytes_max - own : 0, &index, e);
	if (!rc)
		rc = timeline_failed(t, e);
	if (!rc)
		rc = put_page(&c, p, index, f, e);
	encode_clear(&c);
	json_decref(index);
	page_free(p);
	return rc;
}

/* The index has only numbers and one string of digits: it needs no escaping beyond JSON's. */
static void put_data(const struct encoder *c, const json_t *index, uint64_t generation, FILE *f)
{
	fprintf(f, "{\"generation\":%llu,\"index\":", (unsigned long long)generation);
	json_dumpf(index, f, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
	fputs(",\"blocks\":{", f);
	for (size_t i = 0; i < N_BLOCKS; i++) {
		fprintf(f, "%s\"%s\":\"", i ? "," : "", encode_names[i]);
		page_base64(c->packed[i].data, c->packed[i].size, f);
		fputc('"', f);
	}
	fputs("}}\n", f);
}

int timeline_data(
	struct timeline *t, FILE *f, uint64_t generation, uint64_t bytes_max, struct err *e)
{
	struct encoder c;
	json_t *index = NULL;
	int rc = timeline_failed(t, e);

	if (rc)
		return rc;
	encode_init(&c, t);
	rc = encode_within(&c, bytes_max ? bytes_max : BYTES_MAX, &index, e);
	if (!rc)
		rc = timeline_failed(t, e);
	if (!rc)
		put_data(&c, index, generation, f);
	encode_clear(&c);
	json_decref(index);
	return rc ? rc : timeline_written(f, e);
}

int timeline_live_page(FILE *f, struct err *e)
{
	struct page *p = NULL;
	json_t *index = json_pack("{s:i, s:b}", "version", 1, "live", 1);
	int rc = page_new(&page_of_live_timeline, &p, e);

	if (!rc)
		rc = page_begin(p, "live - culprit timeline", index, f, e);
	if (!rc)
		rc = page_end(p, f, e);
	json_decref(index);
	page_free(p);
	return rc;
}
