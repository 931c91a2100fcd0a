/*
 * Resuming, without a node: what a cell's key depends on, what has changed is named, one
 * orchestrator a run, what a torn run's folder holds is mended, and a long run needs no more memory
 * or handles than a short one.
 *
 * The long run is simulated where nodes would be: 500 attempts with made-up samples go through the
 * real store, judge, progress, scores and table, as the executor takes them. What talks to nodes is
 * not in it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/scratch.h"
#include "harness/base/file.h"
#include "harness/run/cell_key.h"
#include "harness/store/lock.h"
#include "harness/cli/tables.h"
#include "harness/judging/scoring.h"
#include "harness/run/resume.h"

#define SERVERS 4
#define SECONDS 30

static char *servers[] = {"s1", "s2", "s3", "s4"};

static const char inventory[] =
	"return { file_system = { type = 'glusterfs' }, nodes = {\n"
	"{ name = 's1', role = 'server', address = '192.0.2.1', storage = '/b', service_port = "
	"1 },\n"
	"{ name = 's2', role = 'server', address = '192.0.2.2', storage = '/b', service_port = "
	"1 },\n"
	"{ name = 's3', role = 'server', address = '192.0.2.3', storage = '/b', service_port = "
	"1 },\n"
	"{ name = 's4', role = 'server', address = '192.0.2.4', storage = '/b', service_port = "
	"1 },\n"
	"{ name = 'c1', role = 'client', address = '192.0.2.9', mount = '/m' } } }\n";

static const char own_fault[] =
	"return { summary = 'x', resource = 'disk', inject = function() end, verify = "
	"function() return true end }\n";

static char *write_file(const char *name, const char *text)
{
	static char path[128];
	struct err e;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
	return path;
}

/* A plan with its inputs and keys. */
struct made {
	struct scenario *s;
	struct cluster *c;
	struct plan *p;
	json_t *inputs;
};

static void make(struct made *m, const char *body, const char *hosts, uint64_t seed)
{
	struct err e = {""};

	*m = (struct made){0};
	if (scenario_load(write_file("scenario.lua", body), &m->s, &e) ||
		cluster_load(write_file("inventory.lua", hosts), &m->c, &e) ||
		plan_new(m->s, m->c->n_servers, seed, NULL, &m->p, &e) ||
		key_inputs(m->s, m->p, m->c, NULL, &m->inputs, &e))
		fail_msg("%s", e.text);
	key_cells(m->s, m->p, m->c, m->inputs);
}

static void unmake(struct made *m)
{
	json_decref(m->inputs);
	plan_free(m->p);
	cluster_free(m->c);
	scenario_free(m->s);
}

#define BODY(phases, loss, detectors)                                                              \
	"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 2, training = { workloads "  \
	"= { 'ddw' } }, "                                                                          \
	"phases = { fault = '" phases "' }, "                                                      \
	""                                                                                         \
	"faults = { 'none', './own.lua', { 'receive-pktloss', loss = "                             \
	"'" loss "' } }, detectors = { '" detectors "' } }\n"

/* The number of cells with another key. */
static size_t changed(const struct made *a, const struct made *b)
{
	size_t n = 0;

	assert_int_equal(a->p->n, b->p->n);
	for (size_t i = 0; i < a->p->n; i++)
		n += strcmp(a->p->cells[i].key, b->p->cells[i].key) != 0;
	return n;
}

static void expect_change(const struct made *was, const char *body, const char *hosts,
	uint64_t seed, size_t cells, const char *said)
{
	struct made is;
	char *text;

	make(&is, body, hosts, seed);
	text = key_difference(was->inputs, is.inputs);
	if (said && (!text || !strstr(text, said)))
		fail_msg("'%s' is not said in '%s'", said, text ? text : "nothing");
	if (!said && text)
		fail_msg("nothing has changed, and '%s' is said", text);
	assert_int_equal(changed(was, &is), cells);
	free(text);
	unmake(&is);
}

