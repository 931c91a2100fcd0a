/*
 * The rule of 'culprit slow' (diag/slow/slow.h) on made-up cells: clients that send one request
 * after the other to servers with one disk each, first come, first served. How long a disk takes
 * varies from second to second, and seconds depend on each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/calls.h"
#include "diag/slow/slow.h"

enum { SERVERS = 6, CLIENTS = 8, SECONDS = 80 };

static const double start = 1.7e9;

struct made {
	uint64_t seed;
	int servers, clients;
	double before_s, during_s, after_s;
	double vary;   /* standard deviation of the logarithm of a server's second */
	double memory; /* correlation of a second with the next */
	double slower; /* the disk in the fault, of 'victims' servers from 'victim' on; 0: none */
	double way_ms; /* ... one way over the wire to the victims */
	double all;    /* every disk during the fault; 0: as ever */
	double walk;   /* a server's seconds wander: standard deviation of a step */
	int victim, victims;
	int record;   /* so many requests to each server at once, and then their wait; 0: none */
	bool unknown; /* the rule is not told of the fault */
	bool batches; /* during the fault clients meet at the server after the victim */
};

/* ---- chance ---- */

static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	double u = uniform(state), v = uniform(state);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* ---- requests ---- */

static const char *name_of(void *ctx, uint32_t node)
{
	static const char *const names[] = {"s1", "s2", "s3", "s4", "s5", "s6"};

	(void)ctx;
	return node < SERVERS ? names[node] : "c";
}

static int64_t no_clock(void *ctx, uint32_t node)
{
	(void)ctx;
	(void)node;
	return 0;
}

static bool is_server(void *ctx, uint32_t node)
{
	(void)ctx;
	return node < SERVERS;
}

static int64_t ns(double s)
{
	return (int64_t)(start * 1e9) + (int64_t)(s * 1e9);
}

static struct flow_span at(double s, uint32_t node)
{
	return (struct flow_span){
		.begin_ns = ns(s), .end_ns = ns(s), .node = node, .tid = 7, .how = FLOW_EXACT};
}

/* Times: sent, received, the disk's turn, its end, the answer's receipt. */
static void put(struct flow_sink *sink, uint32_t server, const double t[5])
{
	static uint64_t number;
	struct flow_disk d = {
		.begin_ns = ns(t[2]), .end_ns = ns(t[3]), .how = FLOW_THREAD, .class = CALL_READ};
	struct flow_request r = {.number = ++number,
		.procedure = 12,
		.name = "READ",
		.client = SERVERS,
		.server = server,
		.sent = at(t[0], SERVERS),
		.received = at(t[1], server),
		.answered = at(t[3], server),
		.returned = at(t[4], SERVERS),
		.disks = &d,
		.n_disks = 1,
		.first_thread = "worker"};
	struct err e;

	assert_int_equal(sink->request(sink->ctx, &r, &e), 0);
}

static bool is_victim(const struct made *m, int server)
{
	return server >= m->victim && server < m->victim + m->victims;
}

/* Factors of the disks, by server and second. */
static void make_factors(const struct made *m, uint64_t *state, double out[SERVERS][SECONDS])
{
	for (int i = 0; i < m->servers; i++) {
		double y = normal(state), wander = 0;

		for (int k = 0; k < SECONDS; k++) {
			bool during = k >= m->before_s && k < m->before_s + m->during_s;

			y = m->memory * y + sqrt(1 - m->memory * m->memory) * normal(state);
			wander += m->walk * normal(state);
			out[i][k] = exp(m->vary * y + wander);
			if (!during)
				continue;
			out[i][k] *= m->all > 0 ? m->all : 1;
			if (is_victim(m, i) && m->slower > 0)
				out[i][k] *= m->slower;
		}
	}
}

