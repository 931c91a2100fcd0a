/* Tests peer-robust on made-up series: each cause is found and named, and harmless changes cause no
 * alarm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/judge/made_up_cluster.h"

static void each_cause_is_found_and_named(void **state)
{
	static const double strengths[] = {[DISK] = 2,
		[HOG_IN] = 1.5e6,
		[HOG_OUT] = 1.5e6,
		[LOSS_IN] = 0.02,
		[LOSS_OUT] = 0.01,
		[CPU] = 0.9,
		[MEMORY] = 0.5,
		[READER] = 2e6,
		[WRITER] = 4e6};
	static const size_t sizes[] = {3, 4, 6, 12};

	(void)state;
	for (size_t k = 0; k < 4; k++)
		for (enum fault fault = DISK; fault <= WRITER; fault++)
			for (unsigned long seed = 0; seed < 4; seed++) {
				struct cluster *c = cluster_new(sizes[k], seed * 100 + sizes[k]);
				char want[64];
				double at;

				c->fault = fault;
				c->victim = seed % sizes[k];
				c->strength = strengths[fault];
				snprintf(want, sizeof(want), "%s %s", names[c->victim],
					resources[fault]);
				assert_string_equal(judge(c, &at), want);
				assert_true(at > ONSET && at <= ONSET + 20);
				cluster_free(c);
			}
}

/* A foreign load of a quarter of the drive's time, and of a twentieth. Peers see no difference in
 * times. Heavy tails cause an alarm of another kind now and then. */
static void a_small_foreign_load_is_no_fault(void **state)
{
	int found = 0, quiet = 0;

	(void)state;
	for (unsigned long seed = 0; seed < 40; seed++) {
		struct cluster *c = cluster_new(4 + seed % 8, seed + 40);
		double at = 0;

		c->fault = READER;
		c->victim = 2;
		c->strength = 0.25 * 8e6;
		found += !strcmp(judge(c, &at), "C disk") && at <= ONSET + 12;
		c->strength = 0.05 * 8e6;
		quiet += !strcmp(judge(c, NULL), "healthy");
		cluster_free(c);
	}
	print_message("# a quarter is found in %d of 40, a twentieth causes no alarm in %d\n",
		found, quiet);
	assert_int_equal(found, 40);
	assert_int_equal(quiet, 40);
}

/* A server's own writes reach the drive when the recording begins, or a minute late. */
static void a_servers_own_backlog_is_no_fault(void **state)
{
	struct cluster *c = cluster_new(5, 12);

	(void)state;
	fill(c);
	for (int t = 0; t < SECONDS; t++) {
		bool early = t < 10, late = t >= 40 && t < 50;

		put(c, METRIC_DRIVE_WRITTEN, 1, t, early || late ? 6e6 : 0);
		put(c, METRIC_DRIVE_BUSY, 1, t, early || late ? 0.9 : 0.1);
		put(c, METRIC_PROCESS_WRITTEN, 1, t, t >= 10 && t < 40 ? 2e6 : 0);
		put(c, METRIC_MEMORY_UNWRITTEN, 1, t,
			early            ? 6e6 * (10 - t)
				: late   ? 6e6 * (50 - t)
				: t < 40 ? 2e6 * (t - 9)
					 : 0);
	}
	fill_columns(c);
	assert_string_equal(judge_again(c, NULL), "healthy");
	cluster_free(c);
}

/* A server must deviate for 'hold' seconds in a row, and is indicted in the last of them. */
static void only_a_long_deviation_indicts(void **state)
{
	struct cluster *c = cluster_new(6, 3);
	double before = 0, at;

	(void)state;
	c->fault = DISK;
	c->victim = 2;
	c->strength = 3;
	for (c->hold = 1; c->hold <= 9; c->hold += 4, before = at) {
		assert_string_equal(c->hold == 1 ? judge(c, &at) : judge_again(c, &at), "C disk");
		assert_true(at >= before + (c->hold == 1 ? 1 : 4));
	}
	c->hold = END - ONSET + 10;
	assert_string_equal(judge_again(c, NULL), "healthy");
	cluster_free(c);
}

