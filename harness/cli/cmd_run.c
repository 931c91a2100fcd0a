/* The command 'run', and what 'resume' shares with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/cli/list.h"
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/cli/running.h"
#include "harness/fs/fs.h"
#include "harness/run/cell_key.h"
#include "harness/run/fault_check.h"
#include "harness/run/signals.h"
#include "harness/store/lock.h"

#define LAB_INVENTORY "/run/culprit/lab/inventory.lua"

static uint64_t draw_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint32_t)clock_real_ns();
	return seed;
}

static char *default_folder(const struct scenario *s)
{
	char stamp[32];

	clock_utc((double)time(NULL), "%Y%m%d-%H%M%S", stamp, sizeof(stamp));
	return alloc_format("runs/%s-%s", s->name, stamp);
}

json_t *running_detectors(const struct scenario *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_detectors; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:O}", "name", s->detectors[i].name, "params",
				s->detectors[i].params));
	return list;
}

static json_t *server_list(const struct cluster *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_servers; i++)
		json_array_append_new(list, json_string(c->servers[i]->name));
	return list;
}

int running_judge(const struct executor *x, struct store *store, struct judge **out, struct err *e)
{
	json_t *detectors = running_detectors(x->scenario), *servers = server_list(x->cluster);
	int rc = 0;

	if (!store || x->scenario->measure == MEASURE_VERDICTS)
		rc = judge_new(detectors, servers, store, out, e);
	json_decref(detectors);
	json_decref(servers);
	return rc;
}

int running_set_json(struct store *s, const char *key, const json_t *v, struct err *e)
{
	char *text = json_dumps(v, JSON_COMPACT);
	int rc = store_set(s, key, text, e);

	free(text);
	return rc;
}

/* Records what the file system's errors mean, so that the run is judged alike on any machine, and
 * which adapter describes its messages. */
static int record_file_system(struct store *s, const char *fs_type, struct err *e)
{
	struct fs *fs = NULL;
	json_auto_t *errors = NULL;
	int rc = fs_load(fs_type, &fs, e)
		?: fs_errors(fs, &errors, e)
		?: running_set_json(s, "file_system", errors, e)
		?: store_set(s, "file_system_type", fs_type, e);

	fs_free(fs);
	return rc;
}

/* Labels in the scenario's order, which is not the plan's. */
static json_t *axes_json(const struct scenario *s)
{
	json_t *workloads = json_array(), *tracers = json_array(), *faults = json_array();

	for (size_t i = 0; i < s->n_matrix; i++)
		json_array_append_new(workloads, json_string(s->workloads[i].label));
	for (size_t i = 0; i < s->n_tracers; i++)
		json_array_append_new(tracers, json_string(s->tracers[i].label));
	for (size_t i = 0; i < s->n_faults; i++)
		json_array_append_new(faults, json_string(s->faults[i].label));
	return json_pack(
		"{s:o, s:o, s:o}", "workloads", workloads, "tracers", tracers, "faults", faults);
}

/* A fact is a text, or else a value. */
struct fact {
	const char *key, *text;
	const json_t *value;
};

static int record_facts(struct store *s, const struct executor *x, const char *inventory,
	const char *tracer, struct err *e)
{
	const struct scenario *sc = x->scenario;
	char seed[32], seconds[32], *inventory_text = NULL;
	json_auto_t *axes = axes_json(sc), *detectors = running_detectors(sc);
	json_auto_t *servers = server_list(x->cluster);
	int rc = file_read(inventory, &inventory_text, NULL, e);
	const struct fact facts[] = {{"scenario", sc->name, NULL},
		{"measure", sc->measure == MEASURE_RUNTIME ? "runtime" : "verdicts", NULL},
		{"tracer", tracer, NULL}, {"scenario_text", sc->text, NULL}, {"seed", seed, NULL},
		{"judged_seconds", seconds, NULL}, {"culprit_version", CULPRIT_VERSION, NULL},
		{"inventory_text", inventory_text, NULL}, {"axes", NULL, axes},
		{"detectors", NULL, detectors}, {"servers", NULL, servers}};

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)x->plan->seed);
	snprintf(seconds, sizeof(seconds), "%d", (int)attempt_phases_s(sc));
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]) && !rc; i++)
		rc = facts[i].text ? store_set(s, facts[i].key, facts[i].text, e)
				   : running_set_json(s, facts[i].key, facts[i].value, e);
	if (x->shard_fact)
		rc = rc ?: running_set_json(s, "shard", x->shard_fact, e);
	rc = rc ?: record_file_system(s, x->cluster->inv->fs_type, e);
	free(inventory_text);
	return rc;
}

