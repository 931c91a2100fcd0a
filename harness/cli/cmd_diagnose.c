/* The command 'diagnose': names who is slow in a run or a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/diagnose.h"
#include "harness/cli/tables.h"
#include "harness/judging/judge.h"
#include "harness/judging/scoring.h"

#define complain(...) cmd_fail("diagnose", CULPRIT_EXIT_USAGE, __VA_ARGS__)

struct options {
	const char *run;
	struct detector_options given;
	json_t *detectors;
	long cell;
	bool json, evidence;
	struct option_list trains;
	struct csv_options csv;
	struct fleet_request fleet;
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
static int diagnose_conclude(
	const struct options *o, const json_t *verdicts, unsigned failures, const char *first)
{
	struct err e;

	if (verdicts_print(verdicts, o->json, o->evidence, stdout, &e))
		return cmd_error("diagnose", &e, ERR_HARNESS);
	if (failures)
		return cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s%s%u verdict%s failed",
			first ? first : "", first ? "; " : "", failures, failures == 1 ? "" : "s");
	return CULPRIT_EXIT_OK;
}

/* The first option that was given and that only series have, or NULL. */
static const char *series_given(const struct options *o)
{
	const char *name = fleet_request_given(&o->fleet);

	return o->trains.n            ? "train"
		: o->csv.has_until    ? "train-until"
		: o->csv.window_s > 0 ? "window"
		: o->csv.step_s > 0   ? "interval"
				      : name;
}

static bool fleet_named(const struct options *o)
{
	json_t *choice;
	size_t i;

	json_array_foreach(o->detectors, i, choice)
		if (!strcmp(jget_text(choice, "name"), "fleet"))
			return true;
	return false;
}

/* Is 'fleet' to judge? It does unless other detectors are named, or training is given. */
static bool fleet_chosen(const struct options *o)
{
	return json_array_size(o->detectors) ? fleet_named(o) : !o->trains.n && !o->csv.has_until;
}

/* Checks that options go together; 0, or an exit code after a complaint. */
static int diagnose_check(const struct options *o, int n)
{
	bool series = o->csv.csv || o->fleet.prometheus.url;
	const char *name = series_given(o);

	if (n && series)
		return complain("give a run, --csv FILE or --prometheus URL, not two of them");
	if (!n && !series && o->fleet.prometheus.queries.n)
		return complain("--query needs --prometheus URL");
	if (!n && !series)
		return complain("which run? 'culprit diagnose runs/NAME', or --csv FILE");
	if (!series && fleet_named(o))
		return complain("the detector 'fleet' judges series, not runs; give it those of a "
				"cell: 'culprit query --samples RUN --cell N --metric NAME | "
				"culprit diagnose --csv - --time second --value-column sum'");
	if (!series)
		return name ? complain("--%s needs --csv or --prometheus", name) : 0;
	if (o->cell)
		return complain("--cell needs a run");
	if (!fleet_chosen(o) && o->csv.files.n > 1)
		return complain(
			"several --csv need the detector 'fleet'; join the files for another");
	if (!fleet_chosen(o)) {
		name = fleet_request_given(&o->fleet);
		return name ? complain("--%s is an option of the detector 'fleet'; give neither "
				       "--detector nor --train with it",
				      name)
			    : 0;
	}
	if (json_array_size(o->detectors) > 1 ||
		json_object_size(jget(json_array_get(o->detectors, 0), "params")))
		return complain("the detector 'fleet' is given alone; its parameters are options "
				"such as --least");
	if (o->trains.n || o->csv.has_until || o->evidence)
		return complain("the detector 'fleet' has no --%s; name another --detector",
			o->evidence ? "evidence" : name);
	return 0;
}

static int run_fleet(struct options *o)
{
	o->fleet.files = o->csv.files;
	o->fleet.window_s = o->csv.window_s;
	o->fleet.step_s = o->csv.step_s;
	o->fleet.json = o->json;
	return diagnose_fleet(&o->fleet);
}

