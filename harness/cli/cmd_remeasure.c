#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/judge/detector.h"
#include "harness/cli/cmd.h"
#include "harness/cli/show.h"
#include "harness/store/lock.h"
#include "harness/judging/remeasure.h"

static void usage(FILE *f)
{
	fputs("usage: culprit remeasure RUN [--detector NAME|FILE]... [--trust]\n\n"
	      "Reduces the kept traces of every confirmed cell again, as this program does it, and puts the\n"
	      "new metrics, events and verdicts in place of the run's: all of them or, where a trace is\n"
	      "missing or damaged, none. What was measured, when and where stays as it was recorded. No\n"
	      "cluster, no root. RUN/beside, if there is one, goes along.\n\n"
	      "  --detector NAME   judge with these instead of those of the run's scenario; as in rescore\n"
	      "  --trust           run programs also where they cannot be confined\n\n"
	      "Exit codes: 0 done; 2 usage, input, or a detector that failed (its cells are abstentions).\n",
		f);
}

/* The store in 'folder' with the traces of the run 'traces'. */
static int remeasure(const char *folder, const char *traces, const json_t *detectors, size_t *cells,
	unsigned *failures, struct err *e)
{
	bool beside = strcmp(folder, traces) != 0;
	struct judge *judge = NULL;
	struct store *s = NULL;
	const char *first;
	int rc = store_open(folder, &s, e);

	if (!rc && !beside)
		rc = remeasure_check(s, e);
	if (!rc)
		rc = show_judge(s, detectors, &judge, e);
	if (!rc)
		rc = remeasure_run(s, traces, beside, judge, cells, e);
	if (judge && !rc) {
		unsigned n = judge_failures(judge, &first);

		if (n)
			cmd_fail("remeasure", 0,
				"%s (%u verdicts failed; they count as abstentions)", first, n);
		*failures += n;
	}
	judge_free(judge);
	store_close(s);
	return rc;
}

static int remeasure_both(
	const char *run, const json_t *detectors, size_t *cells, unsigned *failures, struct err *e)
{
	char *beside = NULL, *db = NULL, *db_beside = NULL;
	int lock = -1, rc = 0;

	if (asprintf(&db, "%s/run.db", run) < 0 || asprintf(&beside, "%s/beside", run) < 0 ||
		asprintf(&db_beside, "%s/beside/run.db", run) < 0)
		rc = err_errno(e, -ENOMEM, "cannot measure again");
	/* What is no run, or a corpus, is refused without leaving a lock in it. */
	else if (access(db, F_OK) == 0)
		rc = run_lock(run, &lock, e);
	if (!rc)
		rc = remeasure(run, run, detectors, cells, failures, e);
	if (!rc && access(db_beside, F_OK) == 0)
		rc = remeasure(beside, run, detectors, cells, failures, e);
	if (lock >= 0)
		close(lock);
	free(beside);
	free(db_beside);
	free(db);
	return rc;
}

int cmd_remeasure(int argc, char **argv)
{
	static const struct option longs[] = {{"detector", required_argument, NULL, 'd'},
		{"trust", no_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	json_t *detectors = json_array();
	unsigned failures = 0;
	size_t cells = 0;
	struct err e;
	int opt, code = CULPRIT_EXIT_OK;
	bool bad = false, help = false;

	while (!bad && (opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == 'd')
			bad = show_parse_detector("remeasure", optarg, detectors);
		else if (opt == 't')
			detector_trust_programs(true);
		else if (opt == 'h')
			help = true;
		else
			bad = true;
	}
	if (help)
		usage(stdout);
	else if (bad)
		code = cmd_fail("remeasure", CULPRIT_EXIT_USAGE,
			"'culprit remeasure --help' lists the options");
	else if (argc - optind != 1)
		code = cmd_fail("remeasure", CULPRIT_EXIT_USAGE,
			"which run? 'culprit remeasure runs/NAME'");
	else if (remeasure_both(argv[optind], detectors, &cells, &failures, &e))
		code = cmd_fail("remeasure", CULPRIT_EXIT_USAGE, "%s", e.text);
	else
		printf("%s: %zu cell%s measured again\n", argv[optind], cells,
			cells == 1 ? "" : "s");
	json_decref(detectors);
	return code == CULPRIT_EXIT_OK && failures ? CULPRIT_EXIT_USAGE : code;
}
