/* Limits a server's processor time or memory by a control group. */
#include "faults/primitives/group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"
#include "harness/base/cgroup.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"

/* Short, so that a server that has used its quota up waits less than a slow disk takes. */
#define PERIOD_US 20000
#define LEAST_US 1000 /* of a quota: the kernel's limit */
#define MOVE_TIMEOUT_S 5

/* ---- the server's processes ---- */

/* All of them, from a list of inverses of targets. */
static int read_all(const json_t *servers, struct targets *all, struct err *e)
{
	json_t *one;
	int rc = 0;
	size_t i;

	json_array_foreach((json_t *)servers, i, one) {
		rc = rc ?: targets_read(one, all, e);
	}
	return rc;
}

static int list_servers(const json_t *pids, json_t *servers, struct err *e)
{
	json_t *pid, *one;
	size_t i;

	json_array_foreach((json_t *)pids, i, pid) {
		int rc = target_inverse((pid_t)json_integer_value(pid), &one, e);

		if (rc)
			return rc;
		if (json_array_append_new(servers, one))
			return err_errno(e, -ENOMEM, "cannot limit a server");
	}
	return 0;
}

static int place_of(pid_t pid, enum cgroup_controller c, struct cgroup_place *place, struct err *e)
{
	auto_free char *mountinfo = NULL, *groups = NULL;
	int rc = file_read("/proc/self/mountinfo", &mountinfo, NULL, e);

	if (!rc && (rc = procfs_read(pid, "cgroup", &groups, NULL)))
		err_errno(e, rc, "cannot read the control groups of process %d", (int)pid);
	if (!rc)
		*place = cgroup_place(mountinfo, groups, c);
	return rc;
}

/* The one group in which all of them are. */
static int find_place(const struct targets *all, enum cgroup_controller c,
	struct cgroup_place *place, struct err *e)
{
	struct cgroup_place other;

	for (int i = 0; i < all->n; i++) {
		int rc = place_of(all->list[i].pid, c, i ? &other : place, e);

		if (rc)
			return rc;
		if (i && strcmp(other.own, place->own))
			return err_set(e, -EOPNOTSUPP,
				"the server's processes %d and %d are in two control groups, '%s' "
				"and '%s'",
				(int)all->list[0].pid, (int)all->list[i].pid, place->own,
				other.own);
	}
	return place->version
		? 0
		: err_set(e, -EOPNOTSUPP,
			  "no control group with the controller '%s' is mounted here; on "
			  "systemd's hosts 'systemctl set-property --runtime UNIT CPUWeight=100' "
			  "turns it on for a service",
			  cgroup_controller_name(c));
}

static bool has_pid(const struct targets *all, pid_t pid)
{
	for (int i = 0; i < all->n; i++)
		if (all->list[i].pid == pid)
			return true;
	return false;
}

/* A group of version 2 that is to be limited itself: does it hold anybody else? */
static int check_alone(const struct targets *all, const char *group, struct err *e)
{
	auto_free char *list = cgroup_read(group, "cgroup.procs"),
		       *stat = cgroup_read(group, "cgroup.stat");
	unsigned long below = 0;

	if (!list || !stat || sscanf(stat, "nr_descendants %lu", &below) != 1)
		return err_set(e, -EOPNOTSUPP, "the control group '%s' cannot be read", group);
	if (below)
		return err_set(e, -EOPNOTSUPP,
			"the server's control group '%s' has groups below it", group);
	PROCFS_EACH_LINE(line, list)
	{
		pid_t pid = (pid_t)atoi(line);
		struct procfs_stat st = {.comm = "ended"};

		if (has_pid(all, pid) || (pid && !procfs_stat(pid, 0, &st)))
			continue;
		return err_set(e, -EOPNOTSUPP,
			"the server's control group '%s' also holds process %d (%s), which the "
			"limit would hit",
			group, (int)pid, st.comm);
	}
	return 0;
}

/* ---- what is set ---- */

static int check_processors(const struct cgroup_place *place, double cpus, struct err *e)
{
	struct cgroup_place limited = *place;
	double has = (double)sysconf(_SC_NPROCESSORS_ONLN), own;

	if (cgroup_limited(&limited, CGROUP_CPU)) {
		own = cgroup_processors(limited.own, limited.version);
		has = own < has ? own : has;
	}
	if (cpus >= has)
		return err_set(e, -EINVAL,
			"a limit of %g processors limits nothing: the server has %g", cpus, has);
	if (cpus * PERIOD_US < LEAST_US)
		return err_set(e, -EINVAL, "a limit of %g processors is below the least, %g", cpus,
			(double)LEAST_US / PERIOD_US);
	return 0;
}

