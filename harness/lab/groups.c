/*
 * Processors and memory of a node: the limits of a control group that holds all its processes. The
 * groups lie in one of the lab's, at the top of each hierarchy that this machine shows, under a
 * name that follows from the lab's folder: so that they are found without a record, and do not end
 * with the session that made the lab. Disks and the switch stay outside, as hardware would.
 *
 * A limit on processors is a quota of time in each PERIOD_US. It is short, so that a node which has
 * used its quota up stands still for less time than a disk takes to seek a few times.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/cgroup.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

#define PERIOD_US 20000
/* Of a second, for what runs first in it (SCHED_RR), as the sampler does; where the kernel hands
 * that time out by groups it is 0 unless it is set (CONFIG_RT_GROUP_SCHED). */
#define FIRST_US 20000
#define ALL_FIRST_US 900000

static bool needs(const struct lab_options *o, enum cgroup_controller c)
{
	return c == CGROUP_MEMORY ? o->memory_bytes > 0 : o->cpus > 0;
}

static struct lab_path top_of(const struct cgroup_place *p, const char *dir)
{
	char link[IFNAMSIZ];

	lab_host_link(dir, link);
	return lab_path(p->root, "culprit-%s", link);
}

static int make(const char *group)
{
	return mkdir(group, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Makes a group whose subgroups, and with version 2 itself, have the controller. */
static int make_top(const struct cgroup_place *p, enum cgroup_controller c, const char *group)
{
	const char *name = cgroup_controller_name(c);

	if (p->version == 1)
		return make(group);
	return cgroup_put(p->root, "cgroup.subtree_control", "+%s", name)
			?: make(group) ?: cgroup_put(group, "cgroup.subtree_control", "+%s", name);
}

/* How nice this process is to those of other sessions: where the kernel groups by sessions
 * (sched_autogroup_enabled), as nice as the session is, whatever the process. */
static int niceness(void)
{
	auto_free char *enabled = cgroup_read("/proc/sys/kernel", "sched_autogroup_enabled"),
		       *group = cgroup_read("/proc/self", "autogroup");
	int nice;

	if (enabled && *enabled == '1' && group && sscanf(group, "%*s nice %d", &nice) == 1)
		return nice;
	return getpriority(PRIO_PROCESS, 0);
}

/* By itself a group counts as one process when this machine has more to do than it can. Here each
 * node counts as one, which is as nice as this process: a step is a factor of 1.25 (sched(7)). */
static void weigh(const struct lab_options *o, const struct cgroup_place *p, const char *top)
{
	const double processes = lab_node_count(o) * pow(1.25, -niceness());

	if (p->version == 2)
		cgroup_put(top, "cpu.weight", "%.0f", fmax(1, fmin(100 * processes, 10000)));
	else
		cgroup_put(top, "cpu.shares", "%.0f", fmax(2, fmin(1024 * processes, 262144)));
}

static int limit_processors(const struct lab_options *o, const struct cgroup_place *p,
	const char *top, const char *group)
{
	const unsigned n = lab_node_count(o);
	const unsigned first = n * FIRST_US > ALL_FIRST_US ? ALL_FIRST_US / n : (unsigned)FIRST_US;
	const long quota = (long)(o->cpus * PERIOD_US + 0.5);

	if (p->version == 2)
		return cgroup_put(group, "cpu.max", "%ld %d", quota, PERIOD_US);
	/* Without it a sampler is late at times, and says so. */
	cgroup_put(top, "cpu.rt_runtime_us", "%u", first * n);
	cgroup_put(group, "cpu.rt_runtime_us", "%u", first);
	return cgroup_put(group, "cpu.cfs_period_us", "%d", PERIOD_US)
		?: cgroup_put(group, "cpu.cfs_quota_us", "%ld", quota);
}

/* A node's memory is all that it has: it does not swap. */
static int limit_memory(
	const struct lab_options *o, const struct cgroup_place *p, const char *group)
{
	const long long bytes = (long long)o->memory_bytes;
	int rc;

	if (p->version == 2)
		return cgroup_put(group, "memory.max", "%lld", bytes)
			?: (rc = cgroup_put(group, "memory.swap.max", "0"), rc == -ENOENT ? 0 : rc);
	rc = cgroup_put(group, "memory.limit_in_bytes", "%lld", bytes);
	if (!rc)
		rc = cgroup_put(group, "memory.memsw.limit_in_bytes", "%lld", bytes);
	return rc == -ENOENT ? 0 : rc;
}

static int limit(const struct lab_options *o, const struct cgroup_place *p,
	enum cgroup_controller c, const char *top, const char *group)
{
	switch (c) {
	case CGROUP_CPU: return limit_processors(o, p, top, group);
	case CGROUP_MEMORY: return limit_memory(o, p, group);
	default: return 0;
	}
}

/* Version 2 has no accounting controller, and needs none. */
static bool is_used(const struct lab_options *o, enum cgroup_controller c, struct cgroup_place *p)
{
	if (!needs(o, c))
		return false;
	*p = cgroup_own(c);
	return p->version || c != CGROUP_CPUACCT;
}

/* Tries with a group that is removed again. */
static int try_controller(const struct lab_options *o, const struct cgroup_place *p,
	enum cgroup_controller c, struct err *e)
{
	struct lab_path top = top_of(p, o->dir), probe;
	int rc;

	if (strlen(top.s) + 10 > sizeof(top.s))
		return -ENAMETOOLONG;
	strcat(top.s, ".try");
	probe = lab_path(top.s, "node");
	rc = make_top(p, c, top.s) ?: make(probe.s) ?: limit(o, p, c, top.s, probe.s);
	rmdir(probe.s);
	rmdir(top.s);
	return rc ? err_set(e, rc, "a limit cannot be set in '%s' (%s); %s", p->root, strerror(-rc),
			    rc == -EBUSY ? "in a container run it with the host's cgroups"
					 : "let root write there, or leave --cpus and --memory out")
		  : 0;
}

int groups_check(const struct lab_options *o, struct err *e)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct cgroup_place p;
	int rc = 0;

	if (o->cpus > (double)processors)
		return err_set(e, -EINVAL,
			"--cpus %g is more than the %ld processor%s of this machine", o->cpus,
			processors, processors == 1 ? "" : "s");
	for (int c = 0; c < CGROUP_CONTROLLERS && !rc; c++) {
		if (!is_used(o, c, &p))
			continue;
		if (!p.version)
			rc = err_set(e, -ENODEV,
				"--%s needs the cgroup controller '%s', and no hierarchy that is "
				"mounted has it; try 'mount -t cgroup2 none /sys/fs/cgroup'",
				c == CGROUP_MEMORY ? "memory" : "cpus", cgroup_controller_name(c));
		else
			rc = try_controller(o, &p, c, e);
	}
	return rc;
}

void groups_make(const struct lab_options *o)
{
	struct cgroup_place p;

	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		struct lab_path top;

		if (!is_used(o, c, &p))
			continue;
		top = top_of(&p, o->dir);
		errno = -make_top(&p, c, top.s);
		child_try(-errno, "cannot make the control group '%s'", top.s);
		if (c == CGROUP_CPU)
			weigh(o, &p, top.s);
		lab_each(n, o, lab_node_count(o)) {
			struct lab_path group = lab_path(top.s, "%s", n.name);

			errno = -(make(group.s) ?: limit(o, &p, c, top.s, group.s));
			child_try(-errno, "cannot make the control group '%s'", group.s);
		}
	}
}