/* Tails are heavier here than the design assumes, so alarms are about one in a hundred, not one in
 * a thousand. */
static void few_controls_have_an_alarm(void **state)
{
	int alarms = 0, disk = 0;

	(void)state;
	for (unsigned long seed = 0; seed < 500; seed++) {
		struct cluster *c = cluster_new(3 + seed % 10, seed + 5000);
		const char *said = judge(c, NULL);

		alarms += strcmp(said, "healthy") != 0;
		disk += strstr(said, "disk") != NULL;
		cluster_free(c);
	}
	print_message("# %d of 500 made-up controls with an alarm, %d of the disk\n", alarms, disk);
	/* Present figures: seeds are fixed, so only a change of the rule changes them. */
	assert_int_equal(alarms, 6);
	assert_int_equal(disk, 6);
}

/* One server has ten times the load, one hardly any; one gets only small requests; and queue depths
 * differ accordingly. */
static void more_or_other_work_is_no_fault(void **state)
{
	(void)state;
	for (unsigned long seed = 0; seed < 20; seed++) {
		struct cluster *c = cluster_new(5, seed + 300);

		c->load[0] *= 10;
		c->load[1] /= 20;
		c->request_bytes[2] = 4096;
		c->request_bytes[3] = 1 << 20;
		assert_string_equal(judge(c, NULL), "healthy");
		cluster_free(c);
	}
}

static void a_slowdown_of_all_servers_indicts_none(void **state)
{
	struct cluster *all = cluster_new(8, 1), *half = cluster_new(8, 2),
		       *two = cluster_new(8, 3);

	(void)state;
	for (size_t s = 0; s < 8; s++)
		all->slow[s] = 6;
	assert_string_equal(judge(all, NULL), "healthy");
	/* Peers cannot show which half is normal. */
	for (size_t s = 0; s < 8; s += 2)
		half->slow[s] = 6;
	assert_string_equal(judge(half, NULL), "abstain");
	/* A minority is found, and completely. */
	two->slow[1] = two->slow[6] = 6;
	assert_string_equal(judge(two, NULL), "B G disk");
	cluster_free(all);
	cluster_free(half);
	cluster_free(two);
}

static void half_of_the_servers_cannot_be_indicted(void **state)
{
	struct cluster *c = cluster_new(2, 1);

	(void)state;
	c->fault = DISK;
	c->strength = 10;
	assert_string_equal(judge(c, NULL), "abstain");
	cluster_free(c);
}

static bool service_times_only(enum metric m, size_t server, int second)
{
	(void)server;
	(void)second;
	return m < METRIC_SERVICE_TIMES;
}

static bool no_disk(enum metric m, size_t server, int second)
{
	(void)server;
	(void)second;
	return m > METRIC_DISK_QUEUE || (m >= METRIC_SERVICE_TIMES && m < METRIC_DISK_READS);
}

static bool nothing(enum metric m, size_t server, int second)
{
	(void)m;
	(void)server;
	(void)second;
	return false;
}

/* A's sampler dies, B's has gaps, C's server has no calls for a while. */
static bool holes(enum metric m, size_t server, int second)
{
	return !(server == 0 && second >= 25) && !(server == 1 && second % 3 == 0) &&
		!(server == 2 && m == METRIC_DREAD && second > 30);
}

static void missing_samples_are_tolerated(void **state)
{
	struct cluster *c = cluster_new(6, 77);

	(void)state;
	c->victim = 4;
	c->fault = DISK;
	c->strength = 8;
	c->has = service_times_only;
	assert_string_equal(judge(c, NULL), "E disk");
	c->has = no_disk;
	assert_string_equal(judge(c, NULL), "healthy");
	c->fault = LOSS_OUT;
	c->strength = 0.05;
	assert_string_equal(judge(c, NULL), "E network/send-loss");
	c->has = holes;
	assert_string_equal(judge(c, NULL), "E network/send-loss");
	c->fault = DISK;
	c->strength = 4;
	assert_string_equal(judge(c, NULL), "E disk");
	c->fault = NONE;
	assert_string_equal(judge(c, NULL), "healthy");
	c->has = nothing;
	assert_string_equal(judge(c, NULL), "abstain");
	cluster_free(c);
}

