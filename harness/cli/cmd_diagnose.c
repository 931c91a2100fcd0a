#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "diag/detectors/detector.h"
#include "harness/cli/cmd.h"
#include "harness/cli/show.h"
#include "harness/cli/verdicts.h"
#include "harness/run/judge.h"
#include "harness/run/scoring.h"

struct options {
	const char *run;
	json_t *detectors;
	long cell;
	bool json, evidence, trust;
};

static void usage(FILE *f)
{
	fputs("usage: culprit diagnose RUN [--cell N] [--detector NAME|FILE]... [--evidence] [--json]\n\n"
	      "Says what detectors say of recorded measurements: of each cell of a run, by number. It is\n"
	      "not told what was injected, and neither are you: 'culprit rescore' scores. Nothing is\n"
	      "changed; no cluster, no root.\n\n"
	      "  --cell N          only this cell\n"
	      "  --detector NAME   built-in name, Lua file, or program; may stand several times;\n"
	      "                    NAME,KEY=VALUE,... sets parameters (default: the scenario's)\n"
	      "  --evidence        what the verdicts rest on\n"
	      "  --trust           run programs also where they cannot be confined\n"
	      "  --json            everything, as JSON\n\n"
	      "Exit codes: 0 judged, whoever is indicted; 2 usage, input, or a detector that failed.\n",
	      f);
}

static int parse(int argc, char **argv, struct options *o)
{
	enum { DETECTOR = 256, CELL, EVIDENCE, TRUST, JSON };
	static const struct option longs[] = {{"detector", required_argument, NULL, DETECTOR},
					      {"cell", required_argument, NULL, CELL},
					      {"evidence", no_argument, NULL, EVIDENCE},
					      {"trust", no_argument, NULL, TRUST},
					      {"json", no_argument, NULL, JSON},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
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
		case EVIDENCE:
			o->evidence = true;
			break;
		case TRUST:
			o->trust = true;
			break;
		case JSON:
			o->json = true;
			break;
		case 'h':
			usage(stdout);
			return 1;
		default:
			fputs("culprit diagnose: 'culprit diagnose --help' lists the options\n", stderr);
			return -EINVAL;
		}
	}
	if (argc - optind != 1) {
		cmd_fail("diagnose", 0, "which run? 'culprit diagnose runs/NAME'");
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
	json_array_foreach(o->detectors, i, choice)
		if (!strcmp(json_string_value(json_object_get(choice, "name")), detector))
			return true;
	return false;
}

/* rows of judge_all -> [{what: "cell 5", detector, verdict}] */
static json_t *by_cell(const struct options *o, const json_t *confirmed, const json_t *rows)
{
	json_t *list = json_array(), *cell, *row;
	char what[32];
	size_t i, k;

	json_array_foreach((json_t *)confirmed, i, cell) {
		json_int_t number = json_integer_value(json_object_get(cell, "cell"));

		if (json_integer_value(json_object_get(cell, "training")) || (o->cell && o->cell != number))
			continue;
		snprintf(what, sizeof(what), "cell %lld", (long long)number);
		json_array_foreach((json_t *)rows, k, row)
			if (json_equal(json_object_get(row, "attempt"), json_object_get(cell, "attempt")) &&
			    wanted(o, json_string_value(json_object_get(row, "detector"))))
				json_array_append_new(list, json_pack("{s:s, s:I, s:O, s:O}", "what", what, "cell", number,
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

	json_array_foreach((json_t *)confirmed, i, cell)
		if (json_integer_value(json_object_get(cell, "cell")) == number &&
		    !json_integer_value(json_object_get(cell, "training")))
			return json_integer_value(json_object_get(cell, "attempt"));
	return 0;
}

static int diagnose_run(const struct options *o, json_t **verdicts, struct judge **judge, struct err *e)
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

int cmd_diagnose(int argc, char **argv)
{
	struct options o = {.detectors = json_array()};
	struct judge *judge = NULL;
	json_t *verdicts = NULL;
	const char *first;
	struct err e;
	int rc = parse(argc, argv, &o), code = CULPRIT_EXIT_OK;
	unsigned failures;

	if (rc) {
		json_decref(o.detectors);
		return rc > 0 ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
	}
	detector_trust_programs(o.trust);
	if (diagnose_run(&o, &verdicts, &judge, &e))
		code = cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s", e.text);
	else if (verdicts_print(verdicts, o.json, o.evidence, stdout))
		code = cmd_fail("diagnose", CULPRIT_EXIT_INVALID, "cannot print the verdicts");
	else if ((failures = judge_failures(judge, &first)))
		code = cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s (%u verdicts failed)", first, failures);
	json_decref(verdicts);
	judge_free(judge);
	json_decref(o.detectors);
	return code;
}
