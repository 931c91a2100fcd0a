/* The sizes of all files below a folder, at one moment. */
#ifndef CULPRIT_HARNESS_CLI_CAPTURE_FILES_H
#define CULPRIT_HARNESS_CLI_CAPTURE_FILES_H

#include <stdint.h>

#include "harness/base/err.h"

struct capture_files;

/* Looks at 'root' on this machine. Errors as app_walk. */
int capture_files_new(const char *root, struct capture_files **out, struct err *e);
/* Reads a list that 'culprit-agent files' wrote. -EBADMSG: it is none, or cut short. */
int capture_files_read(const char *list, struct capture_files **out, struct err *e);
void capture_files_free(struct capture_files *f); /* NULL is fine */

/* Bytes; 0 of what is no regular file; -1: it was not there. 'path' is relative to the root. */
int64_t capture_files_size(const struct capture_files *f, const char *path);

#endif
