/* Shards: together they are the plan, each cell once, and none of them has more of anything. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ci/tests/scratch.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/scenario/shard.h"

enum { SERVERS = 5 };

static struct scenario *load(const char *body)
{
	char path[128];
	struct scenario *s = NULL;
	struct err e;

	snprintf(path, sizeof(path), "%s/scenario.lua", dir);
	assert_int_equal(file_write_atomic(path, 0600, body, strlen(body), &e), 0);
	if (scenario_load(path, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static struct plan *plan(const struct scenario *s, uint64_t seed, struct shard shard)
{
	struct plan *p = NULL;
	struct err e;

	if (plan_new(s, SERVERS, seed, NULL, &p, &e) || (shard.of && shard_take(p, s, shard, &e)))
		fail_msg("%s", e.text);
	return p;
}

static bool equal(const struct cell *a, const struct cell *b)
{
	return a->number == b->number && a->training == b->training && a->workload == b->workload &&
		a->fault == b->fault && a->tracer == b->tracer && a->repeat == b->repeat &&
		a->n_victims == b->n_victims &&
		!memcmp(a->victims, b->victims, a->n_victims * sizeof(*a->victims));
}

static void shard_i_of_n(void **state)
{
	static const char *const wrong[] = {"", "1", "1/", "/3", "0/3", "4/3", "1/101", "1/3 ",
		" 1/3", "1//3", "-1/3", "1/-3", "1.0/3", "a/b", "1/3/4", "99999999999999999999/3"};
	struct shard s = {7, 7};
	struct err e;

	(void)state;
	assert_int_equal(shard_parse("2/3", &s, &e), 0);
	assert_true(s.index == 2 && s.of == 3);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(shard_parse(wrong[i], &s, &e), -EINVAL);
		assert_true(s.index == 2 && s.of == 3);
	}
}

static const char *const scenarios[] = {
	"return { name = 't', workloads = { 'ddw', 'ddr', 'postmark' }, repeats = 7,\n"
	"controls = 3,\n"
	"training = { workloads = { 'ddw', 'ddr' }, repeats = 2 },\n"
	"faults = { 'none', 'disk-hog', { 'receive-pktloss', loss = '1%' } },\n"
	"detectors = { 'always-healthy' } }\n",
	"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 1,\n"
	"faults = { 'none', 'disk-hog', 'send-pktloss', { 'disk-busy', workloads = { 'ddr' },\n"
	"victims = 2 } }, detectors = { 'always-healthy' } }\n",
	"return { name = 't', workloads = { 'ddw' }, repeats = 20,\n"
	"faults = { 'none', 'disk-hog' }, detectors = { 'always-healthy' } }\n",
};

/* How many scored cells of a plan have this workload and fault; SIZE_MAX: any. */
static size_t count(const struct plan *p, size_t workload, size_t fault)
{
	size_t n = 0;

	for (const struct cell *c = p->cells; c < p->cells + p->n; c++)
		n += !c->training && (workload == SIZE_MAX || c->workload == workload) &&
			(fault == SIZE_MAX || c->fault == fault);
	return n;
}

static void assert_even(struct plan *const *shards, size_t n, size_t workload, size_t fault)
{
	size_t least = SIZE_MAX, most = 0;

	for (size_t i = 0; i < n; i++) {
		size_t got = count(shards[i], workload, fault);

		least = got < least ? got : least;
		most = got > most ? got : most;
	}
	assert_true(most <= least + 1);
}

static void assert_whole(const struct plan *whole, struct plan *const *shards, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const struct cell *c = whole->cells;

		/* A part of the plan, in the plan's order, with all of the training. */
		for (size_t k = 0; k < shards[i]->n; k++, c++) {
			while (c < whole->cells + whole->n && !equal(c, &shards[i]->cells[k]))
				assert_false((c++)->training);
			assert_true(c < whole->cells + whole->n);
		}
		sum += count(shards[i], SIZE_MAX, SIZE_MAX);
	}
	assert_int_equal(sum, count(whole, SIZE_MAX, SIZE_MAX));
	for (const struct cell *c = whole->cells; c < whole->cells + whole->n; c++) {
		size_t found = 0;

		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < shards[i]->n; k++)
				found += equal(c, &shards[i]->cells[k]);
		assert_int_equal(found, c->training ? n : 1);
	}
}

