/* Small tools of the primitives and the agent: reading /proc, waiting, descriptors. */
#ifndef CULPRIT_FAULTS_PROCFS_H
#define CULPRIT_FAULTS_PROCFS_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

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

/* The next number in an open /proc or /proc/PID/task; 0 at the end, or if 'dir' is NULL. */
pid_t procfs_next(DIR *dir);

/* True if the error means that the process has ended or belongs to another user. */
bool procfs_is_gone(int rc);

/* "VALUE" of NAME=VALUE in the text of an environment; NULL: it is not there. */
const char *procfs_variable(const char *env, size_t size, const char *name);

/* For loops that wait: sleeps 5 ms. False once 'deadline' (clock_mono_s) has passed. */
bool procfs_nap(double deadline);

static inline void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

#endif
