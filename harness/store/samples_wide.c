/* Prints a run's measurements as one table for 'culprit diagnose --csv'. */
#include "harness/store/samples_wide.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"

/* Declarations of metrics (diag/fleet/metric.h). Metrics not listed depend on a server's work
 * load or on the machine; they are printed but not judged. */
static const struct {
	enum metric metric;
	const char *what;
} models[] = {
	{METRIC_DREAD, "worse=more kind=amount per=dread_count"},
	{METRIC_DWRITE, "worse=more kind=amount per=dwrite_count"},
	{METRIC_NSREAD, "worse=more kind=amount per=nsread_count"},
	{METRIC_NCREAD, "worse=more kind=amount per=ncread_count"},
	{METRIC_NSBULK, "worse=more kind=amount per=nsbulk_count"},
	{METRIC_NCBULK, "worse=more kind=amount per=ncbulk_count"},
	{METRIC_DISK_READ_TIME, "worse=more kind=amount per=disk_reads"},
	{METRIC_DISK_WRITE_TIME, "worse=more kind=amount per=disk_writes"},
	{METRIC_DISK_READ_BYTES, "worse=load kind=gauge"},
	{METRIC_DISK_WRITTEN_BYTES, "worse=load kind=gauge"},
	{METRIC_NIC_RECEIVED, "worse=load kind=gauge"},
	{METRIC_NIC_SENT, "worse=load kind=gauge"},
	{METRIC_TCP_RTT, "worse=more kind=gauge"},
	{METRIC_TCP_RETRANSMITTED, "worse=more kind=amount per=tcp_sent_segments"},
};

/* The divisor of a metric's sum: another metric or, for service times, its own count. */
static enum metric exposure(enum metric m)
{
	return m == METRIC_DISK_READ_TIME       ? METRIC_DISK_READS
		: m == METRIC_DISK_WRITE_TIME   ? METRIC_DISK_WRITES
		: m == METRIC_TCP_RETRANSMITTED ? METRIC_TCP_SENT_SEGMENTS
						: m;
}

/* One cell: values by second, server and column; NAN if not measured. */
struct table {
	const enum metric *columns;
	size_t n_columns, n_servers;
	int32_t seconds;
	char **servers;
	double *sum, *count;
};

static bool is_level(enum metric m)
{
	static const bool level[METRIC_COUNT] = {
#define LEVEL_OF(e, name, unit, kind, definition) [METRIC_##e] = READING_##kind == READING_LEVEL,
		READINGS(LEVEL_OF)
#undef LEVEL_OF
#define LEVEL_OF(e, name, unit, kind, definition)                                                  \
	[METRIC_CLIENT_##e] = READING_##kind == READING_LEVEL,
			READINGS_TCP(LEVEL_OF)
#undef LEVEL_OF
	};

	return level[m];
}

static size_t server_of(struct table *t, const char *name)
{
	size_t i = 0, cells;

	while (i < t->n_servers && strcmp(t->servers[i], name))
		i++;
	if (i < t->n_servers)
		return i;
	cells = t->n_columns * (size_t)t->seconds;
	t->servers = alloc_room(t->servers, i, sizeof(*t->servers));
	t->servers[i] = alloc_copy(name);
	t->sum = alloc_resize(t->sum, (i + 1) * cells + 1, sizeof(*t->sum));
	t->count = alloc_resize(t->count, (i + 1) * cells + 1, sizeof(*t->count));
	for (size_t k = i * cells; k < (i + 1) * cells; k++)
		t->sum[k] = t->count[k] = NAN;
	t->n_servers++;
	return i;
}

static int add_series(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	struct table *t = ctx;
	size_t at, c = 0;

	(void)e;
	while (c < t->n_columns && strcmp(metric_name(t->columns[c]), metric))
		c++;
	if (c == t->n_columns)
		return 0;
	at = server_of(t, server) * (size_t)t->seconds;
	for (size_t i = 0; i < n; i++) {
		size_t k;

		if (samples[i].second < 0 || samples[i].second >= t->seconds)
			continue;
		k = (at + (size_t)samples[i].second) * t->n_columns + c;
		t->sum[k] = samples[i].sum_s;
		t->count[k] = (double)samples[i].count;
		/* The mean, so that a server with more clients does not have a higher level. */
		if (is_level(t->columns[c]) && samples[i].count)
			t->sum[k] /= t->count[k];
	}
	return 0;
}

static void samples_wide_put_number(double x)
{
	putchar(',');
	if (!isnan(x))
		printf("%.9g", x);
}

static void samples_wide_put_table(const struct table *t, double start_s)
{
	for (int32_t second = 0; second < t->seconds; second++)
		for (size_t s = 0; s < t->n_servers; s++) {
			size_t k = (s * (size_t)t->seconds + (size_t)second) * t->n_columns;

			printf("%.3f,", start_s + second);
			text_print_csv(stdout, t->servers[s], false);
			for (size_t c = 0; c < t->n_columns; c++) {
				samples_wide_put_number(t->sum[k + c]);
				if (t->columns[c] < METRIC_SERVICE_TIMES)
					samples_wide_put_number(t->count[k + c]);
			}
			putchar('\n');
		}
}

static void samples_wide_put_head(const enum metric *columns, size_t n)
{
	for (size_t c = 0; c < n; c++) {
		const char *what = "worse=none", *name = metric_name(columns[c]);

		for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
			if (models[i].metric == columns[c])
				what = models[i].what;
		printf("# metric %s unit=%s %s\n", name, metric_unit(columns[c]), what);
		if (columns[c] < METRIC_SERVICE_TIMES)
			printf("# metric %s_count unit=calls worse=none\n", name);
	}
	fputs("time,server", stdout);
	for (size_t c = 0; c < n; c++) {
		printf(",%s", metric_name(columns[c]));
		if (columns[c] < METRIC_SERVICE_TIMES)
			printf(",%s_count", metric_name(columns[c]));
	}
	putchar('\n');
}

int samples_wide(
	struct store *s, const bool taken[static METRIC_COUNT], long long cell, struct err *e)
{
	bool wanted[METRIC_COUNT] = {false};
	enum metric columns[METRIC_COUNT];
	json_auto_t *rows = NULL;
	json_t *row;
	size_t n = 0, i;
	int rc = store_rows(s, ROWS_CONFIRMED, 0, &rows, e);

	for (int m = 0; m < METRIC_COUNT; m++)
		if (taken[m])
			wanted[m] = wanted[exposure((enum metric)m)] = true;
	for (int m = 0; m < METRIC_COUNT; m++)
		if (wanted[m])
			columns[n++] = (enum metric)m;
	if (!rc)
		samples_wide_put_head(columns, n);
	json_array_foreach(rows, i, row) {
		struct table t = {.columns = columns,
			.n_columns = n,
			.seconds = (int32_t)jget_int(row, "seconds")};

		if (rc || (cell && cell != jget_int(row, "cell")))
			continue;
		rc = store_samples(s, jget_int(row, "attempt"), add_series, &t, e);
		if (!rc)
			samples_wide_put_table(
				&t, (double)(jget_int(row, "start_ns") / 1000000) / 1e3);
		for (size_t k = 0; k < t.n_servers; k++)
			free(t.servers[k]);
		free(t.servers);
		free(t.sum);
		free(t.count);
	}
	return rc;
}
