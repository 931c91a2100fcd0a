/*
 * The readonly primitive: one file system of a server refuses writes, as after a disk error.
 *
 * ext4, where the kernel has trigger_fs_error (4.19) : the error is reported to the file system,
 * which aborts its journal and goes read-only at once, whoever has files open for writing. To undo
 * that the server is stopped, the file system unmounted, checked (e2fsck -fy) and mounted as it
 * was, and the server started. What was being written at that moment is lost, as it would be with a
 * real error; the file system is synced just before, so that no more is. Anything else is remounted
 * read-only, which the kernel refuses (-EBUSY) while files are open for writing.
 */
#ifndef CULPRIT_FAULTS_READONLY_H
#define CULPRIT_FAULTS_READONLY_H

#include "faults/primitives/primitive.h"

/* 'pid' of the server that lives on it, or 0: then nothing may hold the mount when it is undone.
 * -EPERM: the mount is the root, or holds the session's own folder 'dir'. */
int readonly_prepare(const char *path, pid_t pid, const char *dir, json_t **inverse, struct err *e);

int readonly_act(const json_t *inverse, struct err *e);

extern const struct primitive readonly_primitive;

#endif
