/* Where the time went, of made-up requests and of a made-up cluster with clocks minutes apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include <math.h>

#include "ci/tests/flow/cluster.h"
#include "diag/slow/slow.h"

enum { SERVERS = 4, CLIENT = 4 };

static const int64_t ms = 1000000, second = 1000000000, start = 1700000000000000000;

static const char *name_of(void *ctx, uint32_t node)
{
	static const char *const names[] = {"s1", "s2", "s3", "s4", "c1"};

	(void)ctx;
	return node < 5 ? names[node] : NULL;
}

static int64_t no_clock(void *ctx, uint32_t node)
{
	(void)ctx;
	(void)node;
	return 0;
}

static bool is_first_four(void *ctx, uint32_t node)
{
	(void)ctx;
	return node < SERVERS;
}

static struct slow_spec spec_of(double onset_s, double offset_s)
{
	return (struct slow_spec){.start_ns = start,
		.onset_ns = onset_s > 0 ? start + (int64_t)(onset_s * 1e9) : 0,
		.offset_ns = offset_s > 0 ? start + (int64_t)(offset_s * 1e9) : 0,
		.seconds = 20,
		.top = 3,
		.node_name = name_of,
		.clock_ns = no_clock,
		.is_server = is_first_four};
}

static struct flow_span span(int64_t begin, int64_t end, uint32_t node)
{
	return (struct flow_span){
		.begin_ns = begin, .end_ns = end, .node = node, .tid = 7, .how = FLOW_EXACT};
}

static bool unbound; /* disk calls are made, and not known */

/* There and back take 1 ms each; waiting and disk as told. */
static void put(struct flow_sink *sink, uint32_t server, int64_t at, int64_t waiting, int64_t disk)
{
	static uint64_t number;
	const int64_t come = at + ms, done = come + waiting + disk;
	struct flow_disk d = {
		.begin_ns = come + waiting, .end_ns = done, .how = FLOW_THREAD, .class = CALL_READ};
	struct flow_fuse u = {.opcode = FUSE_READ,
		.call = span(at, done + ms, CLIENT),
		.thread = "d\033d",
		.path = "/mnt/a\nb"};
	struct flow_request r = {.number = ++number,
		.procedure = 12,
		.name = "READ",
		.client = CLIENT,
		.server = server,
		.call_bytes = 100,
		.answer_bytes = 4096,
		.sent = span(at, at, CLIENT),
		.received = span(come, come, server),
		.answered = span(done, done, server),
		.returned = span(done + ms, done + ms, CLIENT),
		.disks = &d,
		.n_disks = unbound ? 0 : 1,
		.fuse = &u,
		.fuse_how = FLOW_THREAD,
		.first_tid = 7,
		.first_thread = "worker"};
	struct err e;

	assert_int_equal(sink->request(sink->ctx, &r, &e), 0);
}

/* 'slower' times as long at a server in some seconds; the others' times vary. */
static struct slow *make(const struct slow_spec *spec, struct flow **f, uint32_t server,
	double from, double to, int slower)
{
	struct flow_spec flow = {0};
	struct flow_sink none = {0}, sink;
	struct slow *s;

	flow_new(&flow, &none, f);
	slow_new(spec, &s);
	sink = slow_sink(s);
	for (int64_t t = 0; t < 200; t++)
		for (uint32_t i = 0; i < SERVERS; i++) {
			const double at = (double)t / 10;
			const bool is = (i == server || server == SERVERS) && at >= from && at < to;
			const int64_t vary = (t * 7 + (int64_t)i * 13) % 10 * ms / 10;

			put(&sink, i, start + t * second / 10 + (int64_t)i * ms, 2 * ms + vary,
				(is ? slower : 1) * (10 * ms + vary));
		}
	slow_done(s, *f);
	return s;
}

static void free_both(struct slow *s, struct flow *f)
{
	slow_free(s);
	flow_free(f);
}

