/*
 * Limits the rate of a server's own requests to a disk: its processes move to a control group with
 * a limit (version 1: blkio.throttle, version 2: io.max), and back to the groups that they were in.
 *
 * What the server writes through the page cache is limited with version 2 only: version 1 counts it
 * for the kernel's own writers.
 */
#include "faults/primitives/disk_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"
#include "harness/base/auto.h"
#include "harness/base/cgroup.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"

#define LOOKS 20 /* at the processes, until no new one is found */
#define UNDO_S 10

static int group_put(const char *group, const char *file, const char *text)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return disk_put(path, text);
}

/* ---- the inverse ---- */

struct cgroup_how {
	const char *group, *root, *device; /* device: "7:0", a whole disk */
	const json_t *processes;           /* [[pid, start_ticks, "own group"], ...] */
	bool enable;                       /* version 2: the top does not hand "io" out */
	int version;
	double rate;
};

static int how_read(const json_t *how, struct cgroup_how *h, struct err *e)
{
	json_t *processes;
	int enable;

	if (json_unpack((json_t *)how, "{s:s, s:s, s:s, s:o, s:b, s:i, s:F}", "group", &h->group,
		    "root", &h->root, "device", &h->device, "processes", &processes, "enable",
		    &enable, "version", &h->version, "rate", &h->rate) < 0 ||
		!strstr(h->group, "/culprit-") || !json_array_size(processes))
		return err_set(e, -EBADMSG, "the inverse of a limited disk is damaged");
	h->processes = processes;
	h->enable = enable;
	return 0;
}

/* The disk of a partition: limits are on whole disks. */
static int whole_disk(const struct disk_storage *d, char out[32], struct err *e)
{
	char path[96];

	if (!d->major)
		return err_set(e, -ENOTSUP, "%s is no block device", d->path);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", d->major, d->minor);
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u%s/dev", d->major, d->minor,
		access(path, F_OK) ? "" : "/..");
	return procfs_line(path, out, 32, e);
}

static int place_of(pid_t pid, struct cgroup_place *p, struct err *e)
{
	auto_free char *mountinfo = NULL, *groups = NULL;
	int rc = file_read("/proc/self/mountinfo", &mountinfo, NULL, e);

	if (!rc && (rc = procfs_read(pid, "cgroup", &groups, NULL)))
		err_errno(e, rc, "cannot read the control group of process %d", (int)pid);
	if (rc)
		return rc;
	*p = cgroup_place(mountinfo, groups, CGROUP_IO);
	return p->version
		? 0
		: err_set(e, -ENOTSUP, "there is no control group with blkio or io for process %d",
			  (int)pid);
}

/* All processes with their groups; 'top' is the hierarchy. */
static int list_processes(const json_t *pids, struct cgroup_place *top, json_t *list, struct err *e)
{
	auto_targets struct targets all = {0};
	json_t *one;
	size_t i;
	int rc = 0;

	json_array_foreach((json_t *)pids, i, one) {
		struct target t;

		rc = rc ?: target_open((pid_t)json_integer_value(one), &t, e)
			?: targets_add(&all, &t);
	}
	rc = rc ?: targets_look(&all, e);
	for (int k = 0; k < all.n && rc >= 0; k++) {
		rc = place_of(all.list[k].pid, top, e);
		if (!rc &&
			json_array_append_new(list,
				json_pack("[I, I, s]", (json_int_t)all.list[k].pid,
					(json_int_t)all.list[k].ticks, top->own)))
			rc = err_errno(e, -ENOMEM, "cannot list processes");
	}
	return rc == -ENOMEM ? err_errno(e, rc, "cannot list processes") : rc < 0 ? rc : 0;
}

/* Version 2: do the groups below the top have "io"? */
static bool hands_out(const struct cgroup_place *top)
{
	auto_free char *has = cgroup_read(top->root, "cgroup.subtree_control");
	const char *at = has ? strstr(has, "io") : NULL;

	return at && (at == has || at[-1] == ' ') && strchr(" \n", at[2]);
}