/* The sampler of one end has no seconds 30 to 33 of B. */
static bool one_end_has_a_gap(enum metric m, size_t server, int second)
{
	return !(server == 1 && second >= 30 && second <= 33 && m >= METRIC_CLIENT_TCP_SENT);
}

/* Acknowledgements are also lost, and are not sent again: they are missing at the other end. */
static void silently_lost_segments_are_found(void **state)
{
	int found = 0;

	(void)state;
	for (unsigned long seed = 0; seed < 60; seed++) {
		struct cluster *c = cluster_new(4 + seed % 8, seed + 900);
		char want[64];

		c->under_way = true;
		c->skewed = seed % 2;
		c->fault = LOSS_IN;
		c->victim = seed % 4;
		c->strength = 0.05;
		c->silently = true;
		snprintf(want, sizeof(want), "%s network/receive-loss", names[c->victim]);
		found += !strcmp(judge(c, NULL), want);
		c->no_balance = true;
		assert_string_not_equal(judge_again(c, NULL), want);
		cluster_free(c);
	}
	print_message("# %d of 60 made-up servers with only acknowledgements lost\n", found);
	assert_int_equal(found, 57);
}

static void segments_in_flight_are_not_lost(void **state)
{
	int alarms = 0;

	(void)state;
	for (unsigned long seed = 0; seed < 400; seed++) {
		struct cluster *c = cluster_new(4 + seed % 8, seed + 3000);

		c->under_way = true;
		c->skewed = seed % 2;
		c->has = seed % 4 < 2 ? NULL : one_end_has_a_gap;
		alarms += balance_alarms(c);
		cluster_free(c);
	}
	assert_int_equal(alarms, 0);
}

/* A NIC that merges segments before they are counted receives a third of the segments sent to it,
 * and loses none; silent losses on the way to another server are still found. */
static void a_nic_that_merges_segments_loses_none(void **state)
{
	int alarms = 0;

	(void)state;
	for (unsigned long seed = 0; seed < 20; seed++) {
		struct cluster *c = cluster_new(5 + seed % 6, seed + 400);
		char want[64];

		c->under_way = true;
		c->merges = 1 + seed % 4;
		alarms += balance_alarms(c);
		c->no_balance = false;
		c->fault = LOSS_IN;
		c->strength = 0.05;
		c->silently = true;
		snprintf(want, sizeof(want), "%s network/receive-loss", names[c->victim]);
		assert_string_equal(judge(c, NULL), want);
		cluster_free(c);
	}
	assert_int_equal(alarms, 0);
}

/* A few deviating seconds are no fault: a copy over the network, a stalled disk, a full queue. */
static void bursts_are_no_fault(void **state)
{
	struct cluster *c = cluster_new(5, 9);
	static const struct {
		enum metric metric;
		double value;
	} bursts[] = {{METRIC_NIC_RECEIVED, 1.2e7}, {METRIC_NIC_SENT, 2.4e7},
		{METRIC_DISK_BUSY, 2.5}, {METRIC_DISK_READ_TIME, 60},
		{METRIC_TCP_RETRANSMITTED, 900}, {METRIC_CLIENT_TCP_OUT_OF_ORDER, 900}};
	double values[COLUMNS * SECONDS];

	(void)state;
	fill(c);
	for (size_t i = 0; i < sizeof(bursts) / sizeof(*bursts); i++) {
		for (int k = 0; k < COLUMNS; k++)
			columns_read(c->columns, bursts[i].metric, 1, (enum column)k,
				values + k * SECONDS);
		for (int t = 15; t < 17; t++)
			values[COLUMN_SUM * SECONDS + t] = values[COLUMN_MAX * SECONDS +
				t] = bursts[i].value;
		columns_put(c->columns, bursts[i].metric, 1, values);
	}
	assert_string_equal(judge_run(&(struct detector_run){.id = "r",
					      .seconds = SECONDS,
					      .servers = names,
					      .n_servers = 5,
					      .columns = c->columns},
				    NULL),
		"healthy");
	cluster_free(c);
}

