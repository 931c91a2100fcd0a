#include "harness/cli/cmd.h"
#include "harness/cli/groups.h"
#include "harness/cli/outcome.h"
#include "harness/cli/show.h"

/* A corpus holds no verdicts: the detectors of its scenario judge it. '*rows' stays NULL if the
 * store has verdicts. */
static int judge_corpus(struct store *s, struct judge **judge, json_t **rows, struct err *e)
{
	json_t *recorded = NULL;
	int rc = store_is_corpus(s) ? store_rows(s, ROWS_VERDICTS, 0, &recorded, e) : 0;

	if (!rc && recorded && !json_array_size(recorded))
		rc = show_judge(s, NULL, judge, e);
	if (!rc && *judge)
		rc = judge_all(*judge, 0, rows, e);
	json_decref(recorded);
	return rc;
}

static int run(const struct call *c)
{
	struct judge *judge = NULL;
	json_t *rows = NULL;
	struct store *s = NULL;
	struct err e;
	int code;

	if (store_open(c->args[0], &s, &e) || judge_corpus(s, &judge, &rows, &e))
		code = cmd_error("table", &e, ERR_USAGE);
	else
		code = outcome_show("table", s, rows, c->options, stdout);
	json_decref(rows);
	judge_free(judge);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, 0, NULL, "", .group = outcome_recorded_rows},
	{"", 0, OPTION_GROUP, 0, NULL, "", .group = outcome_rows},
	{0},
};

const struct command table_command = {.name = "table",
	.summary = "print the scores of a run",
	.arguments = "RUN",
	.about = "Prints the scores of a run: the share of faulty cells in which the victim was "
		 "indicted (TP), and the share of cells in which a healthy server was (FP), each "
		 "with n and an exact 95 % interval.\n\n"
		 "The verdicts are those in the run. A corpus has none: there the detectors of its "
		 "scenario judge anew. 'culprit rescore' judges a run anew; 'culprit diagnose' "
		 "shows single verdicts.",
	.examples = "culprit table runs/NAME\n"
		    "culprit table runs/NAME --format csv\n"
		    "culprit table runs/NAME --against hotdep09-table1",
	.exits = "0 printed; " OUTCOME_EXITS
		 "2 usage or input error; 3 the result cannot be printed.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct outcome_options),
	.run = run};
