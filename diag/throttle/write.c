/* Writes the trace with its edges: orders operations by their start and keeps a vector clock for
 * each method and one for both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/causal/clock.h"
#include "diag/throttle/edges_impl.h"
#include "harness/base/alloc.h"

enum { BY_MESSAGES, BY_THROTTLING, TOGETHER, CLOCKS };

struct thread {
	struct app_cursor *cursor;
	struct app_op op; /* the thread's next operation */
	bool more;
	uint64_t done;
	struct clock clock[CLOCKS];
	size_t edge, sent; /* next entries of by_op and by_source */
};

/* What a thread knew after an operation that other threads wait for. */
struct sent {
	uint32_t thread;
	uint64_t ops;
	struct frontier *knows[CLOCKS];
};

struct writer {
	const struct app_trace *t;
	struct throttle_edges *x;
	const struct throttle_spec *spec;
	struct throttle_counts *counts;
	struct app_writer *out;
	struct thread *threads;
	uint32_t n_threads;
	struct sent *sent;
	size_t n_sent;
	struct app_edge edges[APP_EDGES];
};

static int by_source(const void *a, const void *b)
{
	const struct sent *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->ops < y->ops ? -1 : x->ops > y->ops;
}

static void note_sent(struct writer *w, uint32_t thread, uint64_t ops)
{
	w->sent = alloc_room(w->sent, w->n_sent, sizeof(*w->sent));
	w->sent[w->n_sent++] = (struct sent){.thread = thread, .ops = ops};
}

/* All operations that are the source of an edge, sorted, without duplicates. */
static int write_collect(struct writer *w, struct err *e)
{
	struct app_op op;
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; i < w->x->n; i++)
		note_sent(w, w->x->edge[i].on, w->x->edge[i].on_ops);
	for (uint32_t i = 0; !rc && i < w->n_threads; i++) {
		struct app_cursor *c = NULL;

		rc = app_cursor_new(w->t, i, &c) ? err_set(e, -ENOMEM, "out of memory") : 1;
		while (rc > 0 && (rc = app_next(c, &op, e)) > 0)
			for (uint32_t k = 0; k < op.n_edges; k++)
				note_sent(w, op.edges[k].thread, op.edges[k].ops);
		app_cursor_free(c);
	}
	if (w->n_sent)
		qsort(w->sent, w->n_sent, sizeof(*w->sent), by_source);
	for (size_t i = 0; i < w->n_sent; i++)
		if (!kept || by_source(&w->sent[kept - 1], &w->sent[i]))
			w->sent[kept++] = w->sent[i];
	w->n_sent = kept;
	return rc;
}

static struct sent *find_sent(const struct writer *w, uint32_t thread, uint64_t ops)
{
	struct sent key = {.thread = thread, .ops = ops};

	return bsearch(&key, w->sent, w->n_sent, sizeof(key), by_source);
}

static void receive(
	struct writer *w, struct thread *t, int clock, uint32_t from, uint64_t ops, bool both)
{
	const struct sent *s = find_sent(w, from, ops);

	if (!s || w->threads[from].done < ops)
		return;
	clock_receive(&t->clock[clock], s->knows[clock]);
	if (both)
		clock_receive(&t->clock[TOGETHER], s->knows[TOGETHER]);
}

static int copy_edges(struct writer *w, const struct frontier *f, struct app_op *op, struct err *e)
{
	op->n_edges = f ? f->n : 0;
	if (op->n_edges > APP_EDGES)
		return err_set(e, -E2BIG, "a call waits for %u others; %d are the most",
			op->n_edges, APP_EDGES);
	for (uint32_t i = 0; i < op->n_edges; i++)
		w->edges[i] = (struct app_edge){f->entry[i].thread, f->entry[i].ops};
	op->edges = w->edges;
	w->counts->edges += op->n_edges;
	return 0;
}

/* Reports the edges in 'f' that the other method did not find. */
static uint64_t only_here(struct writer *w, uint32_t i, const struct frontier *f, int by)
{
	const struct clock *other = &w->threads[i].clock[by == BY_MESSAGES];
	uint64_t n = 0;

	for (uint32_t k = 0; f && k < f->n; k++) {
		struct app_edge edge = {f->entry[k].thread, f->entry[k].ops};

		if (clock_knows(other, edge.thread, (uint32_t)edge.ops))
			continue;
		n++;
		if (w->spec->only)
			w->spec->only(w->spec->ctx,
				by == BY_MESSAGES ? APP_BY_MESSAGES : APP_BY_THROTTLING, w->t, i,
				w->threads[i].done, &edge);
	}
	return n;
}

