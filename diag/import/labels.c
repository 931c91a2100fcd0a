/* Keeps series by their labels and numbers them. */
#include "diag/import/labels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/labels_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/hash.h"

enum { KEY_UNKNOWN = UINT32_MAX, KEY_NONE = UINT32_MAX - 1 };

struct labels *labels_new(const struct import_options *how)
{
	struct labels *l = alloc_zero(1, sizeof(*l));

	l->how = how;
	return l;
}

void labels_free(struct labels *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_series; i++)
		free(l->series[i].text);
	for (size_t i = 0; i < l->n_keys; i++)
		free(l->keys[i].text);
	free(l->series);
	free(l->keys);
	map_clear(&l->series_index);
	map_clear(&l->key_index);
	free(l->scratch);
	repeats_clear(&l->repeats);
	free(l->member);
	for (size_t i = 0; i < l->n_groups; i++)
		free(l->group[i]);
	free(l);
}

size_t labels_count(const struct labels *l)
{
	return l->n_series;
}

void labels_watch_repeats(struct labels *l, bool local, const char *remedy)
{
	l->repeats.local = local;
	l->remedy = remedy;
}

void labels_line(struct labels *l, unsigned long line)
{
	l->line = line;
}

void labels_text(struct labels *l)
{
	repeats_begin(&l->repeats);
}

const char *labels_metric(const struct labels *l, uint32_t series)
{
	return l->series[series].text;
}

bool labels_decided(const struct labels *l)
{
	return l->decided;
}

const char *labels_value(const struct labels_series *s, const char *name)
{
	const char *p = s->text + strlen(s->text) + 1, *end = s->text + s->size;

	while (p < end) {
		const char *value = p + strlen(p) + 1;

		if (!strcmp(p, name))
			return value;
		p = value + strlen(value) + 1;
	}
	return NULL;
}

/* Numbers plus 1; 0: unknown. */
static uint32_t known_series(const struct labels *l, uint64_t hash, const char *text, size_t size)
{
	size_t at = 0;
	uint64_t i;

	while ((i = map_next(&l->series_index, hash, &at)))
		if (l->series[i - 1].size == size && !memcmp(l->series[i - 1].text, text, size))
			break;
	return (uint32_t)i;
}

static uint32_t known_key(const struct labels *l, uint64_t hash, const char *text, size_t size)
{
	size_t at = 0;
	uint64_t i;

	while ((i = map_next(&l->key_index, hash, &at)))
		if (l->keys[i - 1].size == size && !memcmp(l->keys[i - 1].text, text, size))
			break;
	return (uint32_t)i;
}

static int labels_by_name(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static const char *labels_value_of(const struct label *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i].name, name))
			return v[i].value;
	return NULL;
}

static void scratch_room(struct labels *l, size_t more)
{
	if (l->scratch_size + more <= l->scratch_room)
		return;
	l->scratch_room = 2 * (l->scratch_size + more);
	l->scratch = alloc_resize(l->scratch, l->scratch_room, 1);
}

static void scratch_put(struct labels *l, const char *text)
{
	size_t n = strlen(text) + 1;

	scratch_room(l, n);
	memcpy(l->scratch + l->scratch_size, text, n);
	l->scratch_size += n;
}

/* Writes 'latency{le="0.1"}' for latency_bucket with a label le into the scratch. */
static void put_metric(struct labels *l, const char *metric, const struct label *v, size_t n)
{
	const char *le = labels_value_of(v, n, "le"), *quantile = labels_value_of(v, n, "quantile");
	const char *value = le ? le : quantile;
	size_t length = strlen(metric), bucket = strlen("_bucket");

	l->scratch_size = 0;
	if (!value) {
		scratch_put(l, metric);
		return;
	}
	if (le && length > bucket && !strcmp(metric + length - bucket, "_bucket"))
		length -= bucket;
	scratch_room(l, length + strlen(value) + 20);
	l->scratch_size = 1 +
		(size_t)sprintf(l->scratch, "%.*s{%s=\"%s\"}", (int)length, metric,
			le ? "le" : "quantile", value);
}