/* The bytes that clients sent to each server in a second, and those sent again (0: no data to
 * send). No gaps, since one request at a time makes none. */
typedef void (*requests_fn)(gsl_rng *rng, size_t server, int second, double *bytes, double *again);

static const char *judge_requests(struct cluster *c, requests_fn requests)
{
	static const enum metric metrics[] = {
		METRIC_CLIENT_TCP_SENT, METRIC_CLIENT_TCP_RETRANSMITTED, METRIC_TCP_OUT_OF_ORDER};
	static double values[SERVERS_MAX][3][COLUMNS * SECONDS];

	fill(c);
	for (size_t s = 0; s < c->servers; s++) {
		for (int i = 0; i < 3; i++)
			for (int k = 0; k < COLUMNS; k++)
				columns_read(c->columns, metrics[i], s, (enum column)k,
					values[s][i] + k * SECONDS);
		for (int t = 0; t < SECONDS; t++) {
			double bytes = 0, again = 0;

			requests(c->rng, s, t, &bytes, &again);
			for (int i = 0; i < 3; i++)
				values[s][i][COLUMN_SUM * SECONDS +
					t] = values[s][i][COLUMN_MAX * SECONDS + t] = i == 0 ? bytes
					: i == 1                                             ? again
											     : 0;
		}
		for (int i = 0; i < 3; i++)
			columns_put(c->columns, metrics[i], s, values[s][i]);
	}
	return judge_run(&(struct detector_run){.id = "r",
				 .seconds = SECONDS,
				 .servers = names,
				 .n_servers = c->servers,
				 .columns = c->columns},
		NULL);
}

/* B's requests are lost; only every other second has requests. */
static void few_requests_to_b(gsl_rng *rng, size_t server, int second, double *bytes, double *again)
{
	if (gsl_rng_uniform(rng) > 0.5)
		return;
	*bytes = 144 * (1 + gsl_ran_poisson(rng, 10));
	*again = server == 1 && second >= ONSET && second < END && gsl_rng_uniform(rng) < 0.8 ? 1
											      : 0;
}

/* Likewise, but one client loses on all connections, and asks some servers more often than
 * others. */
static void one_bad_client(gsl_rng *rng, size_t server, int second, double *bytes, double *again)
{
	*bytes = 144 * (1 + gsl_ran_poisson(rng, 10));
	*again = second >= ONSET && second < END && gsl_rng_uniform(rng) < (server % 2 ? 0.5 : 0.35)
		? 1
		: 0;
}

/* B's link is full for a long time, its peers' for 5 s of 20; a full link's queue overflows every
 * other second, on B and on the others. */
static void full_links(gsl_rng *rng, size_t server, int second, double *bytes, double *again)
{
	bool full = (server == 1 && second >= ONSET && second < END) ||
		(second + 7 * server) % 20 < 5;

	*bytes = full ? 6e6 : 1e5 * gsl_rng_uniform(rng);
	*again = full && gsl_rng_uniform(rng) < 0.5 ? 1 + floor(300 * gsl_rng_uniform(rng)) : 0;
}

static void a_few_lost_requests_are_enough(void **state)
{
	(void)state;
	for (unsigned long seed = 0; seed < 10; seed++) {
		struct cluster *c = cluster_new(6, seed + 900);

		assert_string_equal(judge_requests(c, few_requests_to_b), "B network/receive-loss");
		cluster_free(c);
	}
}

static void a_clients_losses_indict_no_server(void **state)
{
	(void)state;
	for (unsigned long seed = 0; seed < 20; seed++) {
		struct cluster *c = cluster_new(6, seed + 950);

		assert_string_equal(judge_requests(c, one_bad_client), "healthy");
		cluster_free(c);
	}
}

static void a_full_link_is_no_fault(void **state)
{
	(void)state;
	for (unsigned long seed = 0; seed < 20; seed++) {
		struct cluster *c = cluster_new(8, seed + 990);

		assert_string_equal(judge_requests(c, full_links), "healthy");
		cluster_free(c);
	}
}

