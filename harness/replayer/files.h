/*
 * The dummy files of a replay: the files that the captured application found, by name and size,
 * below the replay's folder. They contain written data (not sparse), so that storage has
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
	const char *root; /* absolute; all files are below it */
	int root_fd;
	uint32_t *by_path; /* files in the order of their paths */
	unsigned char *bytes;
};

/* -EINVAL: a path leaves the root. */
int files_init(struct files *f, const struct app_trace *t, const char *root, struct err *e);
void files_clear(struct files *f);

/* Bytes and files still to be made, and the free space: -ENOSPC with the sizes if it does not
 * suffice. Writes nothing. */
int files_fit(const struct files *f, struct err *e);

/* Restores the state that the application found: removes other files, makes folders. One node
 * does this. */
int files_folders(struct files *f, struct err *e);

/* Makes this node's share of the files with their sizes: every n-th, from 'me'. */
int files_make(struct files *f, unsigned me, unsigned n, struct peers *alive, struct err *e);

/* Like openat, but never outside the root: a descriptor, or -1 with errno. */
int files_open(const struct files *f, const char *path, int flags, mode_t mode);

#endif
