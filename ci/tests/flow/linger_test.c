/* A request that has its answer waits FLOW_LINGER_NS for further messages of its id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/flow/cluster.h"
#include "diag/flow/flow_impl.h"

enum { CLIENT, SERVER, SIZE = 200 };

struct seen {
	int requests, calls, answers, without_call;
	uint32_t most_answers, most_calls;
};

static int take(void *ctx, const struct flow_request *r, struct err *e)
{
	struct seen *s = ctx;

	(void)e;
	s->requests++;
	s->calls += r->sent.how != FLOW_UNBOUND;
	s->answers += (int)r->answer_messages;
	s->without_call += (r->reasons >> FLOW_NO_CALL) & 1;
	if (r->answer_messages > s->most_answers)
		s->most_answers = r->answer_messages;
	if (r->call_messages > s->most_calls)
		s->most_calls = r->call_messages;
	return 0;
}

/* A message from one end to the other; returns when its last byte was sent. */
static int64_t pass(struct cluster *c, bool to_server, bool answer, int request, int64_t at_ns)
{
	struct cluster_link *l = cluster_link_of(c, CLIENT, SERVER);
	struct cluster_pipe *p = to_server ? &l->to_server : &l->to_client;
	const int from = to_server ? CLIENT : SERVER, to = to_server ? SERVER : CLIENT;
	int64_t sent, read;

	sent = cluster_send(c, from, 1000, p, to_server ? l->fd : CLUSTER_FD + CLIENT, request,
		answer, SIZE, at_ns);
	memset(&c->truth[request].legs[answer ? 3 : 1], 0, sizeof(struct truth_leg));
	for (read = sent + 50000; cluster_receive(c, to, 900, p,
					  to_server ? CLUSTER_FD + CLIENT : l->fd, &read) == -1;)
		;
	return sent - 500; /* as cluster_send counts on */
}

enum late { LATE_ANSWER, LATE_DATA };

/* One call and its answer; then 'n' more messages of the same id, each 'late_ns' after the last
 * byte of the one before was sent. With 'traffic' the logs hold other calls all the time. */
static struct seen follow(enum late kind, int n, int64_t late_ns, bool traffic)
{
	const struct cluster_spec spec = {
		.seed = 1, .clients = 1, .servers = 1, .apps = 1, .io_threads = 1, .fan = 1};
	struct flow_protocol p = cluster_protocol();
	struct flow_spec flow_spec = {.protocol = &p};
	struct seen seen = {0};
	const struct flow_sink sink = {.request = take, .ctx = &seen};
	struct cluster c;
	struct flow *f;
	struct err e;
	int request;
	int64_t at;

	p.parts = true;
	cluster_make(&c, &spec);
	request = cluster_request_new(&c, CLIENT, 0);
	at = pass(&c, true, false, request, 1000000);
	at = pass(&c, false, true, request, at + 1000000);
	while (n--)
		at = pass(&c, kind == LATE_DATA, true, request, at + late_ns);
	for (int64_t t = 2000000; traffic && t < at + 30000000; t += 30000000) {
		cluster_poll(&c, CLIENT, 1500, t);
		cluster_poll(&c, SERVER, 1500, t);
	}
	flow_new(&flow_spec, &sink, &f);
	for (int i = 0; i < c.n_nodes; i++) {
		cluster_sort(&c.logs[i]);
		assert_int_equal(
			flow_add(f, i == CLIENT ? "c1" : "s1", cluster_stream(&c, i), &e), 0);
	}
	assert_int_equal(flow_run(f, &e), 0);
	assert_int_equal(flow_counts(f)->receives_bound, flow_counts(f)->receives);
	flow_free(f);
	cluster_clear(&c);
	return seen;
}

/* Merged time follows what is known of the clocks; here they are right to within the wire's time,
 * and sends and receives take less than this. */
#define SLACK_NS 1000000

static void just_in_time(void **state)
{
	(void)state;
	for (int traffic = 0; traffic < 2; traffic++) {
		struct seen s = follow(LATE_ANSWER, 1, FLOW_LINGER_NS - SLACK_NS, traffic);

		assert_int_equal(s.requests, 1);
		assert_int_equal(s.most_answers, 2);
		assert_int_equal(s.without_call, 0);
		s = follow(LATE_DATA, 1, FLOW_LINGER_NS - SLACK_NS, traffic);
		assert_int_equal(s.requests, 1);
		assert_int_equal(s.most_calls, 2);
		assert_int_equal(s.without_call, 0);
	}
}

static void just_too_late(void **state)
{
	(void)state;
	for (int traffic = 0; traffic < 2; traffic++) {
		struct seen s = follow(LATE_ANSWER, 1, FLOW_LINGER_NS + SLACK_NS, traffic);

		assert_int_equal(s.requests, 2);
		assert_int_equal(s.calls, 1);
		assert_int_equal(s.most_answers, 1);
		assert_int_equal(s.answers, 2);
		assert_int_equal(s.without_call, 1); /* told */
		s = follow(LATE_DATA, 1, FLOW_LINGER_NS + SLACK_NS, traffic);
		assert_int_equal(s.requests, 2);
		assert_int_equal(s.most_calls, 1);
		assert_int_equal(s.without_call, 1);
	}
}

static void each_message_begins_the_wait_anew(void **state)
{
	(void)state;
	for (int traffic = 0; traffic < 2; traffic++) {
		struct seen s = follow(LATE_ANSWER, 3, FLOW_LINGER_NS - SLACK_NS, traffic);

		assert_int_equal(s.requests, 1);
		assert_int_equal(s.most_answers, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(just_in_time),
		cmocka_unit_test(just_too_late),
		cmocka_unit_test(each_message_begins_the_wait_anew),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("linger", tests, NULL, NULL);
}
