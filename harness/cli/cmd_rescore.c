#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/cli/cmd.h"
#include "harness/cli/outcome.h"
#include "harness/cli/show.h"
#include "harness/judging/judge.h"
#include "harness/judging/scoring.h"

struct options {
	const char *run;
	json_t *detectors;
	bool save, trust;
	struct outcome_options outcome;
};

static void usage(FILE *f)
{
	fputs("usage: culprit rescore RUN [--detector NAME|FILE]... [--save] [OPTION ...]\n\n"
	      "Judges a recorded run, or a corpus, anew from its kept measurements alone (no cluster, no\n"
	      "root), holds the verdicts against what was injected, and prints the table. The run is left as\n"
	      "it is. 'culprit diagnose' shows the single verdicts and their evidence instead.\n\n"
	      "  --detector NAME   built-in name, Lua file, or program (diag/detectors/README.md has its\n"
	      "                    protocol); may stand several times (default: those of the run's\n"
	      "                    scenario). NAME,KEY=VALUE,... sets parameters;\n"
	      "                    one in several settings is told by them\n"
	      "  --save            put the new verdicts and models in place of the run's\n"
	      "  --trust           run programs also where they cannot be confined\n" OUTCOME_RECORDED_USAGE
			OUTCOME_USAGE
	      "\nExit codes: 0 judged; 1 a regression, or without --baseline a wrong verdict under --tap or\n"
	      "--junit; 2 usage, input, or a detector that failed (its cells are abstentions).\n",
		f);
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"detector", required_argument, NULL, 'd'},
		{"save", no_argument, NULL, 's'}, {"trust", no_argument, NULL, 't'}, OUTCOME_LONGS,
		OUTCOME_RECORDED_LONGS, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			if (show_parse_detector("rescore", optarg, o->detectors))
				return -EINVAL;
			break;
		case 's': o->save = true; break;
		case 't': o->trust = true; break;
		case 'h': usage(stdout); return 1;
		default:
			if (opt >= OUTCOME_TAP &&
				!outcome_option("rescore", opt, optarg, &o->outcome))
				break;
			fputs("culprit rescore: 'culprit rescore --help' lists the options\n",
				stderr);
			return -EINVAL;
		}
	}
	if (argc - optind != 1) {
		cmd_fail("rescore", 0, "which run? 'culprit rescore runs/NAME'");
		return -EINVAL;
	}
	o->run = argv[optind];
	return 0;
}

static int rescore(struct store *s, const struct options *o, struct judge **judge, json_t **rows,
	struct err *e)
{
	int rc = show_judge(s, o->detectors, judge, e);

	if (!rc)
		rc = judge_all(*judge, 0, rows, e);
	if (!rc && o->save)
		rc = judge_save(*judge, *rows, e);
	return rc;
}

int cmd_rescore(int argc, char **argv)
{
	struct options o = {.detectors = json_array()};
	struct judge *judge = NULL;
	struct store *s = NULL;
	json_t *rows = NULL;
	const char *first;
	struct err e;
	unsigned failures;
	int rc = parse(argc, argv, &o), code = CULPRIT_EXIT_OK;

	if (rc) {
		json_decref(o.detectors);
		return rc > 0 ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
	}
	detector_trust_programs(o.trust);
	if (store_open(o.run, &s, &e) || rescore(s, &o, &judge, &rows, &e))
		code = cmd_fail("rescore", CULPRIT_EXIT_USAGE, "%s", e.text);
	else
		code = outcome_show("rescore", s, rows, &o.outcome, stdout);
	if (judge && (failures = judge_failures(judge, &first)))
		code = cmd_fail("rescore", CULPRIT_EXIT_USAGE,
			"%s (%u verdicts failed; they count as abstentions)", first, failures);
	json_decref(rows);
	judge_free(judge);
	store_close(s);
	json_decref(o.detectors);
	return code;
}
