/* Measures the application of each cell, during the fault against before it. */
#include "harness/judging/application.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/stat.h"
#include "harness/judging/flows.h"

#define STOPPED 0.01  /* the least ratio of throughput */
#define UNDER_WAY 0.1 /* of the busiest second before the fault */

struct span {
	struct impact_cell cell;
	const json_t *row;
	double from_s, onset_s, offset_s; /* since its start; from: the workload is under way */
};

struct spans {
	json_t *rows; /* what names belong to */
	struct span *list;
	size_t n;
};

/* ---- throughput ---- */

/* Bytes by second, NAN where nothing was read. */
struct moved {
	double *bytes;
	int32_t seconds;
};

static int add_received(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	struct moved *m = ctx;

	(void)server;
	(void)e;
	if (strcmp(metric, metric_name(METRIC_TCP_RECEIVED)) &&
		strcmp(metric, metric_name(METRIC_CLIENT_TCP_RECEIVED)))
		return 0;
	for (size_t i = 0; i < n; i++) {
		int32_t at = samples[i].second;

		if (at >= 0 && at < m->seconds)
			m->bytes[at] = (isnan(m->bytes[at]) ? 0 : m->bytes[at]) + samples[i].sum_s;
	}
	return 0;
}

/* Mean of the whole seconds of a span; NAN: none has a reading. */
static double mean_rate(const struct moved *m, double from_s, double to_s)
{
	double sum = 0;
	unsigned n = 0;

	for (int32_t at = (int32_t)ceil(from_s); at + 1 <= to_s && at < m->seconds; at++)
		if (at >= 0 && !isnan(m->bytes[at])) {
			sum += m->bytes[at];
			n++;
		}
	return n ? sum / n : NAN;
}

/* When the workload is under way: after the first second in which it moves a fair part of what it
 * moves before the onset. 0: nothing was read. */
static double begin_of(const struct moved *m, double onset_s)
{
	double most = -1;
	int32_t last = (int32_t)fmin(floor(onset_s), m->seconds);

	for (int32_t at = 0; at < last; at++)
		most = fmax(most, m->bytes[at]); /* which passes NAN over */
	for (int32_t at = 0; at < last && most > 0; at++)
		if (m->bytes[at] >= UNDER_WAY * most)
			return at + 1;
	return most < 0 ? 0 : onset_s;
}

/* Did nothing move from the last whole second of the span on? */
static bool has_ended(const struct moved *m, double to_s)
{
	for (int32_t at = (int32_t)floor(to_s) - 1; at < m->seconds; at++)
		if (at >= 0 && m->bytes[at] > 0)
			return false;
	return true;
}

static int measure_throughput(struct store *s, struct span *c, struct err *e)
{
	struct moved m = {.seconds = (int32_t)jget_int(c->row, "seconds")};
	double before, during;
	int rc;

	m.bytes = alloc_zero((size_t)m.seconds + 1, sizeof(*m.bytes));
	for (int32_t i = 0; i < m.seconds; i++)
		m.bytes[i] = NAN;
	rc = store_samples(s, jget_int(c->row, "attempt"), add_received, &m, e);
	c->from_s = begin_of(&m, c->onset_s);
	before = mean_rate(&m, c->from_s, c->onset_s);
	during = mean_rate(&m, c->onset_s, c->offset_s);
	if (before > 0 && !isnan(during) && !has_ended(&m, c->offset_s))
		c->cell.ratios[IMPACT_THROUGHPUT] = fmax(during / before, STOPPED);
	free(m.bytes);
	return rc;
}

/* ---- latency ---- */

struct answered {
	const struct span *cell;
	struct flows *flows;
	int64_t start_ns;
	double before_s, during_s; /* sums */
	uint64_t n_before, n_during;
};