static void the_slow_server_is_named(void **state)
{
	struct slow_spec spec = spec_of(8, 16);
	const struct slow_server *found[4], *all;
	const struct slow_request *top;
	struct flow *f;
	struct slow *s = make(&spec, &f, 2, 8, 16, 5);
	char *sentence = slow_sentence(s);
	size_t n;

	(void)state;
	assert_int_equal(slow_verdict(s), SLOW_FOUND);
	assert_int_equal(slow_found(s, found, 4), 1);
	assert_int_equal(found[0]->node, 2);
	assert_int_equal(found[0]->worst, SLOW_DISK);
	assert_non_null(strstr(sentence, "s3 is slow: its disk needs "));
	assert_non_null(strstr(sentence, "in its disk"));
	all = slow_servers(s, &n);
	assert_int_equal(n, SERVERS);
	assert_int_equal(all[0].phases[SLOW_BEFORE].requests, 80);
	assert_int_equal(all[0].phases[SLOW_DURING].requests, 80);
	assert_int_equal(all[0].phases[SLOW_AFTER].requests, 40);
	assert_true(all[2].phases[SLOW_DURING].median_s > 0.05);
	assert_true(all[2].phases[SLOW_BEFORE].p99_s < 0.02);
	top = slow_top(s, &n);
	assert_int_equal(n, 3);
	assert_true(top[0].parts.total >= top[1].parts.total);
	assert_int_equal(top[0].r.server, 2);
	free(sentence);
	free_both(s, f);
}

/* Parts add up to the whole, in each phase. */
/* What is not bound to a request seems to wait in the server: it is named, but no part of it. */
static void no_part_without_disk_calls(void **state)
{
	struct slow_spec spec = spec_of(8, 16);
	const struct slow_server *found[4];
	struct flow *f;
	struct slow *s;
	char *sentence;
	json_t *o;

	(void)state;
	unbound = true;
	s = make(&spec, &f, 2, 8, 16, 5);
	unbound = false;
	sentence = slow_sentence(s);
	assert_int_equal(slow_found(s, found, 4), 1);
	assert_int_equal(found[0]->node, 2);
	assert_int_equal(found[0]->data, 80);
	assert_int_equal(found[0]->unbound, 80);
	assert_false(found[0]->part_known);
	assert_non_null(strstr(sentence, "80 of its 80 requests with data have no disk call"));
	assert_null(strstr(sentence, "waiting in the server"));
	o = slow_json(s);
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(o, "servers"), 2), "worst")));
	json_decref(o);
	free(sentence);
	free_both(s, f);
}

/* A server that stands still for a while each second: no layer was busy before for long enough to
 * be compared, the server as a whole was. */
static void a_pause_each_second(void **state)
{
	struct slow_spec spec = spec_of(8, 16);
	const struct slow_server *found[4];
	struct flow_spec flow = {0};
	struct flow_sink none = {0}, sink;
	struct flow *f;
	struct slow *s;
	char *sentence;

	(void)state;
	flow_new(&flow, &none, &f);
	slow_new(&spec, &s);
	sink = slow_sink(s);
	for (int64_t t = 0; t < 200; t++)
		for (uint32_t i = 0; i < SERVERS; i++) {
			const bool stopped = i == 1 && t >= 80 && t < 160 && t % 10 < 3;
			/* Waits are rare at any server, and of any length. */
			const int64_t rare = (t + (int64_t)i * 17) % 67 ? 0 : (t % 3 + 1) * 3 * ms;

			put(&sink, i, start + t * second / 10 + (int64_t)i * ms,
				stopped ? (3 - t % 10) * 20 * ms : rare, 20 * ms);
		}
	slow_done(s, f);
	sentence = slow_sentence(s);
	if (slow_verdict(s) != SLOW_FOUND || slow_found(s, found, 4) != 1)
		fail_msg("%s", sentence);
	assert_int_equal(found[0]->node, 1);
	assert_int_equal(found[0]->worst, SLOW_WAITING);
	free(sentence);
	free_both(s, f);
}

static void parts_add_up(void **state)
{
	struct slow_spec spec = spec_of(8.05, 16.02); /* in the middle of requests */
	const struct slow_server *all;
	double sum, share = 0;
	struct flow *f;
	struct slow *s = make(&spec, &f, 1, 8, 16, 4);
	size_t n;

	(void)state;
	all = slow_servers(s, &n);
	for (size_t i = 0; i < n; i++) {
		const struct slow_cell *c = &all[i].phases[SLOW_DURING];

		sum = 0;
		for (int k = 0; k < SLOW_PARTS; k++)
			sum += c->parts_s[k];
		assert_true(sum > c->time_s * 0.9999 && sum < c->time_s * 1.0001);
		share += c->share;
	}
	assert_true(share > 0.9999 && share < 1.0001);
	free_both(s, f);
}

