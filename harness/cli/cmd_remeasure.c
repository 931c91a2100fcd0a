/* The command 'remeasure': reduces a run's traces again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/store/lock.h"
#include "harness/judging/remeasure.h"

/* Measures the run in 'folder' again, from the traces of the run 'traces'. */
static int remeasure(const char *folder, const char *traces, const json_t *detectors, size_t *cells,
	unsigned *failures, struct err *e)
{
	bool is_second = strcmp(folder, traces) != 0;
	struct judge *judge = NULL;
	struct store *s = NULL;
	const char *first;
	int rc = store_open(folder, &s, e);

	if (!rc && !is_second)
		rc = remeasure_check(s, e);
	rc = rc ?: show_judge(s, detectors, &judge, e)
		?: remeasure_run(s, traces, is_second, judge, cells, e);
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
	char *db = alloc_format("%s/run.db", run), *second = alloc_format("%s/second", run),
	     *second_db = alloc_format("%s/run.db", second);
	int lock = -1, rc = 0;

	/* A folder that is not a run, or a corpus, is refused without leaving a lock in it. */
	if (access(db, F_OK) == 0)
		rc = run_lock(run, &lock, e);
	rc = rc ?: remeasure(run, run, detectors, cells, failures, e);
	if (!rc && access(second_db, F_OK) == 0)
		rc = remeasure(second, run, detectors, cells, failures, e);
	if (lock >= 0)
		close(lock);
	free(second);
	free(second_db);
	free(db);
	return rc;
}

static int remeasure_command_run(const struct call *c)
{
	json_auto_t *detectors = NULL;
	unsigned failures = 0;
	size_t cells = 0;
	struct err e;
	int code;

	if (detectors_chosen("remeasure", c->options, &detectors)) {
		code = CULPRIT_EXIT_USAGE;
	} else if (remeasure_both(c->args[0], detectors, &cells, &failures, &e)) {
		code = cmd_error("remeasure", &e, ERR_USAGE);
	} else {
		printf("%s: %zu cell%s measured again\n", c->args[0], cells, cells == 1 ? "" : "s");
		code = failures ? CULPRIT_EXIT_USAGE : CULPRIT_EXIT_OK;
	}
	return code;
}

const struct command remeasure_command = {.name = "remeasure",
	.summary = "derive a recorded run's metrics from its traces again",
	.arguments = "RUN",
	.about = "Derives metrics and events from the traces of every confirmed cell again, as "
		 "this version of culprit does it, judges them, and replaces the run's: all of "
		 "them or, if a trace is missing or damaged, none. It needs no cluster and no "
		 "root. The run of a second tracer, RUN/second, is measured again, too.",
	.examples = "culprit remeasure runs/NAME",
	.exits = "0 done; 2 usage or input error, or a detector that failed (its cells count as "
		 "abstentions); 3 the run cannot be written.",
	ARGUMENTS(1, 1),
	OPTIONS(detector_rows, struct detector_options),
	.run = remeasure_command_run};