/* Complains of an error that ended the run, and returns the exit code. */
static int conclude_error(
	const struct executor *x, const char *command, bool begun, struct err *why)
{
	int code;

	/* Without a store, the files or options that the run is made of are wrong. */
	if (!x->store)
		err_blame(why, ERR_USAGE, 0);
	code = err_exit_code(why);
	if (why->class == ERR_INTERRUPTED)
		return cmd_fail(command, code,
			"interrupted: %s; what was confirmed is kept, and "
			"'culprit resume %s' goes on",
			x->undo_failed ? "a node did not answer, and undoes its fault by itself "
					 "within the lease ('culprit undo' asks it)"
				       : "every fault is undone",
			store_folder(x->store));
	if (code == CULPRIT_EXIT_INVALID && begun)
		return cmd_fail(command, code, "%s; 'culprit resume %s' goes on", why->text,
			store_folder(x->store));
	return cmd_fail(command, code, "%s", why->text);
}

/* Has a cell without a confirmed attempt one that was an error? Errors of the others are mended. */
static bool has_error(const json_t *tally)
{
	json_t *cell, *row;
	size_t i, k;

	json_array_foreach(jget(tally, "missing"), i, cell) {
		json_array_foreach(jget(tally, "failed"), k, row) {
			if (jget_int(row, "cell") == jget_int(cell, "number") &&
				!strcmp(jget_text(row, "outcome"), outcome_name(OUTCOME_ERROR)))
				return true;
		}
	}
	return false;
}

/* How many cells without a confirmed attempt have had one that was aborted? */
static size_t count_aborted(const json_t *tally)
{
	json_t *cell, *row;
	size_t i, k, n = 0;

	json_array_foreach(jget(tally, "missing"), i, cell) {
		bool aborted = false;

		json_array_foreach(jget(tally, "failed"), k, row) {
			if (jget_int(row, "cell") == jget_int(cell, "number"))
				aborted = !strcmp(
					jget_text(row, "outcome"), outcome_name(OUTCOME_ABORTED));
		}
		n += aborted;
	}
	return n;
}

/* Complains of the cells that have no confirmed attempt. */
static int tell_missing(
	const struct executor *x, const char *command, size_t missing, size_t aborted)
{
	const char *folder = store_folder(x->store);
	char how[64] = "";

	if (aborted)
		snprintf(how, sizeof(how), ", %zu of them aborted", aborted);
	return cmd_fail(command, CULPRIT_EXIT_INVALID,
		"%zu cells have no confirmed attempt%s; '%s/run.log' has the reasons; 'culprit "
		"resume %s%s' tries them again",
		missing, how, folder, aborted ? "--retry-aborted " : "", folder);
}

/* Shows what was measured, and returns the exit code. */
static int run_conclude(struct executor *x, const char *command, const struct outcome_options *o,
	int rc, struct err *why)
{
	bool begun = x->progress != NULL;
	const char *folder;
	json_auto_t *tally = NULL;
	auto_free char *replaced = NULL;
	struct err e;
	size_t missing;
	int code;

	progress_free(x->progress);
	x->progress = NULL;
	if (rc)
		return conclude_error(x, command, begun, why);
	folder = store_folder(x->store);
	code = outcome_show(command, x->store, NULL, o, stdout);
	if (store_get(x->store, STORE_TRACER_REPLACED, &replaced, &e) == 1)
		cmd_fail(command, 0, "%s; 'culprit doctor' tries each tracer", replaced);
	missing = store_tally(x->store, &tally, &e) ? 0 : json_array_size(jget(tally, "missing"));
	if (missing)
		code = tell_missing(x, command, missing, count_aborted(tally));
	if (has_error(tally))
		code = cmd_fail(command, CULPRIT_EXIT_USAGE,
			"the scenario or one of its files is wrong; '%s/run.log' has the place",
			folder);
	if (x->judge_failed)
		code = cmd_fail(command, CULPRIT_EXIT_USAGE,
			"a detector failed; mend it, then 'culprit rescore --save %s'", folder);
	return code;
}

int running_conclude(struct executor *x, const char *command, const struct run_options *o, int rc,
	struct err *why)
{
	int code = run_conclude(x, command, &o->outcome, rc, why);

	on_end_run(command, &o->on_end, x, rc, rc ? why->class : 0, code);
	return code;
}

