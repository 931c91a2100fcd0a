/* Identifies processes by number and start time, and finds their descendants. */
#include "faults/primitives/target.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"

int target_open(pid_t pid, struct target *t, struct err *e)
{
	struct target got = {.pid = pid};
	int rc;

	if (pid <= 1)
		return err_set(e, -EINVAL, "pid must be the number of a process above 1, not %d",
			(int)pid);
	if (pid == getpid())
		return err_set(e, -EINVAL, "process %d is the agent's own", (int)pid);
	rc = proc_start_time(pid, &got.ticks);
	if (rc == -ESRCH)
		return err_set(e, rc, "there is no process %d", (int)pid);
	if (rc)
		return err_errno(e, rc, "cannot look at process %d", (int)pid);
	*t = got;
	return 0;
}

int target_read(const json_t *inverse, struct target *t, struct err *e)
{
	json_int_t pid, ticks;

	if (json_unpack((json_t *)inverse, "{s:I, s:I}", "pid", &pid, "start_ticks", &ticks) < 0 ||
		pid <= 1 || pid > 0x7fffffff || ticks < 0)
		return err_set(e, -EBADMSG, "the inverse names no process");
	*t = (struct target){.pid = (pid_t)pid, .ticks = (uint64_t)ticks};
	return 0;
}

int target_alive(const struct target *t, struct err *e)
{
	uint64_t ticks;
	int rc = proc_start_time(t->pid, &ticks);

	if (rc && rc != -ESRCH)
		return err_errno(e, rc, "cannot look at process %d", (int)t->pid);
	return !rc && ticks == t->ticks;
}

int target_require(const struct target *t, struct err *e)
{
	int rc = target_alive(t, e);

	return rc ? (rc > 0 ? 0 : rc) : err_set(e, -ESRCH, "process %d has ended", (int)t->pid);
}

void targets_clear(struct targets *all)
{
	free(all->list);
	*all = (struct targets){0};
}

static bool target_holds(const struct targets *all, const struct target *t)
{
	for (int i = 0; i < all->n; i++)
		if (all->list[i].pid == t->pid && all->list[i].ticks == t->ticks)
			return true;
	return false;
}

int targets_add(struct targets *all, const struct target *t)
{
	struct target *more;

	if (target_holds(all, t))
		return 0;
	more = reallocarray(all->list, (size_t)all->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	all->list = more;
	all->list[all->n++] = *t;
	return 0;
}

static int drop_ended(struct targets *all, struct err *e)
{
	int n = 0;

	for (int i = 0; i < all->n; i++) {
		int alive = target_alive(&all->list[i], e);

		if (alive < 0)
			return alive;
		if (alive)
			all->list[n++] = all->list[i];
	}
	all->n = n;
	return 0;
}

int targets_look(struct targets *all, struct err *e)
{
	auto_free struct proc_id *below = NULL;
	auto_free pid_t *pids = NULL;
	int rc = drop_ended(all, e), before = all->n, n;

	if (rc || !all->n)
		return rc;
	pids = calloc((size_t)all->n, sizeof(*pids));
	for (int i = 0; pids && i < all->n; i++)
		pids[i] = all->list[i].pid;
	n = pids ? proc_descendants(pids, (size_t)all->n, &below) : -ENOMEM;
	rc = n < 0 ? n : 0;
	for (int i = 0; i < n && !rc; i++)
		rc = targets_add(all, &(struct target){below[i].pid, below[i].start_ticks});
	if (rc)
		return err_errno(e, rc, "cannot look for the descendants of process %d",
			(int)all->list[0].pid);
	return all->n - before;
}

int targets_signal(const struct targets *all, int signo, bool children_first, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < all->n; i++) {
		const struct target *t = &all->list[children_first ? all->n - 1 - i : i];

		if (kill(t->pid, signo) < 0 && errno != ESRCH && !rc)
			rc = err_errno(e, -errno, "cannot send signal %d to process %d", signo,
				(int)t->pid);
	}
	return rc;
}

static int put_descendants(const struct targets *all, json_t *inverse)
{
	json_t *list = json_array();
	int rc = json_object_set_new(inverse, "descendants", list);

	for (int i = 1; i < all->n && !rc; i++)
		rc = json_array_append_new(list,
			json_pack("[i, I]", (int)all->list[i].pid, (json_int_t)all->list[i].ticks));
	return rc;
}

int target_inverse(pid_t pid, json_t **inverse, struct err *e)
{
	auto_targets struct targets all = {0};
	auto_json json_t *made = NULL;
	struct target t;
	int rc = target_open(pid, &t, e);

	if (rc)
		return rc;
	rc = targets_add(&all, &t) ?: targets_look(&all, e);
	if (rc < 0)
		return rc == -ENOMEM ? err_errno(e, rc, "cannot look at process %d", (int)pid) : rc;
	made = json_pack("{s:i, s:I}", "pid", (int)pid, "start_ticks", (json_int_t)t.ticks);
	if (!made || put_descendants(&all, made))
		return err_errno(e, -ENOMEM, "cannot act on process %d", (int)pid);
	*inverse = AUTO_TAKE(made);
	return 0;
}

int targets_read(const json_t *inverse, struct targets *all, struct err *e)
{
	struct target t;
	json_t *one;
	size_t i;
	int rc = target_read(inverse, &t, e);

	if (rc)
		return rc;
	rc = targets_add(all, &t);
	json_array_foreach(jget(inverse, "descendants"), i, one) {
		t = (struct target){(pid_t)json_integer_value(json_array_get(one, 0)),
			(uint64_t)json_integer_value(json_array_get(one, 1))};
		if (!rc && t.pid <= 1)
			return err_set(e, -EBADMSG, "the inverse names no process");
		rc = rc ?: targets_add(all, &t);
	}
	if (rc)
		return err_errno(e, rc, "cannot look at process %d", (int)t.pid);
	rc = targets_look(all, e);
	return rc < 0 ? rc : 0;
}
