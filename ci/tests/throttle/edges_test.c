/* Tests waits derived from runs in which one thread was delayed. The runs are simulated: threads
 * with operations, and messages that no log records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those first */
#include <cmocka.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "diag/throttle/edges.h"

enum { THREADS = 5, STEPS = 400, TICK_NS = 1000, BASE_NS = 1700000000 };

static struct step {
	enum { OPERATION, SEND, RECEIVE } what;
	uint32_t thread, other;
} steps[2 * STEPS];
static unsigned n_steps;
static uint64_t chance;

/* The operations that precede an operation: of each thread the first N. */
struct before {
	unsigned ops[THREADS];
};

static struct before at[THREADS][STEPS + 1], flying[THREADS][THREADS][STEPS], seen[THREADS];
static unsigned n_ops[THREADS];

static unsigned draw(unsigned n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (unsigned)(chance >> 20) % n;
}

static void join(struct before *into, const struct before *b)
{
	for (unsigned i = 0; i < THREADS; i++)
		into->ops[i] = into->ops[i] > b->ops[i] ? into->ops[i] : b->ops[i];
}

static void add(int what, uint32_t thread, uint32_t other)
{
	steps[n_steps++] = (struct step){what, thread, other};
	if (what != OPERATION)
		return;
	at[thread][++n_ops[thread]] = seen[thread];
	seen[thread].ops[thread] = n_ops[thread];
}

static void draw_schedule(uint64_t seed)
{
	unsigned sent[THREADS][THREADS] = {0}, got[THREADS][THREADS] = {0};

	chance = (seed + 1) * 0x9e3779b97f4a7c15;
	n_steps = 0;
	memset(n_ops, 0, sizeof(n_ops));
	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t p = draw(THREADS), q = draw(THREADS);
		unsigned what = draw(8);

		if (what < 3 || p == q) {
			add(OPERATION, p, 0);
		} else if (what < 5) {
			flying[p][q][sent[p][q]++] = seen[p];
			add(SEND, p, q);
		} else if (got[q][p] < sent[q][p]) {
			join(&seen[p], &flying[q][p][got[q][p]++]);
			add(RECEIVE, p, q);
		}
	}
	for (uint32_t p = 0; p < THREADS; p++)
		add(OPERATION, p, 0);
}

/* Does operation 'op' of 'thread' begin after 'ops' operations of 'other', and is that not implied
 * by other waits? */
static bool is_planted(unsigned thread, unsigned op, unsigned other, unsigned ops)
{
	const struct before *b = &at[thread][op];

	if (b->ops[other] != ops || !ops || ops <= at[thread][op - 1].ops[other])
		return false;
	for (unsigned r = 0; r < THREADS; r++)
		if (r != other && r != thread && b->ops[r] && at[r][b->ops[r]].ops[other] >= ops)
			return false;
	return true;
}

static unsigned count_planted(void)
{
	unsigned n = 0;

	for (unsigned p = 0; p < THREADS; p++)
		for (unsigned op = 1; op <= n_ops[p]; op++)
			for (unsigned q = 0; q < THREADS; q++)
				n += q != p && is_planted(p, op, q, at[p][op].ops[q]);
	return n;
}

/* One run: when each operation began, and what the supervisor noted. */
struct run {
	char path[128];
	struct throttle_delay delays[STEPS];
	size_t n;
};

struct simulation {
	struct run *run;
	struct app_writer *w;
	int64_t now_ns;
	unsigned next[THREADS], done[THREADS];
	unsigned sent[THREADS][THREADS], got[THREADS][THREADS];
};

/* The thread's next step; n_steps: none left. */
static unsigned next_step(const struct simulation *s, uint32_t thread)
{
	unsigned i = s->next[thread];

	while (i < n_steps && steps[i].thread != thread)
		i++;
	return i;
}

static bool can_go(const struct simulation *s, uint32_t thread)
{
	unsigned i = next_step(s, thread);
	uint32_t q = i < n_steps ? steps[i].other : 0;

	return i < n_steps && (steps[i].what != RECEIVE || s->got[q][thread] < s->sent[q][thread]);
}

static void put(struct simulation *s, uint32_t thread, const struct app_op *op)
{
	assert_int_equal(app_put(s->w, thread, op, NULL), 0);
	s->done[thread]++;
}

static void go(struct simulation *s, uint32_t thread)
{
	unsigned i = next_step(s, thread);
	struct app_op op = {.call = APP_STAT,
		.offset = -1,
		.file2 = APP_NO_FILE,
		.start_ns = s->now_ns,
		.took_ns = TICK_NS / 2};

	s->next[thread] = i + 1;
	s->now_ns += TICK_NS;
	if (steps[i].what == SEND)
		s->sent[thread][steps[i].other]++;
	else if (steps[i].what == RECEIVE)
		s->got[steps[i].other][thread]++;
	else
		put(s, thread, &op);
}