/* A name in --metrics also selects all buckets of a histogram. */
static bool wanted(const struct import_options *how, const char *metric)
{
	size_t base = strcspn(metric, "{");

	if (!how->n_metrics)
		return true;
	for (size_t i = 0; i < how->n_metrics; i++)
		if (!strcmp(how->metrics[i], metric) ||
			(strlen(how->metrics[i]) == base && !memcmp(how->metrics[i], metric, base)))
			return true;
	return false;
}

int labels_add(struct labels *l, const char *metric, struct label *v, size_t n, uint32_t *series)
{
	uint64_t hash;
	uint32_t known;
	char *text;

	if (!metric || !*metric)
		metric = l->how->only_metric ? l->how->only_metric : "value";
	put_metric(l, metric, v, n);
	if (!wanted(l->how, l->scratch) || !import_name(l->scratch))
		return -ENOENT;
	qsort(v, n, sizeof(*v), labels_by_name);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(v[i].name, "le") || !strcmp(v[i].name, "quantile") || !*v[i].value)
			continue;
		scratch_put(l, v[i].name);
		scratch_put(l, v[i].value);
	}
	hash = hash_bytes(l->scratch, l->scratch_size, HASH_START);
	known = known_series(l, hash, l->scratch, l->scratch_size);
	if (known) {
		*series = known - 1;
		return 0;
	}
	text = memcpy(alloc_zero(1, l->scratch_size), l->scratch, l->scratch_size);
	l->series = alloc_room(l->series, l->n_series, sizeof(*l->series));
	l->series[l->n_series++] = (struct labels_series){
		text, l->scratch_size, KEY_UNKNOWN, INFINITY, -INFINITY};
	map_keep(&l->series_index, hash, l->n_series);
	*series = (uint32_t)l->n_series - 1;
	return 1;
}

void labels_seen(struct labels *l, uint32_t series, double time_s)
{
	struct labels_series *s = &l->series[series];

	s->from_s = fmin(s->from_s, time_s);
	s->to_s = fmax(s->to_s, time_s);
}

int labels_declare_buckets(const struct labels *l, const struct import_sink *sink, struct err *e)
{
	const char *nameless = l->how->only_metric ? l->how->only_metric : "value", *last = "";
	int rc = 0;

	for (size_t i = 0; sink->metric && i < l->n_series && !rc; i++) {
		const char *metric = l->series[i].text;
		size_t n = strcspn(metric, "{");
		auto_free char *text = NULL;

		if (strncmp(metric + n, "{le=", 4) ||
			(n == strlen(nameless) && !memcmp(metric, nameless, n)) ||
			(n == strcspn(last, "{") && !memcmp(metric, last, n)))
			continue;
		last = metric;
		text = alloc_format("%.*s kind=bucket", (int)n, metric);
		rc = sink->metric(sink->ctx, text, e);
	}
	return rc;
}

/* The key of a set of labels: requested once from the sink. Stays KEY_NONE without a usable
 * name. */
static int find_key(
	struct labels *l, uint32_t series, const struct import_sink *sink, struct err *e)
{
	struct labels_series *s = &l->series[series];
	struct series_key key = {.metric = s->text, .n_groups = l->n_groups};
	struct labels_key *k;
	uint32_t known, id = 0;
	uint64_t hash;
	char *text;
	size_t size;
	FILE *f;
	int rc;

	key.member = l->member ? labels_value(s, l->member) : s->text;
	s->key = KEY_NONE;
	if (!key.member || !import_name(key.member))
		return 0;
	f = alloc_text(&text, &size);
	fwrite(key.metric, 1, strlen(key.metric) + 1, f);
	fwrite(key.member, 1, strlen(key.member) + 1, f);
	for (size_t i = 0; i < l->n_groups; i++) {
		const char *g = labels_value(s, l->group[i]);

		key.group[i] = g && import_name(g) ? g : "(none)";
		fwrite(key.group[i], 1, strlen(key.group[i]) + 1, f);
	}
	fclose(f);
	hash = hash_bytes(text, size, HASH_START);
	known = known_key(l, hash, text, size);
	if (known) {
		s->key = known - 1;
		free(text);
		return 0;
	}
	rc = sink->series(sink->ctx, &key, &id, e);
	if (rc) {
		s->key = KEY_UNKNOWN;
		free(text);
		return rc;
	}
	l->keys = alloc_room(l->keys, l->n_keys, sizeof(*l->keys));
	k = &l->keys[l->n_keys++];
	*k = (struct labels_key){
		text, size, id, series, series, INFINITY, -INFINITY, INFINITY, -INFINITY};
	map_keep(&l->key_index, hash, l->n_keys);
	s->key = (uint32_t)l->n_keys - 1;
	return 0;
}