static void a_key_depends_on_what_decides_its_cell_and_on_nothing_else(void **state)
{
	static const char body[] = BODY("25s", "5%", "always-healthy");
	struct made was;
	char *other;

	(void)state;
	write_file("own.lua", own_fault);
	make(&was, body, inventory, 7);
	for (size_t i = 0; i < was.p->n; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(was.p->cells[i].key, was.p->cells[k].key);
	expect_change(&was, body, inventory, 7, 0, NULL);
	expect_change(&was, BODY("25s", "5%", "peer-threshold"), inventory, 7, 0, NULL);
	expect_change(&was, BODY("26s", "5%", "always-healthy"), inventory, 7, was.p->n,
		"phases.fault is 26.0, was 25.0");
	/* Two workloads, two repeats. */
	expect_change(&was, BODY("25s", "4%", "always-healthy"), inventory, 7, 4,
		"fault receive-pktloss(loss=4%) is new");
	expect_change(&was, body, inventory, 8, was.p->n, "seed is 8, was 7");

	/* Another address of the same host, then another host. */
	other = strdup(inventory);
	memcpy(strstr(other, "192.0.2.4"), "192.0.2.5", 9);
	expect_change(&was, body, other, 7, 0, NULL);
	memcpy(strstr(other, "'/m'"), "'/n'", 4);
	expect_change(&was, body, other, 7, was.p->n, "host c1 is ");
	free(other);

	write_file("own.lua",
		"-- the same, said otherwise\nreturn { summary = 'x', resource = 'disk', inject "
		"= function() end, "
		"verify = function() return 1 end }\n");
	expect_change(&was, body, inventory, 7, 4, "fault own: file has changed");
	unmake(&was);
}

static void another_agent_is_another_experiment(void **state)
{
	static const char body[] = BODY("25s", "5%", "always-healthy");
	json_t *inputs = NULL;
	char folder[128];
	struct made was;
	struct err e;

	(void)state;
	write_file("own.lua", own_fault);
	snprintf(folder, sizeof(folder), "%s/agent", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	setenv("CULPRIT_AGENT_DIR", folder, 1);
	write_file("agent/culprit-agent", "a program");
	write_file("agent/libz.so", "a library");
	write_file("agent/.hidden", "of an editor");
	make(&was, body, inventory, 7);
	write_file("agent/.hidden", "of another editor");
	expect_change(&was, body, inventory, 7, 0, NULL);
	write_file("agent/libz.so", "another library");
	expect_change(&was, body, inventory, 7, was.p->n, "agent");
	write_file("agent/libz.so", "a library");
	write_file("agent/culprit-agent", "another program");
	expect_change(&was, body, inventory, 7, was.p->n, "agent");
	/* One whose files cannot all be read is unknown. */
	snprintf(folder, sizeof(folder), "%s/agent/libm.so", dir);
	assert_int_equal(symlink("nowhere", folder), 0);
	assert_int_equal(key_inputs(was.s, was.p, was.c, NULL, &inputs, &e), -ENOENT);
	assert_non_null(strstr(e.text, "libm.so"));
	assert_null(inputs);
	unsetenv("CULPRIT_AGENT_DIR");
	unmake(&was);
}

static void training_and_scored_cells_are_run_in_blocks_each_in_its_own_order(void **state)
{
	struct made m;
	size_t same = 0;

	(void)state;
	make(&m,
		"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 20, training = { "
		"workloads = { 'ddw', 'ddr' }, repeats "
		"= 20 }, faults = { 'none', 'disk-hog' }, detectors = { 'always-healthy' } }\n",
		inventory, 3);
	assert_int_equal(m.p->n, 20 * 2 + 20 * 4);
	for (size_t block = 0; block < 20; block++) {
		const struct cell *t = &m.p->cells[2 * block], *s = &m.p->cells[40 + 4 * block],
				  *last = s - 4;
		unsigned seen = 0;

		assert_true(t[0].training && t[1].training && t[0].workload != t[1].workload);
		assert_int_equal(t[0].repeat, block + 1);
		for (size_t i = 0; i < 4; i++)
			seen |= 1u << (2 * s[i].workload + s[i].fault);
		assert_int_equal(seen, 15);
		for (size_t i = 0; block && i < 4; i++)
			same += s[i].workload == last[i].workload && s[i].fault == last[i].fault;
	}
	/* 76 places, a quarter of them the same by chance (standard deviation below 5); all, if
	 *    blocks were not shuffled. */
	assert_true(same < 50);
	unmake(&m);
}

static void a_run_has_one_orchestrator_whose_process_is_known(void **state)
{
	int fd, other, status, ready[2];
	struct err e;
	pid_t child, said = 0;
	char c;

	(void)state;
	assert_false(run_is_locked(dir, NULL));
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		close(ready[0]);
		if (run_lock(dir, &fd, &e) || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_true(run_is_locked(dir, &said));
	assert_int_equal(said, child);
	assert_int_equal(run_lock(dir, &other, &e), -EBUSY);
	assert_non_null(strstr(e.text, "is in progress"));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(run_is_locked(dir, NULL));
	assert_int_equal(run_lock(dir, &fd, &e), 0);
	assert_true(run_is_locked(dir, &said));
	close(fd);
}

/* A run written as by the executor, without a cluster. */
struct torn {
	struct executor x;
	json_t *detectors, *names;
	char folder[96];
};

static void begin(struct torn *t, const char *name, const char *body)
{
	char second[128];
	struct err e = {""};

	memset(t, 0, sizeof(*t));
	snprintf(t->folder, sizeof(t->folder), "%s/%s", dir, name);
	snprintf(second, sizeof(second), "%s/second", t->folder);
	t->names = json_pack("[s, s, s, s]", servers[0], servers[1], servers[2], servers[3]);
	t->detectors = json_pack("[{s:s, s:{}}]", "name", "peer-threshold", "params");
	if (scenario_load(write_file("scenario.lua", body), &t->x.scenario, &e) ||
		plan_new(t->x.scenario, SERVERS, 1, NULL, &t->x.plan, &e) ||
		store_create(t->folder, &t->x.store, &e) ||
		store_create(second, &t->x.second_store, &e) ||
		store_put_plan(t->x.store, t->x.scenario, t->x.plan, servers, &e) ||
		store_put_plan(t->x.second_store, t->x.scenario, t->x.plan, servers, &e) ||
		store_set(t->x.store, "judged_seconds", "999", &e) ||
		judge_new(t->detectors, t->names, t->x.store, &t->x.judge, &e) ||
		progress_new(t->folder, t->x.plan->n, 1, true, &t->x.progress, &e))
		fail_msg("%s", e.text);
}

static void end(struct torn *t)
{
	progress_free(t->x.progress);
	judge_free(t->x.judge);
	store_close(t->x.store);
	store_close(t->x.second_store);
	plan_free(t->x.plan);
	scenario_free(t->x.scenario);
	json_decref(t->detectors);
	json_decref(t->names);
}

/* Every second of every server, the first a bit slower in every other cell. */
static size_t fill(struct sample *samples, size_t cell)
{
	size_t n = 0;

	for (int metric = 0; metric < 4; metric++)
		for (uint32_t server = 0; server < SERVERS; server++)
			for (int32_t second = 0; second < SECONDS; second++)
				samples[n++] = (struct sample){.metric = (enum metric)metric,
					.server = server,
					.second = second,
					.count = 50,
					.max_s = 0.01,
					.bytes = 1 << 20,
					.sum_s = 0.1 +
						0.001 *
							(double)((cell * 7 + (size_t)second * 3 +
									 server) %
								11) +
						(server == 0 && cell % 2 && second > 10 ? 0.5 : 0)};
	return n;
}

static int64_t attempt(
	struct torn *t, struct store *s, const struct cell *c, long number, enum outcome outcome)
{
	static struct sample samples[4 * SERVERS * SECONDS];
	struct attempt_row row = {.cell = c->number,
		.number = number,
		.outcome = outcome,
		.seconds = SECONDS,
		.key = c->key};
	char path[192], file[64];
	struct err e = {""};
	int rc = store_begin(s, &e);

	snprintf(file, sizeof(file), "cells/%04zu.%ld/s1.fs.trace", c->number, number);
	snprintf(path, sizeof(path), "%s/cells/%04zu.%ld", t->folder, c->number, number);
	assert_int_equal(file_mkdirs(path, 0700, &e), 0);
	strcat(path, "/s1.fs.trace");
	assert_int_equal(file_write_atomic(path, 0600, path, strlen(path), &e), 0);
	if (!rc)
		rc = store_put_attempt(s, &row, &e);
	if (!rc && outcome == OUTCOME_CONFIRMED)
		rc = store_put_samples(s, row.id, servers, samples, fill(samples, c->number), &e);
	if (!rc && outcome == OUTCOME_CONFIRMED && s == t->x.store)
		rc = store_put_file(s, row.id, file, &e);
	if (!rc)
		rc = store_end(s, 0, &e);
	if (rc)
		fail_msg("%s", e.text);
	return row.id;
}

static bool exists(const struct torn *t, const char *name)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", t->folder, name);
	return access(path, F_OK) == 0;
}

static void damage(const struct torn *t, const char *name)
{
	char path[192];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", t->folder, name);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "!", 1, 5), 1);
	close(fd);
}

static const char small[] =
	"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 2, training = { workloads "
	"= { 'ddw' } }, faults = { 'none', "
	"'disk-hog' }, detectors = { 'peer-threshold' } }\n";

static void a_run_that_was_killed_is_mended(void **state)
{
	struct torn t;
	struct resume found;
	json_t *tally = NULL, *rows = NULL;
	struct cell *c;
	struct err e = {""};
	char path[192];

	(void)state;
	begin(&t, "torn", small);
	c = t.x.plan->cells;
	for (size_t i = 0; i < 5; i++) {
		attempt(&t, t.x.second_store, &c[i], 1,
			i == 1 ? OUTCOME_INVALID : OUTCOME_CONFIRMED);
		attempt(&t, t.x.store, &c[i], 1, i == 1 ? OUTCOME_INVALID : OUTCOME_CONFIRMED);
	}
	/* Killed between the two stores, and before the attempt's end. */
	attempt(&t, t.x.second_store, &c[5], 1, OUTCOME_CONFIRMED);
	snprintf(path, sizeof(path), "%s/cells/0007.1", t.folder);
	assert_int_equal(file_mkdirs(path, 0700, &e), 0);
	damage(&t, "cells/0003.1/s1.fs.trace");
	snprintf(path, sizeof(path), "%s/cells/0004.1/s1.fs.trace", t.folder);
	unlink(path);

	if (resume_scan(&t.x, &found, &e))
		fail_msg("%s", e.text);
	assert_int_equal(found.done, 2); /* cells 1 and 5 */
	assert_int_equal(found.damaged, 2);
	assert_int_equal(found.halves, 2);
	assert_false(found.training_lost);
	assert_true(c[0].done && !c[1].done && !c[2].done && !c[3].done && c[4].done && !c[5].done);
	assert_int_equal(c[1].attempts, 1);
	assert_int_equal(c[5].attempts, 0);
	assert_false(exists(&t, "cells/0006.1") || exists(&t, "cells/0007.1"));
	assert_true(exists(&t, "cells/0002.1") && exists(&t, "cells/0003.1"));

	/* Damaged attempts are kept, counted and explained; their cells are run once more. */
	assert_int_equal(store_tally(t.x.store, &tally, &e), 0);
	assert_int_equal(json_integer_value(json_object_get(tally, "confirmed")), 2);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(tally, "attempts"), "invalid")),
		3);
	assert_non_null(
		strstr(json_string_value(json_object_get(
			       json_array_get(json_object_get(tally, "failed"), 1), "reason")),
			"cells/0003.1/s1.fs.trace"));
	json_decref(tally);
	for (size_t i = 1; i < 4; i++) {
		attempt(&t, t.x.second_store, &c[i], c[i].attempts + 1, OUTCOME_CONFIRMED);
		attempt(&t, t.x.store, &c[i], c[i].attempts + 1, OUTCOME_CONFIRMED);
	}
	attempt(&t, t.x.second_store, &c[5], 1, OUTCOME_CONFIRMED);
	attempt(&t, t.x.store, &c[5], 1, OUTCOME_CONFIRMED);
	assert_int_equal(resume_scan(&t.x, &found, &e), 0);
	assert_int_equal(found.done, 6);
	assert_int_equal(found.damaged + found.halves, 0);
	assert_int_equal(store_rows(t.x.store, ROWS_UNJUDGED, 0, &rows, &e), 0);
	assert_int_equal(json_array_size(rows), 5); /* the sixth is for training */
	json_decref(rows);

	damage(&t, "cells/0001.1/s1.fs.trace");
	assert_int_equal(resume_scan(&t.x, &found, &e), 0);
	assert_true(found.training_lost);
	strcpy(c[4].key, "another");
	assert_int_equal(resume_check_keys(&t.x, &e), -EINVAL);
	assert_non_null(strstr(e.text, "cell 5 "));
	end(&t);
}