/* A request that waits while another one's disk call lasts. */
static void who_waits_for_the_disk(void **state)
{
	struct slow_spec spec = spec_of(0, 0);
	struct flow_spec flow = {0};
	struct flow_sink none = {0}, sink;
	const struct slow_server *all;
	const struct slow_request *top;
	struct flow *f;
	struct slow *s;
	size_t n;

	(void)state;
	flow_new(&flow, &none, &f);
	slow_new(&spec, &s);
	sink = slow_sink(s);
	put(&sink, 0, start, 0, 100 * ms);
	put(&sink, 0, start + 20 * ms, 110 * ms, 10 * ms); /* 80 of them while the first is there */
	slow_done(s, f);
	top = slow_top(s, &n);
	assert_int_equal(top[0].queue_ns, 80 * ms);
	assert_int_equal(top[1].queue_ns, 0);
	all = slow_servers(s, &n);
	assert_true(fabs(all[0].phases[SLOW_BEFORE].parts_s[SLOW_QUEUE] - 0.08) < 1e-6);
	assert_true(fabs(all[0].phases[SLOW_BEFORE].parts_s[SLOW_WAITING] - 0.03) < 1e-6);
	assert_int_equal(slow_verdict(s), SLOW_NO_FAULT);
	free_both(s, f);
}

static void nothing_stands_out(void **state)
{
	const struct {
		double onset, offset, from, to;
		uint32_t server;
		int slower;
		enum slow_verdict verdict;
	} cases[] = {
		{8, 16, 0, 0, 0, 1, SLOW_NOTHING},        /* nothing became slower */
		{8, 16, 8, 16, SERVERS, 5, SLOW_NOTHING}, /* all did */
		{8, 16, 0, 20, 1, 5, SLOW_NOTHING},       /* one was slow before, too */
		{8, 16, 12, 12.3, 1, 5, SLOW_NOTHING},    /* for a moment */
		{0.9, 16, 0.9, 16, 1, 5, SLOW_TOO_SHORT}, /* not a whole second before */
		{0, 0, 8, 16, 1, 5, SLOW_NO_FAULT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_spec spec = spec_of(cases[i].onset, cases[i].offset);
		struct flow *f;
		struct slow *s = make(
			&spec, &f, cases[i].server, cases[i].from, cases[i].to, cases[i].slower);

		if (slow_verdict(s) != cases[i].verdict)
			fail_msg("case %zu: %d", i, (int)slow_verdict(s));
		free_both(s, f);
	}
}

static void filters(void **state)
{
	struct slow_spec spec = spec_of(8, 16);
	const struct slow_server *all;
	struct flow *f;
	struct slow *s;
	size_t n;

	(void)state;
	spec.server = "s2";
	spec.from_s = 9;
	spec.to_s = 10;
	s = make(&spec, &f, 1, 8, 16, 5);
	all = slow_servers(s, &n);
	assert_int_equal(n, 1);
	assert_int_equal(all[0].phases[SLOW_BEFORE].requests, 0);
	assert_int_equal(all[0].phases[SLOW_DURING].requests, 10);
	free_both(s, f);
	spec = spec_of(8, 16);
	spec.procedure = "WRITE";
	s = make(&spec, &f, 1, 8, 16, 5);
	assert_int_equal(slow_verdict(s), SLOW_NO_REQUESTS);
	free_both(s, f);
}

/* What is printed: no line above 100 columns, no control character, JSON that reads back. */
static void output(void **state)
{
	struct slow_spec spec = spec_of(8, 16);
	struct flow *f;
	struct slow *s = make(&spec, &f, 2, 8, 16, 5);
	char *text = NULL, *dump;
	json_t *o = slow_json(s), *again;
	size_t size, column = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	slow_text_phases(s, out);
	slow_text_layers(s, out);
	slow_text_top(s, out);
	slow_text_coverage(s, out);
	fclose(out);
	for (size_t i = 0; i < size; i++) {
		column = text[i] == '\n' ? 0 : column + 1;
		assert_true(column <= 100);
		assert_true(text[i] == '\n' || (unsigned char)text[i] >= ' ');
	}
	assert_non_null(strstr(text, "d\\x1bd"));
	dump = json_dumps(o, 0);
	again = json_loads(dump, 0, NULL);
	assert_true(json_equal(o, again));
	assert_string_equal(json_string_value(json_object_get(o, "verdict")), "found");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(o, "found"), 0)), "s3");
	assert_int_equal(json_array_size(json_object_get(o, "slowest")), 3);
	json_decref(again);
	json_decref(o);
	free(dump);
	free(text);
	free_both(s, f);
}