static int cgroup_prepare(const struct disk_spec *s, const struct disk_storage *d, const char *dir,
	const char *name, json_t **how, struct err *e)
{
	auto_json json_t *list = json_array();
	struct cgroup_place top = {0};
	char device[32], group[PATH_MAX + 64];
	int rc;

	(void)dir;
	if (s->latency_s > 0 || s->factor > 0 || s->stall_s > 0 || s->errors_pct > 0)
		return err_set(e, -ENOTSUP, "a control group can limit its rate only");
	if (!json_array_size(s->pids))
		return err_set(e, -ENOTSUP, "for a control group the server's 'pids' are missing");
	rc = whole_disk(d, device, e) ?: list_processes(s->pids, &top, list, e);
	if (rc)
		return rc;
	snprintf(group, sizeof(group), "%s/culprit-%s", top.root, name);
	if (access(top.root, W_OK))
		return err_errno(e, -ENOTSUP, "no group can be made in '%s'", top.root);
	*how = json_pack("{s:s, s:s, s:s, s:O, s:b, s:i, s:f}", "group", group, "root", top.root,
		"device", device, "processes", list, "enable", top.version == 2 && !hands_out(&top),
		"version", (int)top.version, "rate", s->rate);
	return *how ? 0 : err_errno(e, -ENOMEM, "cannot describe the disk of '%s'", s->path);
}

/* ---- act ---- */

/* 0 or -errno. No rate: no limit. */
static int limit_rate(const struct cgroup_how *h, double rate)
{
	char text[128];

	if (h->version == 2) {
		if (rate > 0)
			snprintf(text, sizeof(text), "%s rbps=%.0f wbps=%.0f", h->device, rate,
				rate);
		else
			snprintf(text, sizeof(text), "%s rbps=max wbps=max", h->device);
		return group_put(h->group, "io.max", text);
	}
	snprintf(text, sizeof(text), "%s %.0f", h->device, rate);
	return group_put(h->group, "blkio.throttle.read_bps_device", text)
		?: group_put(h->group, "blkio.throttle.write_bps_device", text);
}

/* Moves a process with all its threads. One that has ended is moved. */
static int join(const char *group, pid_t pid)
{
	char text[32];
	int rc;

	snprintf(text, sizeof(text), "%d", (int)pid);
	rc = group_put(group, "cgroup.procs", text);
	return rc == -ESRCH ? 0 : rc;
}

/* One that is forked while its parent moves may be left out: so again, until all are known. */
static int join_all(const struct cgroup_how *h, struct err *e)
{
	auto_targets struct targets all = {0};
	json_t *one;
	size_t i;
	int rc = 0, moved = 0;

	json_array_foreach((json_t *)h->processes, i, one) {
		struct target t = {.pid = (pid_t)json_integer_value(json_array_get(one, 0)),
			.ticks = (uint64_t)json_integer_value(json_array_get(one, 1))};

		rc = rc ?: targets_add(&all, &t);
	}
	for (int look = 0; look < LOOKS && rc >= 0; look++) {
		rc = targets_look(&all, e);
		if (rc < 0 || (look && !rc && moved == all.n))
			break;
		for (int k = 0; k < all.n && rc >= 0; k++) {
			rc = join(h->group, all.list[k].pid);
			if (rc)
				err_errno(e, rc, "cannot move process %d to '%s'",
					(int)all.list[k].pid, h->group);
		}
		moved = all.n;
	}
	return rc == -ENOMEM ? err_errno(e, rc, "cannot list processes") : rc < 0 ? rc : 0;
}

static int cgroup_act(const json_t *how, struct err *e)
{
	struct cgroup_how h;
	int rc = how_read(how, &h, e);

	if (rc)
		return rc;
	if (h.enable && (rc = group_put(h.root, "cgroup.subtree_control", "+io")))
		return err_errno(e, rc, "cannot enable 'io' below '%s'", h.root);
	if (mkdir(h.group, 0755) < 0)
		return err_errno(e, -errno, "cannot make the control group '%s'", h.group);
	rc = limit_rate(&h, h.rate);
	return rc ? err_errno(e, rc, "cannot limit %s in '%s'", h.device, h.group)
		  : join_all(&h, e);
}

