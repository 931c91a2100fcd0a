/* The command 'rescore': judges a recorded run again. */
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/cli/shards.h"

struct options {
	struct detector_options detectors;
	bool save;
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

static int rescore_run(const struct call *c)
{
	const struct options *o = c->options;
	json_auto_t *rows = NULL, *detectors = NULL;
	struct judge *judge = NULL;
	struct store *s = NULL;
	const char *first;
	unsigned failures;
	struct err e;
	int code = outcome_check("rescore", &o->outcome);

	if (code)
		return code;
	if (o->save && c->n > 1)
		return cmd_fail("rescore", CULPRIT_EXIT_USAGE,
			"--save is for one run: rescore and save each shard");
	if (detectors_chosen("rescore", &o->detectors, &detectors))
		code = CULPRIT_EXIT_USAGE;
	else if (shards_open("rescore", c->n, c->args, &s, &e) ||
		rescore(s, detectors, o->save, &judge, &rows, &e))
		code = cmd_error("rescore", &e, ERR_USAGE);
	else
		code = outcome_show("rescore", s, rows, &o->outcome, stdout);
	if (judge && (failures = judge_failures(judge, &first)))
		code = cmd_fail("rescore", CULPRIT_EXIT_USAGE,
			"%s (%u verdicts failed; they count as abstentions)", first, failures);
	judge_free(judge);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, offsetof(struct options, detectors), NULL, "",
		.group = detector_rows},
	{"save", 0, OPTION_FLAG, offsetof(struct options, save), NULL,
		"replace the run's verdicts and models by the new ones"},
	{"", 0, OPTION_GROUP, offsetof(struct options, outcome), NULL, "",
		.group = outcome_recorded_rows},
	{"", 0, OPTION_GROUP, offsetof(struct options, outcome), NULL, "", .group = outcome_rows},
	{0},
};

const struct command rescore_command = {.name = "rescore",
	.summary = "judge a recorded run anew and score it, without a cluster",
	.arguments = "RUN ...",
	.about = "Judges a recorded run, or a corpus, anew from its measurements, compares the "
		 "verdicts with what was injected, and prints the table. It needs no cluster and "
		 "no root, and leaves the run as it is unless --save is given.\n\n"
		 "Several runs must be shards of one ('culprit run --shard'). They are scored as "
		 "one run; each is judged with its own training.\n\n"
		 "'culprit diagnose' shows single verdicts and their evidence instead. A detector "
		 "that is given with several sets of parameters is listed once for each.",
	.examples = "culprit rescore runs/NAME --detector ./mine.lua\n"
		    "culprit rescore corpora/ci --detector peer-robust --baseline baseline.json",
	.exits = "0 judged; " OUTCOME_EXITS
		 "2 usage or input error, or a detector that failed (its cells count as "
		 "abstentions); 3 the result cannot be printed.",
	ARGUMENTS(1, SHARDS_MAX),
	OPTIONS(rows, struct options),
	.run = rescore_run};
