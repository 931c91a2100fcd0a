/* 'culprit timeline' of a trace of 'culprit capture'. */
#ifndef CULPRIT_HARNESS_CLI_TIMELINE_CAPTURE_H
#define CULPRIT_HARNESS_CLI_TIMELINE_CAPTURE_H

#include "harness/cli/options.h"
#include "harness/cli/timeline_output.h"
#include "harness/timeline/capture.h"

/* 'replays': files of 'culprit replay --output'. Returns the exit code. */
int timeline_capture_run(const char *path, const struct option_list *replays,
	const struct capture_options *what, const struct timeline_output *files);

#endif