/* Faults with their own files, next to the scenario. */
static const char mendable[] =
	"return { name = 't', workloads = { 'ddw' }, repeats = 2, faults = { 'none', './own.lua', "
	"'./other.lua' }, detectors = { 'peer-threshold' } }\n";

/* How many attempts have failed for this reason. */
static size_t failed_with(struct torn *t, const char *reason)
{
	json_t *tally = NULL, *row;
	struct err e;
	size_t i, n = 0;

	assert_int_equal(store_tally(t->x.store, &tally, &e), 0);
	json_array_foreach(json_object_get(tally, "failed"), i, row) {
		const char *why = json_string_value(json_object_get(row, "reason"));

		n += why && !strcmp(why, reason);
	}
	json_decref(tally);
	return n;
}

/* Only the cells of a fault whose file was mended are run again, confirmed or not. */
static void a_mended_fault_has_its_own_cells_run_again(void **state)
{
	struct made was, is;
	struct resume found;
	struct torn t;
	struct err e = {""};
	char *labels, *text;
	size_t n = 0;

	(void)state;
	write_file("own.lua", own_fault);
	write_file("other.lua", own_fault);
	make(&was, mendable, inventory, 1);
	begin(&t, "mended", mendable);
	assert_int_equal(t.x.plan->n, 6);
	for (size_t i = 0; i < 6; i++) {
		struct cell *c = &t.x.plan->cells[i];
		const bool own = !strcmp(cell_fault(t.x.scenario, c), "own");
		/* One of the two was confirmed with the old text. */
		const enum outcome o = own && n++ ? OUTCOME_ERROR : OUTCOME_CONFIRMED;

		attempt(&t, t.x.second_store, c, 1, o);
		attempt(&t, t.x.store, c, 1, o);
	}

	/* Nothing has changed. */
	assert_null(key_accept_faults(was.s, t.x.plan, was.inputs, was.inputs));
	assert_int_equal(resume_scan(&t.x, &found, &e), 0);
	assert_int_equal(found.done, 5);
	assert_int_equal(found.outdated, 0);
	for (size_t i = 0; i < 6; i++)
		t.x.plan->cells[i].done = false;

	/* Mended, with a parameter that is new. */
	write_file("own.lua",
		"return { summary = 'x', resource = 'disk', params = { n = { default = 1, unit = "
		"'number', help = 'x' } }, inject = function() end, verify = function() return "
		"true end }\n");
	make(&is, mendable, inventory, 1);
	labels = key_accept_faults(is.s, t.x.plan, was.inputs, is.inputs);
	assert_non_null(labels);
	assert_string_equal(labels, "own");
	text = key_difference(was.inputs, is.inputs);
	if (text)
		fail_msg("refused: %s", text);
	assert_int_equal(resume_scan(&t.x, &found, &e), 0);
	assert_int_equal(found.done, 4);
	assert_int_equal(found.outdated, 1);
	assert_int_equal(found.damaged + found.halves, 0);
	for (size_t i = 0; i < 6; i++) {
		const struct cell *c = &t.x.plan->cells[i];
		const bool own = !strcmp(cell_fault(t.x.scenario, c), "own");

		assert_int_equal(c->done, !own);
	}
	assert_int_equal(failed_with(&t, "its fault's file has changed since"), 1);
	free(labels);
	unmake(&is);
	end(&t);

	/* Anything else that changes with it is refused by name. */
	make(&is,
		"return { name = 't', workloads = { 'ddw' }, repeats = 2, faults = { 'none', "
		"{ './own.lua', victims = 2 }, './other.lua' }, phases = { fault = '7s' }, "
		"detectors = { 'peer-threshold' } }\n",
		inventory, 1);
	text = key_difference(was.inputs, is.inputs);
	assert_non_null(text);
	assert_non_null(strstr(text, "phases.fault is 7.0"));
	assert_non_null(strstr(text, "fault own is "));
	free(text);
	unmake(&is);
	unmake(&was);
}

