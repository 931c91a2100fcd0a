/* Sets soft resource limits of a running process tree. */
#include "faults/primitives/limits.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"

static const struct resource {
	const char *name;
	int number;
	const char *label; /* in /proc/PID/limits */
} resources[] = {
	{"as", RLIMIT_AS, "Max address space"},
	{"core", RLIMIT_CORE, "Max core file size"},
	{"cpu", RLIMIT_CPU, "Max cpu time"},
	{"data", RLIMIT_DATA, "Max data size"},
	{"fsize", RLIMIT_FSIZE, "Max file size"},
	{"memlock", RLIMIT_MEMLOCK, "Max locked memory"},
	{"nofile", RLIMIT_NOFILE, "Max open files"},
	{"nproc", RLIMIT_NPROC, "Max processes"},
	{"rss", RLIMIT_RSS, "Max resident set"},
	{"stack", RLIMIT_STACK, "Max stack size"},
	/* The rest is restored with a server, and not set on its own. */
	{"locks", RLIMIT_LOCKS, "Max file locks"},
	{"msgqueue", RLIMIT_MSGQUEUE, "Max msgqueue size"},
	{"nice", RLIMIT_NICE, "Max nice priority"},
	{"rtprio", RLIMIT_RTPRIO, "Max realtime priority"},
	{"rttime", RLIMIT_RTTIME, "Max realtime timeout"},
	{"sigpending", RLIMIT_SIGPENDING, "Max pending signals"},
};

#define SET_TIMEOUT_S 5
#define N_SET 10 /* those of limits_set */
#define N_RESOURCES (sizeof(resources) / sizeof(resources[0]))
static_assert(N_RESOURCES == RLIM_NLIMITS, "a limit of the kernel is missing");

const char *limits_name(int number)
{
	for (size_t i = 0; i < N_RESOURCES; i++)
		if (resources[i].number == number)
			return resources[i].name;
	return "unknown";
}

static const struct resource *resource_find(const char *name)
{
	for (size_t i = 0; i < N_SET; i++)
		if (!strcmp(resources[i].name, name))
			return &resources[i];
	return NULL;
}

struct limit_pair {
	int64_t soft, hard;
};

static int64_t limits_number(const char *word)
{
	return strcmp(word, "unlimited") ? (int64_t)strtoull(word, NULL, 10) : LIMITS_UNLIMITED;
}

/* All limits of a process, which anybody may read in /proc, other than with prlimit(2). The file of
 * a zombie is empty. */
static int limits_read_all(pid_t pid, struct limit_pair all[N_RESOURCES], struct err *e)
{
	auto_free char *text = NULL;
	int rc = procfs_read(pid, "limits", &text, NULL);

	if (rc == -ENOENT)
		return err_set(e, -ESRCH, "there is no process %d", (int)pid);
	if (rc)
		return err_errno(e, rc, "cannot read the limits of process %d", (int)pid);
	for (size_t i = 0; i < N_RESOURCES; i++) {
		const char *line = procfs_after(text, resources[i].label);
		char soft[32], hard[32];

		if (!line || sscanf(line, " %31s %31s", soft, hard) != 2)
			return err_set(
				e, -ESRCH, "process %d shows no limits: it has ended", (int)pid);
		all[i] = (struct limit_pair){limits_number(soft), limits_number(hard)};
	}
	return 0;
}

static int limits_read_one(pid_t pid, const struct resource *r, int64_t *soft, struct err *e)
{
	struct limit_pair all[N_RESOURCES];
	int rc = limits_read_all(pid, all, e);

	if (!rc)
		*soft = all[r - resources].soft;
	return rc;
}

int limits_read(pid_t pid, json_t **out, struct err *e)
{
	struct limit_pair all[N_RESOURCES];
	auto_json json_t *object = json_object();
	int rc = limits_read_all(pid, all, e);

	for (size_t i = 0; i < N_SET && !rc; i++)
		if (json_object_set_new(object, resources[i].name,
			    json_pack("{s:I, s:I}", "soft", (json_int_t)all[i].soft, "hard",
				    (json_int_t)all[i].hard)))
			rc = err_errno(e, -ENOMEM, "cannot read limits");
	if (!rc)
		*out = AUTO_TAKE(object);
	return rc;
}

int limits_of(pid_t pid, struct rlimit out[RLIM_NLIMITS], struct err *e)
{
	struct limit_pair all[N_RESOURCES];
	int rc = limits_read_all(pid, all, e);

	/* LIMITS_UNLIMITED becomes RLIM_INFINITY. */
	for (size_t i = 0; i < N_RESOURCES && !rc; i++)
		out[resources[i].number] = (struct rlimit){
			(rlim_t)all[i].soft, (rlim_t)all[i].hard};
	return rc;
}