/* Version 2: which file of the group gets which text. */
static int choose_setting(const struct group_spec *s, const char *group, const char **file,
	char *text, size_t size, struct err *e)
{
	auto_free char *current = NULL;
	uint64_t bytes = 0;

	if (s->cpus > 0) {
		*file = "cpu.max";
		snprintf(text, size, "%.0f %d", s->cpus * PERIOD_US, PERIOD_US);
		return 0;
	}
	*file = "memory.high";
	current = cgroup_read(group, "memory.current");
	if (!current || sscanf(current, "%" SCNu64, &bytes) != 1 || !bytes)
		return err_set(e, -EOPNOTSUPP, "the memory of '%s' cannot be read", group);
	snprintf(text, size, "%.0f", (double)bytes * s->memory_pct / 100);
	return 0;
}

static void strip(char *text)
{
	text[strcspn(text, "\n")] = '\0';
}

static int inverse_of_setting(const struct group_spec *s, const struct targets *all,
	const char *group, json_t **inverse, struct err *e)
{
	auto_free char *was = NULL;
	const char *file = NULL;
	char text[64];
	int rc = check_alone(all, group, e)
		?: choose_setting(s, group, &file, text, sizeof(text), e);

	if (rc)
		return rc;
	was = cgroup_read(group, file);
	if (!was)
		return err_set(e, -EOPNOTSUPP,
			"the server's control group '%s' has no '%s'; on systemd's hosts "
			"'systemctl set-property --runtime UNIT %s' turns that on",
			group, file, s->cpus > 0 ? "CPUWeight=100" : "MemoryAccounting=yes");
	strip(was);
	*inverse = json_pack(
		"{s:s, s:s, s:s, s:s}", "group", group, "file", file, "was", was, "text", text);
	return 0;
}

static int inverse_of_group(const struct group_spec *s, const struct cgroup_place *place,
	const char *name, json_t *servers, json_t **inverse, struct err *e)
{
	const char *last = strrchr(place->own, '/');
	char group[PATH_MAX];

	if (last && !strncmp(last + 1, GROUP_PREFIX, strlen(GROUP_PREFIX)))
		return err_set(e, -EBUSY, "the server is limited already, by '%s'", place->own);
	if (s->cpus <= 0)
		return err_set(e, -EOPNOTSUPP,
			"memory.high needs control groups of version 2, and this node keeps memory "
			"in version 1");
	if (snprintf(group, sizeof(group), "%s/" GROUP_PREFIX "%s", place->own, name) >= PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "the control group '%s' is too deep", place->own);
	if (access(place->own, W_OK) < 0)
		return err_set(e, -EOPNOTSUPP, "the control group '%s' cannot be changed: %s",
			place->own, strerror(errno));
	*inverse = json_pack("{s:s, s:s, s:O, s:I}", "group", group, "home", place->own, "servers",
		servers, "quota_us", (json_int_t)(s->cpus * PERIOD_US + 0.5));
	return 0;
}

int group_inverse(const struct group_spec *s, const char *name, json_t **inverse, struct err *e)
{
	auto_targets struct targets all = {0};
	auto_json json_t *servers = json_array(), *made = NULL;
	struct cgroup_place place = {0};
	int rc = list_servers(s->pids, servers, e) ?: read_all(servers, &all, e);

	rc = rc ?: find_place(&all, s->cpus > 0 ? CGROUP_CPU : CGROUP_MEMORY, &place, e);
	if (!rc && s->cpus > 0)
		rc = check_processors(&place, s->cpus, e);
	if (!rc)
		rc = place.version == 2 ? inverse_of_setting(s, &all, place.own, &made, e)
					: inverse_of_group(s, &place, name, servers, &made, e);
	if (!rc && !made)
		rc = err_errno(e, -ENOMEM, "cannot limit a server");
	if (!rc)
		*inverse = AUTO_TAKE(made);
	return rc;
}

/* ---- the inverse, read ---- */

struct group {
	const char *path, *home; /* home NULL: 'file' of the group is set */
	const char *file, *was, *text;
	const json_t *servers;
	json_int_t quota_us;
};

static int inverse_read(const json_t *inverse, struct group *g, struct err *e)
{
	size_t n;

	*g = (struct group){.path = jget_text(inverse, "group"),
		.home = jget_text(inverse, "home"),
		.file = jget_text(inverse, "file"),
		.was = jget_text(inverse, "was"),
		.text = jget_text(inverse, "text"),
		.servers = jget(inverse, "servers"),
		.quota_us = jget_int(inverse, "quota_us")};
	n = g->home ? strlen(g->home) : 0;
	if (!g->path || *g->path != '/' ||
		(g->home ? strncmp(g->path, g->home, n) ||
					strncmp(g->path + n, "/" GROUP_PREFIX,
						sizeof(GROUP_PREFIX)) ||
					strchr(g->path + n + 1, '/')
			 : !g->file || !g->was || !g->text || strchr(g->file, '/')))
		return err_set(e, -EBADMSG, "the inverse of a control group is damaged");
	return 0;
}

/* Of a process that ends: no error. */
static int move(const char *group, pid_t pid, struct err *e)
{
	int rc = cgroup_put(group, "cgroup.procs", "%d", (int)pid);

	return rc && rc != -ESRCH
		? err_errno(e, rc, "cannot move process %d to '%s'", (int)pid, group)
		: 0;
}

