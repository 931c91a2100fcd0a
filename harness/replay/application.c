/* Describes the captured application in the form of a replay's result. */
#include <string.h>

#include "diag/app/series.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/replay/replay.h"
#include "harness/replayer/latency.h"

struct profile {
	bool timed;
	int64_t first_ns, last_ns, ended_ns; /* of the thread's previous op */
	uint64_t ops, waits, read, written, computed_ns, away_ns, waited_ns, calls_ns;
	uint32_t latency[APP_CALLS][LATENCY_BUCKETS];
	struct app_series series;
};

/* The rest of the time before an op that waits for others. */
static void add_wait(struct profile *p, const struct app_op *op)
{
	uint64_t known = op->compute_ns + op->away_ns;
	uint64_t gap = op->start_ns > p->ended_ns ? (uint64_t)(op->start_ns - p->ended_ns) : 0;

	if (!op->n_edges || gap <= known)
		return;
	p->waits++;
	p->waited_ns += gap - known;
}

static void add_op(struct profile *p, const struct app_op *op)
{
	bool reads = op->call == APP_READ || op->call == APP_PREAD;
	bool writes = op->call == APP_WRITE || op->call == APP_PWRITE;
	uint64_t bytes = (reads || writes) && op->result > 0 ? (uint64_t)op->result : 0;
	int64_t end = app_op_end(op);

	p->ops++;
	p->read += reads ? bytes : 0;
	p->written += writes ? bytes : 0;
	p->computed_ns += op->compute_ns;
	p->away_ns += op->away_ns;
	if (op->start_ns < 0 || op->took_ns < 0) {
		p->timed = false;
		return;
	}
	add_wait(p, op);
	p->calls_ns += (uint64_t)op->took_ns;
	p->latency[op->call][latency_bucket((uint64_t)op->took_ns)]++;
	p->first_ns = op->start_ns < p->first_ns ? op->start_ns : p->first_ns;
	p->last_ns = end > p->last_ns ? end : p->last_ns;
	p->ended_ns = end;
	series_add(&p->series, writes, op->start_ns, end, bytes);
}

static int read_thread(const struct app_trace *t, uint32_t thread, struct profile *p, struct err *e)
{
	struct app_cursor *c;
	struct app_op op;
	int rc = app_cursor_new(t, thread, &c);

	if (rc)
		return err_errno(e, rc, "cannot read the trace");
	p->ended_ns = 0;
	while ((rc = app_next(c, &op, e)) > 0)
		add_op(p, &op);
	app_cursor_free(c);
	return rc;
}

static json_t *latencies(const struct profile *p)
{
	json_t *all = json_object();

	for (unsigned c = 1; c < APP_CALLS; c++) {
		json_auto_t *counts = json_array();
		bool any = false;

		for (unsigned b = 0; b < LATENCY_BUCKETS; b++) {
			json_array_append_new(counts, json_integer(p->latency[c][b]));
			any = any || p->latency[c][b];
		}
		if (any)
			json_object_set_new(all, app_call_name(c), replay_latencies(counts));
	}
	return all;
}

static json_t *in_seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

static json_t *as_json(const struct profile *p)
{
	json_t *v = json_pack("{s:I, s:I, s:I, s:o, s:o}", "ops", (json_int_t)p->ops, "read_bytes",
		(json_int_t)p->read, "written_bytes", (json_int_t)p->written, "computed_s",
		in_seconds(p->computed_ns), "away_s", in_seconds(p->away_ns));

	if (!p->timed || p->last_ns <= p->first_ns)
		return v;
	json_object_set_new(v, "seconds", in_seconds((uint64_t)(p->last_ns - p->first_ns)));
	json_object_set_new(v, "calls_s", in_seconds(p->calls_ns));
	json_object_set_new(v, "waited_s", in_seconds(p->waited_ns));
	json_object_set_new(v, "waits", json_integer((json_int_t)p->waits));
	json_object_set_new(v, "calls", latencies(p));
	json_object_set_new(v, "series", series_json(&p->series));
	json_object_set_new(jget(v, "series"), "first_s", in_seconds((uint64_t)p->first_ns));
	return v;
}

int replay_application(const struct app_trace *t, json_t **out, struct err *e)
{
	struct profile *p = alloc_zero(1, sizeof(*p));
	int rc = 0;

	p->timed = true;
	p->first_ns = INT64_MAX;
	series_begin(&p->series);
	for (uint32_t i = 0; i < app_n_threads(t) && !rc; i++)
		rc = read_thread(t, i, p, e);
	if (!rc)
		*out = as_json(p);
	free(p);
	return rc;
}
