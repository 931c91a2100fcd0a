/* Puts a captured application and its replays on a timeline. */
#include "harness/base/clock.h"
#include "harness/timeline/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/series.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/units.h"

enum { STEPS_SHOWN = 512 }; /* of bytes over time */

/* In the order of the page's colours. */
enum category { READ, WRITE, COMPUTING, WAITING, AWAY, OTHER, CATEGORIES };

/* The calls of a thread that are shown. */
struct shown {
	int32_t track;
	uint32_t first_slice;
	uint64_t skipped, n;
};

struct drawing {
	const struct app_trace *trace;
	const struct capture_options *o;
	struct timeline *t;
	struct shown *threads;
	int64_t first_ns, last_ns; /* range of all calls, in the trace's time */
	struct app_series series;
	uint32_t category[CATEGORIES], offset, size, result, file, error, computed, away;
	int32_t root;
	bool reads, writes; /* by the application or a replay */
};

__attribute__((format(printf, 3, 4))) static void note(
	struct timeline *t, const char *term, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	timeline_note(t, term, text);
}

static int64_t on_axis(const struct drawing *d, int64_t ns)
{
	return clock_sum_ns(app_about(d->trace)->start_ns, ns);
}

/* ---- a replay's result ---- */

int capture_replay(const char *path, const struct app_trace *t, json_t **out, struct err *e)
{
	auto_free char *text = NULL;
	json_error_t why;
	struct app_series s;
	json_t *v;
	const char *of;
	int rc = file_read(path, &text, NULL, e);

	if (rc)
		return rc;
	v = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	of = jget_text(v, "trace_id");
	if (!of || !json_is_array(jget(v, "passes")))
		rc = err_set(e, -EINVAL, "'%s' is not a result of 'culprit replay --output'%s%s",
			path, v ? "" : ": ", v ? "" : why.text);
	else if (strcmp(of, app_id(t)) != 0)
		rc = err_set(e, -EINVAL, "'%s' is a replay of another trace, '%.200s'", path,
			jget_text(v, "trace") ? jget_text(v, "trace") : "?");
	else if (!series_from_json(jget(json_array_get(jget(v, "passes"), 0), "series"), &s))
		rc = err_set(e, -EINVAL, "'%s' holds no bytes over time: replay it again", path);
	if (rc)
		json_decref(v);
	else
		*out = v;
	return rc;
}

/* The complete pass whose duration is closest to the mean; NULL: no pass was complete. */
static const json_t *typical_pass(const json_t *result)
{
	double least = INFINITY, mean_s = jget_real(result, "seconds");
	const json_t *best = NULL;
	json_t *pass;
	size_t i;

	json_array_foreach(jget(result, "passes"), i, pass) {
		double off = fabs(jget_real(pass, "seconds") - mean_s);

		if (jget_true(pass, "whole") && off < least) {
			best = pass;
			least = off;
		}
	}
	return best;
}

/* ---- the whole trace once: its range and the bytes over time ---- */

static bool is_read(const struct app_op *op)
{
	return op->call == APP_READ || op->call == APP_PREAD;
}

static bool is_write(const struct app_op *op)
{
	return op->call == APP_WRITE || op->call == APP_PWRITE;
}

static int look_at_op(struct drawing *d, const struct app_op *op, struct err *e)
{
	if (op->start_ns < 0 || op->took_ns < 0)
		return err_set(e, -EINVAL,
			"cannot draw the trace: its calls have no times; 'culprit "
			"log' prints them");
	d->first_ns = op->start_ns < d->first_ns ? op->start_ns : d->first_ns;
	d->last_ns = app_op_end(op) > d->last_ns ? app_op_end(op) : d->last_ns;
	if ((is_read(op) || is_write(op)) && op->result > 0)
		series_add(&d->series, is_write(op), op->start_ns, app_op_end(op),
			(uint64_t)op->result);
	return 0;
}

