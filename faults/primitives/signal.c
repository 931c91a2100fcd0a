#include "faults/primitives/signal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"
#include "harness/base/clock.h"

#define STOP_TIMEOUT_S 5
#define GO_TIMEOUT_S 5

/* How many threads there are, and how many of them have one of the states in 'states'. A thread
 * that has ended does not count. */
static int count_threads(pid_t pid, const char *states, int *found)
{
	auto_dir DIR *dir = NULL;
	struct procfs_stat st;
	char path[64];
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	*found = 0;
	for (pid_t tid; (tid = procfs_next(dir));) {
		if (!procfs_stat(pid, tid, &st) || strchr("ZX", st.state))
			continue;
		n++;
		*found += strchr(states, st.state) != NULL;
	}
	return n;
}

/* 't' is a stop under a tracer. */
bool signal_is_stopped(pid_t pid)
{
	int found, n = count_threads(pid, "Tt", &found);

	return n > 0 && found == n;
}

int signal_inverse(pid_t pid, json_t **inverse, struct err *e)
{
	struct procfs_stat st;
	struct target t;
	int rc = target_open(pid, &t, e);

	if (rc)
		return rc;
	if (procfs_stat(pid, 0, &st) && st.state == 'T')
		return err_set(e, -EALREADY, "process %d is stopped already", (int)pid);
	*inverse = json_pack("{s:i, s:I}", "pid", (int)pid, "start_ticks", (json_int_t)t.ticks);
	return *inverse ? 0 : err_errno(e, -ENOMEM, "cannot stop process %d", (int)pid);
}

/* Until two looks in a row find all threads stopped: a traced one is in 't' for a moment with every
 * system call. */
static int wait_stopped(const struct target *t, struct err *e)
{
	double deadline = clock_mono_s() + STOP_TIMEOUT_S;
	int right = 0;

	for (;;) {
		int found, n = count_threads(t->pid, "TtD", &found), rc = target_require(t, e);

		if (rc)
			return rc;
		if (n < 0)
			return err_errno(e, n, "cannot look at process %d", (int)t->pid);
		right = n > 0 && found == n ? right + 1 : 0;
		if (right == 2)
			return 0;
		if (!procfs_nap(deadline))
			return err_set(e, -ETIMEDOUT, "process %d does not stop", (int)t->pid);
	}
}

int signal_stop(const json_t *inverse, struct err *e)
{
	struct target t;
	int rc = target_read(inverse, &t, e) ?: target_require(&t, e);

	if (rc)
		return rc;
	if (kill(t.pid, SIGSTOP) < 0)
		return err_errno(e, -errno, "cannot stop process %d", (int)t.pid);
	return wait_stopped(&t, e);
}

static int signal_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct target t;
	int rc = target_read(inverse, &t, e) ?: target_alive(&t, e);

	if (rc <= 0)
		return rc;
	*was_there = signal_is_stopped(t.pid);
	/* Even if it does not look stopped: the SIGSTOP may not have arrived yet. */
	if (kill(t.pid, SIGCONT) < 0 && errno != ESRCH)
		return err_errno(e, -errno, "cannot let process %d go on", (int)t.pid);
	return 0;
}

/* A stop holds all threads; a tracer's stops do not hold all of them at once. */
static int signal_verify(const json_t *inverse, struct err *e)
{
	double deadline = clock_mono_s() + GO_TIMEOUT_S;
	struct target t;
	int rc = target_read(inverse, &t, e);

	if (rc)
		return rc;
	while ((rc = target_alive(&t, e)) > 0) {
		int stopped, n = count_threads(t.pid, "Tt", &stopped);

		if (n < 0 && n != -ENOENT)
			return err_errno(e, n, "cannot look at process %d", (int)t.pid);
		if (n > stopped)
			return 0;
		if (!procfs_nap(deadline))
			return err_set(e, -EBUSY, "process %d is still stopped", (int)t.pid);
	}
	return rc;
}

const struct primitive signal_primitive = {
	.name = "signal",
	.ends_with_boot = true,
	.undo = signal_undo,
	.verify_undone = signal_verify,
};
