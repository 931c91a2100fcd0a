/* Small tools of the primitives and the agent: reading /proc, waiting, descriptors. */
#ifndef CULPRIT_FAULTS_PRIMITIVES_PROCFS_H
#define CULPRIT_FAULTS_PRIMITIVES_PROCFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/err.h"

/* /proc/PID/NAME, as file_read. 'size' may be NULL. */
int procfs_read(pid_t pid, const char *name, char **text, size_t *size);

/* Where the link /proc/PID/NAME points; "" and -errno if it cannot be read. */
int procfs_link(pid_t pid, const char *name, char out[PATH_MAX]);

/* /proc/PID/stat, or of the thread 'tid' unless that is 0. Times are in clock ticks; those of
 * children are of children that were waited for. */
struct procfs_stat {
	char comm[32];
	char state; /* 'Z': a zombie */
	pid_t parent;
	unsigned flags;
	uint64_t user, system, child_user, child_system, start, rss_pages;
};

/* False if it is gone. */
bool procfs_stat(pid_t pid, pid_t tid, struct procfs_stat *out);

/* Seconds of processor time of the process, all its threads, those that have ended, and children
 * that it has waited for. Exact but for the children's, which are in clock ticks. False if it is
 * gone. */
bool procfs_cpu(pid_t pid, double *seconds);

/* The next number in an open /proc or /proc/PID/task; 0 at the end, or if 'dir' is NULL. */
pid_t procfs_next(DIR *dir);

/* True if the error means that the process has ended or belongs to another user. */
bool procfs_is_gone(int rc);

/* What follows the first 'label' in 'text'; NULL: it is not there. */
const char *procfs_after(const char *text, const char *label);
/* The number there; 0: it is not there. */
uint64_t procfs_number(const char *text, const char *label);

/* Its first line, without the newline, of a small file at 'path'. On failure "" and -errno. */
int procfs_line(const char *path, char *buf, size_t size, struct err *e);

/* The words, each ended by a NUL, of /proc/PID/NAME, made by 'make': a new list. */
int procfs_words(
	pid_t pid, const char *name, json_t *(*make)(const char *text, size_t size), json_t **out);

/* "VALUE" of NAME=VALUE in the text of an environment; NULL: it is not there. */
const char *procfs_variable(const char *env, size_t size, const char *name);

/* A loop over the lines of 'text', which it cuts up. */
#define PROCFS_EACH_LINE(line, text)                                                               \
	for (char *save_ = NULL, *line = strtok_r(text, "\n", &save_); line;                       \
		line = strtok_r(NULL, "\n", &save_))

/* For loops that wait: sleeps 5 ms. False once 'deadline' (clock_mono_s) has passed. */
bool procfs_nap(double deadline);

static inline void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

#endif