/* Reads the thread's next operation and its edges. */
static int write_put(struct writer *w, uint32_t i, struct err *e)
{
	struct thread *t = &w->threads[i];
	const struct throttle_edge *edge = w->x->edge;
	struct frontier *waits[CLOCKS];
	struct app_op op = t->op;
	int rc;

	for (uint32_t k = 0; k < op.n_edges; k++)
		receive(w, t, BY_MESSAGES, op.edges[k].thread, op.edges[k].ops,
			w->spec->method & APP_BY_MESSAGES);
	for (; t->edge < w->x->n && edge[t->edge].thread == i && edge[t->edge].op == t->done + 1;
		t->edge++)
		receive(w, t, BY_THROTTLING, edge[t->edge].on, edge[t->edge].on_ops, true);
	for (int c = 0; c < CLOCKS; c++)
		waits[c] = frontier_ref((struct frontier *)clock_waits(&t->clock[c]));
	rc = copy_edges(w, waits[TOGETHER], &op, e) ?: app_put(w->out, i, &op, e);
	for (int c = 0; c < CLOCKS; c++)
		clock_complete(&t->clock[c]);
	t->done++;
	w->counts->messages += waits[BY_MESSAGES] ? waits[BY_MESSAGES]->n : 0;
	w->counts->throttling += waits[BY_THROTTLING] ? waits[BY_THROTTLING]->n : 0;
	w->counts->only_messages += only_here(w, i, waits[BY_MESSAGES], BY_MESSAGES);
	w->counts->only_throttling += only_here(w, i, waits[BY_THROTTLING], BY_THROTTLING);
	for (; t->sent < w->n_sent && w->sent[t->sent].thread == i &&
		w->sent[t->sent].ops <= t->done;
		t->sent++)
		for (int c = 0; c < CLOCKS; c++)
			w->sent[t->sent].knows[c] = clock_send(&t->clock[c]);
	for (int c = 0; c < CLOCKS; c++)
		frontier_drop(waits[c]);
	return rc;
}

static int write_advance(struct thread *t, struct err *e)
{
	int rc = app_next(t->cursor, &t->op, e);

	t->more = rc > 0;
	return rc < 0 ? rc : 0;
}

static int write_begin(struct writer *w, struct err *e)
{
	size_t edge = 0, sent = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < w->n_threads; i++) {
		struct thread *t = &w->threads[i];

		for (int c = 0; c < CLOCKS; c++)
			t->clock[c].thread = i;
		while (edge < w->x->n && w->x->edge[edge].thread < i)
			edge++;
		while (sent < w->n_sent && w->sent[sent].thread < i)
			sent++;
		t->edge = edge;
		t->sent = sent;
		rc = app_cursor_new(w->t, i, &t->cursor) ? err_set(e, -ENOMEM, "out of memory")
							 : write_advance(t, e);
	}
	return rc;
}

static int put_all(struct writer *w, struct err *e)
{
	int rc = write_begin(w, e);

	while (!rc) {
		struct thread *next = NULL;

		for (uint32_t i = 0; i < w->n_threads; i++) {
			struct thread *t = &w->threads[i];

			if (t->more && (!next || t->op.start_ns < next->op.start_ns))
				next = t;
		}
		if (!next)
			break;
		rc = write_put(w, (uint32_t)(next - w->threads), e);
		if (!rc)
			rc = write_advance(next, e);
	}
	return rc;
}

static int copy_tables(struct writer *w)
{
	const struct app_trace *t = w->t;
	int rc = 0;

	for (uint32_t r = 0; rc >= 0 && r < app_n_ranks(t); r++) {
		const struct app_rank *rank = app_rank(t, r);

		rc = app_add_rank(w->out, rank->pid, rank->name, rank->node);
		for (uint32_t i = 0; rc >= 0 && i < rank->n_threads; i++)
			rc = app_add_thread(w->out, r, app_thread(t, rank->first_thread + i)->tid);
	}
	for (uint32_t i = 0; rc >= 0 && i < app_n_files(t); i++) {
		const struct app_file *f = app_file(t, i);

		rc = app_add_file(w->out, f->path, f->before, f->after, f->directory);
	}
	for (uint32_t i = 1; rc >= 0 && i <= app_n_handles(t); i++)
		rc = app_add_handle(w->out, app_handle(t, i));
	return rc < 0 ? rc : 0;
}

static void write_clear(struct writer *w)
{
	for (uint32_t i = 0; i < w->n_threads; i++) {
		app_cursor_free(w->threads[i].cursor);
		for (int c = 0; c < CLOCKS; c++)
			clock_clear(&w->threads[i].clock[c]);
	}
	for (size_t i = 0; i < w->n_sent; i++)
		for (int c = 0; c < CLOCKS; c++)
			frontier_drop(w->sent[i].knows[c]);
	free(w->threads);
	free(w->sent);
}

static int write_all(struct writer *w, const char *out, struct err *e)
{
	struct app_about about = *app_about(w->t);
	int rc = write_collect(w, e) ?: app_create(out, &w->out, e);

	if (rc)
		return rc;
	rc = copy_tables(w);
	if (rc)
		err_errno(e, rc, "cannot write the tables of '%s'", out);
	else
		rc = put_all(w, e);
	about.method = w->spec->method;
	about.shared_memory &= !w->spec->whole;
	if (!rc)
		return app_finish(w->out, &about, e);
	app_drop(w->out);
	return rc;
}

int throttle_write(const struct app_trace *first, struct throttle_edges *x, const char *out,
	const struct throttle_spec *spec, struct throttle_counts *counts, struct err *e)
{
	struct writer w = {.t = first,
		.x = x,
		.spec = spec,
		.counts = counts,
		.n_threads = (uint32_t)app_n_threads(first)};
	int rc;

	*counts = (struct throttle_counts){0};
	throttle_edges_sort(x);
	w.threads = alloc_zero(w.n_threads + 1, sizeof(*w.threads));
	rc = write_all(&w, out, e);
	write_clear(&w);
	return rc;
}