/* Adds the soft limit of each descendant to its entry, which is that of a process before. */
static int put_soft(json_t *inverse, const struct resource *r, struct err *e)
{
	json_t *list = jget(inverse, "descendants"), *one;
	int64_t soft;
	size_t i = 0;

	while (i < json_array_size(list)) {
		one = json_array_get(list, i);
		if (limits_read_one(
			    (pid_t)json_integer_value(json_array_get(one, 0)), r, &soft, NULL))
			json_array_remove(list, i); /* it has ended */
		else if (json_array_append_new(one, json_integer((json_int_t)soft)))
			return err_errno(e, -ENOMEM, "cannot set a limit");
		else
			i++;
	}
	return 0;
}

int limits_inverse(pid_t pid, const char *resource, json_t **inverse, struct err *e)
{
	const struct resource *r = resource_find(resource);
	auto_json json_t *made = NULL;
	int64_t soft;
	int rc;

	if (!r)
		return err_set(e, -EINVAL,
			"there is no resource '%s'; there are as, core, cpu, data, fsize, memlock, "
			"nofile, nproc, rss and stack",
			resource);
	rc = target_inverse(pid, &made, e) ?: limits_read_one(pid, r, &soft, e)
		?: put_soft(made, r, e);
	if (rc)
		return rc;
	if (json_object_set_new(made, "resource", json_string(resource)) ||
		json_object_set_new(made, "soft", json_integer((json_int_t)soft)))
		return err_errno(e, -ENOMEM, "cannot set a limit");
	*inverse = AUTO_TAKE(made);
	return 0;
}

/* The inverse, read: soft limit 'soft' of resource 'r' of process 't'. */
struct limit {
	struct target t;
	const struct resource *r;
	int64_t soft;
};

static int inverse_read(const json_t *inverse, struct limit *l, struct err *e)
{
	const char *name;
	json_int_t soft;

	if (json_unpack((json_t *)inverse, "{s:s, s:I}", "resource", &name, "soft", &soft) < 0 ||
		soft < LIMITS_UNLIMITED || !(l->r = resource_find(name)))
		return err_set(e, -EBADMSG, "the inverse of limits is damaged");
	l->soft = soft;
	return target_read(inverse, &l->t, e);
}

/* As the user that the process is: to such as well, the kernel leaves a process's soft limits. A
 * daemon that became another user has no other way where root lacks CAP_SYS_RESOURCE. 0, or
 * -errno. */