/* Runs all threads except one until they block, in a random order. */
static void go_all(struct simulation *s, uint32_t but)
{
	for (bool any = true; any;) {
		uint32_t from = draw(THREADS);

		any = false;
		for (uint32_t i = 0; i < THREADS; i++) {
			uint32_t p = (from + i) % THREADS;

			if (p != but && can_go(s, p)) {
				go(s, p);
				any = true;
			}
		}
	}
}

static void delay(struct simulation *s, uint32_t thread)
{
	struct throttle_delay *d = &s->run->delays[s->run->n++];

	*d = (struct throttle_delay){.trap_ns = BASE_NS + s->now_ns, .decided = true};
	go_all(s, thread);
	d->quiet_ns = BASE_NS + s->now_ns;
	s->now_ns += 20 * TICK_NS;
	d->release_ns = BASE_NS + s->now_ns;
	s->now_ns += TICK_NS;
}

static void begin(struct simulation *s, struct run *run, const char *name)
{
	*s = (struct simulation){.run = run, .now_ns = TICK_NS};
	run->n = 0;
	snprintf(run->path, sizeof(run->path), "%s/%s", dir, name);
	unlink(run->path);
	assert_int_equal(app_create(run->path, &s->w, NULL), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(app_add_rank(s->w, 100 + i, "app", "node"), i);
		assert_int_equal(app_add_thread(s->w, i, 100 + i), i);
	}
	assert_int_equal(app_add_file(s->w, "file", 0, 0, false), 0);
}

static void end(struct simulation *s)
{
	struct app_about about = {.start_ns = BASE_NS,
		.method = APP_BY_MESSAGES,
		.comment = "",
		.root = "",
		.kernel = "",
		.shared_memory = true};

	assert_int_equal(app_finish(s->w, &about, NULL), 0);
}

/* Delays the thread before each 'period'-th operation; THREADS: no thread. */
static void simulate(struct run *run, const char *name, uint32_t thread, unsigned period)
{
	struct simulation s;
	unsigned i;

	begin(&s, run, name);
	if (thread == THREADS)
		go_all(&s, THREADS);
	while (thread < THREADS && (i = next_step(&s, thread)) < n_steps) {
		struct throttle_delay *last = run->n ? &run->delays[run->n - 1] : NULL;

		if (steps[i].what == OPERATION && last && !last->next_ns)
			last->next_ns = BASE_NS + s.now_ns;
		if (steps[i].what == OPERATION && s.done[thread] % period == 0)
			delay(&s, thread);
		if (!can_go(&s, thread))
			go_all(&s, thread);
		go(&s, thread);
	}
	go_all(&s, THREADS);
	end(&s);
}

static struct app_trace *opened(const char *path)
{
	struct app_trace *t;
	struct err e = {.text = ""};

	if (app_open(path, &t, &e))
		fail_msg("%s", e.text);
	return t;
}

static struct throttle_edges *edges_of_runs(struct run *first, unsigned period)
{
	struct throttle_edges *x = throttle_edges_new();
	struct run run;
	size_t used;

	simulate(first, "first", THREADS, 1);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct app_trace *t;

		simulate(&run, "run", i, period);
		t = opened(run.path);
		assert_int_equal(throttle_edges_add(x, t, i, run.delays, run.n, &used, NULL), 0);
		assert_int_equal(used, run.n);
		app_free(t);
	}
	return x;
}

static struct app_trace *written(struct run *first, struct throttle_edges *x,
	const struct throttle_spec *spec, struct throttle_counts *counts)
{
	char path[128];
	struct app_trace *t = opened(first->path);
	struct err e = {.text = ""};

	snprintf(path, sizeof(path), "%s/out", dir);
	unlink(path);
	if (throttle_edges_refute(x, t, &e) || throttle_write(t, x, path, spec, counts, &e))
		fail_msg("%s", e.text);
	app_free(t);
	return opened(path);
}

static unsigned count_right(const struct app_trace *t, unsigned *wrong)
{
	unsigned right = 0;
	struct app_op op;

	*wrong = 0;
	for (uint32_t i = 0; i < app_n_threads(t); i++) {
		struct app_cursor *c;

		assert_int_equal(app_cursor_new(t, i, &c), 0);
		for (unsigned n = 1; app_next(c, &op, NULL) > 0; n++)
			for (uint32_t k = 0; k < op.n_edges; k++) {
				bool is = is_planted(
					i, n, op.edges[k].thread, (unsigned)op.edges[k].ops);

				right += is;
				*wrong += !is;
			}
		app_cursor_free(c);
	}
	return right;
}

