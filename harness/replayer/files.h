/*
 * The dummy files of a replay: what the captured application found, by names and sizes, below a
 * folder of the replay's own. They hold made-up bytes, written (not sparse), so that storage has
 * something to read.
 */
#ifndef CULPRIT_HARNESS_REPLAYER_FILES_H
#define CULPRIT_HARNESS_REPLAYER_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag/app/app.h"
#include "harness/replayer/peers.h"

struct files {
	const struct app_trace *trace;
	const char *root; /* absolute: all is below it */
	int root_fd;
	uint32_t *by_path; /* files in the order of their paths */
	unsigned char *bytes;
};

/* -EINVAL: a path leaves the root. */
int files_init(struct files *f, const struct app_trace *t, const char *root, struct err *e);
void files_clear(struct files *f);

/* Bytes and files that are still to be made, and what the target has: -ENOSPC with the sizes where
 * that is not enough. Nothing is written. */
int files_fit(const struct files *f, struct err *e);

/* As the application found it: removes what was not there, makes folders. One node does it. */
int files_folders(struct files *f, struct err *e);

/* Makes this node's share of the files at their sizes: every n-th, from 'me'. */
int files_make(struct files *f, unsigned me, unsigned n, struct peers *alive, struct err *e);

/* As openat, never out of the root: a descriptor, or -1 with errno. */
int files_open(const struct files *f, const char *path, int flags, mode_t mode);

#endif
