/* The command 'resume': continues an interrupted run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/file.h"
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/cli/running.h"
#include "harness/run/cell_key.h"
#include "harness/run/signals.h"
#include "harness/store/lock.h"
#include "harness/run/resume.h"

/* How the run was begun, as its store has it. */
struct record {
	char *scenario_path, *inventory_path, *scenario_text, *inventory_text, *seed;
	json_t *options, *inputs, *detectors;
	char *changed; /* labels of faults whose files have changed, or NULL */
};

static void record_clear(struct record *r)
{
	free(r->scenario_path);
	free(r->inventory_path);
	free(r->scenario_text);
	free(r->inventory_text);
	free(r->seed);
	free(r->changed);
	json_decref(r->options);
	json_decref(r->inputs);
	json_decref(r->detectors);
}

static int record_read(struct store *s, struct record *r, struct err *e)
{
	const struct {
		const char *key;
		char **text;
		json_t **json;
	} facts[] = {{"scenario_path", .text = &r->scenario_path},
		{"inventory_path", .text = &r->inventory_path},
		{"scenario_text", .text = &r->scenario_text},
		{"inventory_text", .text = &r->inventory_text}, {"seed", .text = &r->seed},
		{"options", .json = &r->options}, {"inputs", .json = &r->inputs},
		{"detector_texts", .json = &r->detectors}};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		int rc = facts[i].text ? store_get(s, facts[i].key, facts[i].text, e)
				       : store_get_json(s, facts[i].key, facts[i].json, e);

		if (rc < 0)
			return rc;
		if (!rc)
			return err_set(e, -EINVAL,
				"'%s' ended before its plan was written and cannot be resumed; "
				"'culprit run' begins a new one",
				store_folder(s));
	}
	return 0;
}

static int refuse_corpus(const struct store *s, struct err *e)
{
	return store_is_corpus(s)
		? err_set(e, -EINVAL,
			  "'%s' is a corpus: it holds what judging needs, not what running does; "
			  "'culprit run' begins a new run",
			  store_folder(s))
		: 0;
}

/* Writes a file that is no longer where it was into the run's folder. */
static int find_file(
	struct store *s, const char *name, const char *text, char **path, struct err *e)
{
	char *own;
	int rc;

	if (!access(*path, R_OK))
		return 0;
	own = alloc_format("%s/%s", store_folder(s), name);
	rc = file_write_atomic(own, 0600, text, strlen(text), e);
	free(*path);
	*path = own;
	return rc;
}

/* Uses the options of the run's begin: with them the same scenario makes the same plan. */
static int resume_prepare(
	struct executor *x, struct record *r, const struct run_options *given, struct err *e)
{
	struct run_options o = {.quiet = given->quiet, .outcome = given->outcome};
	const json_t *never = jget(r->options, "never");
	const char *shard;
	json_t *name;
	size_t i;
	int rc = given->scenario
		? 0
		: find_file(x->store, "scenario.lua", r->scenario_text, &r->scenario_path, e);

	if (!rc && !given->inventory)
		rc = find_file(x->store, "inventory.lua", r->inventory_text, &r->inventory_path, e);
	if (rc)
		return rc;
	o.scenario = given->scenario ? given->scenario : r->scenario_path;
	o.inventory = given->inventory ? given->inventory : r->inventory_path;
	o.only = jget_text(r->options, "only");
	o.tracer = jget_text(r->options, "tracer");
	o.second = jget_text(r->options, "second");
	o.repeats = (long)jget_int(r->options, "repeats");
	o.lease_s = jget_real(r->options, "lease_s");
	o.seed = strtol(r->seed, NULL, 10);
	o.max_victims = (long)jget_int(r->options, "max_victims");
	json_array_foreach(never, i, name) {
		o.never.v = alloc_room(o.never.v, o.never.n, sizeof(*o.never.v));
		o.never.v[o.never.n++] = json_string_value(name);
	}
	shard = jget_text(r->options, "shard");
	if (shard)
		rc = shard_parse(shard, &o.shard, e);
	rc = rc ?: running_prepare(x, &o, e);
	free(o.never.v);
	return rc ?: key_inputs(x->scenario, x->plan, x->cluster, o.only, &x->inputs, e);
}

/* Faults' files may change: a mistake in one is no reason to run the others' cells again. */
static int refuse_changes(struct executor *x, struct record *r, struct err *e)
{
	char *text;
	int rc;

	r->changed = key_accept_faults(x->scenario, x->plan, r->inputs, x->inputs);
	text = key_difference(r->inputs, x->inputs);
	rc = text ? key_refuse(text, e) : 0;

	free(text);
	return rc;
}

static int open_second(struct executor *x, struct err *e)
{
	char *path;
	int rc;

	if (!x->scenario->second.name)
		return 0;
	path = alloc_format("%s/second", store_folder(x->store));
	rc = store_open(path, &x->second_store, e);
	free(path);
	return rc;
}

/* Removes verdicts and models from both stores; all cells are judged again. */
static int forget_verdicts(struct executor *x, struct err *e)
{
	int rc = store_clear_verdicts(x->store, e);

	return rc || !x->second_store ? rc : store_clear_verdicts(x->second_store, e);
}