static int add_request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct answered *a = ctx;
	struct flow_parts parts;
	double at_s;

	(void)e;
	flow_request_parts(r, &parts);
	if (parts.total < 0 || r->sent.how == FLOW_UNBOUND)
		return 0;
	at_s = (double)(r->sent.begin_ns - flows_clock_ns(a->flows, r->sent.node) - a->start_ns) /
		1e9;
	if (at_s >= a->cell->from_s && at_s < a->cell->onset_s) {
		a->before_s += (double)parts.total / 1e9;
		a->n_before++;
	} else if (at_s >= a->cell->onset_s && at_s < a->cell->offset_s) {
		a->during_s += (double)parts.total / 1e9;
		a->n_during++;
	}
	return 0;
}

static int measure_latency(struct store *s, struct span *c, struct err *e)
{
	struct answered a = {.cell = c, .start_ns = jget_int(c->row, "start_ns")};
	const struct flow_sink sink = {.request = add_request, .ctx = &a};
	unsigned char *block = NULL;
	size_t size;
	int rc = store_get_requests(s, jget_int(c->row, "attempt"), 0, 0, &block, &size, e);

	free(block);
	if (rc <= 0)
		return rc;
	rc = flows_new(s, c->row, NULL, &sink, &a.flows, e);
	if (rc == -EINVAL || rc == -ENOENT)
		return 0; /* another version's table, and no logs */
	rc = rc ?: flow_run(flows_flow(a.flows), e);
	if (!rc && a.before_s > 0 && a.during_s > 0)
		c->cell.ratios[IMPACT_LATENCY] = a.during_s / (double)a.n_during /
			(a.before_s / (double)a.n_before);
	flows_free(a.flows);
	return rc;
}

/* ---- cells ---- */

static void add_span(struct spans *all, const json_t *row, struct cell_range range)
{
	long cell = (long)jget_int(row, "cell");
	int64_t start = jget_int(row, "start_ns"), onset = jget_int(row, "onset_ns");
	int64_t offset = jget_int(row, "offset_ns");

	if (jget_int(row, "training") || (range.to && (cell < range.from || cell > range.to)))
		return;
	all->list[all->n++] = (struct span){
		.cell = {.number = cell,
			.fault = onset > 0 ? jget_text(row, "fault") : NULL,
			.workload = jget_text(row, "workload"),
			.ratios = {NAN, NAN}},
		.row = row,
		.onset_s = (double)(onset - start) / 1e9,
		.offset_s = offset > 0 ? (double)(offset - start) / 1e9
				       : (double)jget_int(row, "seconds")};
}

/* Gives controls the middle of the spans of the other cells. False: there are no others. */
static bool set_controls(struct spans *all)
{
	double *onsets = alloc_zero(all->n + 1, sizeof(*onsets)),
	       *offsets = alloc_zero(all->n + 1, sizeof(*offsets)), onset_s, offset_s;
	size_t n = 0;

	for (const struct span *c = all->list; c < all->list + all->n; c++)
		if (c->cell.fault) {
			onsets[n] = c->onset_s;
			offsets[n++] = c->offset_s;
		}
	onset_s = stat_median(onsets, n);
	offset_s = stat_median(offsets, n);
	for (struct span *c = all->list; c < all->list + all->n; c++)
		if (!c->cell.fault) {
			c->onset_s = onset_s;
			c->offset_s = offset_s;
		}
	free(onsets);
	free(offsets);
	return n > 0;
}

int application_impacts(
	struct store *s, struct cell_range cells, struct impacts **out, struct err *e)
{
	struct spans all = {0};
	struct impacts *i = impacts_new();
	int rc = store_rows(s, ROWS_TRACED, 0, &all.rows, e);
	bool some;
	json_t *row;
	size_t k;

	all.list = alloc_zero(json_array_size(all.rows) + 1, sizeof(*all.list));
	json_array_foreach(all.rows, k, row)
		add_span(&all, row, cells);
	some = set_controls(&all);
	for (struct span *c = all.list; c < all.list + all.n && !rc; c++) {
		if (some)
			rc = measure_throughput(s, c, e) ?: measure_latency(s, c, e);
		impacts_add(i, &c->cell);
	}
	free(all.list);
	json_decref(all.rows);
	if (rc)
		impacts_free(i);
	else
		*out = i;
	return rc;
}
