/*
 * A log that is being written. Its writer holds a lock on the file, which the kernel releases
 * however the writer ends. So a reader can distinguish a growing log, which is complete up to its
 * last whole block, from one that is cut short.
 */
#ifndef CULPRIT_DIAG_RECORD_GROWING_H
#define CULPRIT_DIAG_RECORD_GROWING_H

#include <stdbool.h>

/* Takes the lock for as long as 'fd', open for writing, stays open. On a file system without locks
 * the log counts as cut short until it has its END record. */
void log_hold(int fd);

/* Does a writer hold the file? 'fd' must be another open file than the writer's. */
bool log_is_held(int fd);

/* Likewise for a path. */
bool log_is_growing(const char *path);

#endif