/* Uses the scenario's detectors. If they have changed, all cells are judged again. */
static int take_detectors(struct executor *x, const struct record *r, struct err *e)
{
	struct store *const stores[] = {x->store, x->second_store};
	json_auto_t *texts = NULL, *detectors = running_detectors(x->scenario);
	int rc = key_detectors(x->scenario, &texts, e);
	char *difference = rc ? NULL : key_difference(r->detectors, texts);

	if (difference) {
		progress_say(x->progress,
			"detectors have changed, all cells are judged anew: %.800s", difference);
		rc = forget_verdicts(x, e);
		for (size_t i = 0; i < 2 && stores[i] && !rc; i++)
			rc = running_set_json(stores[i], "detectors", detectors, e);
		rc = rc ?: running_set_json(x->store, "detector_texts", texts, e);
	}
	rc = rc ?: running_judge(x, x->store, &x->judge, e);
	if (!rc && x->second_store)
		rc = running_judge(x, x->second_store, &x->second_judge, e);
	free(difference);
	return rc;
}

static int go_on(struct executor *x, const struct record *r, struct err *e)
{
	struct resume t;
	int rc = resume_scan(x, &t, e);

	if (!rc && t.training_lost)
		rc = forget_verdicts(x, e);
	/* After the scan: until then, the next 'resume' must find the change as well. */
	if (!rc && r->changed)
		rc = running_set_json(x->store, "inputs", x->inputs, e);
	if (rc)
		return rc;
	if (r->changed)
		progress_say(x->progress,
			"changed since: fault %s; its cells are run again (%zu had been "
			"confirmed), others stay",
			r->changed, t.outdated);
	progress_begin_at(x->progress, t.done);
	progress_say(x->progress, "run %s resumed: %zu of %zu cells are done%s",
		store_run_id(x->store), t.done, x->plan->n,
		t.done + t.aborted == x->plan->n ? ": nothing is left to run" : "");
	if (t.aborted)
		progress_say(x->progress,
			"%zu cells were aborted, and stay so: --retry-aborted runs them again",
			t.aborted);
	if (t.halves)
		progress_say(x->progress, "removed what %zu attempts that never ended had left",
			t.halves);
	rc = t.done + t.aborted == x->plan->n ? exec_judge_rest(x, e) : exec_run(x, e);
	if (rc)
		progress_ended(x->progress, e->text);
	return rc;
}

static int resume(
	struct executor *x, const char *folder, const struct run_options *o, struct err *e)
{
	struct record r = {0};
	int rc = store_open(folder, &x->store, e)
		?: refuse_corpus(x->store, e)
		?: run_lock(folder, &x->lock, e)
		?: record_read(x->store, &r, e)
		?: resume_prepare(x, &r, o, e)
		?: refuse_changes(x, &r, e)
		?: open_second(x, e)
		?: progress_new(folder, x->plan->n, attempt_phases_s(x->scenario) + 6, o->quiet,
			&x->progress, e)
		?: take_detectors(x, &r, e)
		?: go_on(x, &r, e);

	record_clear(&r);
	return rc;
}

static int resume_run(const struct call *c)
{
	struct executor x = {.lock = -1, .resumed = true};
	const struct run_options *o = c->options;
	struct err e;
	int rc, code = outcome_check("resume", &o->outcome) ?: on_end_check("resume", &o->on_end);

	if (code)
		return code;
	x.interrupted = signals_catch();
	x.retries_aborted = o->retry_aborted;
	rc = resume(&x, c->args[0], o, &e);
	/* Before it continues, the run or what it is resumed with is wrong. */
	if (rc && !x.progress)
		err_blame(&e, ERR_USAGE, rc);
	code = running_conclude(&x, "resume", o, rc, &e);
	running_clear(&x);
	return code;
}

#define AT(field) offsetof(struct run_options, field)
static const struct option_row rows[] = {
	{"scenario", 0, OPTION_TEXT, AT(scenario), "FILE",
		"where the scenario is now (default: where it was, or else the run's copy)"},
	{"inventory", 'i', OPTION_TEXT, AT(inventory), "FILE",
		"where the inventory is now (default: where it was, or else the run's copy)"},
	{"retry-aborted", 0, OPTION_FLAG, AT(retry_aborted), NULL,
		"run cells again that the scenario's 'abort_if' has aborted"},
	{"quiet", 0, OPTION_FLAG, AT(quiet), NULL, "no progress, only complaints and the table"},
	{"", 0, OPTION_GROUP, AT(on_end), NULL, "", .group = on_end_rows},
	{"", 0, OPTION_GROUP, AT(outcome), NULL, "output, as 'culprit table'",
		.group = outcome_rows},
	{0},
};

const struct command resume_command = {.name = "resume",
	.summary = "continue an interrupted run",
	.arguments = "RUN",
	.about = "Continues a run that was interrupted or killed. Cells with a confirmed attempt "
		 "whose files match their checksums stay as they are; the others are run by the "
		 "same plan. What was half done is removed. Cells that had used up their tries get "
		 "new ones; those that were aborted do not, without --retry-aborted.\n\n"
		 "A fault's file may change, when a mistake in it was mended: the cells of that "
		 "fault are run again, confirmed or not. Detectors may change: then every cell is "
		 "judged anew. The scenario, workloads, agent, the programs on the nodes and the "
		 "hosts' roles must be the same; otherwise the run is refused and the change is "
		 "named.",
	.examples = "culprit resume runs/NAME",
	.exits = "as 'culprit run'; 2 also when something has changed, or the run is going on.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct run_options),
	.run = resume_run};