/* The bytes that the group has read and written on the disk. */
static uint64_t group_bytes(const struct cgroup_how *h)
{
	auto_free char *text = cgroup_read(
		h->group, h->version == 2 ? "io.stat" : "blkio.throttle.io_service_bytes");
	unsigned long long r = 0, w = 0, n;
	const size_t length = strlen(h->device);

	if (!text)
		return 0;
	PROCFS_EACH_LINE(line, text)
	{
		if (strncmp(line, h->device, length) || line[length] != ' ')
			continue;
		if (h->version == 2)
			sscanf(line + length, " rbytes=%llu wbytes=%llu", &r, &w);
		else if (sscanf(line + length, " Total %llu", &n) == 1)
			r = n;
	}
	return r + w;
}

static int cgroup_count(const json_t *how, json_t *out, struct err *e)
{
	struct cgroup_how h;
	int rc = how_read(how, &h, e);

	if (rc)
		return rc;
	json_object_set_new(out, "bytes", json_integer((json_int_t)group_bytes(&h)));
	return 0;
}

/* ---- undo ---- */

/* To the group that the inverse has for it; what was forked since, to the first one's. */
static int leave(const struct cgroup_how *h, pid_t pid)
{
	const json_t *first = json_array_get(h->processes, 0);
	const char *own = json_string_value(json_array_get(first, 2));
	json_t *one;
	size_t i;
	int rc;

	json_array_foreach((json_t *)h->processes, i, one) {
		if (json_integer_value(json_array_get(one, 0)) == pid)
			own = json_string_value(json_array_get(one, 2));
	}
	rc = own ? join(own, pid) : -ENOENT;
	/* A service that ended has taken its group with it. */
	return rc == -ENOENT ? join(h->root, pid) : rc;
}

/* 1, 0, or -errno if that cannot be found out. */
static int group_is_there(const struct cgroup_how *h)
{
	return !access(h->group, F_OK) ? 1 : errno == ENOENT ? 0 : -errno;
}

/* Once. The first failure. */
static int leave_all(const struct cgroup_how *h)
{
	auto_free char *text = NULL;
	char path[PATH_MAX + 64];
	int rc;

	snprintf(path, sizeof(path), "%s/cgroup.procs", h->group);
	rc = file_read(path, &text, NULL, NULL);
	if (rc)
		return rc;
	PROCFS_EACH_LINE(line, text)
	{
		pid_t pid = atoi(line);

		rc = rc ?: pid > 0 ? leave(h, pid) : 0;
	}
	return rc;
}

static int cgroup_undo(const json_t *how, bool *was_there, struct err *e)
{
	double deadline = clock_mono_s() + UNDO_S;
	struct cgroup_how h;
	int rc = how_read(how, &h, e), there;

	if (rc)
		return rc;
	there = group_is_there(&h);
	if (there < 0)
		return err_errno(e, there, "cannot look at the control group '%s'", h.group);
	if (there) {
		*was_there = true;
		/* What waits for its turn passes now. */
		limit_rate(&h, 0);
		do {
			rc = leave_all(&h);
			if (!rc && rmdir(h.group) < 0 && errno != ENOENT)
				rc = -errno;
		} while (rc == -EBUSY && procfs_nap(deadline));
		if (rc)
			return err_errno(e, rc, "cannot remove the control group '%s'", h.group);
	}
	/* Others may have begun to use it in the meantime. */
	if (h.enable)
		group_put(h.root, "cgroup.subtree_control", "-io");
	return 0;
}

static int cgroup_verify(const json_t *how, struct err *e)
{
	struct cgroup_how h;
	int rc = how_read(how, &h, e);

	rc = rc ?: group_is_there(&h);
	return rc > 0 ? err_set(e, -EBUSY, "the control group '%s' is still there", h.group)
		: rc  ? err_errno(e, rc, "cannot look for a control group")
		      : 0;
}

const struct disk_backend disk_cgroup = {
	.name = "cgroup",
	.prepare = cgroup_prepare,
	.act = cgroup_act,
	.count = cgroup_count,
	.undo = cgroup_undo,
	.verify_undone = cgroup_verify,
};