static void a_cell_is_completed_once(void **state)
{
	struct attempt_row row = {.cell = 1, .number = 2, .outcome = OUTCOME_CONFIRMED};
	struct torn t;
	struct err e;

	(void)state;
	begin(&t, "once", small);
	attempt(&t, t.x.store, &t.x.plan->cells[0], 1, OUTCOME_CONFIRMED);
	assert_int_not_equal(store_put_attempt(t.x.store, &row, &e), 0);
	end(&t);
}

static size_t open_handles(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static size_t resident_pages(void)
{
	size_t pages = 0;
	char *text;

	/* What is free goes back first: a table of 500 cells leaves larger holes than one of
	 * 200. */
	malloc_trim(0);
	assert_int_equal(file_read("/proc/self/statm", &text, NULL, NULL), 0);
	assert_int_equal(sscanf(text, "%*u %zu", &pages), 1);
	free(text);
	return pages;
}

/* Renders the table of the cells so far. */
static void score(struct torn *t)
{
	struct scoring *c = NULL;
	struct table_notes notes;
	struct err e = {""};
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	if (scoring_new(t->x.store, NULL, (struct cell_range){0}, &c, &e) ||
		table_notes_make(t->x.store, scoring_range(c), &notes, &e) ||
		table_render(scoring_table(c), TABLE_TEXT, &notes, f))
		fail_msg("%s", e.text);
	table_notes_clear(&notes);
	fclose(f);
	assert_non_null(strstr(text, "peer-threshold"));
	free(text);
	scoring_free(c);
}

/* As the executor does, without nodes. */
static void run_simulated(struct torn *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct cell *c = &t->x.plan->cells[i];
		char text[160];
		struct err e = {""};
		int64_t id;

		progress_attempt(t->x.progress, c->number, 1, "ddw x disk-hog on s2");
		for (int k = 0; k < 8; k++)
			progress_now(t->x.progress, 8 - k, "phase %d", k);
		id = attempt(t, t->x.store, c, 1, OUTCOME_CONFIRMED);
		progress_cell_done(t->x.progress, true, 1);
		if (!c->training && judge_attempt(t->x.judge, id, text, sizeof(text), &e))
			fail_msg("%s", e.text);
		progress_say(
			t->x.progress, "cell %zu: confirmed%s", c->number, c->training ? "" : text);
		progress_node(t->x.progress, "s1", "serving, cell %zu", c->number);
		if (i && i % 50 == 0)
			score(t);
	}
}

