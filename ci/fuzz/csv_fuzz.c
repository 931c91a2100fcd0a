/* libFuzzer entry of the reader of CSV time series: make fuzz, then out/fuzz/csv_fuzz CORPUS. What
 * it gives must have finite times, values that are finite or missing, valid names and numbers of
 * known series; what it refuses must be refused with a line number. The first byte chooses among
 * the options. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint32_t series;
	uint64_t samples, missing;
	size_t n_groups;
};

static int on_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct seen *s = ctx;

	(void)e;
	if (!import_name(key->metric) || !import_name(key->member) ||
		key->n_groups > IMPORT_GROUPS_MAX || (s->series && key->n_groups != s->n_groups))
		abort();
	for (size_t g = 0; g < key->n_groups; g++)
		if (!import_name(key->group[g]))
			abort();
	s->n_groups = key->n_groups;
	*id = s->series++;
	return 0;
}

static int on_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct seen *s = ctx;

	if (id >= s->series || !isfinite(time_s) || isinf(value))
		abort();
	s->missing += isnan(value);
	/* A sink may refuse, at any sample. */
	return ++s->samples == 1000 ? err_set(e, -22, "enough") : 0;
}

static int on_metric(void *ctx, const char *declaration, struct err *e)
{
	(void)ctx;
	return strchr(declaration, '\n') || !*declaration ? err_set(e, -22, "bad") : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const metrics[] = {"latency"};
	struct seen seen = {0};
	struct import_sink sink = {
		.ctx = &seen, .series = on_series, .sample = on_sample, .metric = on_metric};
	struct import_options o = {0};
	struct import_said said = {0};
	char head[65];
	struct err e;
	uint8_t how = size ? data[0] : 0;
	FILE *f = size > 1 ? fmemopen((void *)(data + 1), size - 1, "r") : NULL;
	int rc;

	if (!f)
		return 0;
	o.group[0] = how & 1 ? "host" : NULL;
	o.member = how & 2 ? "disk" : NULL;
	o.metrics = metrics;
	o.n_metrics = how & 4 ? 1 : 0;
	o.only_metric = how & 8 ? "latency" : NULL;
	o.to_s = how & 16 ? 1000 : 0;
	snprintf(head, sizeof(head), "%.*s", (int)(size - 1 < 64 ? size - 1 : 64), data + 1);
	csv_looks(head, strlen(head));
	rc = csv_read(f, "x.csv", &o, &sink, &said, &e);
	if (rc && strncmp(e.text, "x.csv:", 6))
		abort();
	if (rc && (e.text[6] < '1' || e.text[6] > '9' || strlen(e.text) < 10))
		abort();
	if (!rc && (said.samples != seen.samples || said.missing != seen.missing || !said.form))
		abort();
	import_said_clear(&said);
	fclose(f);
	return 0;
}
