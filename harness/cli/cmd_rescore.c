/* The command 'rescore': judges a recorded run again, from its measurements or its traces. */
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/cli/shards.h"
#include "harness/judging/remeasure.h"
#include "harness/store/lock.h"

struct options {
	struct detector_options detectors;
	bool save, remeasure;
	struct outcome_options outcome;
};

static int rescore(struct store *s, const json_t *detectors, bool save, struct judge **judge,
	json_t **rows, struct err *e)
{
	int rc = show_judge(s, detectors, judge, e) ?: judge_all(*judge, 0, rows, e);

	if (!rc && save)
		rc = judge_save(*judge, *rows, e);
	return rc;
}

/* The code, or 2 after a complaint if the judge's detectors failed. */
static int rescore_failures(const struct judge *judge, int code)
{
	const char *first;
	unsigned n = judge ? judge_failures(judge, &first) : 0;

	if (!n)
		return code;
	return cmd_fail("rescore", CULPRIT_EXIT_USAGE,
		"%s (%u verdicts failed; they count as abstentions)", first, n);
}

/* Measures the run in 'folder' again, from the traces of the run 'traces', and saves verdicts. */
static int remeasure(const char *folder, const char *traces, const json_t *detectors, size_t *cells,
	int *code, struct err *e)
{
	bool is_second = strcmp(folder, traces) != 0;
	struct judge *judge = NULL;
	struct store *s = NULL;
	int rc = store_open(folder, &s, e);

	if (!rc && !is_second)
		rc = remeasure_check(s, e);
	rc = rc ?: show_judge(s, detectors, &judge, e)
		?: remeasure_run(s, traces, is_second, judge, cells, e);
	if (!rc)
		*code = rescore_failures(judge, *code);
	judge_free(judge);
	store_close(s);
	return rc;
}

/* The run, and that of its second tracer. '*code' is 2 if a detector failed. */
static int remeasure_both(const char *run, const json_t *detectors, int *code, struct err *e)
{
	auto_free char *db = alloc_format("%s/run.db", run),
		       *second = alloc_format("%s/second", run),
		       *second_db = alloc_format("%s/run.db", second);
	size_t cells = 0;
	int lock = -1, rc = 0;

	/* A folder that is not a run, or a corpus, is refused without leaving a lock in it. */
	if (access(db, F_OK) == 0)
		rc = run_lock(run, &lock, e);
	rc = rc ?: remeasure(run, run, detectors, &cells, code, e);
	if (!rc && access(second_db, F_OK) == 0)
		rc = remeasure(second, run, detectors, &cells, code, e);
	if (lock >= 0)
		close(lock);
	if (!rc)
		cmd_fail("rescore", 0, "%zu cell%s measured again", cells, cells == 1 ? "" : "s");
	return rc;
}

static int rescore_run(const struct call *c)
{
	const struct options *o = c->options;
	json_auto_t *rows = NULL, *detectors = NULL;
	struct judge *judge = NULL;
	struct store *s = NULL;
	struct err e;
	int failed = 0, code = outcome_check("rescore", &o->outcome);

	if (code)
		return code;
	if ((o->save || o->remeasure) && c->n > 1)
		return cmd_fail("rescore", CULPRIT_EXIT_USAGE,
			"--%s is for one run: rescore each shard", o->save ? "save" : "remeasure");
	if (detectors_chosen("rescore", &o->detectors, &detectors))
		code = CULPRIT_EXIT_USAGE;
	else if ((o->remeasure && remeasure_both(c->args[0], detectors, &failed, &e)) ||
		shards_open("rescore", c->n, c->args, &s, &e) ||
		(!o->remeasure && rescore(s, detectors, o->save, &judge, &rows, &e)))
		code = cmd_error("rescore", &e, ERR_USAGE);
	else
		code = outcome_show("rescore", s, rows, &o->outcome, stdout);
	code = rescore_failures(judge, failed ? failed : code);
	judge_free(judge);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, offsetof(struct options, detectors), NULL, "",
		.group = detector_rows},
	{"save", 0, OPTION_FLAG, offsetof(struct options, save), NULL,
		"replace the run's verdicts and models by the new ones"},
	{"remeasure", 0, OPTION_FLAG, offsetof(struct options, remeasure), NULL,
		"first derive metrics and events from the traces of every confirmed cell again, as "
		"this version does it. Replaces the run's measurements and verdicts, and those of "
		"RUN/second: all or, if a trace is missing or damaged, none"},
	{"", 0, OPTION_GROUP, offsetof(struct options, outcome), NULL, "",
		.group = outcome_recorded_rows},
	{"", 0, OPTION_GROUP, offsetof(struct options, outcome), NULL, "", .group = outcome_rows},
	{0},
};

const struct command rescore_command = {.name = "rescore",
	.summary = "judge a run again, score it",
	.arguments = "RUN ...",
	.about = "Judges a recorded run, or a corpus, anew from its measurements, compares the "
		 "verdicts with what was injected, and prints the table. It needs no cluster and "
		 "no root, and leaves the run as it is without --save or --remeasure.\n\n"
		 "Several runs must be shards of one ('culprit run --shard'). They are scored as "
		 "one run; each is judged with its own training.\n\n"
		 "'culprit diagnose' shows single verdicts and their evidence instead. A detector "
		 "that is given with several sets of parameters is listed once for each.",
	.examples = "culprit rescore runs/NAME --detector ./mine.lua\n"
		    "culprit rescore --remeasure runs/NAME\n"
		    "culprit rescore corpora/ci --detector peer-robust --baseline baseline.json",
	.exits = "0 judged; " OUTCOME_EXITS
		 "2 usage or input error, or a detector that failed (its cells count as "
		 "abstentions); 3 the result cannot be printed, or the run cannot be written.",
	ARGUMENTS(1, SHARDS_MAX),
	OPTIONS(rows, struct options),
	.run = rescore_run};
