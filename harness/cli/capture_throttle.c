/* Runs 'culprit capture --throttle': a learning run, then one run for each thread. */
#include "harness/cli/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"

enum { SHOWN = 10 }; /* edges that only one method saw, of each */

struct work {
	const struct capture_throttle *c;
	struct supervisor *s;
	struct app_trace *first;
	struct throttle_edges *edges;
	char **names; /* of first's threads; NULL: not known */
	bool *run;    /* was it delayed? */
	uint32_t n_threads;
	size_t delays, undecided;
	char *why; /* an example */
	unsigned shown[2];
};

static int open_run(const struct work *w, const char *name, struct app_trace **t, struct err *e)
{
	auto_free char *path = alloc_format("%s/%s", w->c->work, name);

	return app_open(path, t, e);
}

/* "rank 2", "rank 2 (thread 1)" */
static void capture_throttle_name_of(const struct work *w, uint32_t thread, char text[64])
{
	const struct app_thread *t = app_thread(w->first, thread);
	const struct app_rank *r = app_rank(w->first, t->rank);

	if (r->n_threads == 1)
		snprintf(text, 64, "rank %u", t->rank);
	else
		snprintf(text, 64, "rank %u (thread %u)", t->rank, thread - r->first_thread);
}

static int capture_throttle_learn(struct work *w, struct err *e)
{
	struct capture_delays d = {.supervisor = w->s};
	int rc = w->c->once(w->c->ctx, "first", &d, e) ?: open_run(w, "first", &w->first, e);

	if (rc)
		return rc;
	w->n_threads = (uint32_t)app_n_threads(w->first);
	w->names = alloc_zero(w->n_threads + 1, sizeof(char *));
	w->run = alloc_zero(w->n_threads + 1, sizeof(bool));
	for (uint32_t i = 0; i < w->n_threads; i++) {
		const char *name = supervisor_name(w->s, app_thread(w->first, i)->tid);

		w->names[i] = name ? alloc_copy(name) : NULL;
	}
	return 0;
}

/* Is the rank one of those to be delayed: evenly chosen? */
static bool is_chosen(const struct work *w, uint32_t rank)
{
	uint64_t n = app_n_ranks(w->first), m = w->c->nodes;

	return !m || m >= n || (rank + 1) * m / n > rank * m / n;
}

static int no_name(const struct work *w, uint32_t i, struct err *e)
{
	char text[64];

	capture_throttle_name_of(w, i, text);
	return err_set(e, -ENODATA,
		"%s cannot be found again in another run, because the process that started it had "
		"ended before it made its first call: let it wait for what it starts, or capture "
		"with --method messages",
		text);
}

/* The run in which thread 'i' was delayed: what it tells. */
static int capture_throttle_take(
	struct work *w, uint32_t i, const struct app_trace *t, struct err *e)
{
	size_t n, used = 0;
	const char *why, *found = supervisor_name(w->s, app_thread(t, i)->tid);
	const struct throttle_delay *d = supervisor_delays(w->s, &n);
	size_t undecided = supervisor_undecided(w->s, &why);
	char text[64];
	int rc;

	if (!found || strcmp(found, w->names[i]))
		return no_name(w, i, e);
	capture_throttle_name_of(w, i, text);
	if (supervisor_gave_up(w->s))
		return err_set(e, -ENODATA,
			"cannot tell who waits for %s: while it was delayed, the others neither "
			"ended nor were blocked (%s)",
			text, why);
	rc = throttle_edges_add(w->edges, t, i, d, n, &used, e);
	w->delays += used + undecided;
	w->undecided += undecided;
	if (undecided) {
		free(w->why);
		w->why = alloc_format("%s: %s", text, why);
	}
	return rc;
}

static int delay(struct work *w, uint32_t i, struct err *e)
{
	struct capture_delays d = {
		.supervisor = w->s, .thread = w->names[i], .period = w->c->period};
	auto_free char *name = alloc_format("run%u", i);
	struct app_trace *t = NULL;
	char text[64];
	int rc;

	if (!w->names[i])
		return no_name(w, i, e);
	capture_throttle_name_of(w, i, text);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "culprit capture: a run in which %s of %zu is delayed\n", text,
			app_n_ranks(w->first));
	rc = w->c->once(w->c->ctx, name, &d, e) ?: open_run(w, name, &t, e);
	if (!rc)
		rc = app_compare(w->first, t, e) ?: capture_throttle_take(w, i, t, e);
	app_free(t);
	w->run[i] = true;
	return rc;
}

