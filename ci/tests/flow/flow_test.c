/* Flows of made-up clusters against their truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/flow/cluster.h"
#include "diag/flow/flow_impl.h"

struct check {
	struct cluster *cluster;
	int *by_time; /* truths in the order of their sends */
	uint64_t wrong, matched, whole, with_fuse, with_call, disks, named;
};

static const struct truth *sorted_truth;

static int by_send(const void *a, const void *b)
{
	const struct truth *x = &sorted_truth[*(const int *)a], *y = &sorted_truth[*(const int *)b];

	if (x->legs[0].begin_ns != y->legs[0].begin_ns)
		return x->legs[0].begin_ns < y->legs[0].begin_ns ? -1 : 1;
	return (x->client > y->client) - (x->client < y->client);
}

static struct truth *find(struct check *k, uint32_t client, int64_t begin_ns, uint32_t tid)
{
	size_t low = 0, high = k->cluster->n_truth;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (k->cluster->truth[k->by_time[mid]].legs[0].begin_ns < begin_ns)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < k->cluster->n_truth; low++) {
		struct truth *t = &k->cluster->truth[k->by_time[low]];

		if (t->legs[0].begin_ns != begin_ns)
			return NULL;
		if (t->client == client && t->legs[0].tid == tid)
			return t;
	}
	return NULL;
}

static bool differs(const struct flow_span *s, const struct truth_leg *l)
{
	return s->how && (s->begin_ns != l->begin_ns || s->end_ns != l->end_ns || s->tid != l->tid);
}

static bool is_wrong(struct check *k, const struct flow_request *r, const struct truth *t)
{
	const struct flow_span *spans[] = {&r->sent, &r->received, &r->answered, &r->returned};

	for (int i = 0; i < 4; i++)
		if (differs(spans[i], &t->legs[i]))
			return true;
	if (r->id != t->id || r->client != t->client ||
		(r->server != FLOW_NO_NODE && r->server != t->server))
		return true;
	if (r->name && r->procedure != t->procedure)
		return true;
	for (size_t i = 0; i < r->n_disks; i++) {
		bool is = false;

		for (int d = 0; d < t->n_disks; d++)
			is = is || t->disk_ns[d] == r->disks[i].begin_ns;
		if (!is)
			return true;
	}
	k->disks += r->n_disks;
	if (r->fuse && r->fuse->unique != t->unique)
		return true;
	return r->fuse && r->fuse->call.how && r->fuse->call.begin_ns != t->call_ns;
}

static int check_request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct check *k = ctx;
	struct truth *t;

	(void)e;
	k->whole += r->sent.how && r->received.how && r->answered.how && r->returned.how;
	if (!r->sent.how)
		return 0;
	t = find(k, r->client, r->sent.begin_ns, r->sent.tid);
	if (!t || t->seen || is_wrong(k, r, t)) {
		k->wrong++;
		return 0;
	}
	t->seen = true;
	k->matched++;
	k->with_fuse += r->fuse != NULL;
	k->with_call += r->fuse && r->fuse->call.how;
	k->named += r->name != NULL;
	return 0;
}

static struct flow_name names[] = {{1298437, 12, "READ"}, {1298437, 13, "WRITE"}};

struct outcome {
	struct flow_counts counts;
	struct check check;
	uint64_t requests; /* in truth */
	uint64_t disk_calls;
};

static struct flow *follow(struct cluster *c, const struct flow_protocol *p, struct check *k)
{
	struct flow_spec spec = {.protocol = p, .drift_ppm = 100};
	struct flow_sink sink = {.request = check_request, .ctx = k};
	struct flow *f;
	struct err e;
	char name[8];

