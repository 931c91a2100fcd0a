/* culprit timeline --live: the last cell that ended, in a browser, while the run goes on. */
#ifndef CULPRIT_HARNESS_CLI_TIMELINE_LIVE_H
#define CULPRIT_HARNESS_CLI_TIMELINE_LIVE_H

#include "harness/timeline/cell.h"

/* Prints the address, serves until a signal or the run's end, and returns an exit code. */
int timeline_live_run(const char *folder, const struct cell_options *what, unsigned short port);

#endif
