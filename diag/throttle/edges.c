/* Derives which thread waits for which from throttled runs. */
#include "diag/throttle/edges.h"

#include <errno.h>
#include <stdlib.h>

#include "diag/throttle/edges_impl.h"
#include "harness/base/alloc.h"

struct throttle_edges *throttle_edges_new(void)
{
	return alloc_zero(1, sizeof(struct throttle_edges));
}

void throttle_edges_free(struct throttle_edges *x)
{
	if (!x)
		return;
	free(x->edge);
	free(x);
}

uint64_t throttle_edges_refuted(const struct throttle_edges *x)
{
	return x->refuted;
}

/* Start and end of each operation of a run, by thread. */
struct times {
	uint32_t n_threads;
	struct span {
		int64_t start_ns, end_ns;
	} * *ops;
	uint64_t *n;
};

static void times_clear(struct times *t)
{
	for (uint32_t i = 0; t->ops && i < t->n_threads; i++)
		free(t->ops[i]);
	free(t->ops);
	free(t->n);
}

static int load_thread(struct times *t, const struct app_trace *run, uint32_t i, struct err *e)
{
	struct app_cursor *c = NULL;
	struct app_op op;
	uint64_t n = 0;
	int rc = app_cursor_new(run, i, &c) ? err_set(e, -ENOMEM, "out of memory") : 1;

	t->n[i] = app_thread(run, i)->ops;
	t->ops[i] = alloc_zero(t->n[i] + 1, sizeof(**t->ops));
	while (rc > 0 && n < t->n[i] && (rc = app_next(c, &op, e)) > 0)
		t->ops[i][n++] = (struct span){op.start_ns, op.start_ns + op.took_ns};
	app_cursor_free(c);
	return rc < 0 ? rc : 0;
}

static int edges_load(struct times *t, const struct app_trace *run, struct err *e)
{
	int rc = 0;

	t->n_threads = (uint32_t)app_n_threads(run);
	t->ops = alloc_zero(t->n_threads + 1, sizeof(struct span *));
	t->n = alloc_zero(t->n_threads + 1, sizeof(*t->n));
	for (uint32_t i = 0; !rc && i < t->n_threads; i++)
		rc = load_thread(t, run, i, e);
	return rc;
}

/* Returns how many of the thread's operations began before that moment of the trace. */
static uint64_t begun(const struct times *t, uint32_t thread, int64_t at_ns)
{
	uint64_t low = 0, high = t->n[thread];

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (t->ops[thread][middle].start_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void edges_add(struct throttle_edges *x, const struct throttle_edge *edge)
{
	x->edge = alloc_room(x->edge, x->n, sizeof(*x->edge));
	x->edge[x->n++] = *edge;
	x->sorted = false;
}

/* The number of the delayed operation; 0: the call is no operation of the trace. The moments
 * compared lie in the middle of intervals in which no operation began, so the clocks need not agree
 * to the microsecond. */
static uint64_t delayed(
	const struct times *t, uint32_t thread, const struct throttle_delay *d, int64_t base_ns)
{
	uint64_t k = begun(t, thread, d->trap_ns + (d->release_ns - d->trap_ns) / 2 - base_ns);

	if (k >= t->n[thread])
		return 0;
	if (d->next_ns && t->ops[thread][k].start_ns >= d->next_ns - base_ns)
		return 0;
	return k + 1;
}

int throttle_edges_add(struct throttle_edges *x, const struct app_trace *run, uint32_t thread,
	const struct throttle_delay *d, size_t n, size_t *used, struct err *e)
{
	int64_t base_ns = app_about(run)->start_ns;
	struct times t = {0};
	int rc = edges_load(&t, run, e);

	*used = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		int64_t still_ns = d[i].quiet_ns + (d[i].release_ns - d[i].quiet_ns) / 2 - base_ns;
		struct throttle_edge edge = {.on = thread};

		edge.on_ops = d[i].decided ? delayed(&t, thread, &d[i], base_ns) : 0;
		if (!edge.on_ops)
			continue;
		++*used;
		for (edge.thread = 0; edge.thread < t.n_threads; edge.thread++) {
			edge.op = begun(&t, edge.thread, still_ns) + 1;
			if (edge.thread != thread && edge.op <= t.n[edge.thread])
				edges_add(x, &edge);
		}
	}
	times_clear(&t);
	return rc;
}

/* Sorts by operation, then by the thread waited for, newest first. */
static int by_op(const void *a, const void *b)
{
	const struct throttle_edge *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->on != y->on)
		return x->on < y->on ? -1 : 1;
	return x->on_ops > y->on_ops ? -1 : x->on_ops < y->on_ops;
}

void throttle_edges_sort(struct throttle_edges *x)
{
	size_t kept = 0;

	if (x->sorted || !x->n)
		return;
	qsort(x->edge, x->n, sizeof(*x->edge), by_op);
	for (size_t i = 0; i < x->n; i++) {
		const struct throttle_edge *y = &x->edge[i], *last = kept ? &x->edge[kept - 1] : y;

		if (!kept || y->thread != last->thread || y->op != last->op || y->on != last->on)
			x->edge[kept++] = *y;
	}
	x->n = kept;
	x->sorted = true;
}

int throttle_edges_refute(struct throttle_edges *x, const struct app_trace *run, struct err *e)
{
	struct times t = {0};
	size_t kept = 0;
	int rc = edges_load(&t, run, e);

	throttle_edges_sort(x);
	for (size_t i = 0; !rc && i < x->n; i++) {
		const struct throttle_edge *y = &x->edge[i];

		if (y->thread >= t.n_threads || y->on >= t.n_threads || y->op > t.n[y->thread] ||
			y->on_ops > t.n[y->on])
			rc = err_set(e, -EINVAL, "the runs do not have the same calls");
		else if (t.ops[y->thread][y->op - 1].start_ns >= t.ops[y->on][y->on_ops - 1].end_ns)
			x->edge[kept++] = *y;
	}
	if (!rc) {
		x->refuted += x->n - kept;
		x->n = kept;
	}
	times_clear(&t);
	return rc;
}
