/* How much a fault slows the application: of made-up cells, whose ratios and intervals were worked
 * out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "ci/tests/scratch.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/judging/application.h"

static const int64_t start_ns = 1700000000000000000;
static struct store *s;
static char folder[128];
static size_t number;

static void begin(const char *name)
{
	struct err e;

	snprintf(folder, sizeof(folder), "%s/%s", dir, name);
	number = 0;
	assert_int_equal(store_create(folder, &s, &e), 0);
}

static void set_fault(const char *fault)
{
	auto_free char *db = alloc_format("%s/run.db", folder),
		       *text = alloc_format("UPDATE cell SET fault = '%s', victims = '[\"s1\"]' "
					    "WHERE number = %zu",
			       fault, number);
	sqlite3 *other;

	assert_int_equal(sqlite3_open(db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
}

/* A cell whose seconds move what 'rates' says, -1: no reading. Faults act from 4.5 s to 8.5 s. The
 * bytes come half by half at a server and at its clients. */
static void add(const char *fault, const char *workload, const double *rates, int32_t seconds)
{
	static char *const servers[] = {"s1", "s2"};
	struct attempt_row row = {.number = 1,
		.outcome = OUTCOME_CONFIRMED,
		.start_ns = start_ns,
		.seconds = seconds,
		.onset_ns = fault ? start_ns + 4500000000 : 0,
		.offset_ns = fault ? start_ns + 8500000000 : 0};
	struct sample samples[64];
	size_t n = 0;
	struct err e;

	row.cell = ++number;
	assert_int_equal(store_put_cell(s, number, workload, &e), 0);
	if (fault)
		set_fault(fault);
	assert_int_equal(store_put_attempt(s, &row, &e), 0);
	for (int half = 0; half < 2; half++)
		for (int32_t i = 0; i < seconds; i++)
			if (rates[i] >= 0)
				samples[n++] = (struct sample){.metric = half
						? METRIC_CLIENT_TCP_RECEIVED
						: METRIC_TCP_RECEIVED,
					.server = (uint32_t)half,
					.second = i,
					.count = 1,
					.sum_s = rates[i] / 2};
	if (n)
		assert_int_equal(store_put_samples(s, row.id, servers, samples, n, &e), 0);
}

/* Starts in second 1, moves 'before' until the fault, then 'during', and 'before' again. What is
 * moved in the seconds of onset and offset counts for nothing. */
static void add_steady(const char *fault, const char *workload, double before, double during)
{
	const double rates[] = {0, before / 3, before, before, 1e6, during, during, during, 1e6,
		before, before, before};

	add(fault, workload, rates, 12);
}

static struct impacts *measured(void)
{
	struct impacts *i;
	struct err e;

	if (application_impacts(s, (struct cell_range){0}, &i, &e))
		fail_msg("%s", e.text);
	return i;
}

static void near(double x, double wanted)
{
	if (!(fabs(x - wanted) < 1e-5 * fabs(wanted)))
		fail_msg("%.8g, not %.8g", x, wanted);
}

static void end(struct impacts *i)
{
	impacts_free(i);
	store_close(s);
}

/* Controls keep .9 and 1.1 of their rate, the faulty cell .5: exp(ln .5 - (ln .9 + ln 1.1) / 2).
 * One degree of freedom: t = 12.70620, squares of .1003353 twice, times 1 + 1/2. */
static void one_cell_against_two_controls(void **state)
{
	struct impacts *i;
	struct impact one;
	char text[IMPACT_TEXT];

	(void)state;
	begin("one");
	add_steady(NULL, "ddr", 100, 90);
	add_steady(NULL, "ddr", 200, 220);
	add_steady("slow", "ddr", 1000, 500);
	i = measured();
	one = impacts_of(i, IMPACT_THROUGHPUT, "slow", NULL);
	assert_int_equal(one.n, 1);
	assert_int_equal(one.controls, 2);
	near(one.ratio, 0.50251891);
	near(one.low, 0.05522821);
	near(one.high, 4.5723965);
	assert_false(impact_suffers(IMPACT_THROUGHPUT, one));
	near(impacts_of_cell(i, IMPACT_THROUGHPUT, 3).low, one.low);
	assert_string_equal(impact_text(one, text), "0.50 [0.06,4.57]");
	assert_null(impacts_unknown(i, IMPACT_THROUGHPUT));
	assert_true(isnan(impacts_of_cell(i, IMPACT_THROUGHPUT, 1).ratio)); /* a control */
	assert_int_equal(impacts_of(i, IMPACT_THROUGHPUT, "slow", "ddw").n, 0);
	assert_int_equal(impacts_of(i, IMPACT_THROUGHPUT, "slower", NULL).n, 0);
	assert_non_null(strstr(impacts_unknown(i, IMPACT_LATENCY), "no requests"));
	end(i);
}