static void memory_and_handles_are_flat_over_500_cells(void **state)
{
	size_t handles, bytes, pages, grown, resident;
	struct torn t;

	(void)state;
	begin(&t, "long",
		"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 125, training = { "
		"workloads = { 'ddw' } }, "
		"faults = { 'none', 'disk-hog' }, detectors = { 'peer-threshold' } }\n");
	assert_int_equal(t.x.plan->n, 501);
	/* By then the database's cache is full. */
	run_simulated(&t, 0, 201);
	handles = open_handles();
	bytes = mallinfo2().uordblks;
	pages = resident_pages();
	run_simulated(&t, 201, 501);
	grown = mallinfo2().uordblks > bytes ? mallinfo2().uordblks - bytes : 0;
	resident = resident_pages();
	printf("# %zu bytes in use after 201 cells, %zu more after 501; %zu pages resident, "
	       "then %zu; %zu handles, then %zu\n",
		bytes, grown, pages, resident, handles, open_handles());
	assert_int_equal(open_handles(), handles);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
	assert_true((double)resident < 1.1 * (double)pages);
#endif
	/* 300 cells: 300 bytes each would be 90000. */
	assert_true(grown < 65536);
	end(&t);
}

int main(int argc, char **argv)
{
	(void)argc;
	/* Chunks in malloc's caches count as in use, and their number depends on luck. */
	if (!getenv("GLIBC_TUNABLES")) {
		setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0", 1);
		execv("/proc/self/exe", argv);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_depends_on_what_decides_its_cell_and_on_nothing_else),
		cmocka_unit_test(another_agent_is_another_experiment),
		cmocka_unit_test(training_and_scored_cells_are_run_in_blocks_each_in_its_own_order),
		cmocka_unit_test(a_run_has_one_orchestrator_whose_process_is_known),
		cmocka_unit_test(a_run_that_was_killed_is_mended),
		cmocka_unit_test(a_mended_fault_has_its_own_cells_run_again),
		cmocka_unit_test(a_cell_is_completed_once),
		cmocka_unit_test(memory_and_handles_are_flat_over_500_cells),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
