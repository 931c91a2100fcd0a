#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/units.h"
#include "harness/cli/cmd.h"
#include "harness/cli/diagnose_csv.h"
#include "harness/cli/show.h"
#include "harness/cli/verdicts.h"
#include "harness/judging/judge.h"
#include "harness/judging/scoring.h"

struct options {
	const char *run;
	json_t *detectors;
	long cell;
	bool json, evidence, trust;
	struct csv_options csv;
};

static void usage(FILE *f)
{
	fputs("usage: culprit diagnose RUN [--cell N] [OPTION ...]\n"
	      "       culprit diagnose --csv FILE [--train FILE]... [--train-until TIME] [OPTION ...]\n\n"
	      "Says what detectors say of recorded measurements: of each cell of a run, by number, or of\n"
	      "anyone's time series. It is not told what was injected, and neither are you: 'culprit rescore'\n"
	      "scores. Nothing is changed; no cluster, no root.\n\n"
	      "  --cell N          only this cell of the run\n"
	      "  --detector NAME   built-in name, Lua file, or program; may stand several times;\n"
	      "                    NAME,KEY=VALUE,... sets parameters (default: the scenario's; of a CSV\n"
	      "                    file peer-robust, or with fault-free times peer-threshold)\n"
	      "  --evidence        what the verdicts rest on\n"
	      "  --trust           run programs also where they cannot be confined\n"
	      "  --json            everything, as JSON\n\n"
	      "  --csv FILE        columns time (seconds; or time_ms, time_us, time_ns), server, metric and\n"
	      "                    value, in any order, each series in the order of time; - is standard input\n"
	      "  --train FILE      fault-free times, in the same form; may stand several times\n"
	      "  --train-until T   what comes before T (in the file's own time, in seconds) is fault-free\n"
	      "  --window TIME     judge stretches of this length (default: all in one)\n"
	      "  --interval TIME   seconds for detectors are steps of this length (default: the median\n"
	      "                    between two values, but 1s at the least)\n\n"
	      "Exit codes: 0 judged, whoever is indicted; 2 usage, input, or a detector that failed.\n",
		f);
}

/* A time with its unit, above 0. */
static int parse_time(const char *option, const char *text, double *seconds)
{
	struct err e;

	if (!unit_parse(UNIT_SECONDS, text, seconds, &e) && *seconds > 0)
		return 0;
	cmd_fail("diagnose", 0, "%s takes a time above 0, like 10s, not '%s'", option, text);
	return -EINVAL;
}

static int parse_until(const char *text, struct csv_options *csv)
{
	char *end;

	csv->train_until_s = strtod(text, &end);
	csv->has_until = end != text && !*end;
	if (!csv->has_until)
		cmd_fail("diagnose", 0,
			"--train-until takes a number of seconds, as in the file, not '%s'", text);
	return csv->has_until ? 0 : -EINVAL;
}

static int parse(int argc, char **argv, struct options *o)
{
	enum { DETECTOR = 256, CELL, EVIDENCE, TRUST, JSON, CSV, TRAIN, UNTIL, WINDOW, INTERVAL };
	static const struct option longs[] = {{"detector", required_argument, NULL, DETECTOR},
		{"cell", required_argument, NULL, CELL}, {"evidence", no_argument, NULL, EVIDENCE},
		{"trust", no_argument, NULL, TRUST}, {"csv", required_argument, NULL, CSV},
		{"train", required_argument, NULL, TRAIN},
		{"train-until", required_argument, NULL, UNTIL},
		{"window", required_argument, NULL, WINDOW},
		{"interval", required_argument, NULL, INTERVAL}, {"json", no_argument, NULL, JSON},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (opt) {
		case DETECTOR:
			if (show_parse_detector("diagnose", optarg, o->detectors))
				return -EINVAL;
			break;
		case CELL:
			if (show_parse_whole("diagnose", "--cell", optarg, 1, 1000000, &o->cell))
				return -EINVAL;
			break;
		case EVIDENCE: o->evidence = true; break;
		case TRUST: o->trust = true; break;
		case JSON: o->json = true; break;
		case CSV: o->csv.csv = optarg; break;
		case TRAIN: o->csv.trains[o->csv.n_trains++] = optarg; break;
		case UNTIL:
			if (parse_until(optarg, &o->csv))
				return -EINVAL;
			break;
		case WINDOW:
			if (parse_time("--window", optarg, &o->csv.window_s))
				return -EINVAL;
			break;
		case INTERVAL:
			if (parse_time("--interval", optarg, &o->csv.step_s))
				return -EINVAL;
			break;
		case 'h': usage(stdout); return 1;
		default:
			fputs("culprit diagnose: 'culprit diagnose --help' lists the options\n",
				stderr);
			return -EINVAL;
		}
	}
	if (argc - optind != !o->csv.csv) {
		cmd_fail("diagnose", 0,
			o->csv.csv ? "a run, or --csv FILE, but not both"
				   : "which run? 'culprit diagnose runs/NAME', or --csv FILE");
		return -EINVAL;
	}
	if (!o->csv.csv &&
		(o->csv.n_trains || o->csv.has_until || o->csv.window_s > 0 || o->csv.step_s > 0)) {
		cmd_fail("diagnose", 0,
			"--train, --train-until, --window and --interval go with --csv");
		return -EINVAL;
	}
	o->run = argv[optind];
	return 0;
}

