/*
 * A log that is being written. Its writer holds a lock on the file, which the kernel lets go when
 * the writer ends in whatever way. So a reader can tell a log that grows, which is complete up to
 * its last whole block, from one that is cut short.
 */
#ifndef CULPRIT_DIAG_RECORD_GROWING_H
#define CULPRIT_DIAG_RECORD_GROWING_H

#include <stdbool.h>

/* Takes the lock, for as long as 'fd', which is open for writing, is. Where the file system has no
 * locks, the log counts as cut short until its END is there. */
void log_hold(int fd);

/* Does a writer hold the file? Asked of another open file than the writer's. */
bool log_is_held(int fd);

/* So, of a path. */
bool log_is_growing(const char *path);

#endif