static void shards_are_the_plan_and_even(void **state)
{
	(void)state;
	for (size_t t = 0; t < sizeof(scenarios) / sizeof(scenarios[0]); t++) {
		struct scenario *s = load(scenarios[t]);
		size_t n_faults = s->n_faults;

		for (uint64_t seed = 0; seed < 5; seed++) {
			struct plan *whole = plan(s, seed, (struct shard){0}), *shards[8];

			for (long n = 1; n <= 7; n++) {
				for (long i = 1; i <= n; i++)
					shards[i - 1] = plan(s, seed, (struct shard){i, n});
				assert_whole(whole, shards, (size_t)n);
				assert_even(shards, (size_t)n, SIZE_MAX, SIZE_MAX);
				for (size_t w = 0; w < s->n_matrix; w++)
					for (size_t f = 0; f < n_faults; f++)
						assert_even(shards, (size_t)n, w, f);
				for (long i = 1; i <= n; i++)
					plan_free(shards[i - 1]);
			}
			plan_free(whole);
		}
		scenario_free(s);
	}
}

/* Two workloads x two faults in one repeat: a deal in order would give each shard one fault. */
static void no_fault_is_left_to_one_shard(void **state)
{
	struct scenario *s = load(
		"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 1, "
		"faults = { 'none', 'disk-hog' }, detectors = { 'always-healthy' } }");

	(void)state;
	for (long i = 1; i <= 2; i++) {
		struct plan *p = plan(s, 1, (struct shard){i, 2});

		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(count(p, SIZE_MAX, k), 1);
			assert_int_equal(count(p, k, SIZE_MAX), 1);
		}
		plan_free(p);
	}
	scenario_free(s);
}

static void more_shards_than_cells_are_refused(void **state)
{
	struct scenario *s = load(scenarios[1]);
	struct plan *p = plan(s, 1, (struct shard){0});
	struct err e;

	(void)state;
	assert_int_equal(shard_take(p, s, (struct shard){1, 8}, &e), -EINVAL);
	assert_non_null(strstr(e.text, "7 scored cells"));
	plan_free(p);
	scenario_free(s);
}

static void repeats_of_run_times_stay_together(void **state)
{
	struct scenario *s = load(
		"return { name = 't', measure = 'runtime', workloads = { 'ddw', 'ddr' "
		"}, repeats = 5, tracers = { 'none', 'ebpf' } }");
	struct plan *whole = plan(s, 3, (struct shard){0}), *shards[3];
	struct err e;

	(void)state;
	for (long i = 0; i < 3; i++) {
		shards[i] = plan(s, 3, (struct shard){i + 1, 3});
		for (size_t k = 0; k < shards[i]->n; k++)
			assert_int_equal((shards[i]->cells[k].repeat - 1) % 3, i);
	}
	assert_whole(whole, shards, 3);
	for (long i = 0; i < 3; i++)
		plan_free(shards[i]);
	assert_int_equal(shard_take(whole, s, (struct shard){1, 6}, &e), -EINVAL);
	assert_non_null(strstr(e.text, "5 repeats"));
	plan_free(whole);
	scenario_free(s);
}

static void a_digest_tells_plans_apart(void **state)
{
	struct scenario *s = load(scenarios[0]);
	struct plan *one = plan(s, 1, (struct shard){0}), *again = plan(s, 1, (struct shard){0});
	struct plan *other = plan(s, 2, (struct shard){0});
	char hex[3][65];

	(void)state;
	shard_digest(one, s, hex[0]);
	shard_digest(again, s, hex[1]);
	shard_digest(other, s, hex[2]);
	assert_int_equal(strlen(hex[0]), 64);
	assert_string_equal(hex[0], hex[1]);
	assert_string_not_equal(hex[0], hex[2]);
	plan_free(one);
	plan_free(again);
	plan_free(other);
	scenario_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shard_i_of_n),
		cmocka_unit_test(shards_are_the_plan_and_even),
		cmocka_unit_test(no_fault_is_left_to_one_shard),
		cmocka_unit_test(more_shards_than_cells_are_refused),
		cmocka_unit_test(repeats_of_run_times_stay_together),
		cmocka_unit_test(a_digest_tells_plans_apart),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
