/* The command 'table': prints a run's scores. */
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/cli/shards.h"

int table_judge_corpus(struct store *s, struct judge **judge, json_t **rows, struct err *e)
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

static int show_words(struct store *s, const json_t *rows, const struct outcome_options *o)
{
	struct scoring *c = NULL;
	struct err e;
	int rc = scoring_new(s, rows, o->cells, &c, &e) ?: table_words(s, c, stdout, &e);

	scoring_free(c);
	return rc ? cmd_error("table", &e, ERR_USAGE) : CULPRIT_EXIT_OK;
}

/* 'one': a run, or shards that make one. */
static int refuse_words(const struct table_options *o, bool one)
{
	const struct outcome_options *out = &o->outcome;

	if (!o->words ||
		(one && !out->tap && !out->junit && !out->against && !out->by_strength &&
			!out->baseline && !out->write_baseline && !out->details &&
			out->format == TABLE_TEXT))
		return 0;
	return cmd_fail("table", CULPRIT_EXIT_USAGE,
		"--words prints sentences in place of the table: only one run and --cells go "
		"with it");
}

static int table_run(const struct call *c)
{
	const struct table_options *o = c->options;
	struct judge *judge = NULL;
	json_t *rows = NULL;
	struct store *s = NULL;
	bool shards = false, one;
	struct err e;
	int code = outcome_check("table", &o->outcome);

	if (code)
		return code;
	if (o->merge && shards_any(c->n, c->args, &shards, &e))
		return cmd_error("table", &e, ERR_USAGE);
	one = c->n == 1 ? !o->merge : shards;
	code = refuse_words(o, one);
	if (code)
		return code;
	if (!one)
		return table_runs(c->n, c->args, o);
	if (shards_open("table", c->n, c->args, &s, &e) || table_judge_corpus(s, &judge, &rows, &e))
		code = cmd_error("table", &e, ERR_USAGE);
	else
		code = o->words ? show_words(s, rows, &o->outcome)
				: outcome_show("table", s, rows, &o->outcome, stdout);
	json_decref(rows);
	judge_free(judge);
	store_close(s);
	return code;
}

#define AT(field) offsetof(struct table_options, field)
static const struct option_row rows[] = {
	{"merge", 0, OPTION_FLAG, AT(merge), NULL,
		"add up the cells of several runs of one scenario, as if they were one run's; of "
		"shards (culprit run --shard) it makes the run that they are parts of"},
	{"words", 0, OPTION_FLAG, AT(words), NULL,
		"instead of the table: what happened in each cell, how much it slowed the "
		"application, and what was said of it"},
	{"", 0, OPTION_GROUP, AT(outcome), NULL, "", .group = outcome_recorded_rows},
	{"", 0, OPTION_GROUP, AT(outcome), NULL, "", .group = outcome_rows},
	{0},
};

const struct command table_command = {.name = "table",
	.summary = "print scores, compare runs",
	.arguments = "RUN ...",
	.about = "Prints the scores of a run: the share of faulty cells in which the victim was "
		 "indicted (TP), and the share of cells in which a healthy server was (FP), each "
		 "with n and an exact 95 % interval. Rows and columns have the scenario's order. "
		 "Detectors are compared cell by cell, by exact McNemar tests.\n\n"
		 "Several runs: each detector's scores in every run, and whether they differ from "
		 "those of the first run by Fisher's exact test. --merge adds runs of one scenario "
		 "up instead.\n\n"
		 "The verdicts are those in the run. A corpus has none: there the detectors of its "
		 "scenario judge anew. 'culprit rescore' judges a run anew; 'culprit diagnose' "
		 "shows single verdicts.",
	.examples = "culprit table runs/NAME\n"
		    "culprit table runs/NAME --words\n"
		    "culprit table runs/NAME --by strength\n"
		    "culprit table runs/NAME --format csv\n"
		    "culprit table runs/NAME --against hotdep09-table1\n"
		    "culprit table runs/BEFORE runs/AFTER\n"
		    "culprit table --merge runs/MONDAY runs/TUESDAY\n"
		    "culprit table --merge runs/night-1 runs/night-2 runs/night-3",
	.exits = "0 printed; " OUTCOME_EXITS
		 "2 usage or input error; 3 the result cannot be printed.",
	ARGUMENTS(1, TABLE_RUNS_MAX),
	OPTIONS(rows, struct table_options),
	.run = table_run};