/* Creates a run with its plan in 'folder', and its judge. */
static int begin_run(struct executor *x, const char *folder, const char *inventory,
	const char *tracer, struct store **store, struct judge **judge, struct err *e)
{
	return store_create(folder, store, e)
		?: running_judge(x, *store, judge, e)
		?: record_facts(*store, x, inventory, tracer, e)
		?: store_put_plan(*store, x->scenario, x->plan, x->server_names, e);
}

static int begin_second(
	struct executor *x, const char *folder, const char *inventory, struct err *e)
{
	char *path;
	int rc;

	if (!x->scenario->second.name)
		return 0;
	path = alloc_format("%s/second", folder);
	rc = begin_run(x, path, inventory, x->scenario->second.label, &x->second_store,
		&x->second_judge, e);
	free(path);
	return rc;
}

/* NULL: no shard. */
static json_t *shard_text(struct shard shard)
{
	return shard.of ? json_sprintf("%ld/%ld", shard.index, shard.of) : NULL;
}

static json_t *options_json(const struct run_options *o)
{
	json_t *never = json_array();

	for (size_t i = 0; i < o->never.n; i++)
		json_array_append_new(never, json_string(o->never.v[i]));
	return json_pack("{s:s?, s:s?, s:s?, s:I, s:f, s:o*, s:I, s:o}", "only", o->only, "tracer",
		o->tracer, "second", o->second, "repeats", (json_int_t)o->repeats, "lease_s",
		o->lease_s, "shard", shard_text(o->shard), "max_victims",
		(json_int_t)o->max_victims, "never", never);
}

static int set_path(struct store *s, const char *key, const char *path, struct err *e)
{
	char *full = realpath(path, NULL);
	int rc = full ? store_set(s, key, full, e) : err_errno(e, -errno, "cannot find '%s'", path);

	free(full);
	return rc;
}

/* Records what else 'culprit resume' needs. The inputs come last: a run that has them can be
 * resumed. */
static int record_start(struct executor *x, const struct run_options *o, struct err *e)
{
	json_auto_t *options = options_json(o), *detectors = NULL;

	return key_inputs(x->scenario, x->plan, x->cluster, o->only, &x->inputs, e)
		?: key_detectors(x->scenario, &detectors, e)
		?: set_path(x->store, "scenario_path", o->scenario, e)
		?: set_path(x->store, "inventory_path", o->inventory, e)
		?: running_set_json(x->store, "options", options, e)
		?: running_set_json(x->store, "detector_texts", detectors, e)
		?: running_set_json(x->store, "inputs", x->inputs, e);
}

static int begin_all(
	struct executor *x, const struct run_options *o, const char *folder, struct err *e)
{
	/* A mistake in a detector is found before the folder is created. */
	int rc = running_judge(x, NULL, &x->judge, e);

	judge_free(x->judge);
	x->judge = NULL;
	return rc
		?: begin_run(x, folder, o->inventory, x->scenario->tracers[0].label, &x->store,
			   &x->judge, e)
		?: run_lock(folder, &x->lock, e)
		?: begin_second(x, folder, o->inventory, e)
		?: record_start(x, o, e);
}

/* Closes and removes a run that could not be begun: nothing is in it, and nothing can resume it. */
static void discard(struct executor *x, const char *folder)
{
	judge_free(x->judge);
	judge_free(x->second_judge);
	x->judge = x->second_judge = NULL;
	store_close(x->second_store);
	store_close(x->store);
	x->store = x->second_store = NULL;
	file_remove_tree(folder, NULL);
}

static int run_plan(struct executor *x, const struct run_options *o, struct err *e)
{
	char *folder = o->folder ? alloc_copy(o->folder) : default_folder(x->scenario);
	int rc = begin_all(x, o, folder, e)
		?: progress_new(folder, x->plan->n, attempt_phases_s(x->scenario) + 6, o->quiet,
			   &x->progress, e);
	char shard[64] = "";

	if (rc == -ENOSPC || rc == -EDQUOT)
		err_blame(e, ERR_HARNESS, rc);
	if (rc && x->store)
		discard(x, folder);
	free(folder);
	if (rc)
		return rc;
	if (x->shard.of)
		snprintf(shard, sizeof(shard), "shard %ld/%ld, ", x->shard.index, x->shard.of);
	progress_say(x->progress, "run %s: %s%zu cells, seed %llu, %zu servers, %zu clients",
		store_run_id(x->store), shard, x->plan->n, (unsigned long long)x->plan->seed,
		x->cluster->n_servers, x->cluster->n_clients);
	rc = exec_run(x, e);
	if (rc)
		progress_ended(x->progress, e->text);
	return rc;
}