	*k = (struct check){.cluster = c, .by_time = alloc_zero(c->n_truth, sizeof(int))};
	for (size_t i = 0; i < c->n_truth; i++)
		k->by_time[i] = (int)i;
	sorted_truth = c->truth;
	qsort(k->by_time, c->n_truth, sizeof(int), by_send);
	flow_new(&spec, &sink, &f);
	for (int i = 0; i < c->n_nodes - c->spec.quiet_nodes; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(flow_add(f, name, cluster_stream(c, i), &e), 0);
	}
	assert_int_equal(flow_run(f, &e), 0);
	return f;
}

static struct outcome run_with(const struct cluster_spec *spec, bool parts)
{
	struct flow_protocol p = cluster_protocol();
	struct cluster c;
	struct outcome o;
	struct flow *f;

	p.names = names;
	p.n_names = 2;
	p.parts = parts;
	cluster_make(&c, spec);
	f = follow(&c, &p, &o.check);
	o.counts = *flow_counts(f);
	o.requests = c.n_truth;
	o.disk_calls = c.disk_calls;
	assert_int_equal(o.counts.requests_whole, o.check.whole);
	if (getenv("FLOW_SHOW"))
		flow_print_counts(f, stderr);
	flow_free(f);
	free(o.check.by_time);
	cluster_clear(&c);
	return o;
}

static struct outcome run(const struct cluster_spec *spec)
{
	return run_with(spec, false);
}

static const struct cluster_spec plain = {
	.seed = 1, .clients = 1, .servers = 1, .apps = 1, .io_threads = 1, .ops = 20, .fan = 1};

static void assert_all(const struct outcome *o)
{
	assert_int_equal(o->check.wrong, 0);
	assert_int_equal(o->check.matched, o->requests);
	assert_int_equal(o->check.whole, o->requests);
	assert_int_equal(o->check.named, o->requests);
	assert_int_equal(o->counts.requests_whole, o->requests);
	assert_int_equal(o->counts.receives_bound, o->counts.receives);
	assert_int_equal(o->counts.bound_bytes, o->counts.sent_bytes);
	assert_int_equal(o->check.with_fuse, o->requests);
	assert_int_equal(o->check.with_call, o->requests);
	assert_int_equal(o->check.disks, o->disk_calls);
}

static void one_connection(void **state)
{
	struct outcome o = run(&plain);

	(void)state;
	assert_all(&o);
}

static void concurrency_and_wrong_clocks(void **state)
{
	struct cluster_spec spec = {.clients = 4,
		.servers = 4,
		.apps = 5,
		.io_threads = 4,
		.ops = 60,
		.fan = 4,
		.chain_pct = 30,
		.drift_ppm = 40};
	const double offsets[] = {0, 0.001, 0.2, 3, 240};

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct outcome o;

		spec.seed = (uint64_t)i + 1;
		spec.offset_s = offsets[i % 5];
		spec.cut = i < 5 ? CUT_BY_MARK : CUT_ANYHOW;
		spec.cut_send_pct = i % 2 ? 30 : 0;
		o = run(&spec);
		assert_all(&o);
	}
}

static const struct cluster_spec busy = {.clients = 3,
	.servers = 3,
	.apps = 4,
	.io_threads = 3,
	.ops = 60,
	.fan = 3,
	.chain_pct = 20,
	.offset_s = 5,
	.drift_ppm = 40,
	.cut_send_pct = 20};

/* What is not bound is counted, and nothing is bound to what it does not belong to. */
static void assert_explained(const struct outcome *o, uint64_t share_pct)
{
	uint64_t reasons = 0;

	for (int i = 0; i < FLOW_REASONS; i++)
		reasons += o->counts.reasons[i];
	assert_int_equal(o->check.wrong, 0);
	assert_true(o->check.whole * 100 >= o->requests * share_pct);
	assert_true(o->check.whole == o->requests || reasons > 0);
}

static void reconnects(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.reconnect_pct = 1;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		spec.cut = spec.seed % 2 ? CUT_BY_MARK : CUT_ANYHOW;
		o = run(&spec);
		assert_true(o.counts.connections > 9);
		assert_explained(&o, 98);
	}
}