static void drive(const struct made *m, struct flow_sink *sink)
{
	const double end = m->before_s + m->during_s + m->after_s;
	double factors[SERVERS][SECONDS], ready[CLIENTS], idle[SERVERS] = {0};
	uint64_t state = m->seed;
	int next[CLIENTS];

	make_factors(m, &state, factors);
	for (int c = 0; c < m->clients; c++) {
		ready[c] = 0.01 * uniform(&state);
		next[c] = c % m->servers;
	}
	for (;;) {
		int c = 0, i;
		double t[5], way = 0.001;
		bool during;

		for (int k = 1; k < m->clients; k++)
			c = ready[k] < ready[c] ? k : c;
		if (ready[c] >= end)
			return;
		during = ready[c] >= m->before_s && ready[c] < m->before_s + m->during_s;
		i = next[c];
		if (during && is_victim(m, i) && m->way_ms > 0)
			way = m->way_ms / 1e3;
		t[0] = ready[c];
		t[1] = t[0] + way;
		t[2] = fmax(t[1], idle[i]);
		t[3] = t[2] +
			0.01 * (0.8 + 0.4 * uniform(&state)) * factors[i][(int)t[2] % SECONDS];
		t[4] = t[3] + way;
		idle[i] = t[3];
		put(sink, (uint32_t)i, t);
		/* Without batches each chooses the next server for itself. */
		next[c] = m->batches ? (i + 1) % m->servers
				     : (int)(uniform(&state) * (double)m->servers);
		ready[c] = t[4] + 0.002 * uniform(&state);
	}
}

/* Clients that send a record, which spans all servers, and wait until all of it is done. */
static void drive_records(const struct made *m, struct flow_sink *sink)
{
	const double end = m->before_s + m->during_s + m->after_s;
	double factors[SERVERS][SECONDS], ready[CLIENTS], idle[SERVERS] = {0};
	uint64_t state = m->seed;

	make_factors(m, &state, factors);
	for (int c = 0; c < m->clients; c++)
		ready[c] = 0.01 * uniform(&state);
	for (;;) {
		int c = 0;
		double from;

		for (int k = 1; k < m->clients; k++)
			c = ready[k] < ready[c] ? k : c;
		from = ready[c];
		if (from >= end)
			return;
		for (int i = 0; i < m->servers * m->record; i++) {
			const int s = i % m->servers;
			double t[5] = {from, from + 0.001};

			t[2] = fmax(t[1], idle[s]);
			t[3] = t[2] +
				0.01 * (0.8 + 0.4 * uniform(&state)) *
					factors[s][(int)t[2] % SECONDS];
			t[4] = t[3] + 0.001;
			idle[s] = t[3];
			put(sink, (uint32_t)s, t);
			ready[c] = fmax(ready[c], t[4] + 0.002 * uniform(&state));
		}
	}
}

struct judged {
	struct slow *slow;
	struct flow *flow;
};

static struct judged judge(const struct made *m)
{
	const struct slow_spec spec = {.start_ns = ns(0),
		.onset_ns = m->unknown ? 0 : ns(m->before_s),
		.offset_ns = m->unknown ? 0 : ns(m->before_s + m->during_s),
		.seconds = (int32_t)(m->before_s + m->during_s + m->after_s),
		.node_name = name_of,
		.clock_ns = no_clock,
		.is_server = is_server};
	struct flow_spec flow = {0};
	struct flow_sink none = {0}, sink;
	struct judged j;

	flow_new(&flow, &none, &j.flow);
	slow_new(&spec, &j.slow);
	sink = slow_sink(j.slow);
	(m->record ? drive_records : drive)(m, &sink);
	slow_done(j.slow, j.flow);
	return j;
}

static void judged_clear(struct judged *j)
{
	slow_free(j->slow);
	flow_free(j->flow);
}

static const struct made usual = {.servers = 4,
	.clients = 4,
	.before_s = 10,
	.during_s = 14,
	.after_s = 6,
	.vary = 0.5,
	.memory = 0.3,
	.victim = 2,
	.victims = 1};

/* Of 'n' cells: in how many all victims and nobody else are named; a healthy server is. */
struct tally {
	int n, right, wrong, part[SLOW_PARTS];
};

