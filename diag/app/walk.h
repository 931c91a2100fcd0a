/* Lists the files below a folder, before and after an application runs. */
#ifndef CULPRIT_DIAG_APP_WALK_H
#define CULPRIT_DIAG_APP_WALK_H

#include <stdint.h>

#include "harness/base/err.h"

/* Calls 'fn' for the folder itself (path "") and everything below it on its file system, with the
 * relative path and the size (0 if not a file). Asks the file system for each size instead of using
 * this machine's cache, because other nodes also write. -E2BIG: more than a million files;
 * -ETIMEDOUT: more than a minute; -ENOTDIR. */
int app_walk(const char *root, void (*fn)(void *ctx, const char *path, int64_t size), void *ctx,
	struct err *e);

#endif
