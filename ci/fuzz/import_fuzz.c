/* libFuzzer entry of the readers of series that are not CSV: make fuzz, then out/fuzz/import_fuzz
 * CORPUS. The first byte chooses the reader. Keys must have names, times must be finite, and what
 * is refused must be refused in the name of the file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ci/tests/import/reading.h"
#include "diag/import/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t n_series;

static int series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	(void)ctx;
	(void)e;
	if (!import_name(key->metric) || !import_name(key->member) ||
		key->n_groups > IMPORT_GROUPS_MAX)
		abort();
	for (size_t i = 0; i < key->n_groups; i++)
		if (!import_name(key->group[i]))
			abort();
	*id = n_series++;
	return 0;
}

static int sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	(void)ctx;
	(void)e;
	if (id >= n_series || !isfinite(time_s) || isinf(value))
		abort();
	return 0;
}

static int metric(void *ctx, const char *declaration, struct err *e)
{
	(void)ctx;
	(void)e;
	if (!strchr(declaration, ' '))
		abort();
	return 0;
}

static int answer(FILE *f, const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct import_options how = {0};
	struct labels *l = labels_new(&how);
	struct reading r = {l, sink, said};
	char refused[300];
	int rc = prometheus_answer_read(f, "x", NULL, l, see, &r, said, e);

	if (!rc && !labels_decide(l, said, NULL) && labels_decided(l)) {
		rewind(f);
		rc = prometheus_answer_read(f, "x", NULL, l, give, &r, said, e);
		labels_finish(l, said, NULL);
	}
	rewind(f);
	prometheus_answer_error(f, refused, sizeof(refused));
	labels_free(l);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* NULL: an answer over HTTP */
	static const char *const names[] = {
		"sar", "sadf", "iostat", "ceph", "prometheus-text", NULL, "prometheus-json"};
	const struct import_sink sink = {NULL, series, sample, metric};
	const struct import_format *format = import_formats;
	struct import_options o = {0};
	struct import_said said = {0};
	struct err e = {0};
	char *head;
	int rc, choice;
	FILE *f;

	if (size < 2)
		return 0;
	n_series = 0;
	choice = data[0] % 7;
	f = fmemopen((void *)(data + 1), size - 1, "r");
	head = strndup((const char *)data + 1, size - 1);
	for (const struct import_format *i = import_formats; i->name; i++)
		i->looks(head, strlen(head));
	free(head);
	while (names[choice] && strcmp(format->name, names[choice]))
		format++;
	rc = names[choice] ? format->read(f, "x", &o, &sink, &said, &e)
			   : answer(f, &sink, &said, &e);
	if (rc && (strncmp(e.text, "x:", 2) || rc > 0))
		abort();
	import_said_clear(&said);
	fclose(f);
	return 0;
}