/* Only servers are sampled: the gaps that they see also show the loss. */
static bool servers_only(enum metric m, size_t server, int second)
{
	(void)server;
	(void)second;
	return m < METRIC_CLIENT_TCP_SENT || m > METRIC_CLIENT_TCP_DUPLICATES;
}

static void the_receiver_shows_loss_if_senders_are_not_sampled(void **state)
{
	struct cluster *c = cluster_new(6, 31);

	(void)state;
	c->fault = LOSS_IN;
	c->victim = 2;
	c->strength = 0.05;
	c->has = servers_only;
	assert_string_equal(judge(c, NULL), "C network/receive-loss");
	cluster_free(c);
}

/* Metrics from a CSV file: their meaning is unknown, so no resource is named. */
static void foreign_metrics_are_compared(void **state)
{
	static const char *const metrics[] = {"latency_ms", "errors"};
	struct sample samples[2 * 6 * SECONDS];
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	struct detector_run run = {.id = "r",
		.seconds = SECONDS,
		.servers = names,
		.n_servers = 6,
		.samples = samples,
		.metrics = metrics,
		.n_metrics = 2};

	(void)state;
	for (int ill = 0; ill < 2; ill++) {
		run.n_samples = 0;
		for (uint32_t s = 0; s < 6; s++)
			for (int t = 0; t < SECONDS; t++) {
				double x = 4 * exp(gsl_ran_gaussian(rng, 0.3)) *
					(ill && s == 2 && t >= ONSET && t < END ? 7 : 1);

				samples[run.n_samples++] = (struct sample){.metric = 0,
					.server = s,
					.second = t,
					.count = 1,
					.sum_s = x,
					.max_s = x};
				samples[run.n_samples++] = (struct sample){.metric = (enum metric)1,
					.server = s,
					.second = t,
					.count = 1};
			}
		assert_string_equal(judge_run(&run, NULL), ill ? "C -" : "healthy");
	}
	gsl_rng_free(rng);
}

static void a_run_shorter_than_the_span_is_an_abstention(void **state)
{
	struct cluster *c = cluster_new(5, 9);
	struct sample s = {.count = 1, .sum_s = 1, .max_s = 1};
	struct columns *columns;

	(void)state;
	columns = columns_new(METRIC_COUNT, 5, 6);
	for (size_t server = 0; server < 5; server++)
		columns_put_samples(columns, METRIC_DREAD, server, &s, 1);
	assert_string_equal(judge_run(&(struct detector_run){.id = "r",
					      .seconds = 6,
					      .servers = names,
					      .n_servers = 5,
					      .columns = columns},
				    NULL),
		"abstain");
	columns_free(columns);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_is_found_and_named),
		cmocka_unit_test(a_small_foreign_load_is_no_fault),
		cmocka_unit_test(a_servers_own_backlog_is_no_fault),
		cmocka_unit_test(only_a_long_deviation_indicts),
		cmocka_unit_test(few_controls_have_an_alarm),
		cmocka_unit_test(more_or_other_work_is_no_fault),
		cmocka_unit_test(a_slowdown_of_all_servers_indicts_none),
		cmocka_unit_test(half_of_the_servers_cannot_be_indicted),
		cmocka_unit_test(missing_samples_are_tolerated),
		cmocka_unit_test(silently_lost_segments_are_found),
		cmocka_unit_test(segments_in_flight_are_not_lost),
		cmocka_unit_test(a_nic_that_merges_segments_loses_none),
		cmocka_unit_test(bursts_are_no_fault),
		cmocka_unit_test(a_few_lost_requests_are_enough),
		cmocka_unit_test(a_clients_losses_indict_no_server),
		cmocka_unit_test(a_full_link_is_no_fault),
		cmocka_unit_test(the_receiver_shows_loss_if_senders_are_not_sampled),
		cmocka_unit_test(foreign_metrics_are_compared),
		cmocka_unit_test(a_run_shorter_than_the_span_is_an_abstention),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