static void ids_that_repeat(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		spec.ids = 40; /* more than are under way */
		o = run(&spec);
		assert_all(&o);
	}
}

static void attached_in_the_middle(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	for (spec.seed = 1; spec.seed < 8; spec.seed++) {
		spec.cut = spec.seed % 2 ? CUT_BY_MARK : CUT_ANYHOW;
		for (int i = 0; i < 6; i++)
			spec.attach_s[i] = 0.02 * (double)((spec.seed * 7 + (uint64_t)i * 5) % 11);
		o = run(&spec);
		assert_explained(&o, 50);
		assert_true(o.counts.reasons[FLOW_BEFORE_ATTACH] > 0);
	}
}

static void lost_records(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.lose_pct_100 = 20;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		spec.cut = spec.seed % 2 ? CUT_BY_MARK : CUT_ANYHOW;
		o = run(&spec);
		assert_explained(&o, 90);
		assert_true(o.counts.reasons[FLOW_GAP] > 0);
	}
}

static void a_server_without_a_log(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.quiet_nodes = 1;
	spec.seed = 3;
	o = run(&spec);
	assert_explained(&o, 50);
	assert_int_equal(o.check.matched, o.requests); /* their clients' legs are there */
	assert_true(o.counts.reasons[FLOW_PEER_UNSEEN] > 0);
}

static void without_heads_or_description(void **state)
{
	struct cluster_spec spec = busy;
	struct flow_protocol p = cluster_protocol();
	struct cluster c;
	struct check k;
	struct flow *f;

	(void)state;
	spec.seed = 5;
	cluster_make(&c, &spec);
	f = follow(&c, NULL, &k);
	assert_int_equal(flow_counts(f)->receives_bound, flow_counts(f)->receives);
	assert_int_equal(flow_counts(f)->requests, 0);
	assert_int_equal(flow_counts(f)->reasons[FLOW_NO_DESCRIPTION], 1);
	flow_free(f);
	free(k.by_time);
	cluster_clear(&c);

	spec.no_heads = 1;
	cluster_make(&c, &spec);
	f = follow(&c, &p, &k);
	assert_int_equal(flow_counts(f)->receives_bound, flow_counts(f)->receives);
	assert_int_equal(flow_counts(f)->requests, 0);
	assert_true(flow_counts(f)->reasons[FLOW_NO_HEADS] > 0);
	flow_free(f);
	free(k.by_time);
	cluster_clear(&c);
}

static void clocks_within_their_intervals(void **state)
{
	struct cluster_spec spec = busy;
	struct flow_protocol p = cluster_protocol();
	struct flow_clock k;
	struct cluster c;
	struct check check;
	struct flow *f;

	(void)state;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		spec.offset_s = 100;
		cluster_make(&c, &spec);
		f = follow(&c, &p, &check);
		assert_int_equal(flow_counts(f)->clock_steps, 0);
		for (uint32_t a = 0; a < 6; a++)
			for (uint32_t b = 0; b < 6; b++) {
				int64_t is = c.offset_ns[b] - c.offset_ns[a];

				if (a == b)
					continue;
				assert_true(flow_clock(f, a, b, &k));
				/* The drift over the whole run lies within the tolerance. */
				assert_true(
					k.lowest_ns - 100000 <= is && is <= k.highest_ns + 100000);
				assert_int_equal(k.hops, (a < 3) == (b < 3) ? 2 : 1);
				assert_true(k.narrowest_ns > 0 && k.narrowest_ns < 2000000);
			}
		flow_free(f);
		free(check.by_time);
		cluster_clear(&c);
	}
}

static void disk_calls_of_helpers(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.helpers = true;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		o = run(&spec);
		/* Sizes may mislead where one of the requests moves other data than its own. */
		assert_true(o.check.wrong * 200 < o.requests);
		assert_true(o.counts.disk_content * 3 > o.counts.disk_calls);
		assert_true(o.counts.reasons[FLOW_SEVERAL_FIT] > 0);
	}
}

