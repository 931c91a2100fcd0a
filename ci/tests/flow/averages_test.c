/* Averages over a window of a made-up cluster against its truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>

#include "ci/tests/flow/cluster.h"
#include "ci/bench/averages.h"

#define SECOND_NS 1000000000ll

static const struct cluster_spec spec = {.seed = 7,
	.clients = 3,
	.servers = 3,
	.apps = 4,
	.io_threads = 2,
	.ops = 1500,
	.fan = 3,
	.chain_pct = 20};

static double overlap_s(int64_t begin, int64_t end, int64_t from, int64_t to)
{
	begin = begin > from ? begin : from;
	end = end < to ? end : to;
	return end > begin ? (double)(end - begin) / SECOND_NS : 0;
}

/* Requests in a server between their call's receipt and their answer's send. */
static double true_average(const struct cluster *c, uint32_t server, int32_t from, int32_t to)
{
	double busy_s = 0;

	for (size_t i = 0; i < c->n_truth; i++)
		if (c->truth[i].server == server)
			busy_s += overlap_s(c->truth[i].legs[1].end_ns, c->truth[i].legs[2].end_ns,
				cluster_epoch + from * SECOND_NS, cluster_epoch + to * SECOND_NS);
	return busy_s / (to - from);
}

static void averages_are_those_of_the_truth(void **state)
{
	struct flow_protocol p = cluster_protocol();
	struct flow_spec s = {.protocol = &p, .start_ns = cluster_epoch};
	struct flow_sink sink = {0};
	struct cluster c;
	struct flow *f;
	struct err e;
	char name[8];

	(void)state;
	p.layers[0].name = (char *)"REQ";
	p.layers[0].source = LAYER_REQUEST;
	p.n_layers = 1;
	cluster_make(&c, &spec);
	flow_new(&s, &sink, &f);
	for (int i = 0; i < c.n_nodes; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(flow_add(f, name, cluster_stream(&c, i), &e), 0);
	}
	assert_int_equal(flow_run(f, &e), 0);
	assert_true(flow_seconds(f) >= 3);
	for (uint32_t server = 3; server < 6; server++)
		for (int32_t from = 0; from < 3; from++)
			for (int32_t to = from + 1; to <= 3; to++) {
				const double truth = true_average(&c, server, from, to);

				assert_true(truth > 0);
				/* The window's ends lie where the clocks' estimate puts them. */
				assert_true(fabs(averages_depth(f, 0, server, from, to) - truth) <
					1e-3 * truth);
			}
	assert_true(isnan(averages_depth(f, 0, 3, 2, 2)));
	assert_true(averages_depth(f, 0, 3, flow_seconds(f), flow_seconds(f) + 5) == 0);
	flow_free(f);
	cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(averages_are_those_of_the_truth)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
