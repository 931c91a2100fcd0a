/* Whole files and trees of files: read, write atomically, make, give away, remove. */
#ifndef CULPRIT_HARNESS_BASE_FILE_H
#define CULPRIT_HARNESS_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* "a folder", "a FIFO", "a socket", "a device", "a file" */
const char *file_kind(mode_t mode);

/* -EISDIR: 'path' is a folder; -EINVAL: a socket, or a FIFO, which might never be written to. 0 for
 * all else, also for what is not there, and for what a shell hands over (/dev/stdin, /dev/fd/63),
 * which has a writer. */
int file_check_readable(const char *path, struct err *e);

/* Opens a file that a user named for reading, without waiting, and refuses what
 * file_check_readable does. The descriptor, or a negative errno. 'what' stands before the path in
 * "cannot open the log 'PATH'": "the log ", or "". */
int file_open_readable(const char *path, const char *what, struct err *e);

/* Reads all of 'path' into '*data', NUL-terminated; the caller frees. '*size'
 * (may be NULL) is the length without the NUL. Works on /proc files. Opened
 * by file_open_readable. */
int file_read(const char *path, char **data, size_t *size, struct err *e);

/* Writes 'data' to a temporary file in the same folder, syncs it, and renames it over 'path', so
 * that a reader or a crash sees the old file or the new one whole. If 'path' is a link, its target
 * is replaced. Devices, FIFOs and what is below /proc (/dev/stdout) are written to as they are;
 * sockets, folders and FIFOs that nobody reads are refused. The error is ERR_HARNESS for a full or
 * broken disk, else ERR_USAGE: the path is wrong. */
int file_write_atomic(const char *path, mode_t mode, const void *data, size_t size, struct err *e);

/* Where 'path' leads, '*target', which the caller frees. '*fd' is -1 if a new file is to take that
 * name; a device, a FIFO or what is below /proc is opened for writing as it is. What
 * file_write_atomic refuses is refused with the same errors. */
int file_write_target(const char *path, char **target, int *fd, struct err *e);

/* "cannot write 'path': reason", with the class that file_write_atomic gives it; returns 'rc'. */
int file_write_error(const char *path, int rc, struct err *e);

/* A file of text that is written to 'f', kept in memory, and saved whole or not at all. */
struct file_text {
	FILE *f;
	char *text;
	size_t size;
};
int file_text_open(struct file_text *t, struct err *e);
/* Writes it by file_write_atomic, or to standard output if 'path' is "-", or not at all if
 * 'path' is NULL, and frees it. */
int file_text_save(struct file_text *t, const char *path, mode_t mode, struct err *e);

/* Under sudo (effective user 0, SUDO_UID and SUDO_GID set) and in a folder that belongs to that
 * user: gives 'path' and all folders and files below it that belong to root to that user. Links are
 * neither followed nor given, files with several names are left. Failures are not reported. */
void file_give_to_sudo_user(const char *path);

/* As mkdir -p; existing folders are left as they are. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* As rm -r, never crossing into another file system, never following links.
 * A path that does not exist is fine. */
int file_remove_tree(const char *path, struct err *e);

/* All of 'data' to 'fd', through short writes and EINTR. 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t size);

#endif