void labels_print(const struct labels_series *s, char *out, size_t size)
{
	const char *p = s->text + strlen(s->text) + 1, *end = s->text + s->size;
	size_t n = (size_t)snprintf(out, size, "%s{", s->text);

	while (p < end && n < size) {
		const char *value = p + strlen(p) + 1;

		n += (size_t)snprintf(out + n, size - n, "%s%s=\"%s\"",
			p == s->text + strlen(s->text) + 1 ? "" : ",", p, value);
		p = value + strlen(value) + 1;
	}
	if (n < size)
		snprintf(out + n, size - n, "}");
}

/* Does the sample belong to this series? Otherwise another series with its key has that time. */
static bool mine(struct labels *l, struct labels_key *k, uint32_t series, double time_s)
{
	if (k->owner != series) {
		k->before_from = fmin(k->before_from, k->from_s);
		k->before_to = fmax(k->before_to, k->to_s);
		k->from_s = INFINITY;
		k->to_s = -INFINITY;
		k->owner = series;
	}
	if (time_s >= k->before_from && time_s <= k->before_to) {
		if (!l->beside++) {
			const struct labels_series *s = &l->series[series];
			const char *label = labels_differ(l, s, &l->series[k->first]);

			labels_print(s, l->beside_example, sizeof(l->beside_example));
			snprintf(l->beside_label, sizeof(l->beside_label), "%s",
				label               ? label
					: l->member ? l->member
						    : "le");
		}
		return false;
	}
	k->from_s = fmin(k->from_s, time_s);
	k->to_s = fmax(k->to_s, time_s);
	return true;
}

int labels_sample(struct labels *l, uint32_t series, double time_s, double value,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct labels_series *s = &l->series[series];
	struct labels_key *k;
	int rc = s->key == KEY_UNKNOWN ? find_key(l, series, sink, e) : 0;

	if (rc)
		return rc;
	if (s->key == KEY_NONE) {
		l->nameless++;
		return 0;
	}
	k = &l->keys[s->key];
	if (!mine(l, k, series, time_s))
		return 0;
	if (!isfinite(value))
		value = NAN;
	if (l->remedy)
		repeats_sample(&l->repeats, series, time_s, value, l->line);
	l->given++;
	if (said) {
		said->samples++;
		said->missing += isnan(value);
	}
	return sink->sample(sink->ctx, k->id, time_s, value, e);
}

/* Judges samples that repeat a time of their series. */
static int judge_repeats(const struct labels *l, struct import_said *said, struct err *e)
{
	char example[256];

	if (!l->repeats.repeated)
		return 0;
	labels_print(&l->series[l->repeats.first], example, sizeof(example));
	return repeats_judge(&l->repeats, example, l->remedy, said, e);
}

int labels_finish(struct labels *l, struct import_said *said, struct err *e)
{
	int rc = judge_repeats(l, said, e);

	if (rc)
		return rc;

	if (l->beside > l->given)
		rc = err_set(e, -EINVAL,
			"%llu of %llu samples have the same member, groups and time as another "
			"series, such as %s: name the label '%s' with --member or --group",
			(unsigned long long)l->beside, (unsigned long long)(l->beside + l->given),
			l->beside_example, l->beside_label);
	else if (l->beside)
		import_note(said,
			"%llu samples are left out: another series with the same member and groups "
			"has one at that time, such as %s; --group %s separates them",
			(unsigned long long)l->beside, l->beside_example, l->beside_label);
	if (l->nameless && !l->given && !rc)
		rc = err_set(
			e, -EINVAL, "no series has a label '%s' that names a member", l->member);
	else if (l->nameless)
		import_note(said, "%llu samples are left out: their series have no label '%s'",
			(unsigned long long)l->nameless, l->member);
	l->given = l->beside = l->nameless = 0;
	return rc;
}