static int prlimit_as_user(pid_t pid, __rlimit_resource_t which, const struct rlimit *limit)
{
	auto_free char *text = NULL;
	unsigned uid, gid;
	const char *u, *g;
	int status;
	pid_t child;

	if (procfs_read(pid, "status", &text, NULL) || !(u = procfs_after(text, "\nUid:")) ||
		!(g = procfs_after(text, "\nGid:")) || sscanf(u, " %u", &uid) != 1 ||
		sscanf(g, " %u", &gid) != 1)
		return -ESRCH;
	child = fork();
	if (!child)
		_exit(setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ||
					prlimit(pid, which, limit, NULL) < 0
				? errno
				: 0);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int limits_put(pid_t pid, int number, const struct rlimit *limit)
{
	const __rlimit_resource_t which = (__rlimit_resource_t)number;

	if (prlimit(pid, which, limit, NULL) == 0)
		return 0;
	return errno == EPERM ? prlimit_as_user(pid, which, limit) : -errno;
}

static int apply(const struct limit *l, struct err *e)
{
	const __rlimit_resource_t which = (__rlimit_resource_t)l->r->number;
	const char *name = l->r->name;
	int pid = (int)l->t.pid, rc = target_require(&l->t, e);
	struct rlimit all[RLIM_NLIMITS], limit;
	int64_t is;

	rc = rc ?: limits_of(l->t.pid, all, e);
	if (rc)
		return rc;
	limit = all[which];
	limit.rlim_cur = l->soft == LIMITS_UNLIMITED ? RLIM_INFINITY : (rlim_t)l->soft;
	if (limit.rlim_cur > limit.rlim_max)
		return err_set(e, -EINVAL,
			"the hard limit %s of process %d is %ju, below what is asked for", name,
			pid, (uintmax_t)limit.rlim_max);
	rc = limits_put(pid, l->r->number, &limit);
	if (rc)
		return err_errno(e, rc,
			rc == -EPERM ? "cannot set limit %s of process %d, which needs "
				       "CAP_SYS_RESOURCE on another user's process"
				     : "cannot set limit %s of process %d",
			name, pid);
	rc = limits_read_one(pid, l->r, &is, e);
	if (!rc && is != l->soft)
		rc = err_set(e, -EIO, "limit %s of process %d is %" PRId64 " still, not %" PRId64,
			name, pid, is, l->soft);
	return rc;
}

/* 0 if 'rc' came from the end of the process, which may come at any moment. */
static int unless_ended(const struct target *t, int rc)
{
	return rc && !target_alive(t, NULL) ? 0 : rc;
}

/* Is the limit another one? 1, 0 (also once the process has ended), or -errno. */
static int differs(const struct limit *l, int64_t *is, struct err *e)
{
	int rc = target_alive(&l->t, e);

	if (rc <= 0)
		return rc;
	rc = limits_read_one(l->t.pid, l->r, is, e);
	return rc ? unless_ended(&l->t, rc) : *is != l->soft;
}

/* Sets the limit unless it is so, or the process has ended. 1: it was set. */
static int primitives_limits_put(const struct limit *l, struct err *e)
{
	int64_t is;
	int rc = differs(l, &is, e);

	return rc <= 0 ? rc : unless_ended(&l->t, apply(l, e)) ?: 1;
}

/* A descendant may have lowered its hard limit, above which it is not raised. */
static int put_below(const struct limit *parent, const struct target *t, struct err *e)
{
	struct limit l = {*t, parent->r, parent->soft};
	struct limit_pair all[N_RESOURCES];
	int rc = limits_read_all(t->pid, all, e);
	int64_t hard = rc ? 0 : all[l.r - resources].hard;

	if (hard != LIMITS_UNLIMITED && (l.soft == LIMITS_UNLIMITED || l.soft > hard))
		l.soft = hard;
	return rc ? unless_ended(t, rc) : primitives_limits_put(&l, e);
}

/* Until a look finds none that has another limit: a child may have been forked by one that had not
 * been limited yet. */
static int set_below(const json_t *inverse, const struct limit *l, struct err *e)
{
	double deadline = clock_mono_s() + SET_TIMEOUT_S;
	int set = 1;

	while (set) {
		auto_targets struct targets all = {0};
		int rc = targets_read(inverse, &all, e);

		set = 0;
		for (int i = 0; i < all.n && rc >= 0; i++) {
			rc = put_below(l, &all.list[i], e);
			set += rc > 0;
		}
		if (rc < 0)
			return rc;
		if (set && clock_mono_s() > deadline)
			return err_set(e, -ETIMEDOUT,
				"process %d forks faster than its descendants can be limited",
				(int)l->t.pid);
	}
	return 0;
}

int limits_set(const json_t *inverse, int64_t soft, struct err *e)
{
	struct limit l;
	int rc;

	if (soft < LIMITS_UNLIMITED)
		return err_set(
			e, -EINVAL, "a limit must be 0 or above, or %d for none", LIMITS_UNLIMITED);
	rc = inverse_read(inverse, &l, e);
	l.soft = soft;
	return rc ?: apply(&l, e) ?: set_below(inverse, &l, e);
}

/* The limit that the i-th descendant of the inverse had. */
static bool former(const json_t *inverse, size_t i, const struct limit *of, struct limit *l)
{
	const json_t *one = json_array_get(jget(inverse, "descendants"), i);

	*l = (struct limit){{(pid_t)json_integer_value(json_array_get(one, 0)),
				    (uint64_t)json_integer_value(json_array_get(one, 1))},
		of->r, json_integer_value(json_array_get(one, 2))};
	return one != NULL;
}

/* Descendants forked since have their limit from the process: as long as theirs is the same 'is',
 * they get the limit that it had. */
static int undo_heirs(const json_t *inverse, const struct limit *l, int64_t is, struct err *e)
{
	auto_targets struct targets all = {0};
	int rc = targets_read(inverse, &all, e);

	for (int i = 0; i < all.n && rc >= 0; i++) {
		struct limit heir = {all.list[i], l->r, l->soft}, other;
		int64_t theirs;
		bool listed = heir.t.pid == l->t.pid;

		for (size_t k = 0; !listed && former(inverse, k, l, &other); k++)
			listed = heir.t.pid == other.t.pid && heir.t.ticks == other.t.ticks;
		if (!listed && (rc = differs(&heir, &theirs, e)) > 0 && theirs == is)
			rc = primitives_limits_put(&heir, e);
	}
	return rc < 0 ? rc : 0;
}

/* The process comes last: an undo that was cut off still knows from it what its heirs have. */
static int limits_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct limit l, other;
	int64_t is;
	int rc = inverse_read(inverse, &l, e);

	for (size_t i = 0; rc >= 0 && former(inverse, i, &l, &other); i++) {
		rc = primitives_limits_put(&other, e);
		*was_there |= rc > 0;
	}
	rc = rc < 0 ? rc : differs(&l, &is, e);
	if (rc <= 0)
		return rc;
	*was_there = true;
	rc = undo_heirs(inverse, &l, is, e) ?: primitives_limits_put(&l, e);
	return rc < 0 ? rc : 0;
}

static int verify_one(const struct limit *l, struct err *e)
{
	int64_t is;
	int rc = differs(l, &is, e);

	return rc <= 0
		? rc
		: err_set(e, -EBUSY, "limit %s of process %d is still %" PRId64 ", not %" PRId64,
			  l->r->name, (int)l->t.pid, is, l->soft);
}

static int limits_verify(const json_t *inverse, struct err *e)
{
	struct limit l, other;
	int rc = inverse_read(inverse, &l, e) ?: verify_one(&l, e);

	for (size_t i = 0; !rc && former(inverse, i, &l, &other); i++)
		rc = verify_one(&other, e);
	return rc;
}

const struct primitive limits_primitive = {
	.name = "limits",
	.ends_with_boot = true,
	.undo = limits_undo,
	.verify_undone = limits_verify,
};
