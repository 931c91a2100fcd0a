/* What is below a folder, before and after an application runs. */
#ifndef CULPRIT_DIAG_APP_WALK_H
#define CULPRIT_DIAG_APP_WALK_H

#include <stdint.h>

#include "harness/base/err.h"

/* Calls 'fn' for the folder itself (path "") and all that is below it on its file system: the path
 * relative to it, and the size; 0 of what is no file. Sizes are asked of the file system, not of
 * what this machine remembers of it: other nodes write, too. -E2BIG: there are more than a million;
 * -ETIMEDOUT: it takes more than a minute; -ENOTDIR. */
int app_walk(const char *root, void (*fn)(void *ctx, const char *path, int64_t size), void *ctx,
	struct err *e);

#endif
