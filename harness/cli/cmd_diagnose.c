#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/diagnose_csv.h"
#include "harness/cli/groups.h"
#include "harness/cli/show.h"
#include "harness/cli/verdicts.h"
#include "harness/judging/judge.h"
#include "harness/judging/scoring.h"

struct options {
	const char *run;
	struct detector_options given;
	json_t *detectors;
	long cell;
	bool json, evidence;
	struct option_list trains;
	struct csv_options csv;
};

/* The null detectors serve the tables; here they are shown only if asked for. */
static bool wanted(const struct options *o, const char *detector)
{
	json_t *choice;
	size_t i;

	if (!detector_is_null(detector))
		return true;
	json_array_foreach(o->detectors, i, choice)
		if (!strcmp(jget_text(choice, "name"), detector))
			return true;
	return false;
}

/* Turns rows of judge_all into [{what: "cell 5", detector, verdict}]. */
static json_t *by_cell(const struct options *o, const json_t *confirmed, const json_t *rows)
{
	json_t *list = json_array(), *cell, *row;
	char what[32];
	size_t i, k;

	json_array_foreach((json_t *)confirmed, i, cell) {
		json_int_t number = jget_int(cell, "cell");

		if (jget_int(cell, "training") || (o->cell && o->cell != number))
			continue;
		snprintf(what, sizeof(what), "cell %lld", (long long)number);
		json_array_foreach((json_t *)rows, k, row) {
			if (jget_int(row, "attempt") == jget_int(cell, "attempt") &&
				wanted(o, jget_text(row, "detector")))
				json_array_append_new(list,
					json_pack("{s:s, s:I, s:O, s:O}", "what", what, "cell",
						number, "detector", jget(row, "detector"),
						"verdict", jget(row, "verdict")));
		}
	}
	return list;
}

/* The confirmed attempt of a scored cell, or 0. */
static int64_t attempt_of(const json_t *confirmed, long number)
{
	json_t *cell;
	size_t i;

	json_array_foreach((json_t *)confirmed, i, cell)
		if (jget_int(cell, "cell") == number && !jget_int(cell, "training"))
			return jget_int(cell, "attempt");
	return 0;
}

static int diagnose_run(
	const struct options *o, json_t **verdicts, struct judge **judge, struct err *e)
{
	json_t *rows = NULL, *confirmed = NULL;
	struct store *s = NULL;
	int64_t only = 0;
	int rc = store_open(o->run, &s, e);

	if (!rc)
		rc = show_judge(s, o->detectors, judge, e);
	if (!rc)
		rc = store_rows(s, ROWS_CONFIRMED, 0, &confirmed, e);
	if (!rc && o->cell && !(only = attempt_of(confirmed, o->cell)))
		rc = err_set(e, -EINVAL, "the run has no confirmed cell %ld to be judged", o->cell);
	if (!rc)
		rc = judge_all(*judge, only, &rows, e);
	if (!rc)
		*verdicts = by_cell(o, confirmed, rows);
	json_decref(confirmed);
	json_decref(rows);
	store_close(s);
	return rc;
}

/* Prints the verdicts of a run or of a file; returns the exit code. */
static int conclude(
	const struct options *o, const json_t *verdicts, unsigned failures, const char *first)
{
	if (verdicts_print(verdicts, o->json, o->evidence, stdout))
		return cmd_fail("diagnose", CULPRIT_EXIT_INVALID, "cannot print the verdicts");
	if (failures)
		return cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s%s%u verdict%s failed",
			first ? first : "", first ? "; " : "", failures, failures == 1 ? "" : "s");
	return CULPRIT_EXIT_OK;
}

/* Checks that it is one of the two forms; 0, or an exit code after a complaint. */
static int check_form(const struct options *o, int n)
{
	const struct csv_options *csv = &o->csv;

	if (n != !csv->csv)
		return cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s",
			csv->csv ? "give a run or --csv FILE, not both"
				 : "which run? 'culprit diagnose runs/NAME', or --csv FILE");
	if (!csv->csv && (csv->n_trains || csv->has_until || csv->window_s > 0 || csv->step_s > 0))
		return cmd_fail("diagnose", CULPRIT_EXIT_USAGE,
			"--train, --train-until, --window and --interval need --csv");
	return 0;
}

