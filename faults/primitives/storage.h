/*
 * Small storage: an ext4 of a chosen size in a file, mounted over a server's storage folder.
 *
 * At first it has the folder's own tree of directories and symbolic links, and of its files only
 * those that the server needs to start (tree.h): a server that keeps its bookkeeping there finds
 * it, and the rest of space and inodes is free.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_STORAGE_H
#define CULPRIT_FAULTS_PRIMITIVES_STORAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct storage_spec {
	const char *path;      /* the server's storage folder */
	json_int_t size_bytes; /* of the file system, besides the files that are kept */
	json_int_t inodes;     /* 0: mkfs decides */
	json_int_t spare;      /* above 0: in place of 'inodes', so many are free at first */
	const char *prune;     /* as in tree.h; or NULL */
	const json_t *keep;    /* the same */
};

/* The JSON that the others need; 'name' must be unique on the machine, 'dir' holds the file. */
json_t *storage_describe(const struct storage_spec *spec, const char *dir, const char *name);

/* 0, or why it cannot be done here: -ENOENT no mkfs.ext4, -EINVAL no folder, -EFBIG the kept files
 * are too large to be copied while the server is down, -ENOSPC there is no room for them in 'dir'.
 */
int storage_check(const json_t *storage, struct err *e);

/* The server must be stopped. 'lock' is inherited by mkfs. */
int storage_make(const json_t *storage, int lock, struct err *e);

/* 1, 0, or -errno if that cannot be found out. */
int storage_is_mounted(const json_t *storage, struct err *e);

/* Unmounts it, waits until the loop device is free, removes the file. Nothing there is fine.
 * -EBUSY: in use. */
int storage_remove(const json_t *storage, bool *was_there, struct err *e);

/* -EBUSY and what is left. */
int storage_verify_gone(const json_t *storage, struct err *e);

/* Runs argv, and leaves 'lock' with it until it has ended, whatever becomes of us. */
int storage_run(const char *const *argv, int lock, double timeout_s, int ok_mask, struct err *e);

#endif