/* Until a look finds none that is new: what a process forks after its move follows it. */
static int move_all(const struct group *g, struct err *e)
{
	auto_targets struct targets all = {0};
	int rc = read_all(g->servers, &all, e), n;

	if (!rc && !all.n)
		rc = err_set(e, -ESRCH, "the server has ended");
	do {
		for (int i = 0; i < all.n && !rc; i++)
			rc = move(g->path, all.list[i].pid, e);
		n = rc ?: targets_look(&all, e);
	} while (n > 0);
	return n;
}

static int make_group(const struct group *g, struct err *e)
{
	int rc = mkdir(g->path, 0755) < 0 ? -errno : 0;

	rc = rc ?: cgroup_put(g->path, "cpu.cfs_period_us", "%d", PERIOD_US);
	rc = rc ?: cgroup_put(g->path, "cpu.cfs_quota_us", "%lld", (long long)g->quota_us);
	return rc ? err_errno(e, rc, "cannot make the control group '%s'", g->path)
		  : move_all(g, e);
}

int group_act(const json_t *inverse, struct err *e)
{
	struct group g;
	int rc = inverse_read(inverse, &g, e);

	if (rc || g.home)
		return rc ?: make_group(&g, e);
	rc = cgroup_put(g.path, g.file, "%s", g.text);
	return rc ? err_errno(e, rc, "cannot write '%s/%s'", g.path, g.file) : 0;
}

/* How many processes are in the group, which are moved to where it was made; or -errno. */
static int move_home(const struct group *g, struct err *e)
{
	auto_free char *list = cgroup_read(g->path, "cgroup.procs");
	int n = 0;

	if (!list)
		return err_set(e, -EIO, "cannot read '%s/cgroup.procs'", g->path);
	PROCFS_EACH_LINE(line, list)
	{
		pid_t pid = (pid_t)atoi(line);
		int rc = pid > 0 ? move(g->home, pid, e)
				 : err_set(e, -EBUSY,
					   "the control group '%s' holds a process of another PID "
					   "namespace",
					   g->path);

		if (rc)
			return rc;
		n++;
	}
	return n;
}

/* A process that ends stays in its group for a moment. */
static int remove_group(const struct group *g, struct err *e)
{
	double deadline = clock_mono_s() + MOVE_TIMEOUT_S;

	for (;;) {
		int n = move_home(g, e);

		if (n < 0)
			return n;
		if (!n && (!rmdir(g->path) || errno == ENOENT))
			return 0;
		if (!n && errno != EBUSY)
			return err_errno(e, -errno, "cannot remove '%s'", g->path);
		if (!procfs_nap(deadline))
			return err_set(
				e, -EBUSY, "the control group '%s' does not become empty", g->path);
	}
}

/* Is the file set to something else than it held? 0 if the group is gone, too. */
static bool is_set(const struct group *g)
{
	auto_free char *now = cgroup_read(g->path, g->file);

	if (now)
		strip(now);
	return now && strcmp(now, g->was);
}

static int group_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct group g;
	int rc = inverse_read(inverse, &g, e);

	if (rc)
		return rc;
	*was_there = g.home ? !access(g.path, F_OK) : is_set(&g);
	if (!*was_there)
		return 0;
	if (g.home)
		return remove_group(&g, e);
	rc = cgroup_put(g.path, g.file, "%s", g.was);
	return rc && rc != -ENOENT ? err_errno(e, rc, "cannot write '%s/%s'", g.path, g.file) : 0;
}

static int group_verify(const json_t *inverse, struct err *e)
{
	struct group g;
	int rc = inverse_read(inverse, &g, e);

	if (!rc && (g.home ? !access(g.path, F_OK) : is_set(&g)))
		rc = err_set(e, -EBUSY,
			g.home ? "the control group '%s' is still there"
			       : "'%s/%s' is not as it was",
			g.path, g.file);
	return rc;
}

const struct primitive group_primitive = {
	.name = "group",
	.ends_with_boot = true,
	.undo = group_undo,
	.verify_undone = group_verify,
};

int group_read(const json_t *inverse, struct group_usage *u, struct err *e)
{
	auto_free char *cpu = NULL, *memory = NULL;
	struct group g;
	int rc = inverse_read(inverse, &g, e);

	if (rc)
		return rc;
	cpu = cgroup_read(g.path, "cpu.stat");
	memory = cgroup_read(g.path, "memory.events");
	if (!cpu && !memory)
		return err_set(e, -ENOENT, "the control group '%s' is gone", g.path);
	*u = (struct group_usage){.periods = procfs_number(cpu ?: "", "nr_periods "),
		.throttled = procfs_number(cpu ?: "", "nr_throttled "),
		/* Version 1 in nanoseconds, version 2 in microseconds. */
		.throttled_s = (double)procfs_number(cpu ?: "", "throttled_time ") / 1e9 +
			(double)procfs_number(cpu ?: "", "throttled_usec ") / 1e6,
		.reclaims = procfs_number(memory ?: "", "\nhigh ")};
	return 0;
}
