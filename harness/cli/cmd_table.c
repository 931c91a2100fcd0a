#include <getopt.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/outcome.h"
#include "harness/cli/show.h"

static void usage(FILE *f)
{
	fputs("usage: culprit table RUN [OPTION ...]\n\n"
	      "Prints the scores of a run, of the verdicts that are in it (a corpus has none: of what the\n"
	      "detectors of its scenario say of it): share of faulty cells in which the\n"
	      "victim was named (TP), share of cells in which a healthy server was (FP), both with n and exact\n"
	      "95 % intervals. 'culprit rescore' judges anew; 'culprit diagnose' shows single verdicts.\n\n" OUTCOME_RECORDED_USAGE
			OUTCOME_USAGE
	      "\nExit codes: 0 printed; 1 a regression, or without --baseline a wrong verdict under --tap or\n"
	      "--junit; 2 usage or input.\n",
		f);
}

/* A corpus holds no verdicts: its scenario's detectors are asked. NULL: the store has what is to be
 * shown. */
static int judge_corpus(struct store *s, struct judge **judge, json_t **rows, struct err *e)
{
	json_t *there = NULL;
	int rc = store_is_corpus(s) ? store_verdicts(s, &there, e) : 0;

	if (!rc && there && !json_array_size(there))
		rc = show_judge(s, NULL, judge, e);
	if (!rc && *judge)
		rc = judge_all(*judge, 0, rows, e);
	json_decref(there);
	return rc;
}

int cmd_table(int argc, char **argv)
{
	static const struct option longs[] = {OUTCOME_LONGS, OUTCOME_RECORDED_LONGS,
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct outcome_options o = {.format = TABLE_TEXT};
	struct judge *judge = NULL;
	json_t *rows = NULL;
	struct store *s;
	struct err e;
	int opt, code;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt >= OUTCOME_TAP) {
			if (outcome_option("table", opt, optarg, &o))
				return CULPRIT_EXIT_USAGE;
		} else {
			usage(opt == 'h' ? stdout : stderr);
			return opt == 'h' ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
		}
	}
	if (argc - optind != 1)
		return cmd_fail(
			"table", CULPRIT_EXIT_USAGE, "which run? 'culprit table runs/NAME'");
	if (store_open(argv[optind], &s, &e))
		return cmd_fail("table", CULPRIT_EXIT_USAGE, "%s", e.text);
	if (judge_corpus(s, &judge, &rows, &e))
		code = cmd_fail("table", CULPRIT_EXIT_USAGE, "%s", e.text);
	else
		code = outcome_show("table", s, rows, &o, stdout);
	json_decref(rows);
	judge_free(judge);
	store_close(s);
	return code;
}