static void planted_waits_are_found(void **state)
{
	const struct throttle_spec spec = {.method = APP_BY_THROTTLING, .whole = true};

	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct run first;
		struct throttle_counts counts;
		struct throttle_edges *x;
		struct app_trace *t;
		unsigned wrong;

		draw_schedule(seed);
		x = edges_of_runs(&first, 1);
		t = written(&first, x, &spec, &counts);
		assert_true(count_planted() > 20);
		assert_int_equal(count_right(t, &wrong), count_planted());
		assert_int_equal(wrong, 0);
		assert_int_equal(counts.edges, count_planted());
		assert_int_equal(throttle_edges_refuted(x), 0);
		assert_int_equal(app_about(t)->method, APP_BY_THROTTLING);
		assert_false(app_about(t)->shared_memory);
		app_free(t);
		throttle_edges_free(x);
	}
}

/* Every derived wait, direct or not, is true, and no true wait is missed by a period or more. */
static void with_a_period_only_true_waits_are_found(void **state)
{
	enum { PERIOD = 3 };
	const struct throttle_spec spec = {.method = APP_BY_THROTTLING};
	static struct before found[THREADS][STEPS + 1];
	unsigned late = 0;

	(void)state;
	for (uint64_t seed = 100; seed < 110; seed++) {
		struct run first;
		struct throttle_counts counts;
		struct throttle_edges *x;
		struct app_trace *t;
		struct app_cursor *c[THREADS];
		unsigned done[THREADS] = {0};

		draw_schedule(seed);
		x = edges_of_runs(&first, PERIOD);
		t = written(&first, x, &spec, &counts);
		assert_true(app_about(t)->shared_memory);
		memset(found, 0, sizeof(found));
		for (uint32_t i = 0; i < THREADS; i++)
			assert_int_equal(app_cursor_new(t, i, &c[i]), 0);
		/* In schedule order, so that waited-for operations come first. */
		for (unsigned s = 0; s < n_steps; s++) {
			uint32_t p = steps[s].thread;
			struct before *b;
			struct app_op op;

			if (steps[s].what != OPERATION)
				continue;
			assert_int_equal(app_next(c[p], &op, NULL), 1);
			b = &found[p][++done[p]];
			*b = found[p][done[p] - 1];
			for (uint32_t k = 0; k < op.n_edges; k++) {
				uint32_t q = op.edges[k].thread;
				unsigned n = (unsigned)op.edges[k].ops;

				assert_true(n <= at[p][done[p]].ops[q]);
				join(b, &found[q][n]);
				b->ops[q] = b->ops[q] > n ? b->ops[q] : n;
			}
			for (uint32_t q = 0; q < THREADS; q++) {
				unsigned true_ops = at[p][done[p]].ops[q];

				if (q == p)
					continue;
				assert_true(b->ops[q] <= true_ops);
				assert_true(b->ops[q] + PERIOD > true_ops);
				late += b->ops[q] < true_ops;
			}
		}
		for (uint32_t i = 0; i < THREADS; i++)
			app_cursor_free(c[i]);
		app_free(t);
		throttle_edges_free(x);
	}
	assert_true(late > 0);
}

/* Two threads: the second waits for the first operation of the first thread. */
static void make_two(struct run *run, bool delayed)
{
	struct simulation s;

	n_steps = 0;
	memset(n_ops, 0, sizeof(n_ops));
	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 2; i < THREADS; i++)
		add(OPERATION, i, 0);
	add(OPERATION, 0, 0);
	add(SEND, 0, 1);
	add(OPERATION, 0, 0);
	add(RECEIVE, 1, 0);
	seen[1].ops[0] = 1;
	add(OPERATION, 1, 0);
	if (delayed) {
		simulate(run, "delayed", 0, 1);
	} else {
		begin(&s, run, "two");
		go_all(&s, THREADS);
		end(&s);
	}
}

static size_t edges_from(struct run *delayed, struct throttle_counts *counts, bool refuted)
{
	const struct throttle_spec spec = {.method = APP_BY_THROTTLING, .whole = true};
	struct throttle_edges *x = throttle_edges_new();
	struct app_trace *t = opened(delayed->path);
	struct run first;
	size_t used;

	assert_int_equal(throttle_edges_add(x, t, 0, delayed->delays, delayed->n, &used, NULL), 0);
	app_free(t);
	make_two(&first, false);
	t = written(&first, x, &spec, counts);
	assert_int_equal(throttle_edges_refuted(x) > 0, refuted);
	app_free(t);
	throttle_edges_free(x);
	return used;
}

