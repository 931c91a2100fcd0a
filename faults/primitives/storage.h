/*
 * Small storage: an ext4 of a chosen size in a file, mounted over a server's storage folder.
 *
 * At first it has the folder's own tree of directories and symbolic links (owner, mode, extended
 * attributes) and none of its files: a server that keeps its bookkeeping in folders finds them, and
 * the rest of space and inodes is free.
 */
#ifndef CULPRIT_FAULTS_STORAGE_H
#define CULPRIT_FAULTS_STORAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

/* The JSON that the others need; 'name' must be unique on the machine. inodes 0: mkfs decides.
 * spare > 0: instead, enough for that many to be free at first. 'prune' (may be NULL): folders
 * whose path below 'path' matches it (fnmatch; a star does not match a slash) are copied only if a
 * link lies in them. */
json_t *storage_describe(const char *path, const char *prune, const char *dir, const char *name,
	json_int_t size_bytes, json_int_t inodes, json_int_t spare);

/* 0, or why it cannot be done here: -ENOENT no mkfs.ext4, -EINVAL no folder, ... */
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