static int run(const struct call *c)
{
	struct options *o = c->options;
	struct judge *judge = NULL;
	json_t *verdicts = NULL;
	const char *first = NULL;
	unsigned failures = 0;
	struct err e;
	int rc, code;

	o->run = c->args[0];
	o->csv.trains = o->trains.v;
	o->csv.n_trains = o->trains.n;
	code = check_form(o, c->n);
	if (code || detectors_chosen("diagnose", &o->given, &o->detectors)) {
		json_decref(o->detectors);
		return CULPRIT_EXIT_USAGE;
	}
	o->csv.detectors = o->detectors;
	rc = o->csv.csv ? diagnose_csv(&o->csv, &verdicts, &failures, &e)
			: diagnose_run(o, &verdicts, &judge, &e);
	if (judge)
		failures = judge_failures(judge, &first);
	code = rc ? cmd_error("diagnose", &e, ERR_USAGE) : conclude(o, verdicts, failures, first);
	json_decref(verdicts);
	judge_free(judge);
	json_decref(o->detectors);
	return code;
}

static int set_until(void *field, const char *text, struct err *e)
{
	struct csv_options *csv = field;
	char *end;

	csv->train_until_s = strtod(text, &end);
	csv->has_until = end != text && !*end;
	return csv->has_until
		? 0
		: err_set(e, -EINVAL, "takes a number of seconds, as in the file, not '%s'", text);
}

#define AT(field) offsetof(struct options, field)
#define TIME .min = 1e-9, .unit = UNIT_SECONDS
static const struct option_row rows[] = {
	{"cell", 0, OPTION_WHOLE, AT(cell), "N", "only this cell of the run", 1, 1e6},
	{"", 0, OPTION_GROUP, AT(given), NULL, "", .group = detector_rows},
	{"evidence", 0, OPTION_FLAG, AT(evidence), NULL, "with the evidence for each verdict"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print everything as JSON"},
	{"csv", 0, OPTION_TEXT, AT(csv.csv), "FILE",
		"judge this file: columns time (seconds; or time_ms, time_us, time_ns), server, "
		"metric and value in any order, each series in order of time; - is standard input"},
	{"train", 0, OPTION_LIST, AT(trains), "FILE",
		"fault-free measurements in the same form; may be repeated"},
	{"train-until", 0, OPTION_CALL, AT(csv), "T",
		"what comes before T (the file's own time, in seconds) is fault-free",
		.set = set_until},
	{"window", 0, OPTION_QUANTITY, AT(csv.window_s), "TIME",
		"judge the file in windows of this length (default: as one)", TIME},
	{"interval", 0, OPTION_QUANTITY, AT(csv.step_s), "TIME",
		"a detector's second is this long (default: the median distance of two values, at "
		"least 1s)",
		TIME},
	{0},
};

const struct command diagnose_command = {.name = "diagnose",
	.summary = "print detectors' verdicts on a run, or on your own time series",
	.arguments = "RUN\n--csv FILE",
	.about =
		"Prints the verdicts of detectors on recorded measurements: on each cell of a "
		"run, or on time series from elsewhere.\n\n"
		"What was injected is neither told to the detectors nor printed; 'culprit "
		"rescore' scores. Nothing is changed; it needs no cluster and no root. For a CSV "
		"file the default detector is peer-robust, or peer-threshold if there is training.",
	.examples = "culprit diagnose runs/NAME --cell 5 --evidence\n"
		    "culprit diagnose --csv disks.csv --window 10min\n"
		    "culprit diagnose --csv today.csv --train yesterday.csv",
	.exits = "0 judged, whoever is indicted; 2 usage or input error, or a detector that "
		 "failed; 3 the verdicts cannot be printed.",
	ARGUMENTS(0, 1),
	OPTIONS(rows, struct options),
	.run = run};