static struct tally run(const struct made *like, int n)
{
	struct tally sum = {.n = n};
	struct made m = *like;
	const struct slow_server *found[SERVERS];

	for (int k = 0; k < n; k++) {
		struct judged j;
		size_t named;
		int hit = 0, miss = 0;

		m.seed = like->seed + (uint64_t)k * 1000003 + 1;
		j = judge(&m);
		named = slow_found(j.slow, found, SERVERS);
		for (size_t i = 0; i < named; i++) {
			bool is = is_victim(&m, (int)found[i]->node) &&
				(m.slower > 0 || m.way_ms > 0);

			*(is ? &hit : &miss) += 1;
			sum.part[found[i]->worst] += is;
		}
		sum.right += hit == m.victims && !miss;
		sum.wrong += miss > 0;
		judged_clear(&j);
	}
	return sum;
}

/* At 5 %, one in a hundred such tallies of 100 would have more than 11. */
enum { CELLS = 100, ALARMS = 11 };

static struct tally tell(const char *what, const struct made *m, int n)
{
	struct tally t = run(m, n);

	print_message("# %s: of %d cells %d right, %d with a healthy server named\n", what, n,
		t.right, t.wrong);
	return t;
}

static void healthy_cells(void **state)
{
	const struct {
		const char *what;
		double vary, memory, walk, all;
		int servers;
	} cases[] = {
		{"healthy, seconds vary by 0.1", 0.1, 0, 0, 0, 4},
		{"healthy, and depend on each other by 0.6", 0.1, 0.6, 0, 0, 4},
		{"healthy, seconds vary by 0.6", 0.6, 0, 0, 0, 4},
		{"healthy, and depend on each other by 0.6", 0.6, 0.6, 0, 0, 4},
		{"healthy, servers wander by 0.05 a second", 0.3, 0.3, 0.05, 0, 4},
		{"healthy, servers wander by 0.2 a second", 0.3, 0.3, 0.2, 0, 4},
		{"healthy, two servers", 0.3, 0.3, 0, 0, 2},
		{"all disks 3 times as slow", 0.3, 0.3, 0, 3, 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct made m = usual;

		m.victims = 0;
		m.vary = cases[i].vary;
		m.memory = cases[i].memory;
		m.walk = cases[i].walk;
		m.all = cases[i].all;
		m.servers = cases[i].servers;
		assert_true(tell(cases[i].what, &m, CELLS).wrong <= ALARMS);
	}
}

static void a_slow_disk(void **state)
{
	struct made m = usual;
	struct tally t;

	(void)state;
	m.vary = 0.3;
	m.slower = 5;
	t = tell("a disk 5 times as slow, seconds vary by 0.3", &m, CELLS);
	assert_true(t.right >= CELLS * 9 / 10 && t.wrong <= ALARMS);
	assert_int_equal(t.part[SLOW_DISK] + t.part[SLOW_QUEUE], t.right);
	m.vary = 0.6;
	assert_true(tell("... by 0.6", &m, CELLS).wrong <= ALARMS);
	m.vary = 0.3;
	m.servers = 2;
	m.victim = 1;
	t = tell("... by 0.3, of two servers", &m, CELLS);
	assert_true(t.right >= CELLS / 2 && t.wrong <= ALARMS);
}

/* Single seconds before the fault are as slow as its median second: enough of them tell. */
static void less_than_single_seconds(void **state)
{
	struct made m = usual;
	struct tally t;

	(void)state;
	m.before_s = 30;
	m.during_s = 40;
	m.vary = 0.5;
	m.slower = 2.25; /* 95 % of seconds lie within exp(1.645 * 0.5) = 2.28 times their median */
	t = tell("a disk 2.25 times as slow, within what single seconds do", &m, CELLS);
	assert_true(t.right >= CELLS * 2 / 3 && t.wrong <= ALARMS);
}

/* Clients that go from server to server meet at the slow one, and then at the next. */
static void a_queue_is_no_slowness(void **state)
{
	struct made m = usual;
	struct tally t;

	(void)state;
	m.vary = 0.15;
	m.slower = 2.5;
	m.clients = CLIENTS;
	m.batches = true;
	t = tell("clients that follow each other, a disk 2.5 times as slow", &m, CELLS);
	assert_true(t.right >= CELLS * 9 / 10 && t.wrong <= ALARMS);
}

/* Records that span all servers: while they wait for the slow one, the others have nothing to do
 * for seconds. */
static void peers_without_work(void **state)
{
	struct made m = usual;
	struct tally t;

	(void)state;
	m.clients = 2;
	m.record = 8;
	m.vary = 0.3;
	m.slower = 150;
	t = tell("records over all servers, a disk 150 times as slow", &m, CELLS);
	assert_true(t.right >= CELLS * 9 / 10 && t.wrong <= ALARMS);
	m.victims = 0;
	assert_true(tell("healthy, records over all servers", &m, CELLS).wrong <= ALARMS);
}

static void a_slow_way(void **state)
{
	struct made m = usual;
	struct tally t;

	(void)state;
	m.way_ms = 40;
	t = tell("a way of 40 ms instead of 1", &m, CELLS);
	assert_true(t.right >= CELLS * 8 / 10 && t.wrong <= ALARMS);
	assert_int_equal(t.part[SLOW_DISK] + t.part[SLOW_QUEUE], 0);
}

static void two_of_five(void **state)
{
	struct made m = usual;
	struct tally t;

	(void)state;
	m.servers = 5;
	m.clients = 5;
	m.victims = 2;
	m.vary = 0.2;
	m.slower = 4;
	t = tell("two of five disks 4 times as slow", &m, CELLS);
	assert_true(t.right >= CELLS * 8 / 10 && t.wrong <= ALARMS);
}

/* One server, and a phase of one second. */
static void what_cannot_be_compared(void **state)
{
	struct made m = usual;
	struct judged j;
	char *sentence;

	(void)state;
	m.servers = 1;
	m.victim = 0;
	m.slower = 5;
	j = judge(&m);
	assert_int_equal(slow_verdict(j.slow), SLOW_NO_PEERS);
	sentence = slow_sentence(j.slow);
	assert_non_null(strstr(sentence, "one server only"));
	free(sentence);
	judged_clear(&j);
	m = usual;
	m.slower = 5;
	m.before_s = 1;
	j = judge(&m);
	assert_int_equal(slow_verdict(j.slow), SLOW_TOO_SHORT);
	judged_clear(&j);
}

/* What is said when nobody is named: who is the slowest, by how much, and what would be needed. */
static void words(void **state)
{
	struct made m = usual;
	struct judged j;
	const struct slow_server *all, *found[SERVERS];
	char *sentence;
	double share = 0;
	size_t n;

	(void)state;
	m.vary = 0.6;
	m.slower = 1.3;
	j = judge(&m);
	assert_int_equal(slow_verdict(j.slow), SLOW_NOTHING);
	sentence = slow_sentence(j.slow);
	assert_non_null(strstr(sentence, "no server stands out: s"));
	assert_non_null(strstr(sentence, "may be chance"));
	free(sentence);
	judged_clear(&j);
	m.vary = 0.1;
	m.slower = 5;
	j = judge(&m);
	assert_int_equal(slow_found(j.slow, found, SERVERS), 1);
	assert_true(found[0]->slowness > 4 && found[0]->slowness < 6);
	assert_true(found[0]->peers >= 1 && found[0]->peers < 1.3);
	all = slow_servers(j.slow, &n);
	for (size_t i = 0; i < n; i++)
		share += all[i].excess_share;
	assert_true(share > 0.9999 && share < 1.0001);
	sentence = slow_sentence(j.slow);
	assert_non_null(strstr(sentence, "s3 is slow: "));
	assert_non_null(strstr(sentence, " of the added time; it took "));
	free(sentence);
	judged_clear(&j);
}

/* In how many cells of 100 a comparison without a fault names all victims, and a healthy one. */
static struct tally compared(const char *what, const struct made *like, enum slow_compared by)
{
	struct tally sum = {.n = CELLS};
	struct made m = *like;

	m.unknown = true;
	for (int k = 0; k < CELLS; k++) {
		const struct slow_comparison *c;
		struct judged j;
		int hit = 0;

		m.seed = (uint64_t)k * 1000003 + 1;
		j = judge(&m);
		assert_int_equal(slow_verdict(j.slow), SLOW_NO_FAULT);
		c = slow_comparison(j.slow, by);
		assert_int_equal(c->verdict == SLOW_FOUND, c->n_found > 0);
		for (size_t i = 0; i < c->n_found; i++)
			hit += is_victim(&m, (int)c->found[i]);
		sum.right += hit == m.victims && c->n_found == (size_t)hit;
		sum.wrong += c->n_found > (size_t)hit;
		judged_clear(&j);
	}
	print_message("# %s, by %s: of %d cells %d right, %d with a healthy server named\n", what,
		slow_compared_name(by), CELLS, sum.right, sum.wrong);
	return sum;
}

/* A cell without a fault: servers against each other find what was slow all along, halves what
 * became slow on the way, and both keep the rule's level. */
static void cells_without_a_fault(void **state)
{
	const struct {
		double vary, memory;
		int servers;
	} healthy[] = {{0.1, 0, 4}, {0.6, 0.6, 4}, {0.3, 0.3, 2}, {0.3, 0.3, 6}};
	struct made m = usual;

	(void)state;
	m.victims = 0;
	for (size_t i = 0; i < sizeof(healthy) / sizeof(healthy[0]); i++) {
		m.vary = healthy[i].vary;
		m.memory = healthy[i].memory;
		m.servers = healthy[i].servers;
		for (int by = 0; by < SLOW_COMPARISONS; by++)
			assert_true(
				compared("healthy", &m, (enum slow_compared)by).wrong <= ALARMS);
	}
	m = usual;
	m.vary = 0.3;
	m.slower = 4;
	m.before_s = 0;
	m.during_s = 30;
	m.after_s = 0;
	assert_true(compared("slow all along", &m, SLOW_SERVERS).right >= 90);
	m.victims = 0;
	assert_true(compared("slow all along", &m, SLOW_HALVES).wrong <= ALARMS);
	m.victims = 1;
	m.before_s = m.during_s = 15;
	assert_true(compared("slow from the middle", &m, SLOW_HALVES).right >= 90);
}

static void words_without_a_fault(void **state)
{
	struct made m = usual;
	struct judged j;
	char *sentence;

	(void)state;
	m.unknown = true;
	m.slower = 8;
	m.vary = 0.1;
	m.before_s = 0;
	m.during_s = 30;
	m.after_s = 0;
	j = judge(&m);
	sentence = slow_sentence(j.slow);
	print_message("# %s\n", sentence);
	assert_non_null(strstr(sentence,
		"there was no fault, so the cell was compared with itself; server with server: s3: "
		"waiting for its disk takes 2.8x the time for the same work (peers 0.35x)"));
	assert_non_null(strstr(sentence, "second half with first: none stands out"));
	free(sentence);
	judged_clear(&j);
	m.servers = 1;
	j = judge(&m);
	assert_int_equal(slow_verdict(j.slow), SLOW_NO_FAULT);
	assert_int_equal(slow_comparison(j.slow, SLOW_SERVERS)->verdict, SLOW_NO_PEERS);
	judged_clear(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_cells),
		cmocka_unit_test(a_slow_disk),
		cmocka_unit_test(less_than_single_seconds),
		cmocka_unit_test(a_queue_is_no_slowness),
		cmocka_unit_test(peers_without_work),
		cmocka_unit_test(a_slow_way),
		cmocka_unit_test(two_of_five),
		cmocka_unit_test(what_cannot_be_compared),
		cmocka_unit_test(words),
		cmocka_unit_test(cells_without_a_fault),
		cmocka_unit_test(words_without_a_fault),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
