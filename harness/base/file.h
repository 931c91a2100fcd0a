/* Reads, writes (atomically), makes, gives away and removes whole files and trees. */
#ifndef CULPRIT_HARNESS_BASE_FILE_H
#define CULPRIT_HARNESS_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* "a folder", "a FIFO", "a socket", "a device", "a file" */
const char *file_kind(mode_t mode);

/* Returns -EISDIR for a folder, and -EINVAL for a socket or for a FIFO, which may never get a
 * writer. Returns 0 otherwise, also if 'path' does not exist, and for what the shell passes
 * (/dev/stdin, /dev/fd/63), which has a writer. */
int file_check_readable(const char *path, struct err *e);

/* Opens a file that the user named for reading, without blocking; refuses what
 * file_check_readable refuses. Returns the descriptor or a negative errno. 'what' precedes the
 * path in the error, as in "cannot open the log 'PATH'": "the log " or "". */
int file_open_readable(const char *path, const char *what, struct err *e);

/* Reads all of 'path' into '*data', NUL-terminated; the caller frees. '*size'
 * (may be NULL) is the length without the NUL. Works on /proc files. Opened
 * by file_open_readable. */
int file_read(const char *path, char **data, size_t *size, struct err *e);

/* Writes 'data' to a temporary file in the same folder, syncs it, and renames it to 'path', so
 * that a reader or a crash sees either the old file or the complete new one. If 'path' is a link,
 * its target is replaced. Devices, FIFOs and paths below /proc (/dev/stdout) are written to
 * directly; sockets, folders and FIFOs without a reader are refused. The error class is
 * ERR_HARNESS for a full or broken disk, otherwise ERR_USAGE because the path is wrong. */
int file_write_atomic(const char *path, mode_t mode, const void *data, size_t size, struct err *e);

/* Resolves 'path' to '*target', which the caller frees. '*fd' is -1 if a new file will take that
 * name; devices, FIFOs and paths below /proc are opened for writing directly. Refuses what
 * file_write_atomic refuses, with the same errors. */
int file_write_target(const char *path, char **target, int *fd, struct err *e);

/* Sets "cannot write 'path': reason" with the class that file_write_atomic uses; returns 'rc'. */
int file_write_error(const char *path, int rc, struct err *e);

/* A text file that is written to 'f', kept in memory, and saved complete or not at all. */
struct file_text {
	FILE *f;
	char *text;
	size_t size;
};
int file_text_open(struct file_text *t, struct err *e);
/* Saves the text with file_write_atomic, to standard output if 'path' is "-", or nowhere if
 * 'path' is NULL; then frees it. */
int file_text_save(struct file_text *t, const char *path, mode_t mode, struct err *e);

/* Under sudo (effective user 0, SUDO_UID and SUDO_GID set) and in a folder that belongs to the
 * SUDO_UID user: gives 'path' and every root-owned file and folder below it to that user. Links
 * are neither followed nor changed; files with several hard links are skipped. Failures are not
 * reported. */
void file_give_to_sudo_user(const char *path);

/* Makes the folders above 'path' that are missing, and gives them to the user who called sudo. */
int file_mkdirs_above(const char *path, struct err *e);
/* Like mkdir -p; existing folders are left unchanged. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Like rm -r, but never crosses into another file system and never follows links. A path that
 * does not exist is fine. */
int file_remove_tree(const char *path, struct err *e);

/* Writes all of 'data' to 'fd', through short writes and EINTR. Returns 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t size);

#endif
