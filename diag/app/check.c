/* Checks that every op can run: advances all threads as far as edges allow. If they stop before
 * their ends, the edges form a cycle. */
#include <errno.h>
#include <stdlib.h>

#include "diag/app/reader_impl.h"

#define NOBODY UINT32_MAX

struct runner {
	struct app_cursor *cursor;
	struct app_op op; /* the next op, if any */
	bool pending, ended;
	uint32_t met; /* fulfilled edges of 'op' */
	uint64_t done;
	struct app_edge waits; /* the edge that it waits for */
	/* first thread that waits for this one; next thread that waits for the same */
	uint32_t first_waiter, next_waiter;
};

struct check {
	struct app_trace *t;
	struct runner *runners;
	uint32_t *ready;
	uint32_t n_ready;
};

/* The first edge of the runner's op that is not fulfilled. */
static const struct app_edge *unfulfilled(const struct check *c, struct runner *r)
{
	for (; r->met < r->op.n_edges; r->met++)
		if (c->runners[r->op.edges[r->met].thread].done < r->op.edges[r->met].ops)
			return &r->op.edges[r->met];
	return NULL;
}

/* Makes threads ready that waited for the ops that 'r' has completed. */
static void release(struct check *c, struct runner *r)
{
	uint32_t *link = &r->first_waiter;

	while (*link != NOBODY) {
		uint32_t who = *link;
		struct runner *w = &c->runners[who];

		if (w->waits.ops <= r->done) {
			*link = w->next_waiter;
			c->ready[c->n_ready++] = who;
		} else {
			link = &w->next_waiter;
		}
	}
}

/* Runs a thread until it waits or ends. */
static int app_check_run(struct check *c, uint32_t i, struct err *e)
{
	struct runner *r = &c->runners[i];
	const struct app_edge *edge;
	int rc;

	for (;;) {
		if (!r->pending) {
			rc = app_next(r->cursor, &r->op, e);
			if (rc <= 0) {
				r->ended = !rc;
				return rc;
			}
			r->pending = true;
			r->met = 0;
			c->t->n_edges += r->op.n_edges;
		}
		edge = unfulfilled(c, r);
		if (edge) {
			struct runner *other = &c->runners[edge->thread];

			r->waits = *edge;
			r->next_waiter = other->first_waiter;
			other->first_waiter = i;
			return 0;
		}
		r->pending = false;
		r->done++;
		if (r->first_waiter != NOBODY)
			release(c, r);
	}
}

/* Names a cycle: follows the waits from any blocked thread until a thread repeats. */
static int name_cycle(struct check *c, uint32_t at, struct err *e)
{
	const struct app_trace *t = c->t;
	char text[600] = "";
	size_t n = 0;
	uint32_t start;

	for (uint32_t i = 0; i < t->n_threads; i++)
		at = c->runners[at].waits.thread;
	start = at;
	do {
		const struct runner *r = &c->runners[at];
		const struct app_thread *th = &t->threads[at];
		uint32_t to = r->waits.thread;

		if (n < sizeof(text) - 160)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"%s operation %llu of rank %u (thread %u) waits for operation "
				"%llu of rank %u (thread %u)",
				n ? "," : "", (unsigned long long)r->done + 1, th->rank,
				at - t->ranks[th->rank].first_thread,
				(unsigned long long)r->waits.ops, t->threads[to].rank,
				to - t->ranks[t->threads[to].rank].first_thread);
		at = to;
	} while (at != start);
	err_set(e, -ELOOP, "the trace '%s' has a cycle:%s", t->path, text);
	return err_blame(e, ERR_DAMAGED, -ELOOP);
}

static int run_all(struct check *c, struct err *e)
{
	uint32_t n = c->t->n_threads;
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		c->runners[i].first_waiter = NOBODY;
		c->ready[c->n_ready++] = n - 1 - i;
		if (app_cursor_new(c->t, i, &c->runners[i].cursor))
			return err_set(e, -ENOMEM, "out of memory");
	}
	while (c->n_ready)
		if ((rc = app_check_run(c, c->ready[--c->n_ready], e)))
			return rc;
	for (uint32_t i = 0; i < n; i++)
		if (!c->runners[i].ended)
			return name_cycle(c, i, e);
	return 0;
}

int app_check(struct app_trace *t, struct err *e)
{
	struct check c = {.t = t};
	int rc;

	c.runners = calloc((size_t)t->n_threads + 1, sizeof(*c.runners));
	c.ready = calloc((size_t)t->n_threads + 1, sizeof(*c.ready));
	rc = c.runners && c.ready ? run_all(&c, e) : err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; c.runners && i < t->n_threads; i++)
		app_cursor_free(c.runners[i].cursor);
	free(c.runners);
	free(c.ready);
	return rc;
}