static int capture_look(struct drawing *d, struct err *e)
{
	int rc = 0;

	series_begin(&d->series);
	d->first_ns = INT64_MAX;
	for (uint32_t i = 0; i < app_n_threads(d->trace) && !rc; i++) {
		struct app_cursor *c;
		struct app_op op;

		rc = app_cursor_new(d->trace, i, &c);
		if (rc)
			return err_errno(e, rc, "cannot read the trace");
		while (!rc && (rc = app_next(c, &op, e)) > 0)
			rc = look_at_op(d, &op, e);
		app_cursor_free(c);
	}
	if (!rc && d->first_ns == INT64_MAX)
		rc = err_set(e, -EINVAL, "cannot draw the trace: it has no calls");
	return rc;
}

/* ---- calls ---- */

static void add_words(struct drawing *d)
{
	static const char *const names[CATEGORIES] = {
		"read", "write", "computing", "waiting", "away", "other call"};

	for (int i = 0; i < CATEGORIES; i++)
		d->category[i] = timeline_word(d->t, names[i]);
	timeline_categories(d->t, d->category, CATEGORIES);
	d->offset = timeline_word(d->t, "offset_bytes");
	d->size = timeline_word(d->t, "size_bytes");
	d->result = timeline_word(d->t, "result");
	d->file = timeline_word(d->t, "file");
	d->error = timeline_word(d->t, "error");
	d->computed = timeline_word(d->t, "computed_ns");
	d->away = timeline_word(d->t, "away_ns");
}

static void capture_number(
	struct timeline_slice *s, struct timeline_arg *args, uint32_t key, int64_t value)
{
	args[s->n_args++] = (struct timeline_arg){key, TIMELINE_NUMBER, value};
}

static void capture_text(struct drawing *d, struct timeline_slice *s, struct timeline_arg *args,
	uint32_t key, const char *value)
{
	args[s->n_args++] = (struct timeline_arg){key, TIMELINE_TEXT, timeline_word(d->t, value)};
}

static void add_arguments(struct drawing *d, const struct app_op *op, struct timeline_slice *s,
	struct timeline_arg *args)
{
	uint32_t file = op->file;

	if (file == APP_NO_FILE && op->handle)
		file = app_handle(d->trace, op->handle)->file;
	if (file != APP_NO_FILE)
		capture_text(d, s, args, d->file,
			*app_file(d->trace, file)->path ? app_file(d->trace, file)->path : ".");
	if (op->offset >= 0)
		capture_number(s, args, d->offset, op->offset);
	if (op->size)
		capture_number(s, args, d->size, (int64_t)op->size);
	if (op->result < 0) {
		const char *name = op->result > -4096 ? strerrorname_np((int)-op->result) : NULL;

		capture_text(d, s, args, d->error, name ? name : "?");
		s->flags |= TIMELINE_FAILED;
	} else if (is_read(op) || is_write(op)) {
		capture_number(s, args, d->result, op->result);
	}
	if (op->compute_ns)
		capture_number(s, args, d->computed, (int64_t)op->compute_ns);
	if (op->away_ns)
		capture_number(s, args, d->away, (int64_t)op->away_ns);
}

static uint32_t capture_add_call(struct drawing *d, int32_t track, const struct app_op *op)
{
	enum category category = is_read(op) ? READ : is_write(op) ? WRITE : OTHER;
	struct timeline_arg args[TIMELINE_ARGS_MAX];
	struct timeline_slice s = {.track = track,
		.name = timeline_word(d->t, app_call_name(op->call)),
		.category = d->category[category],
		.start_ns = on_axis(d, op->start_ns),
		.duration_ns = op->took_ns,
		.args = args};

	add_arguments(d, op, &s, args);
	return timeline_slice_add(d->t, &s);
}

static bool is_before(const struct drawing *d, const struct app_op *op)
{
	return (double)(op->start_ns - d->first_ns) < d->o->from_s * 1e9;
}

static bool is_behind(const struct drawing *d, const struct app_op *op)
{
	return d->o->to_s > 0 && (double)(op->start_ns - d->first_ns) >= d->o->to_s * 1e9;
}

