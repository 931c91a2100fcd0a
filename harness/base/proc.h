/*
 * Processes: run a program and collect its output, tell a process from a later one with the same
 * number, find its descendants, find or kill all processes that carry a tag in their environment.
 *
 * A tag is an environment variable that is set before exec and inherited by every descendant, also
 * by those that leave their process group or session. It is how the lab and the agent find their
 * own processes, and only these.
 */
#ifndef CULPRIT_HARNESS_BASE_PROC_H
#define CULPRIT_HARNESS_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Runs argv[0] (looked up in PATH) with standard input from /dev/null and waits for it. '*output'
 * (may be NULL) gets stdout and stderr together, at most 1 MiB, NUL-terminated; the caller frees,
 * also when the result is not 0. Returns the exit code (0..255), 128+signal, or -errno: -ENOENT
 * when there is no such program, -ETIMEDOUT after 'timeout_s' (it is then killed; 0 = no limit). */
int proc_run(const char *const argv[], double timeout_s, char **output, struct err *e);

/* As proc_run, but every result other than 0 is an error (-EIO) whose sentence holds the command
 * and the last line that it printed. */
int proc_run_ok(const char *const argv[], double timeout_s, char **output, struct err *e);

/* Start time in clock ticks since boot (/proc/PID/stat field 22); with the pid it identifies a
 * process for as long as the machine is up. -ESRCH when there is none, or a zombie; another -errno
 * when it cannot be read. */
int proc_start_time(pid_t pid, uint64_t *ticks);

/* A process and no later one with its number. */
struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* as proc_start_time */
};

/* The live descendants of the 'n' processes 'of', each once; of one process, parents before their
 * children. One of 'of' is among them if it is a descendant of another. Not the calling process and
 * its ancestors below 'of', with all that these have started: an agent that was reached through a
 * server of SSH is a descendant of that server. A process whose parent has ended is nobody's
 * descendant.
 *
 * One look at /proc: what is forked during the look may be missing. Look again until nothing is
 * new. '*out' is allocated. Returns the count or -errno. */
int proc_descendants(const pid_t *of, size_t n, struct proc_id **out);

/* Pids of all live processes whose environment holds NAME=VALUE ('prefix': any value that begins
 * with 'value'). '*pids' is allocated. Returns the count or -errno. A process in the middle of its
 * exec shows no environment; it is waited for, at most 2 s in all. */
int proc_find_tagged(const char *name, const char *value, bool prefix, pid_t **pids);

/* Kills them with SIGKILL until none is left, but never the calling process. -ETIMEDOUT names a
 * survivor after 'timeout_s'. */
int proc_kill_tagged(
	const char *name, const char *value, bool prefix, double timeout_s, struct err *e);

#endif
