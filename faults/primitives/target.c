#include "faults/primitives/target.h"

#include <errno.h>
#include <unistd.h>

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