int groups_enter(const struct lab_options *o, const struct lab_node *n)
{
	struct cgroup_place p;
	int rc = 0;

	for (int c = 0; c < CGROUP_CONTROLLERS && !rc; c++)
		if (is_used(o, c, &p))
			rc = cgroup_put(lab_path(top_of(&p, o->dir).s, "%s", n->name).s,
				"cgroup.procs", "0");
	return rc;
}

bool groups_there(const char *dir)
{
	bool there = false;

	for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
		struct cgroup_place p = cgroup_own(c);

		there |= p.version && !access(top_of(&p, dir).s, F_OK);
	}
	return there;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
	(void)st;
	(void)at;
	return what == FTW_DP && rmdir(path) < 0 && errno != ENOENT ? errno : 0;
}

/* A group can be removed a moment after its last process has ended. */
static int remove_tree(const char *top, double deadline, struct err *e)
{
	for (;;) {
		int rc = access(top, F_OK) < 0
			? 0
			: nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

		if (!rc)
			return 0;
		if (rc < 0)
			rc = errno;
		if (rc != EBUSY || clock_mono_s() > deadline)
			return err_set(e, -rc,
				"cannot remove the control group '%s' (%s); its 'cgroup.procs' "
				"list who is in it",
				top, strerror(rc));
		usleep(5000);
	}
}

int groups_remove(const char *dir, double timeout_s, struct err *e)
{
	const double deadline = clock_mono_s() + timeout_s;
	int rc = 0;

	for (int c = 0; c < CGROUP_CONTROLLERS && !rc; c++) {
		struct cgroup_place p = cgroup_own(c);
		struct lab_path top, probe;

		if (!p.version)
			continue;
		top = top_of(&p, dir);
		probe = top;
		if (strlen(top.s) + 10 < sizeof(top.s)) {
			strcat(probe.s, ".try"); /* of an 'up' that was killed */
			rc = remove_tree(probe.s, deadline, e);
		}
		rc = rc ?: remove_tree(top.s, deadline, e);
	}
	return rc;
}