/* Keeps the shard's cells of the plan, and what a merge must know of the whole. */
static int take_shard(struct executor *x, const struct run_options *o, struct err *e)
{
	json_int_t training = 0;
	char digest[65];

	x->shard = o->shard;
	if (!x->shard.of)
		return 0;
	if (o->seed < 0 && x->scenario->seed < 0)
		return err_set(e, -EINVAL,
			"--shard %ld/%ld: all shards must be drawn from one seed; give it with "
			"--seed, or in the scenario",
			x->shard.index, x->shard.of);
	for (size_t i = 0; i < x->plan->n; i++)
		training += x->plan->cells[i].training;
	shard_digest(x->plan, x->scenario, digest);
	x->shard_fact = json_pack("{s:I, s:I, s:I, s:I, s:s}", "index", (json_int_t)x->shard.index,
		"of", (json_int_t)x->shard.of, "cells", (json_int_t)x->plan->n, "training",
		training, "plan", digest);
	return shard_take(x->plan, x->scenario, x->shard, e);
}

static int check_limits(struct executor *x, const struct run_options *o, struct err *e)
{
	const struct plan_limits limits = {
		.max_victims = o->max_victims, .never = o->never.v, .n_never = o->never.n};

	return cluster_protect(x->cluster, limits.never, limits.n_never, e)
		?: plan_check_limits(x->plan, x->scenario, x->server_names, &limits, e);
}

int running_prepare(struct executor *x, struct run_options *o, struct err *e)
{
	const char *env = getenv("CULPRIT_INVENTORY");
	uint64_t seed;
	int rc = scenario_load(o->scenario, &x->scenario, e);

	if (!rc && o->tracer)
		rc = scenario_set_tracer(x->scenario, o->tracer, e);
	if (!rc && o->second)
		rc = scenario_set_second(x->scenario, o->second, e);
	if (rc)
		return rc;
	if (o->repeats > 0)
		x->scenario->repeats = o->repeats;
	if (!o->inventory)
		o->inventory = x->scenario->inventory ? x->scenario->inventory
			: env                         ? env
						      : LAB_INVENTORY;
	rc = cluster_load(o->inventory, &x->cluster, e);
	if (rc == -ENOENT && !strcmp(o->inventory, LAB_INVENTORY))
		return err_set(e, rc,
			"there is no inventory and no lab is up; 'culprit lab up' makes one, "
			"or give --inventory");
	if (rc)
		return rc;
	x->cluster->lease_s = o->lease_s;
	seed = o->seed >= 0              ? (uint64_t)o->seed
		: x->scenario->seed >= 0 ? (uint64_t)x->scenario->seed
					 : draw_seed();
	x->server_names = alloc_zero(x->cluster->n_servers, sizeof(*x->server_names));
	for (size_t i = 0; i < x->cluster->n_servers; i++)
		x->server_names[i] = (char *)x->cluster->servers[i]->name;
	rc = plan_new(x->scenario, x->cluster->n_servers, seed, o->only, &x->plan, e);
	return rc ?: take_shard(x, o, e) ?: check_limits(x, o, e);
}

void running_clear(struct executor *x)
{
	progress_free(x->progress);
	judge_free(x->judge);
	judge_free(x->second_judge);
	store_close(x->store);
	store_close(x->second_store);
	plan_free(x->plan);
	cluster_free(x->cluster);
	scenario_free(x->scenario);
	json_decref(x->inputs);
	json_decref(x->shard_fact);
	free(x->server_names);
	if (x->lock >= 0)
		close(x->lock);
}

/* The plan's faults that the file system is known not to bear; hosts are not asked. */
static json_t *skipped_list(const struct executor *x)
{
	json_t *list = json_array();
	struct err why;

	for (size_t i = 0; i < x->scenario->n_faults; i++) {
		const struct part *f = &x->scenario->faults[i];

		if (f->path && fault_allowed(x->cluster, f, &why))
			json_array_append_new(list,
				json_pack("{s:s, s:s}", "fault", f->label, "reason", why.text));
	}
	return list;
}

static int show_dry(const struct executor *x, bool json)
{
	json_auto_t *skipped = skipped_list(x);

	return show_plan(x->scenario, x->plan, x->server_names, skipped, json, stdout);
}

