/* The tables 'requests' and 'failures' of a run. */
#include "harness/judging/run_requests_impl.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/flow/flow.h"
#include "diag/record/describe.h"
#include "diag/record/fuse.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/failures.h"
#include "harness/judging/flows.h"
#include "harness/judging/writings.h"

static const size_t sizes[KINDS] = {sizeof(struct request_row), sizeof(struct failure_row)};

/* ---- following an attempt ---- */

struct following {
	struct run_requests *of;
	struct followed *to;
	const struct query_ask *ask; /* or NULL */
	struct flows *flows;
	struct failures *failures;
};

static int run_requests_by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* A copy of the text that lives as long as 'r'; NULL for NULL and "". */
static const char *run_requests_keep(struct run_requests *r, const char *s)
{
	char *copy, **at;

	if (!s || !*s)
		return NULL;
	at = tfind(s, &r->texts, run_requests_by_text);
	if (at)
		return *at;
	copy = alloc_copy(s);
	if (!tsearch(copy, &r->texts, run_requests_by_text))
		alloc_end();
	return copy;
}

static const char *keep_for(void *ctx, const char *s)
{
	return run_requests_keep(((struct following *)ctx)->of, s);
}

static const char *node_name(struct following *f, uint32_t node)
{
	return node == FLOW_NO_NODE
		? NULL
		: run_requests_keep(f->of, flow_node_name(flows_flow(f->flows), node));
}

static const char *bound(enum flow_how how)
{
	return how == FLOW_UNBOUND ? NULL : flow_how_name(how);
}

static const char *first_reason(uint32_t reasons)
{
	return reasons ? flow_reason_name((enum flow_reason)__builtin_ctz(reasons)) : NULL;
}

static int64_t length(const struct flow_span *s)
{
	return s->how == FLOW_UNBOUND ? -1 : s->end_ns - s->begin_ns;
}

static void take_disks(struct request_row *out, const struct flow_request *r)
{
	for (size_t i = 0; i < r->n_disks; i++) {
		const struct flow_disk *d = &r->disks[i];

		if (d->result > 0 &&
			(d->class == CALL_READ || d->class == CALL_WRITE || d->class == CALL_COPY))
			out->disk_bytes += d->result;
		out->disk_errors += d->result < 0;
		out->disk_bound = bound((enum flow_how)d->how);
	}
	out->disk_calls = (int64_t)r->n_disks;
}

static void take_fuse(struct following *f, struct request_row *out, const struct flow_request *r)
{
	const struct flow_fuse *u = r->fuse;

	out->fuse_ns = out->daemon_ns = out->call_ns = out->offset = -1;
	if (!u)
		return;
	out->fuse = fuse_opcode_name(u->opcode);
	out->fuse_bound = bound((enum flow_how)r->fuse_how);
	out->fuse_ns = u->ended ? length(&u->kernel) : -1;
	out->daemon_ns = length(&u->daemon);
	out->thread = run_requests_keep(f->of, u->thread);
	if (u->call.how == FLOW_UNBOUND)
		return;
	out->call = flow_call_name(flows_flow(f->flows), u->call.node, u->nr & ~RECORD_ASYNC_NR);
	out->call_ns = length(&u->call);
	out->offset = u->offset;
	out->path = run_requests_keep(f->of, u->path);
}

/* Its first known time, on the orchestrator's clock. */
static int64_t begin_of(const struct following *f, const struct flow_request *r)
{
	const struct flow_span *const legs[] = {&r->sent, &r->received, &r->answered, &r->returned};

	for (size_t i = 0; i < sizeof(legs) / sizeof(legs[0]); i++)
		if (legs[i]->how != FLOW_UNBOUND)
			return legs[i]->begin_ns - flows_clock_ns(f->flows, legs[i]->node);
	return 0;
}