/* Adds the calls of a thread in order, so that a call's number gives its slice. */
static int add_calls(struct drawing *d, uint32_t thread, struct err *e)
{
	struct shown *s = &d->threads[thread];
	struct app_cursor *c;
	struct app_op op;
	int rc = app_cursor_new(d->trace, thread, &c);

	if (rc)
		return err_errno(e, rc, "cannot read the trace");
	while ((rc = app_next(c, &op, e)) > 0) {
		if (!s->n && is_before(d, &op)) {
			s->skipped++;
			continue;
		}
		if (is_behind(d, &op))
			break;
		if (!s->n++)
			s->first_slice = capture_add_call(d, s->track, &op);
		else
			capture_add_call(d, s->track, &op);
	}
	app_cursor_free(c);
	return rc < 0 ? rc : 0;
}

/* ---- the time between calls ---- */

static int64_t add_part(
	struct drawing *d, int32_t track, enum category category, int64_t from, int64_t ns)
{
	if (ns > 0)
		timeline_slice_add(d->t,
			&(struct timeline_slice){.track = track,
				.name = d->category[category],
				.category = d->category[category],
				.start_ns = on_axis(d, from),
				.duration_ns = ns});
	return from + (ns > 0 ? ns : 0);
}

static int64_t at_most(uint64_t ns, int64_t room)
{
	return ns < (uint64_t)room ? (int64_t)ns : room;
}

static void add_gap(struct drawing *d, int32_t track, const struct app_op *op, int64_t ended_ns)
{
	int64_t at = ended_ns;

	if (op->start_ns <= at)
		return;
	at = add_part(d, track, COMPUTING, at, at_most(op->compute_ns, op->start_ns - at));
	at = add_part(d, track, AWAY, at, at_most(op->away_ns, op->start_ns - at));
	if (op->n_edges)
		add_part(d, track, WAITING, at, op->start_ns - at);
}

static void add_edges(struct drawing *d, const struct app_op *op, uint32_t slice)
{
	for (uint32_t i = 0; i < op->n_edges; i++) {
		const struct shown *other = &d->threads[op->edges[i].thread];
		uint64_t call = op->edges[i].ops - 1;

		if (call >= other->skipped && call - other->skipped < other->n)
			timeline_arrow_add(d->t,
				other->first_slice + (uint32_t)(call - other->skipped), slice,
				TIMELINE_EXACT);
	}
}

/* Runs after all calls have been added. The time before the first call of a trace is not drawn:
 * it is the application's start. */
static int add_between(struct drawing *d, uint32_t thread, struct err *e)
{
	const struct shown *s = &d->threads[thread];
	int64_t ended_ns = d->first_ns;
	struct app_cursor *c;
	struct app_op op;
	uint64_t n = 0;
	int rc = app_cursor_new(d->trace, thread, &c);

	if (rc)
		return err_errno(e, rc, "cannot read the trace");
	while ((rc = app_next(c, &op, e)) > 0) {
		if (n >= s->skipped + s->n)
			break;
		if (n >= s->skipped) {
			add_gap(d, s->track, &op, ended_ns);
			add_edges(d, &op, s->first_slice + (uint32_t)(n - s->skipped));
		}
		ended_ns = app_op_end(&op);
		n++;
	}
	app_cursor_free(c);
	return rc < 0 ? rc : 0;
}

/* ---- tracks ---- */

static void add_rank(struct drawing *d, int32_t ranks, uint32_t number_of)
{
	const struct app_rank *r = app_rank(d->trace, number_of);
	const char *node = app_several_nodes(d->trace) ? r->node : "";
	auto_free char *name = alloc_format("rank %u%s%s", number_of, *node ? ", " : "", node);
	int32_t track = timeline_track(d->t, ranks, TIMELINE_PROCESS, name);

	for (uint32_t i = 0; i < r->n_threads; i++) {
		auto_free char *thread = alloc_format("thread %u", i);

		d->threads[r->first_thread + i].track = r->n_threads == 1
			? track
			: timeline_track(d->t, track, TIMELINE_THREAD, thread);
	}
}

