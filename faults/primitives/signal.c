/* Stops and continues a process tree, once or again and again. */
#include "faults/primitives/signal.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"

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
	auto_targets struct targets all = {0};
	auto_json json_t *made = NULL;
	struct procfs_stat st;
	int rc = target_inverse(pid, &made, e) ?: targets_read(made, &all, e);

	if (rc)
		return rc;
	for (int i = 0; i < all.n; i++)
		if (procfs_stat(all.list[i].pid, 0, &st) && st.state == 'T')
			return err_set(e, -EALREADY, "process %d is stopped already",
				(int)all.list[i].pid);
	*inverse = AUTO_TAKE(made);
	return 0;
}

/* One whose threads all have one of the states in 'states', or do not all have one; 0: there is
 * none; or -errno. */
static pid_t signal_find(const struct targets *all, const char *states, bool have, struct err *e)
{
	for (int i = 0; i < all->n; i++) {
		int found = 0, n = count_threads(all->list[i].pid, states, &found);

		if (n < 0 && n != -ENOENT)
			return err_errno(e, n, "cannot look at process %d", (int)all->list[i].pid);
		if (n > 0 && (n == found) == have)
			return all->list[i].pid;
	}
	return 0;
}

/* Until two looks in a row find all threads stopped: a traced one is in 't' for a moment with every
 * system call. A parent is signalled before its children, and again in each round: once it is
 * stopped it forks no more, so a later look finds all that it has forked. */
int signal_stop(const json_t *inverse, struct err *e)
{
	double deadline = clock_mono_s() + STOP_TIMEOUT_S;
	struct target t;
	int right = 0;

	for (;;) {
		auto_targets struct targets all = {0};
		pid_t running;
		int rc = target_read(inverse, &t, e) ?: target_require(&t, e);

		rc = rc ?: targets_read(inverse, &all, e);
		rc = rc ?: targets_signal(&all, SIGSTOP, false, e);
		if (rc)
			return rc;
		running = signal_find(&all, "TtD", false, e);
		if (running < 0)
			return running;
		right = running ? 0 : right + 1;
		if (right == 2)
			return 0;
		if (!procfs_nap(deadline))
			return err_set(
				e, -ETIMEDOUT, "process %d does not stop", (int)(running ?: t.pid));
	}
}

/* Also those that do not look stopped: the SIGSTOP may not have arrived yet. Children go on before
 * their parent, which may look after them. */
static int signal_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	auto_targets struct targets all = {0};
	int rc = targets_read(inverse, &all, e);

	if (rc)
		return rc;
	for (int i = 0; i < all.n; i++)
		*was_there |= signal_is_stopped(all.list[i].pid);
	return targets_signal(&all, SIGCONT, true, e);
}

/* A stop holds all threads; a tracer's stops do not hold all of them at once. */
static int signal_verify(const json_t *inverse, struct err *e)
{
	double deadline = clock_mono_s() + GO_TIMEOUT_S;

	for (;;) {
		auto_targets struct targets all = {0};
		int rc = targets_read(inverse, &all, e) ?: signal_find(&all, "Tt", true, e);

		if (rc <= 0)
			return rc;
		if (!procfs_nap(deadline))
			return err_set(e, -EBUSY, "process %d is still stopped", rc);
	}
}

const struct primitive signal_primitive = {
	.name = "signal",
	.ends_with_boot = true,
	.undo = signal_undo,
	.verify_undone = signal_verify,
};

/* ---- pauses ---- */

static int still_stopped(const json_t *server, void *ctx, struct err *e)
{
	auto_targets struct targets all = {0};
	int rc = targets_read(server, &all, e) ?: signal_find(&all, "TtD", false, e);

	*(bool *)ctx &= rc == 0;
	return rc < 0 ? rc : 0;
}

static int stop_one(const json_t *server, void *ctx, struct err *e)
{
	(void)ctx;
	return signal_stop(server, e);
}

static int continue_one(const json_t *server, void *ctx, struct err *e)
{
	return signal_undo(server, ctx, e);
}

static int verify_one(const json_t *server, void *ctx, struct err *e)
{
	(void)ctx;
	return signal_verify(server, e);
}

/* Goes on after a failure, so that one server does not keep the others stopped; the first one is
 * returned. */
static int signal_each(const json_t *servers,
	int (*fn)(const json_t *server, void *ctx, struct err *e), void *ctx, struct err *e)
{
	json_t *server;
	int first = 0;
	size_t i;

	json_array_foreach((json_t *)servers, i, server) {
		int rc = fn(server, ctx, first ? NULL : e);

		first = first ?: rc;
	}
	return first;
}

static int pause_once(const json_t *servers, double end, struct signal_pauses *p,
	void (*note)(const struct signal_pauses *so_far), struct err *e)
{
	bool held = true, was = false;
	int rc = signal_each(servers, stop_one, NULL, e), again;
	double since = clock_mono_s();

	if (!rc) {
		p->stops++;
		note(p);
		clock_sleep_until(end);
		rc = signal_each(servers, still_stopped, &held, e);
	}
	since = clock_mono_s() - since;
	again = signal_each(servers, continue_one, &was, rc ? NULL : e);
	if (!rc && held)
		p->stopped_s += since;
	return rc ?: again;
}

int signal_pause(const json_t *servers, double pause_s, double every_s,
	void (*note)(const struct signal_pauses *so_far), struct err *e)
{
	struct signal_pauses p = {0};
	double begin = clock_mono_s(), due = begin;

	for (;;) {
		int rc = pause_once(servers, due + pause_s, &p, note, e);

		if (rc)
			return rc;
		/* A pause that took too long is not made up for. */
		due = fmax(due + every_s, clock_mono_s());
		if (every_s > 0)
			clock_sleep_until(due);
		p.whole_s = clock_mono_s() - begin;
		note(&p);
		while (every_s <= 0)
			pause();
	}
}

static int pauses_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	bool stopped = false;
	int rc = primitive_revert(&process_primitive, inverse, was_there, e),
	    again = signal_each(jget(inverse, "servers"), continue_one, &stopped, rc ? NULL : e);

	*was_there |= stopped;
	return rc ?: again;
}

static int pauses_verify(const json_t *inverse, struct err *e)
{
	return process_primitive.verify_undone(inverse, e)
		?: signal_each(jget(inverse, "servers"), verify_one, NULL, e);
}

const struct primitive pauses_primitive = {
	.name = "pauses",
	.ends_with_boot = true,
	.undo = pauses_undo,
	.verify_undone = pauses_verify,
};