static int take_request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct following *f = ctx;
	struct flow_parts parts;
	int rc = failures_request(f->failures, r, e);
	struct request_row out = {.number = r->number,
		.time_ns = begin_of(f, r),
		.client = node_name(f, r->client),
		.server = node_name(f, r->server),
		.procedure = run_requests_keep(f->of, r->name),
		.program = r->program,
		.procedure_number = r->procedure,
		.id = (int64_t)r->id,
		.connection = (int64_t)r->connection,
		.call_bytes = (int64_t)r->call_bytes,
		.answer_bytes = (int64_t)r->answer_bytes,
		.pid = r->sent.how == FLOW_UNBOUND ? -1 : (int64_t)r->sent.pid,
		.tid = r->sent.how == FLOW_UNBOUND ? -1 : (int64_t)r->sent.tid,
		.missing = first_reason(r->reasons),
		.doubtful = r->doubtful};

	flow_request_parts(r, &parts);
	out.total_ns = parts.total;
	out.there_ns = parts.there;
	out.waiting_ns = parts.waiting;
	out.disk_ns = parts.disk;
	out.answering_ns = parts.answering;
	out.back_ns = parts.back;
	take_disks(&out, r);
	take_fuse(f, &out, r);
	if (!rc && fwrite(&out, sizeof(out), 1, f->to->rows[REQUESTS]) != 1)
		rc = err_errno(e, -errno, "cannot write to a temporary file");
	f->to->n[REQUESTS] += !rc;
	return rc;
}

static int take_disk(void *ctx, uint32_t node, const struct flow_disk *d, struct err *e)
{
	return failures_disk(((struct following *)ctx)->failures, node, d, e);
}

static void add_trouble(struct followed *a, const char *why)
{
	a->troubles = alloc_room(a->troubles, a->n_troubles, sizeof(*a->troubles));
	a->troubles[a->n_troubles++] = alloc_copy(why);
}

/* Follows the open logs and records their problems. */
static int run_requests_run(struct following *f, struct err *e)
{
	const struct failures_spec spec = {
		.flows = f->flows, .keep = keep_for, .ctx = f, .rows = f->to->rows[FAILURES]};
	const char *trouble;
	char why[512];
	int rc;

	f->failures = failures_new(&spec);
	rc = flow_run(flows_flow(f->flows), e) ?: failures_end(f->failures, &f->to->n[FAILURES], e);
	failures_free(f->failures);
	if (rc)
		return rc;
	for (size_t i = 0; (trouble = flows_trouble(f->flows, i)); i++)
		add_trouble(f->to, trouble);
	if (!flows_complete(f->flows, why, sizeof(why))) {
		f->to->without = f->to->n_troubles ? alloc_format("%s; %s", why, f->to->troubles[0])
						   : alloc_copy(why);
		f->to->n[REQUESTS] = f->to->n[FAILURES] = 0;
	}
	return 0;
}

static int run_requests_look(void *ctx, struct err *e)
{
	const struct query_ask *ask = ((struct following *)ctx)->ask;

	return ask && ask->stop(ask->ctx) ? err_set(e, -EINTR, "stopped") : 0;
}

static int open_and_run(struct following *f, struct store *store, struct err *e)
{
	const struct flow_sink sink = {
		.request = take_request, .disk = take_disk, .look = run_requests_look, .ctx = f};
	bool never;
	int rc;

	if (!writing_count(f->to->row, &never) && never) {
		f->to->without = written_never(f->to->row);
		return 0;
	}
	rc = flows_new(store, f->to->row, NULL, &sink, &f->flows, e);
	if (rc == -EINVAL || rc == -ENOENT || rc == -EBADMSG) {
		f->to->without = alloc_copy(e->text);
		return 0;
	}
	rc = rc ?: run_requests_run(f, e);
	flows_free(f->flows);
	return rc;
}

static void close_rows_of(struct followed *a)
{
	for (int k = 0; k < KINDS; k++) {
		if (a->rows[k])
			fclose(a->rows[k]);
		a->rows[k] = NULL;
		a->n[k] = 0;
	}
}

static int follow_now(struct following *f, struct err *e)
{
	struct store *store;
	int rc = store_open(f->of->folder, &store, e);

	if (rc)
		return rc;
	for (int k = 0; !rc && k < KINDS; k++) {
		f->to->rows[k] = tmpfile();
		if (!f->to->rows[k])
			rc = err_errno(e, -errno, "cannot make a temporary file");
	}
	rc = rc ?: open_and_run(f, store, e);
	for (int k = 0; !rc && k < KINDS; k++)
		if (fflush(f->to->rows[k]))
			rc = err_errno(e, -errno, "cannot write to a temporary file");
	store_close(store);
	f->to->is_known = !rc;
	if (rc)
		close_rows_of(f->to);
	return rc;
}

