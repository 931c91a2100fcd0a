/* What the files of 'culprit timeline' share. */
#ifndef CULPRIT_HARNESS_CLI_TIMELINE_H
#define CULPRIT_HARNESS_CLI_TIMELINE_H

#include <stdbool.h>

#include "harness/cli/options.h"
#include "harness/timeline/capture.h"
#include "harness/timeline/cell.h"
#include "harness/web/timeline/timeline.h"

/* ---- timeline_output.c ---- */

/* The files of 'culprit timeline'. */

/* Paths; NULL: not that form; "-": standard output, of one at most. */
struct timeline_output {
	const char *page, *perfetto, *otlp;
};

bool timeline_is_stdout(const char *path);

/* Writes the forms and prints the paths, unless one is on standard output. */
int timeline_write(struct timeline *t, const struct timeline_output *o, struct err *e);

/* ---- timeline_capture.c ---- */

/* 'culprit timeline' of a trace of 'culprit capture'. */

/* 'replays': files of 'culprit replay --output'. Returns the exit code. */
int timeline_capture_run(const char *path, const struct option_list *replays,
	const struct capture_options *what, const struct timeline_output *files);

/* ---- timeline_live.c ---- */

/* culprit timeline --live: the last cell that ended, in a browser, while the run continues. */

/* Prints the address, serves until a signal or the run's end, and returns an exit code. */
int timeline_live_run(const char *folder, const struct cell_options *what, unsigned short port);

#endif