/* The null detectors are for tables; here they speak only when asked. */
static bool wanted(const struct options *o, const char *detector)
{
	json_t *choice;
	size_t i;

	if (!detector_is_null(detector))
		return true;
	json_array_foreach(o->detectors, i,
		choice) if (!strcmp(json_string_value(json_object_get(choice, "name")),
				    detector)) return true;
	return false;
}

/* rows of judge_all -> [{what: "cell 5", detector, verdict}] */
static json_t *by_cell(const struct options *o, const json_t *confirmed, const json_t *rows)
{
	json_t *list = json_array(), *cell, *row;
	char what[32];
	size_t i, k;

	json_array_foreach((json_t *)confirmed, i, cell)
	{
		json_int_t number = json_integer_value(json_object_get(cell, "cell"));

		if (json_integer_value(json_object_get(cell, "training")) ||
			(o->cell && o->cell != number))
			continue;
		snprintf(what, sizeof(what), "cell %lld", (long long)number);
		json_array_foreach(
			(json_t *)rows, k, row) if (json_equal(json_object_get(row, "attempt"),
							    json_object_get(cell, "attempt")) &&
			wanted(o, json_string_value(json_object_get(row, "detector"))))
			json_array_append_new(list,
				json_pack("{s:s, s:I, s:O, s:O}", "what", what, "cell", number,
					"detector", json_object_get(row, "detector"), "verdict",
					json_object_get(row, "verdict")));
	}
	return list;
}

/* The confirmed attempt of a scored cell; 0: there is none. */
static int64_t attempt_of(const json_t *confirmed, long number)
{
	json_t *cell;
	size_t i;

	json_array_foreach((json_t *)confirmed, i,
		cell) if (json_integer_value(json_object_get(cell, "cell")) == number &&
		!json_integer_value(json_object_get(cell,
			"training"))) return json_integer_value(json_object_get(cell, "attempt"));
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
		rc = store_confirmed(s, &confirmed, e);
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

/* Both kinds end so. */
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

int cmd_diagnose(int argc, char **argv)
{
	struct options o = {
		.detectors = json_array(), .csv.trains = calloc((size_t)argc, sizeof(char *))};
	struct judge *judge = NULL;
	json_t *verdicts = NULL;
	const char *first = NULL;
	unsigned failures = 0;
	struct err e;
	int rc = parse(argc, argv, &o), code;

	if (rc) {
		code = rc > 0 ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
		goto out;
	}
	detector_trust_programs(o.trust);
	o.csv.detectors = o.detectors;
	rc = o.csv.csv ? diagnose_csv(&o.csv, &verdicts, &failures, &e)
		       : diagnose_run(&o, &verdicts, &judge, &e);
	if (judge)
		failures = judge_failures(judge, &first);
	code = rc ? cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s", e.text)
		  : conclude(&o, verdicts, failures, first);
out:
	json_decref(verdicts);
	judge_free(judge);
	json_decref(o.detectors);
	free(o.csv.trains);
	return code;
}
