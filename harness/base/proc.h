/*
 * Processes: run a program and collect its output, distinguish a process from a later one with
 * the same pid, find its descendants, find or kill all processes that carry a tag in their
 * environment.
 *
 * A tag is an environment variable that is set before exec and inherited by every descendant,
 * including those that leave their process group or session. The lab and the agent use tags to
 * find their own processes and no others.
 */
#ifndef CULPRIT_HARNESS_BASE_PROC_H
#define CULPRIT_HARNESS_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Runs argv[0] (looked up in PATH) with standard input from /dev/null and waits for it to end.
 * '*output' (may be NULL) receives stdout and stderr together, at most 1 MiB, NUL-terminated; the
 * caller frees it, even on error. Returns the exit code (0..255), 128+signal, or -errno: -ENOENT
 * if the program does not exist, -ETIMEDOUT if it was killed after 'timeout_s' (0 = no limit). */
int proc_run(const char *const argv[], double timeout_s, char **output, struct err *e);

/* Like proc_run, but every result other than 0 is an error (-EIO) whose sentence contains the
 * command and its last line of output. */
int proc_run_ok(const char *const argv[], double timeout_s, char **output, struct err *e);

/* Start time in clock ticks since boot (/proc/PID/stat field 22). Pid and start time together
 * identify a process until reboot. Returns -ESRCH if the process does not exist or is a zombie;
 * another -errno if the time cannot be read. */
int proc_start_time(pid_t pid, uint64_t *ticks);

/* Identifies a process even if its pid is reused. */
struct proc_id {
	pid_t pid;
	uint64_t start_ticks; /* as proc_start_time */
};

/* The live descendants of the 'n' processes 'of', each once; for a single process, parents
 * precede their children. A member of 'of' is included if it is a descendant of another. Excluded
 * are the calling process, its ancestors below 'of', and everything these started: an agent
 * reached through an SSH server is a descendant of that server. A process whose parent has ended
 * is not found.
 *
 * This is one scan of /proc and can miss processes that are forked during the scan. Repeat the
 * scan until it finds nothing new. '*out' is allocated. Returns the count or -errno. */
int proc_descendants(const pid_t *of, size_t n, struct proc_id **out);

/* Pids of all live processes whose environment contains NAME=VALUE ('prefix': any value that
 * begins with 'value'). '*pids' is allocated. Returns the count or -errno. A process in the
 * middle of exec shows no environment; such processes are waited for, at most 2 s in total. */
int proc_find_tagged(const char *name, const char *value, bool prefix, pid_t **pids);

/* Sends SIGKILL to these processes until they are gone, but never to the calling process.
 * -ETIMEDOUT names a survivor after 'timeout_s'. */
int proc_kill_tagged(
	const char *name, const char *value, bool prefix, double timeout_s, struct err *e);

#endif