/* Each workload has its own controls: ddw slows by itself. Its cells weigh by their number. */
static void workloads_have_their_own_controls(void **state)
{
	struct impacts *i;
	struct impact all;

	(void)state;
	begin("two");
	add_steady(NULL, "ddr", 100, 98);
	add_steady(NULL, "ddr", 100, 102);
	add_steady(NULL, "ddr", 100, 100);
	add_steady(NULL, "ddw", 100, 24);
	add_steady(NULL, "ddw", 100, 26);
	add_steady("slow", "ddr", 100, 50);
	add_steady("slow", "ddw", 100, 12);
	add_steady("slow", "ddw", 100, 13);
	i = measured();
	near(impacts_of(i, IMPACT_THROUGHPUT, "slow", "ddr").ratio, 0.50006668);
	near(impacts_of(i, IMPACT_THROUGHPUT, "slow", "ddw").ratio, 0.5);
	all = impacts_of(i, IMPACT_THROUGHPUT, "slow", NULL);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.controls, 5);
	near(all.ratio, 0.50002222);
	near(all.low, 0.42861811);
	near(all.high, 0.58332166);
	assert_true(impact_suffers(IMPACT_THROUGHPUT, all));
	end(i);
}

/* Expects that the cell 'number' alone is unknown. */
static void unknown(const char *why)
{
	struct impacts *i = measured();

	if (!isnan(impacts_of_cell(i, IMPACT_THROUGHPUT, (long)number).ratio))
		fail_msg("%s: is known", why);
	near(impacts_of(i, IMPACT_THROUGHPUT, "slow", NULL).ratio, 0.5);
	assert_int_equal(impacts_of(i, IMPACT_THROUGHPUT, "slow", NULL).n, 1);
	impacts_free(i);
}

static void what_cannot_be_compared_is_unknown(void **state)
{
	static const double idle[] = {0, 0, 0, 0, 9, 5, 5, 5, 9, 9, 9, 9},
			    late[] = {0, 0, 0, 10, 10, 5, 5, 5, 9, 9, 9, 9},
			    ended[] = {9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0},
			    blind[] = {9, 9, 9, 9, 9, -1, -1, -1, 9, 9, 9, 9},
			    none[] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

	(void)state;
	begin("unknown");
	add_steady(NULL, "ddr", 100, 100);
	add_steady(NULL, "ddr", 100, 100);
	add_steady("slow", "ddr", 100, 50);
	add("slow", "ddr", idle, 12);
	unknown("nothing moved before");
	add("slow", "ddr", late, 12);
	unknown("not under way for a second before");
	add("slow", "ddr", ended, 12);
	unknown("ended while the fault acted");
	add("slow", "ddr", blind, 12);
	unknown("no readings during the fault");
	add("slow", "ddr", none, 12);
	unknown("no readings");
	add("slow", "ddr", ended, 7);
	unknown("the record ends before the fault does");
	add_steady("slow", "ddw", 100, 50);
	unknown("no control of its workload");
	store_close(s);
}

/* A control that ended early does not spoil the others. */
static void controls_may_be_unknown(void **state)
{
	static const double ended[] = {9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0};
	struct impacts *i;
	struct impact one;

	(void)state;
	begin("controls");
	add("slow", "ddr", ended, 12);
	add_steady("slow", "ddr", 100, 50);
	add(NULL, "ddr", ended, 12);
	add_steady(NULL, "ddr", 100, 100);
	i = measured();
	one = impacts_of(i, IMPACT_THROUGHPUT, "slow", NULL);
	near(one.ratio, 0.5);
	assert_int_equal(one.controls, 1);
	assert_true(isnan(one.low) && isnan(one.high)); /* of one control */
	assert_false(impact_suffers(IMPACT_THROUGHPUT, one));
	end(i);
}

static void a_stop_counts_as_a_hundredth(void **state)
{
	struct impacts *i;

	(void)state;
	begin("stop");
	add_steady(NULL, "ddr", 100, 100);
	add_steady(NULL, "ddr", 100, 100);
	add_steady("stop", "ddr", 100, 0);
	i = measured();
	near(impacts_of(i, IMPACT_THROUGHPUT, "stop", NULL).ratio, 0.01);
	near(impacts_of(i, IMPACT_THROUGHPUT, "stop", NULL).high, 0.01);
	end(i);
}

static void runs_without_faults_or_controls(void **state)
{
	struct impacts *i;

	(void)state;
	begin("controls-only");
	add_steady(NULL, "ddr", 100, 100);
	i = measured();
	assert_string_equal(impacts_unknown(i, IMPACT_THROUGHPUT), "the run has no faults");
	end(i);
	begin("faults-only");
	add_steady("slow", "ddr", 100, 50);
	i = measured();
	assert_string_equal(impacts_unknown(i, IMPACT_THROUGHPUT), "the run has no controls");
	assert_true(isnan(impacts_of(i, IMPACT_THROUGHPUT, "slow", NULL).ratio));
	end(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_cell_against_two_controls),
		cmocka_unit_test(workloads_have_their_own_controls),
		cmocka_unit_test(what_cannot_be_compared_is_unknown),
		cmocka_unit_test(controls_may_be_unknown),
		cmocka_unit_test(a_stop_counts_as_a_hundredth),
		cmocka_unit_test(runs_without_faults_or_controls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("application", tests, make_dir, remove_dir);
}