static void undecided_delays_add_no_edges(void **state)
{
	struct throttle_counts counts;
	struct run run;

	(void)state;
	make_two(&run, true);
	assert_int_equal(run.n, 2);
	assert_int_equal(edges_from(&run, &counts, false), 2);
	assert_int_equal(counts.edges, 1);
	run.delays[0].decided = false;
	assert_int_equal(edges_from(&run, &counts, false), 1);
	assert_int_equal(counts.edges, 0);
}

/* The delayed call is not in the trace: the next call that stopped came before the operation. */
static void delays_of_other_calls_add_no_edges(void **state)
{
	struct throttle_counts counts;
	struct run run;

	(void)state;
	make_two(&run, true);
	run.delays[0].next_ns = run.delays[0].release_ns + 1;
	assert_int_equal(edges_from(&run, &counts, false), 1);
	assert_int_equal(counts.edges, 0);
}

/* The supervisor took the other threads as blocked too early. The waits derived from that are false
 * in the run without delays, in which these threads continued. */
static void contradicted_waits_are_left_out(void **state)
{
	struct throttle_counts counts;
	struct run run;

	(void)state;
	make_two(&run, true);
	run.delays[0].quiet_ns = run.delays[0].trap_ns - 50 * TICK_NS;
	run.delays[0].release_ns = run.delays[0].trap_ns + 1;
	run.delays[0].next_ns = 0;
	edges_from(&run, &counts, true);
}

/* Adds the waits of the schedule to the trace as messages would have shown them, for threads with
 * even numbers only. */
static void add_messages(const struct app_trace *t, const char *path)
{
	struct app_writer *w;
	struct app_op op;

	unlink(path);
	assert_int_equal(app_create(path, &w, NULL), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		app_add_rank(w, 100 + i, "app", "node");
		app_add_thread(w, i, 100 + i);
	}
	app_add_file(w, "file", 0, 0, false);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct app_cursor *c;

		assert_int_equal(app_cursor_new(t, i, &c), 0);
		for (unsigned n = 1; app_next(c, &op, NULL) > 0; n++) {
			struct app_edge edges[THREADS];

			op.n_edges = 0;
			op.edges = edges;
			for (uint32_t q = 0; q < THREADS; q++)
				if (i % 2 == 0 && q != i && is_planted(i, n, q, at[i][n].ops[q]))
					edges[op.n_edges++] = (struct app_edge){q, at[i][n].ops[q]};
			assert_int_equal(app_put(w, i, &op, NULL), 0);
		}
		app_cursor_free(c);
	}
	assert_int_equal(app_finish(w, app_about(t), NULL), 0);
}

static void count_only(void *ctx, enum app_method by, const struct app_trace *t, uint32_t thread,
	uint64_t op, const struct app_edge *edge)
{
	unsigned *n = ctx;

	(void)t;
	assert_true(is_planted(thread, (unsigned)op, edge->thread, (unsigned)edge->ops));
	n[by == APP_BY_MESSAGES]++;
}

static void edges_of_only_one_method_are_reported(void **state)
{
	unsigned only[2] = {0};
	const struct throttle_spec spec = {.method = APP_BY_MESSAGES | APP_BY_THROTTLING,
		.whole = true,
		.only = count_only,
		.ctx = only};
	struct throttle_counts counts;
	struct throttle_edges *x;
	struct run first;
	struct app_trace *t;
	unsigned wrong;

	(void)state;
	draw_schedule(7);
	x = edges_of_runs(&first, 1);
	t = opened(first.path);
	snprintf(first.path, sizeof(first.path), "%s/messages", dir);
	add_messages(t, first.path);
	app_free(t);
	t = written(&first, x, &spec, &counts);
	assert_int_equal(count_right(t, &wrong), count_planted());
	assert_int_equal(wrong, 0);
	assert_int_equal(counts.throttling, count_planted());
	assert_true(counts.messages > 0 && counts.messages < count_planted());
	assert_int_equal(counts.only_messages, 0);
	assert_true(counts.only_throttling >= count_planted() - counts.messages);
	assert_int_equal(only[1], 0);
	assert_int_equal(only[0], counts.only_throttling);
	app_free(t);
	throttle_edges_free(x);

	/* Without delays, all waits are found by messages only. */
	x = throttle_edges_new();
	t = written(&first, x, &spec, &counts);
	assert_int_equal(counts.only_messages, counts.messages);
	assert_int_equal(counts.edges, counts.messages);
	assert_int_equal(counts.only_throttling, 0);
	app_free(t);
	throttle_edges_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planted_waits_are_found),
		cmocka_unit_test(with_a_period_only_true_waits_are_found),
		cmocka_unit_test(undecided_delays_add_no_edges),
		cmocka_unit_test(delays_of_other_calls_add_no_edges),
		cmocka_unit_test(contradicted_waits_are_left_out),
		cmocka_unit_test(edges_of_only_one_method_are_reported),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