/* All runs are asked whether they contradict an edge. */
static int refute(struct work *w, struct err *e)
{
	int rc = throttle_edges_refute(w->edges, w->first, e);

	for (uint32_t i = 0; !rc && i < w->n_threads; i++) {
		auto_free char *name = alloc_format("run%u", i);
		struct app_trace *t = NULL;

		if (!w->run[i])
			continue;
		rc = open_run(w, name, &t, e) ?: throttle_edges_refute(w->edges, t, e);
		app_free(t);
	}
	return rc;
}

static void show_only(void *ctx, enum app_method by, const struct app_trace *t, uint32_t thread,
	uint64_t op, const struct app_edge *edge)
{
	struct work *w = ctx;
	const struct app_thread *to = app_thread(t, thread), *from = app_thread(t, edge->thread);

	if (w->c->method != (APP_BY_MESSAGES | APP_BY_THROTTLING) ||
		w->shown[by == APP_BY_MESSAGES]++ >= SHOWN)
		return;
	printf("only by %s: %u.%u:%llu after %u.%u:%llu\n",
		by == APP_BY_MESSAGES ? "messages" : "throttling", to->rank,
		thread - app_rank(t, to->rank)->first_thread, (unsigned long long)op, from->rank,
		edge->thread - app_rank(t, from->rank)->first_thread,
		(unsigned long long)edge->ops);
}

static void capture_throttle_tell(const struct work *w, const struct throttle_counts *n)
{
	uint64_t refuted = throttle_edges_refuted(w->edges);

	if (w->c->method == (APP_BY_MESSAGES | APP_BY_THROTTLING))
		printf("waits: %llu by messages, %llu of them by these only; %llu by throttling, "
		       "%llu of them by this only\n\n",
			(unsigned long long)n->messages, (unsigned long long)n->only_messages,
			(unsigned long long)n->throttling, (unsigned long long)n->only_throttling);
	if (w->undecided)
		fprintf(stderr,
			"culprit capture: warning: of %zu delays %zu told nothing, because the "
			"others did not come to rest (%s): waits may be missing\n",
			w->delays, w->undecided, w->why);
	if (refuted)
		fprintf(stderr,
			"culprit capture: warning: %llu waits that a delay seemed to show were "
			"contradicted by another run, and left out\n",
			(unsigned long long)refuted);
}

static int capture_throttle_finish(struct work *w, bool whole, struct err *e)
{
	auto_free char *out = alloc_format("%s/final", w->c->work);
	struct throttle_spec spec = {.method = w->c->method,
		.whole = whole && w->c->period == 1 && !w->undecided,
		.only = show_only,
		.ctx = w};
	struct throttle_counts counts;
	int rc = refute(w, e) ?: throttle_write(w->first, w->edges, out, &spec, &counts, e);

	if (!rc)
		capture_throttle_tell(w, &counts);
	return rc;
}

int capture_throttle(const struct capture_throttle *c, struct err *e)
{
	struct work w = {.c = c,
		.s = supervisor_new(c->root, SUPERVISOR_PATIENCE_S),
		.edges = throttle_edges_new()};
	bool whole = true;
	int rc = capture_throttle_learn(&w, e);

	for (uint32_t i = 0; !rc && i < w.n_threads; i++) {
		if (is_chosen(&w, app_thread(w.first, i)->rank))
			rc = delay(&w, i, e);
		else
			whole = false;
	}
	if (!rc)
		rc = capture_throttle_finish(&w, whole, e);
	for (uint32_t i = 0; w.names && i < w.n_threads; i++)
		free(w.names[i]);
	free(w.names);
	free(w.run);
	free(w.why);
	app_free(w.first);
	throttle_edges_free(w.edges);
	supervisor_free(w.s);
	return rc;
}
