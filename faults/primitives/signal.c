#include "faults/primitives/signal.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faults/primitives/target.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define STOP_TIMEOUT_S 5
#define GO_TIMEOUT_S 5

/* The state letter of /proc/PATH/stat; '\0' if it is gone. */
static char state_of(const char *path)
{
	char *text, *p, state = '\0';

	if (file_read(path, &text, NULL, NULL))
		return '\0';
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c", &state) != 1)
		state = '\0';
	free(text);
	return state;
}

/* How many threads there are, and how many of them have one of the states in 'states'. */
static int count_threads(pid_t pid, const char *states, int *found)
{
	char path[300];
	struct dirent *d;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	*found = 0;
	while ((d = readdir(dir))) {
		char state;

		if (atoi(d->d_name) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, d->d_name);
		state = state_of(path);
		/* A main thread that has ended before the others is no obstacle. */
		if (!state || state == 'Z' || state == 'X')
			continue;
		n++;
		*found += strchr(states, state) != NULL;
	}
	closedir(dir);
	return n;
}

/* 't': under a tracer, which is how a stop looks there. */
bool signal_is_stopped(pid_t pid)
{
	int found, n = count_threads(pid, "Tt", &found);

	return n > 0 && found == n;
}

int signal_inverse(pid_t pid, json_t **inverse, struct err *e)
{
	struct target t;
	char path[64];
	json_t *inv;
	int rc;

	rc = target_open(pid, &t, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (state_of(path) == 'T')
		return err_set(e, -EALREADY, "process %d is stopped already", (int)pid);
	inv = json_pack("{s:i, s:I}", "pid", (int)pid, "start_ticks", (json_int_t)t.ticks);
	if (!inv)
		return err_errno(e, -ENOMEM, "cannot stop process %d", (int)pid);
	*inverse = inv;
	return 0;
}

/* Until all threads stand still in two looks in a row: a traced one passes through 't' with every
 * system call. */
static int wait_stopped(const struct target *t, struct err *e)
{
	double deadline = clock_mono_s() + STOP_TIMEOUT_S;
	int right = 0;

	for (;;) {
		struct timespec nap = {.tv_nsec = 2000000};
		int found, n = count_threads(t->pid, "TtD", &found), alive = target_alive(t, e);

		if (alive <= 0)
			return alive ? alive
				     : err_set(e, -ESRCH, "process %d has ended", (int)t->pid);
		if (n < 0)
			return err_errno(e, n, "cannot look at process %d", (int)t->pid);
		right = n > 0 && found == n ? right + 1 : 0;
		if (right == 2)
			return 0;
		if (clock_mono_s() > deadline)
			return err_set(e, -ETIMEDOUT, "process %d does not stop", (int)t->pid);
		nanosleep(&nap, NULL);
	}
}

int signal_stop(const json_t *inverse, struct err *e)
{
	struct target t;
	int rc;

	rc = target_read(inverse, &t, e);
	if (rc)
		return rc;
	rc = target_alive(&t, e);
	if (rc <= 0)
		return rc ? rc : err_set(e, -ESRCH, "process %d has ended", (int)t.pid);
	if (kill(t.pid, SIGSTOP) < 0)
		return err_errno(e, -errno, "cannot stop process %d", (int)t.pid);
	return wait_stopped(&t, e);
}

static int signal_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct target t;
	int rc;

	rc = target_read(inverse, &t, e);
	if (!rc)
		rc = target_alive(&t, e);
	if (rc <= 0)
		return rc;
	*was_there = signal_is_stopped(t.pid);
	/* Also when it does not look stopped: the SIGSTOP may not have arrived yet. */
	if (kill(t.pid, SIGCONT) < 0 && errno != ESRCH)
		return err_errno(e, -errno, "cannot let process %d go on", (int)t.pid);
	return 0;
}

/* A stop holds all threads; under a tracer they pass through 't' now and then, but not together. */
static int signal_verify(const json_t *inverse, struct err *e)
{
	double deadline = clock_mono_s() + GO_TIMEOUT_S;
	struct target t;
	int rc;

	rc = target_read(inverse, &t, e);
	if (rc)
		return rc;
	while ((rc = target_alive(&t, e)) > 0) {
		struct timespec nap = {.tv_nsec = 2000000};
		int stopped, n = count_threads(t.pid, "Tt", &stopped);

		if (n < 0 && n != -ENOENT)
			return err_errno(e, n, "cannot look at process %d", (int)t.pid);
		if (n > stopped)
			return 0;
		if (clock_mono_s() > deadline)
			return err_set(e, -EBUSY, "process %d is still stopped", (int)t.pid);
		nanosleep(&nap, NULL);
	}
	return rc;
}

const struct primitive signal_primitive = {
	.name = "signal",
	.ends_with_boot = true,
	.undo = signal_undo,
	.verify_undone = signal_verify,
};