static int add_ranks(struct drawing *d, struct err *e)
{
	int32_t ranks = timeline_track(d->t, d->root, TIMELINE_NODE, "ranks");
	int rc = 0;

	d->threads = alloc_zero(app_n_threads(d->trace) + 1, sizeof(*d->threads));
	for (uint32_t r = 0; r < app_n_ranks(d->trace); r++)
		add_rank(d, ranks, r);
	for (uint32_t i = 0; i < app_n_threads(d->trace) && !rc; i++)
		rc = add_calls(d, i, e);
	for (uint32_t i = 0; i < app_n_threads(d->trace) && !rc; i++)
		rc = add_between(d, i, e);
	return rc;
}

/* ---- bytes over time ---- */

/* Bytes over time and their end, from the first call on. */
struct curve {
	struct app_series s;
	double before_s; /* from the start of the series to the first call */
	double seconds;
};

static void add_counter(struct drawing *d, int32_t track, const char *name, const uint64_t *steps,
	const struct curve *c)
{
	uint32_t counter = timeline_counter(d->t, track, name, "MB/s");
	const int64_t zero = on_axis(d, d->first_ns), before = (int64_t)(c->before_s * 1e9);
	const int64_t step_ns = (int64_t)c->s.interval_ns;
	const int64_t end = clock_sum_ns(zero, (int64_t)(c->seconds * 1e9));

	for (unsigned i = (unsigned)(before / step_ns); i < c->s.n; i++) {
		int64_t at = clock_sum_ns(zero, i * step_ns - before);

		timeline_sample_add(d->t, counter, at < zero ? zero : at,
			(double)steps[i] * 1e3 / (double)step_ns);
	}
	timeline_sample_add(d->t, counter, clock_sum_ns(zero, c->s.n * step_ns - before), 0);
	timeline_sample_add(d->t, counter, end, 0);
}

static void add_curve(struct drawing *d, const char *name, const struct curve *c)
{
	int32_t track = timeline_track(d->t, d->root, TIMELINE_NODE, name);
	int64_t end = clock_sum_ns(on_axis(d, d->first_ns), (int64_t)(c->seconds * 1e9));
	auto_free char *ends = alloc_format("%s ends", name);

	if (d->reads)
		add_counter(d, track, "read", c->s.read, c);
	if (d->writes || !d->reads)
		add_counter(d, track, "written", c->s.written, c);
	timeline_mark_add(d->t, TIMELINE_PHASE, track, end, end, ends);
}

char *capture_replay_name(const json_t *result)
{
	const char *mode = jget_text(result, "mode");
	int64_t copies = jget_int(result, "copies");
	char many[32] = "";

	if (copies > 1)
		snprintf(many, sizeof(many), ", %lld copies", (long long)copies);
	return alloc_format("replay, %.32s%s", mode ? mode : "?", many);
}

static void note_replay(struct drawing *d, const json_t *result, const char *name)
{
	const size_t passes = json_array_size(jget(result, "passes"));
	auto_free char *clients = alloc_copy("");
	json_t *client;
	size_t i;

	json_array_foreach(jget(result, "clients"), i, client) {
		char *more = alloc_format("%s%s%.64s", clients, i ? ", " : "",
			json_is_string(client) ? json_string_value(client) : "?");

		free(clients);
		clients = more;
	}
	note(d->t, name,
		"on %.600s; %zu pass%s; the one closest to the mean length is "
		"drawn: %.3f s",
		clients, passes, passes == 1 ? "" : "es",
		jget_real(typical_pass(result), "seconds"));
}

