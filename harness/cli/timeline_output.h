/* The files of 'culprit timeline'. */
#ifndef CULPRIT_HARNESS_CLI_TIMELINE_OUTPUT_H
#define CULPRIT_HARNESS_CLI_TIMELINE_OUTPUT_H

#include <stdbool.h>

#include "harness/web/timeline/timeline.h"

/* Paths; NULL: not that form; "-": standard output, of one at most. */
struct timeline_output {
	const char *page, *perfetto, *otlp;
};

bool timeline_is_stdout(const char *path);

/* Writes the forms and prints the paths, unless one is on standard output. */
int timeline_write(struct timeline *t, const struct timeline_output *o, struct err *e);

#endif
