/*
 * The readonly primitive: one file system of a server refuses writes, as after a disk error.
 *
 * With ext4 and trigger_fs_error (Linux 4.19) an error is reported to the file system, which aborts
 * its journal and turns read-only at once, even while files are open for writing. Undo stops the
 * server, unmounts, checks (e2fsck -fy) and mounts the file system, and starts the server. Data
 * that was being written at that moment is lost, as with a real error; a sync just before keeps
 * that to a minimum. Other file systems are remounted read-only, which the kernel refuses (-EBUSY)
 * while files are open for writing.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_READONLY_H
#define CULPRIT_FAULTS_PRIMITIVES_READONLY_H

#include "faults/primitives/primitive.h"

/* 'pid' is the server whose files are on it, or 0: then nothing may use the mount during undo.
 * -EPERM: the mount is the root, or holds the session's own folder 'dir'. */
int readonly_prepare(const char *path, pid_t pid, const char *dir, json_t **inverse, struct err *e);

int readonly_act(const json_t *inverse, struct err *e);

extern const struct primitive readonly_primitive;

#endif