static int get_curve(const json_t *result, struct curve *c, struct err *e)
{
	const json_t *pass = typical_pass(result), *series = jget(pass, "series");

	c->seconds = jget_real(pass, "seconds");
	c->before_s = jget_real(series, "first_s");
	if (!pass || !series_from_json(series, &c->s) || !(c->seconds >= 0 && c->seconds < 1e9) ||
		!(c->before_s >= 0 && c->before_s < 1e9))
		return err_set(e, -EINVAL, "a replay has no whole pass with bytes over time");
	return 0;
}

/* All use the same steps, so that they can be compared. */
static void same_steps(struct curve *curves, size_t n)
{
	uint64_t interval_ns = 0;

	for (size_t i = 0; i < n; i++) {
		struct curve *c = &curves[i];

		while (interval_ns < c->s.interval_ns ||
			(double)interval_ns * STEPS_SHOWN < c->seconds * 1e9)
			interval_ns = interval_ns ? interval_ns * 2 : SERIES_LEAST_NS;
	}
	for (size_t i = 0; i < n; i++)
		series_coarsen(&curves[i].s, interval_ns);
}

static void find_directions(struct drawing *d, const struct curve *curves, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 0; k < curves[i].s.n; k++) {
			d->reads = d->reads || curves[i].s.read[k];
			d->writes = d->writes || curves[i].s.written[k];
		}
	}
}

static int add_curves(struct drawing *d, json_t *const *replays, size_t n, struct err *e)
{
	struct curve *curves = alloc_zero(n + 1, sizeof(*curves));
	int rc = 0;

	curves[0] = (struct curve){
		d->series, (double)d->first_ns / 1e9, (double)(d->last_ns - d->first_ns) / 1e9};
	for (size_t i = 0; i < n && !rc; i++)
		rc = get_curve(replays[i], &curves[i + 1], e);
	if (!rc) {
		same_steps(curves, n + 1);
		find_directions(d, curves, n + 1);
		add_curve(d, "application", &curves[0]);
	}
	for (size_t i = 0; i < n && !rc; i++) {
		auto_free char *name = capture_replay_name(replays[i]);

		add_curve(d, name, &curves[i + 1]);
		note_replay(d, replays[i], name);
	}
	free(curves);
	return rc;
}

/* ---- the whole ---- */

static void add_notes(struct drawing *d)
{
	const struct app_about *a = app_about(d->trace);

	note(d->t, "command", "%.900s", a->comment);
	note(d->t, "application",
		"%zu ranks, %llu calls, %llu waits for others; %.3f s from its first "
		"call to the end of its last; captured %s",
		app_n_ranks(d->trace), (unsigned long long)app_n_ops(d->trace),
		(unsigned long long)app_n_edges(d->trace), (double)(d->last_ns - d->first_ns) / 1e9,
		a->method == APP_BY_THROTTLING         ? "by throttling"
			: a->method == APP_BY_MESSAGES ? "by messages"
						       : "by both methods");
	note(d->t, "between calls",
		"a trace has the durations of computing and being away, not their order: "
		"computing is drawn first, then away, then waiting");
	if (a->shared_memory)
		note(d->t, "missing", "processes share memory; waits through it are not shown");
	if (a->not_captured)
		note(d->t, "missing",
			"%llu calls that map files, copy between them, or are asynchronous",
			(unsigned long long)a->not_captured);
}

int capture_timeline(const struct app_trace *t, json_t *const *replays, size_t n,
	const struct capture_options *o, struct timeline *out, struct err *e)
{
	struct drawing *d = alloc_zero(1, sizeof(*d));
	int rc;

	*d = (struct drawing){.trace = t, .o = o, .t = out};
	rc = capture_look(d, e);
	if (!rc) {
		add_words(d);
		add_notes(d);
		d->root = timeline_track(out, TIMELINE_NONE, TIMELINE_CLUSTER, "capture");
		rc = add_curves(d, replays, n, e) ?: add_ranks(d, e);
		timeline_first(out, TIMELINE_ALL_ARROWS | (n ? TIMELINE_ABOUT : 0));
	}
	free(d->threads);
	free(d);
	return rc;
}