static int diagnose_command_run(const struct call *c)
{
	struct options *o = c->options;
	struct judge *judge = NULL;
	json_t *verdicts = NULL;
	const char *first = NULL;
	unsigned failures = 0;
	struct err e;
	int rc, code;

	o->run = c->args[0];
	o->csv.csv = o->csv.files.n ? o->csv.files.v[0] : NULL;
	o->csv.trains = o->trains.v;
	o->csv.n_trains = o->trains.n;
	code = detectors_chosen("diagnose", &o->given, &o->detectors) ? CULPRIT_EXIT_USAGE
								      : diagnose_check(o, c->n);
	if (code || (!c->n && fleet_chosen(o))) {
		if (!code)
			code = run_fleet(o);
		json_decref(o->detectors);
		return code;
	}
	o->csv.detectors = o->detectors;
	rc = o->csv.csv ? diagnose_csv(&o->csv, &verdicts, &failures, &e)
			: diagnose_run(o, &verdicts, &judge, &e);
	if (judge)
		failures = judge_failures(judge, &first);
	code = rc ? cmd_error("diagnose", &e, ERR_USAGE)
		  : diagnose_conclude(o, verdicts, failures, first);
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
static const struct option_row series_common_rows[] = {
	{"csv", 0, OPTION_LIST, offsetof(struct csv_options, files), "FILE",
		"judge this file, CSV or another --format, also gzip or zstd; - is standard "
		"input. May be repeated: files of one fleet, of several days or members"},
	{"window", 0, OPTION_QUANTITY, offsetof(struct csv_options, window_s), "TIME",
		"judge each hour (1h), day (1d, from midnight UTC), week (1w, from Monday) ... by "
		"itself (default: all as one)",
		TIME},
	{"interval", 0, OPTION_QUANTITY, offsetof(struct csv_options, step_s), "TIME",
		"join samples into steps of this length (default: their median distance)", TIME},
	{0},
};

static const struct option_row run_rows[] = {
	{"cell", 0, OPTION_WHOLE, AT(cell), "N", "only this cell of the run", 1, 1e6},
	{"evidence", 0, OPTION_FLAG, AT(evidence), NULL, "print the evidence for each verdict"},
	{"train", 0, OPTION_LIST, AT(trains), "FILE",
		"with --csv: learn from this fault-free file of the same form; may be repeated. "
		"Without --detector, peer-threshold judges"},
	{"train-until", 0, OPTION_CALL, AT(csv), "T",
		"with --csv: learn from what comes before T (seconds, as in the file)",
		.set = set_until},
	{0},
};

#define GROUP(field, heading, rows)                                                                \
	{                                                                                          \
		"", 0, OPTION_GROUP, AT(field), NULL, heading, .group = rows                       \
	}
static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print everything as JSON"},
	GROUP(csv, "series: what is judged", series_common_rows),
	GROUP(fleet.range, "", fleet_range_rows),
	GROUP(fleet.fleet, "series: the detector 'fleet'", fleet_rows),
	GROUP(fleet.output, "series: what 'fleet' prints and writes", fleet_output_rows),
	GROUP(fleet.series, "series: columns of a file, labels of Prometheus", series_rows),
	GROUP(fleet.prometheus, "series: from a Prometheus server", prometheus_rows),
	{"", 0, OPTION_GROUP, 0, NULL, "runs, and other detectors", .group = run_rows},
	GROUP(given, "", detector_rows),
	{0},
};

const struct command diagnose_command = {.name = "diagnose",
	.summary = "judge a run or your series",
	.arguments = "RUN\n--csv FILE\n--prometheus URL --query PROMQL",
	.about = "Names who is slow: in each cell of a run, or in series from elsewhere.\n\n"
		 "RUN: prints the detectors' verdicts. They are not told what was injected, and it "
		 "is not printed; 'culprit rescore' scores. It needs no cluster and no root, and "
		 "changes nothing.\n\n"
		 "--csv, --prometheus: series from your own monitoring of disks, servers or OSDs. "
		 "The detector 'fleet' compares each member with the peers of its group, over "
		 "seconds and over weeks. It prints who differs, in which metric, by how much, "
		 "since when and for what share of the time. It needs no training. "
		 "diag/detectors/README.md explains input and output, diag/detectors/HOW.md the "
		 "method.",
	.examples = "culprit diagnose runs/NAME --cell 5 --evidence\n"
		    "culprit diagnose --csv disks.csv --report disks.html --rank\n"
		    "culprit diagnose --csv disks.csv.gz --group rack --group host --window 1d\n"
		    "culprit diagnose --csv new.csv --train old.csv --detector "
		    "peer-threshold",
	.exits = "0 judged, whoever is indicted; 1 with --fail: there is a finding; 2 usage or "
		 "input error, a detector that failed, or nobody could be judged; 3 the results "
		 "cannot be written, or a server not be reached.",
	ARGUMENTS(0, 1),
	OPTIONS(rows, struct options),
	.run = diagnose_command_run};
