#include "faults/primitives/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"

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
};

#define N_RESOURCES (sizeof(resources) / sizeof(resources[0]))

static const struct resource *resource_find(const char *name)
{
	for (size_t i = 0; i < N_RESOURCES; i++)
		if (!strcmp(resources[i].name, name))
			return &resources[i];
	return NULL;
}

struct limit_pair {
	int64_t soft, hard;
};

static int64_t number(const char *word)
{
	return strcmp(word, "unlimited") ? (int64_t)strtoull(word, NULL, 10) : LIMITS_UNLIMITED;
}

/* All limits of a process, which anybody may read in /proc, other than with prlimit(2). The file of
 * a zombie is empty. */
static int read_all(pid_t pid, struct limit_pair all[N_RESOURCES], struct err *e)
{
	char *text;
	int rc = procfs_read(pid, "limits", &text, NULL);

	if (rc == -ENOENT)
		return err_set(e, -ESRCH, "there is no process %d", (int)pid);
	if (rc)
		return err_errno(e, rc, "cannot read the limits of process %d", (int)pid);
	for (size_t i = 0; i < N_RESOURCES && !rc; i++) {
		const char *label = resources[i].label, *line = strstr(text, label);
		char soft[32], hard[32];

		if (!line || sscanf(line + strlen(label), " %31s %31s", soft, hard) != 2)
			rc = err_set(
				e, -ESRCH, "process %d shows no limits: it has ended", (int)pid);
		else
			all[i] = (struct limit_pair){number(soft), number(hard)};
	}
	free(text);
	return rc;
}

static int read_one(pid_t pid, const struct resource *r, int64_t *soft, struct err *e)
{
	struct limit_pair all[N_RESOURCES];
	int rc = read_all(pid, all, e);

	if (!rc)
		*soft = all[r - resources].soft;
	return rc;
}

int limits_read(pid_t pid, json_t **out, struct err *e)
{
	struct limit_pair all[N_RESOURCES];
	json_t *object;
	int rc = read_all(pid, all, e);

	if (rc)
		return rc;
	object = json_object();
	for (size_t i = 0; i < N_RESOURCES && !rc; i++)
		rc = json_object_set_new(object, resources[i].name,
			json_pack("{s:I, s:I}", "soft", (json_int_t)all[i].soft, "hard",
				(json_int_t)all[i].hard));
	if (rc) {
		json_decref(object);
		return err_errno(e, -ENOMEM, "cannot read limits");
	}
	*out = object;
	return 0;
}

int limits_inverse(pid_t pid, const char *resource, json_t **inverse, struct err *e)
{
	const struct resource *r = resource_find(resource);
	int64_t soft;
	struct target t;
	json_t *inv;
	int rc;

	if (!r)
		return err_set(e, -EINVAL,
			"there is no resource '%s'; there are as, core, cpu, data, fsize, memlock, "
			"nofile, nproc, rss and stack",
			resource);
	rc = target_open(pid, &t, e);
	if (!rc)
		rc = read_one(pid, r, &soft, e);
	if (rc)
		return rc;
	inv = json_pack("{s:i, s:I, s:s, s:I}", "pid", (int)pid, "start_ticks", (json_int_t)t.ticks,
		"resource", resource, "soft", (json_int_t)soft);
	if (!inv)
		return err_errno(e, -ENOMEM, "cannot set a limit");
	*inverse = inv;
	return 0;
}

static int inverse_read(const json_t *inverse, struct target *t, const struct resource **r,
	int64_t *soft, struct err *e)
{
	const char *name;
	json_int_t value;

	if (json_unpack((json_t *)inverse, "{s:s, s:I}", "resource", &name, "soft", &value) < 0 ||
		value < LIMITS_UNLIMITED || !(*r = resource_find(name)))
		return err_set(e, -EBADMSG, "the inverse of limits is damaged");
	*soft = value;
	return target_read(inverse, t, e);
}

static int apply(const struct target *t, const struct resource *r, int64_t soft, struct err *e)
{
	struct rlimit limit;
	int64_t is;
	int rc = target_alive(t, e);

	if (rc <= 0)
		return rc ? rc : err_set(e, -ESRCH, "process %d has ended", (int)t->pid);
	if (prlimit(t->pid, (__rlimit_resource_t)r->number, NULL, &limit) < 0)
		return err_errno(
			e, -errno, "cannot read limit %s of process %d", r->name, (int)t->pid);
	limit.rlim_cur = soft == LIMITS_UNLIMITED ? RLIM_INFINITY : (rlim_t)soft;
	if (limit.rlim_cur > limit.rlim_max)
		return err_set(e, -EINVAL,
			"the hard limit %s of process %d is %ju, below what is asked for", r->name,
			(int)t->pid, (uintmax_t)limit.rlim_max);
	if (prlimit(t->pid, (__rlimit_resource_t)r->number, &limit, NULL) < 0)
		return err_errno(
			e, -errno, "cannot set limit %s of process %d", r->name, (int)t->pid);
	rc = read_one(t->pid, r, &is, e);
	if (!rc && is != soft)
		rc = err_set(e, -EIO, "limit %s of process %d is %" PRId64 " still, not %" PRId64,
			r->name, (int)t->pid, is, soft);
	return rc;
}

int limits_set(const json_t *inverse, int64_t soft, struct err *e)
{
	const struct resource *r;
	struct target t;
	int64_t old;
	int rc;

	if (soft < LIMITS_UNLIMITED)
		return err_set(
			e, -EINVAL, "a limit must be 0 or above, or %d for none", LIMITS_UNLIMITED);
	rc = inverse_read(inverse, &t, &r, &old, e);
	return rc ? rc : apply(&t, r, soft, e);
}

/* 0 if 'rc' came from the end of the process, which may come at any moment. */
static int unless_ended(const struct target *t, int rc)
{
	return rc && !target_alive(t, NULL) ? 0 : rc;
}

/* Is the limit other than the inverse says? 1, 0 (also once the process has ended), or -errno. */
static int differs(const json_t *inverse, struct target *t, const struct resource **r,
	int64_t *wanted, int64_t *is, struct err *e)
{
	int rc = inverse_read(inverse, t, r, wanted, e);

	if (!rc)
		rc = target_alive(t, e);
	if (rc <= 0)
		return rc;
	rc = read_one(t->pid, *r, is, e);
	return rc ? unless_ended(t, rc) : *is != *wanted;
}

static int limits_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	const struct resource *r;
	int64_t soft, is;
	struct target t;
	int rc = differs(inverse, &t, &r, &soft, &is, e);

	if (rc <= 0)
		return rc;
	*was_there = true;
	return unless_ended(&t, apply(&t, r, soft, e));
}

static int limits_verify(const json_t *inverse, struct err *e)
{
	const struct resource *r;
	int64_t soft, is;
	struct target t;
	int rc = differs(inverse, &t, &r, &soft, &is, e);

	return rc <= 0
		? rc
		: err_set(e, -EBUSY, "limit %s of process %d is still %" PRId64 ", not %" PRId64,
			  r->name, (int)t.pid, is, soft);
}

const struct primitive limits_primitive = {
	.name = "limits",
	.ends_with_boot = true,
	.undo = limits_undo,
	.verify_undone = limits_verify,
};
