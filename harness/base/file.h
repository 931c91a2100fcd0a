/*
 * Whole files: read, write atomically, hash, make and remove folders.
 */
#ifndef CULPRIT_BASE_FILE_H
#define CULPRIT_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Reads all of 'path' into '*data', NUL-terminated; the caller frees. '*size'
 * (may be NULL) is the length without the NUL. Works on /proc files. */
int file_read(const char *path, char **data, size_t *size, struct err *e);

/* Writes 'data' to a temporary file beside 'path', syncs it, and renames it over
 * 'path', so that a reader or a crash sees the old file or the new one whole. */
int file_write_atomic(const char *path, mode_t mode, const void *data, size_t size, struct err *e);

/* As mkdir -p; existing folders are left as they are. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* As rm -r, never crossing into another file system, never following links.
 * A path that does not exist is fine. */
int file_remove_tree(const char *path, struct err *e);

/* All of 'data' to 'fd', through short writes and EINTR. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t size);

#endif