static int run_run(const struct call *c)
{
	struct executor x = {.lock = -1};
	struct run_options *o = c->options;
	auto_free char *path = NULL;
	struct err e = {""};
	int rc, code = outcome_check("run", &o->outcome) ?: on_end_check("run", &o->on_end);

	if (code)
		return code;
	x.interrupted = signals_catch();
	rc = scenario_find(c->args[0], &path, &e);
	o->scenario = path;
	rc = rc ?: running_prepare(&x, o, &e);
	if (!rc)
		rc = o->dry_run ? running_judge(&x, NULL, &x.judge, &e) : run_plan(&x, o, &e);
	if (!rc && o->dry_run)
		code = show_dry(&x, o->outcome.format == TABLE_JSON);
	else
		code = running_conclude(&x, "run", o, rc, &e);
	running_clear(&x);
	return code;
}

static int set_shard(void *field, const char *text, struct err *e)
{
	return shard_parse(text, field, e);
}

#define AT(field) offsetof(struct run_options, field)
static const struct option_row rows[] = {
	{"output", 'o', OPTION_TEXT, AT(folder), "RUN",
		"the run's folder, which must not exist (default: runs/NAME-TIME)"},
	{"inventory", 'i', OPTION_TEXT, AT(inventory), "FILE",
		"the hosts (default: the scenario's own, $CULPRIT_INVENTORY, or the embedded "
		"lab's: /run/culprit/lab/inventory.lua)"},
	{"only", 0, OPTION_TEXT, AT(only), "KEY=VALUE,...",
		"run only the scored cells that match; keys are workload, fault, tracer, repeat, "
		"cell"},
	{"tracer", 0, OPTION_TEXT, AT(tracer), "NAME",
		"trace with ebpf or ptrace, whatever the scenario says"},
	{"second-tracer", 0, OPTION_TEXT, AT(second), "NAME",
		"trace the file system with this tracer, too, at the same time; what it records "
		"is a run of its own in RUN/second, judged in the same way"},
	{"repeats", 0, OPTION_WHOLE, AT(repeats), "N", "repeats of each cell, 1 to 10000", 1,
		10000},
	{"seed", 0, OPTION_WHOLE, AT(seed), "N",
		"order and victims are drawn from it (default: the scenario's, or a random one, "
		"which is recorded)",
		0, 4294967295},
	{"lease", 0, OPTION_QUANTITY, AT(lease_s), "TIME",
		"a node undoes everything after this time without contact, 1s to 10min (default: "
		"10s)",
		1, 600, UNIT_SECONDS},
	{"shard", 0, OPTION_CALL, AT(shard), "i/n",
		"run only the i-th of n parts of the plan, so that n clusters share it (with one "
		"--seed); 'culprit table --merge' takes the n runs as one",
		.set = set_shard},
	{"max-victims", 0, OPTION_WHOLE, AT(max_victims), "N",
		"reject a plan that hits more than N servers at once, 1 to 16", 1, MAX_VICTIMS},
	{"never", 0, OPTION_LIST, AT(never), "NODE",
		"reject a plan that hits this node; faults that would act on it in another way are "
		"skipped or fail. May be repeated"},
	{"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL,
		"print the plan (with --json as JSON) and touch nothing"},
	{"quiet", 0, OPTION_FLAG, AT(quiet), NULL, "no progress, only complaints and the table"},
	{"", 0, OPTION_GROUP, AT(on_end), NULL, "", .group = on_end_rows},
	{"", 0, OPTION_GROUP, AT(outcome), NULL, "output, as 'culprit table'",
		.group = outcome_rows},
	{0},
};

const struct command run_command = {.name = "run",
	.summary = "run a scenario, score it",
	.arguments = "SCENARIO",
	.about = "Runs every cell of the scenario's plan on the cluster, judges what was traced, "
		 "and prints the table. SCENARIO is a file, or the name of one of culprit's own: "
		 "'culprit list scenarios'.\n\n"
		 "Ctrl-C undoes the current fault and ends the run; a second Ctrl-C leaves the "
		 "undo to the nodes, which do it within the lease. 'culprit resume RUN' continues "
		 "the run.\n\n"
		 "On a cluster that others use: 'abort_if' in the scenario says when a fault goes "
		 "too far. It is undone at once then, and the cell is aborted: not scored, not "
		 "tried again. scenarios/README.md has an example.",
	.examples = "culprit run quick --dry-run\n"
		    "culprit run quick --inventory my-hosts.lua -o runs/first\n"
		    "culprit run quick --only fault=disk-hog --repeats 3",
	.exits = "0 every cell has a confirmed attempt; " OUTCOME_EXITS
		 "2 the scenario, the inventory or the usage is "
		 "wrong; 3 a cell has no confirmed attempt or was aborted, or the run was "
		 "interrupted.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct run_options),
	.defaults = &(const struct run_options){.repeats = -1, .seed = -1},
	.offers = list_scenario_names,
	.run = run_run};