/* ---- clocks ---- */

struct wrong {
	const struct cluster *c;
	uint32_t node; /* whose clock was measured wrong */
};

static const char *cluster_name(void *ctx, uint32_t node)
{
	static char name[16];

	(void)ctx;
	snprintf(name, sizeof(name), "n%u", node);
	return name;
}

static int64_t cluster_offset(void *ctx, uint32_t node)
{
	const struct wrong *w = ctx;

	return node == w->node ? 0 : w->c->offset_ns[node];
}

static bool cluster_is_server(void *ctx, uint32_t node)
{
	const struct wrong *w = ctx;

	return node >= (uint32_t)w->c->spec.clients;
}

/* Clocks are up to four minutes apart, and the run measured one of them wrong: each request is in
 * the phase that it truly began in, but for those within 5 ms of the onset. */
static void clocks_apart_by_minutes(void **state)
{
	const struct cluster_spec made = {.seed = 3,
		.clients = 3,
		.servers = 3,
		.apps = 3,
		.io_threads = 2,
		.ops = 60,
		.fan = 2,
		.offset_s = 240};
	const int64_t onset = second / 10;
	struct flow_protocol p = cluster_protocol();
	struct flow_spec flow = {.protocol = &p, .drift_ppm = 100};
	uint64_t least = 0, most = 0, before = 0;
	struct flow_sink sink;
	struct wrong wrong = {.node = 4};
	struct slow_spec spec = spec_of(0, 0);
	const struct slow_server *all;
	struct cluster c;
	struct slow *s;
	struct flow *f;
	struct err e;
	uint32_t node;
	size_t n;

	(void)state;
	cluster_make(&c, &made);
	wrong.c = &c;
	spec.start_ns = cluster_epoch;
	spec.onset_ns = cluster_epoch + onset;
	spec.node_name = cluster_name;
	spec.clock_ns = cluster_offset;
	spec.is_server = cluster_is_server;
	spec.ctx = &wrong;
	slow_new(&spec, &s);
	sink = slow_sink(s);
	flow_new(&flow, &sink, &f);
	for (int i = 0; i < c.n_nodes; i++)
		assert_int_equal(
			flow_add(f, cluster_name(NULL, (uint32_t)i), cluster_stream(&c, i), &e), 0);
	assert_int_equal(flow_run(f, &e), 0);
	slow_done(s, f);
	for (size_t i = 0; i < c.n_truth; i++) {
		int64_t at = c.truth[i].legs[0].begin_ns - c.offset_ns[c.truth[i].client] -
			cluster_epoch;

		least += at < onset - 5 * ms;
		most += at < onset + 5 * ms;
	}
	all = slow_servers(s, &n);
	for (size_t i = 0; i < n; i++)
		before += all[i].phases[SLOW_BEFORE].requests;
	assert_true(least > 20 && least < most && most + 20 < c.n_truth);
	assert_in_range(before, least, most);
	assert_true(slow_clock_error(s, &node) > 1);
	assert_int_equal(node, 4);
	free_both(s, f);
	cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slow_server_is_named),
		cmocka_unit_test(no_part_without_disk_calls),
		cmocka_unit_test(a_pause_each_second),
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(who_waits_for_the_disk),
		cmocka_unit_test(nothing_stands_out),
		cmocka_unit_test(filters),
		cmocka_unit_test(output),
		cmocka_unit_test(clocks_apart_by_minutes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