/* Of a protocol with several messages a request, each may have further ones for ten seconds: its
 * helper's call waits that long, behind thousands of others. */
static void disk_calls_wait_for_requests(void **state)
{
	struct cluster_spec spec = plain;
	struct outcome o;

	(void)state;
	spec.helpers = true;
	spec.ops = 4000;
	spec.bytes = 20000;
	o = run_with(&spec, true);
	assert_int_equal(o.check.wrong, 0);
	assert_true(o.counts.disk_calls > 3500);
	/* But for those of which neither message is longer than a header may be. */
	assert_true(o.counts.disk_content * 100 > o.counts.disk_calls * 99);
}

/* An answer that finds its socket full is sent by another thread, and the io-thread continues: its
 * next answer does not follow its last disk call. None is bound wrongly, and most are by content,
 * as long as they differ in size. */
static void answers_of_another_thread(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.full_pct = 10;
	spec.bytes = 20000;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		o = run(&spec);
		/* A call of a few bytes may pass for a part of the next one's request. */
		assert_true(o.check.wrong * 1000 < o.requests);
		assert_true((o.counts.disk_thread + o.counts.disk_content) * 100 >
			o.counts.disk_calls * 99);
		assert_true(o.counts.disk_content * 100 > o.counts.disk_calls * 5);
	}
	spec.alike = true;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		o = run(&spec);
		assert_int_equal(o.check.wrong, 0);
		assert_true((o.counts.disk_thread + o.counts.disk_content) * 100 >
			o.counts.disk_calls * 90);
	}
}

/* The thread that takes the last answer, and answers FUSE, names the cause of all before it. */
static void queued_calls(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.queued = true;
	spec.fan = 1;
	spec.chain_pct = 100;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		o = run(&spec);
		assert_int_equal(o.check.wrong, 0);
		assert_int_equal(o.check.whole, o.requests);
		assert_true(o.check.with_fuse * 200 > o.requests * 199);
	}
}

/* A thread that reads, asks, takes and answers: with one FUSE request in hand, all is for it. With
 * several nobody can tell, and what is bound is still right. */
static void a_daemon_of_one_thread(void **state)
{
	struct cluster_spec spec = busy;
	struct outcome o;

	(void)state;
	spec.alone = true;
	spec.chain_pct = 60;
	for (spec.seed = 1; spec.seed < 6; spec.seed++) {
		spec.apps = 1;
		o = run(&spec);
		assert_int_equal(o.check.wrong, 0);
		assert_int_equal(o.check.with_fuse, o.requests);
		spec.apps = 3;
		o = run(&spec);
		assert_int_equal(o.check.wrong, 0);
		assert_true(o.check.with_fuse < o.requests);
	}
}

/* Of two threads on one socket: positions are read when calls return. */
static void overlaps(void **state)
{
	/* The true order is a (100 bytes), b (50); both return after both were sent. */
	const struct segment a = {.begin = 1050, .end = 1150}, b = {.begin = 1100, .end = 1150};
	const struct segment first = {.begin = 900, .end = 1000}, c = {.begin = 1150, .end = 1160};

	(void)state;
	for (int order = 0; order < 2; order++) {
		struct segments s = {0};

		assert_int_equal(segments_insert(&s, &first), INSERTED);
		assert_int_equal(segments_insert(&s, order ? &a : &b), INSERTED);
		assert_int_equal(s.frontier, 1000);
		assert_int_equal(segments_insert(&s, order ? &b : &a), INSERTED_OVERLAP);
		assert_int_equal(s.frontier, 1150);
		assert_int_equal(s.ready, 3);
		assert_int_equal(segment_at(&s, 1)->begin, 1000);
		assert_int_equal(segment_at(&s, 2)->begin, 1100);
		assert_int_equal(segments_insert(&s, &c), INSERTED);
		assert_int_equal(segments_insert(&s, &b), INSERT_LATE);
		free(s.ring);
	}
}