int run_requests_follow(
	struct run_requests *r, size_t i, const struct query_ask *ask, struct err *e)
{
	struct following f = {.of = r, .to = &r->v[i], .ask = ask};
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (!f.to->is_known)
		rc = follow_now(&f, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int run_requests_row(const struct followed *a, enum kind kind, uint64_t k, void *out, struct err *e)
{
	const ssize_t size = (ssize_t)sizes[kind];

	if (pread(fileno(a->rows[kind]), out, (size_t)size, (off_t)k * size) == size)
		return 0;
	return err_set(e, -EIO, "cannot read a temporary file");
}

/* ---- the attempts ---- */

static void add_attempt(struct run_requests *r, json_t *row)
{
	struct followed *a;
	char *path = writing_folder(r->folder, row);

	r->v = alloc_room(r->v, r->n, sizeof(*r->v));
	a = &r->v[r->n++];
	*a = (struct followed){.row = json_incref(row)};
	a->log = (struct query_log){.path = path,
		.name = path + strlen(r->folder) + 1,
		.in_attempt = true,
		.cell = jget_int(row, "cell"),
		.attempt = jget_int(row, "attempt"),
		.start_ns = jget_int(row, "start_ns"),
		.onset_ns = jget_int(row, "onset_ns"),
		.offset_ns = jget_int(row, "offset_ns")};
}

size_t run_requests_count(const struct run_requests *r)
{
	return r->n;
}

const struct query_log *run_requests_log(const struct run_requests *r, size_t i)
{
	return &r->v[i].log;
}

const char *run_requests_without(const struct run_requests *r, size_t i)
{
	return r->v[i].without;
}

const char *run_requests_trouble(const struct run_requests *r, size_t i, size_t k)
{
	return k < r->v[i].n_troubles ? r->v[i].troubles[k] : NULL;
}

int run_requests_each(
	struct run_requests *r, size_t i, run_requests_fn fn, void *ctx, struct err *e)
{
	struct request_row row;
	int rc = run_requests_follow(r, i, NULL, e);

	for (uint64_t k = 0; !rc && k < r->v[i].n[REQUESTS]; k++)
		rc = run_requests_row(&r->v[i], REQUESTS, k, &row, e) ?: fn(ctx, &row, e);
	return rc;
}

const struct query_source *run_requests_source(const struct run_requests *r)
{
	return &r->source;
}

/* Appends the attempt, or its flight recorder's writings: all, or the recording-th. */
static void add_all(struct run_requests *r, json_t *row, size_t recording)
{
	const size_t n = writing_count(row, NULL);

	if (!n && !recording)
		add_attempt(r, row);
	for (size_t i = 1; i <= n; i++) {
		json_auto_t *one = recording && i != recording ? NULL : writing_row(row, i);

		if (one)
			add_attempt(r, one);
	}
}

int run_requests_new(
	struct store *s, int64_t cell, size_t recording, struct run_requests **out, struct err *e)
{
	struct run_requests *r;
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(s, ROWS_TRACED, 0, &rows, e);

	if (rc)
		return rc;
	r = alloc_zero(1, sizeof(*r));
	pthread_mutex_init(&r->lock, NULL);
	r->folder = alloc_copy(store_folder(s));
	run_requests_be_source(r);
	json_array_foreach(rows, i, row)
		if (!cell || jget_int(row, "cell") == cell)
			add_all(r, row, recording);
	*out = r;
	return 0;
}

void run_requests_free(struct run_requests *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		struct followed *a = &r->v[i];

		close_rows_of(a);
		json_decref(a->row);
		free((char *)a->log.path);
		free(a->without);
		for (size_t k = 0; k < a->n_troubles; k++)
			free(a->troubles[k]);
		free(a->troubles);
	}
	tdestroy(r->texts, free);
	pthread_mutex_destroy(&r->lock);
	free(r->v);
	free(r->folder);
	free(r);
}