/* The table of threads grows many times. */
static void no_thread_of_a_node_is_forgotten(void **state)
{
	struct flow_protocol p = cluster_protocol();
	struct flow_spec spec = {.protocol = &p, .drift_ppm = 100};
	struct thread *threads[1000];
	struct flow_sink sink = {0};
	struct cluster c;
	struct flow *f;
	struct err e;

	(void)state;
	cluster_make(&c, &plain);
	flow_new(&spec, &sink, &f);
	assert_int_equal(flow_add(f, "n0", cluster_stream(&c, 0), &e), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_null(thread_find(f, 0, 7 * i + 1));
		threads[i] = thread_of(f, 0, 7 * i + 1);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		assert_ptr_equal(thread_find(f, 0, 7 * i + 1), threads[i]);
		assert_ptr_equal(thread_of(f, 0, 7 * i + 1), threads[i]);
		assert_int_equal(threads[i]->tid, 7 * i + 1);
	}
	assert_int_equal(f->nodes[0].threads.n, 1000);
	flow_free(f);
	cluster_clear(&c);
}

/* Makes the header of the bytes at 'position' of the direction that node 0 sends (or node 1
 * receives) one of an unknown version. */
static void spoil(struct cluster_log *l, uint32_t position)
{
	for (size_t i = 0; i < l->n; i++) {
		struct cluster_record *r = &l->records[i];
		uint32_t begin = r->position - (uint32_t)r->result;

		for (uint32_t k = 0; r->positioned && k < r->head_size; k++)
			if (begin + k - position >= 12 && begin + k - position < 16)
				r->head[k] = 0xee;
	}
}

/* What cannot be a header ends the messages there, for that reason, until the next one is found. */
static void a_bad_header_is_counted_and_passed_over(void **state)
{
	struct cluster_spec spec = plain;
	struct flow_protocol p = cluster_protocol();
	struct cluster c;
	struct check k;
	struct flow *f;
	uint32_t position = 0;

	(void)state;
	spec.ops = 100;
	cluster_make(&c, &spec);
	for (size_t i = 0, calls = 0; i < c.logs[0].n && calls < 50; i++) {
		const struct cluster_record *r = &c.logs[0].records[i];

		if (r->positioned && r->nr == cluster_nr("writev") && ++calls == 50)
			position = r->position - (uint32_t)r->result;
	}
	spoil(&c.logs[0], position);
	spoil(&c.logs[1], position);
	f = follow(&c, &p, &k);
	assert_int_equal(flow_counts(f)->reasons[FLOW_BAD_HEADER], 1);
	assert_int_equal(k.wrong, 0);
	assert_true(k.whole >= 97 && k.whole < 100);
	flow_free(f);
	free(k.by_time);
	cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_thread_of_a_node_is_forgotten),
		cmocka_unit_test(a_bad_header_is_counted_and_passed_over),
		cmocka_unit_test(one_connection),
		cmocka_unit_test(concurrency_and_wrong_clocks),
		cmocka_unit_test(reconnects),
		cmocka_unit_test(ids_that_repeat),
		cmocka_unit_test(attached_in_the_middle),
		cmocka_unit_test(lost_records),
		cmocka_unit_test(a_server_without_a_log),
		cmocka_unit_test(without_heads_or_description),
		cmocka_unit_test(clocks_within_their_intervals),
		cmocka_unit_test(disk_calls_of_helpers),
		cmocka_unit_test(disk_calls_wait_for_requests),
		cmocka_unit_test(answers_of_another_thread),
		cmocka_unit_test(queued_calls),
		cmocka_unit_test(a_daemon_of_one_thread),
		cmocka_unit_test(overlaps),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
