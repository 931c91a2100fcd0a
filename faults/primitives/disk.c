/* Slows the disk of a server's storage. */
#include "faults/primitives/disk_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/readonly.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"

#define SECTOR 512

static const struct disk_backend *const backends[] = {&disk_lab, &disk_cgroup};

static const struct disk_backend *backend_find(const char *name)
{
	for (size_t i = 0; name && i < 2; i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}

int disk_put(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* ---- the storage's device ---- */

static int find_device(const char *path, struct disk_storage *d, struct err *e)
{
	struct mounted m;
	struct stat st;
	int rc;

	if (!stat(path, &st) && S_ISBLK(st.st_mode)) {
		*d = (struct disk_storage){.major = major(st.st_rdev), .minor = minor(st.st_rdev)};
		snprintf(d->path, sizeof(d->path), "%s", path);
		return 0;
	}
	rc = mounted_at(path, &m, e);
	if (rc)
		return rc;
	*d = (struct disk_storage){.major = m.major, .minor = m.minor};
	snprintf(d->path, sizeof(d->path), "%s", m.source);
	return 0;
}

/* The numbers in /sys/dev/block/MAJOR:MINOR/stat (Documentation/block/stat.rst): requests and
 * sectors that were read and written, and their milliseconds. */
static int device_stat(const char *device, json_t *out, struct err *e)
{
	unsigned long long r, r_sectors, r_ms, w, w_sectors, w_ms, in_flight;
	char path[64], line[512];
	int rc;

	snprintf(path, sizeof(path), "/sys/dev/block/%.20s/stat", device);
	rc = procfs_line(path, line, sizeof(line), e);
	if (rc)
		return rc;
	if (sscanf(line, "%llu %*u %llu %llu %llu %*u %llu %llu %llu", &r, &r_sectors, &r_ms, &w,
		    &w_sectors, &w_ms, &in_flight) != 7)
		return err_set(e, -EBADMSG, "'%s' is not as expected", path);
	json_object_set_new(out, "ios", json_integer((json_int_t)(r + w)));
	json_object_set_new(out, "ios_s", json_real((double)(r_ms + w_ms) / 1e3));
	json_object_set_new(
		out, "bytes", json_integer((json_int_t)(r_sectors + w_sectors) * SECTOR));
	json_object_set_new(out, "in_flight", json_integer((json_int_t)in_flight));
	return 0;
}

/* ---- act ---- */

static int check_spec(const struct disk_spec *s, struct err *e)
{
	if (!(s->latency_s > 0 || s->rate > 0 || s->factor > 0 || s->stall_s > 0 ||
		    s->errors_pct > 0))
		return err_set(e, -EINVAL,
			"say what the disk is to be: latency_s, rate, factor, stall_s or "
			"errors_pct");
	if (s->every_s > 0 && s->every_s < s->stall_s + 0.1)
		return err_set(e, -EINVAL,
			"a stall of %g s in each %g s leaves less than 0.1 s for work", s->stall_s,
			s->every_s);
	return 0;
}

static int prepare_repair(
	const struct disk_spec *s, const char *dir, json_t **repair, struct err *e)
{
	struct stat st;

	if (!stat(s->path, &st) && S_ISBLK(st.st_mode))
		return err_set(e, -ENOTSUP,
			"'%s' is a block device: what a server keeps there could not be repaired",
			s->path);
	return readonly_prepare(s->path, s->pid, dir, repair, e);
}

/* The first backend that can; all their reasons if none can. */
static int choose(const struct disk_spec *s, const struct disk_storage *d, const char *dir,
	const char *name, const struct disk_backend **backend, json_t **how, struct err *e)
{
	struct err why[2] = {{""}, {""}};

	for (size_t i = 0; i < 2; i++) {
		int rc;

		if (s->backend && strcmp(s->backend, backends[i]->name))
			continue;
		rc = backends[i]->prepare(s, d, dir, name, how, &why[i]);
		if (!rc)
			*backend = backends[i];
		if (rc != -ENOTSUP)
			return rc ? err_set(e, rc, "%s", why[i].text) : 0;
	}
	return err_set(e, -ENOTSUP, "the disk of '%.200s' cannot be made so: %.300s%s%.300s",
		s->path, why[0].text, *why[0].text && *why[1].text ? ", and " : "", why[1].text);
}

int disk_prepare(const struct disk_spec *s, const char *dir, const char *name, json_t **inverse,
	struct err *e)
{
	auto_json json_t *how = NULL, *repair = NULL;
	const struct disk_backend *backend = NULL;
	struct disk_storage d;
	char device[32];
	int rc = check_spec(s, e) ?: find_device(s->path, &d, e);

	if (!rc && geteuid() != 0)
		rc = err_set(e, -EPERM, "slowing a disk needs root");
	rc = rc ?: choose(s, &d, dir, name, &backend, &how, e);
	if (!rc && s->errors_pct > 0)
		rc = prepare_repair(s, dir, &repair, e);
	if (rc)
		return rc;
	snprintf(device, sizeof(device), "%u:%u", d.major, d.minor);
	*inverse = json_pack("{s:s, s:s, s:f, s:O, s:O*}", "backend", backend->name, "device",
		device, "begun_s", clock_mono_s(), "how", how, "repair", repair);
	return *inverse ? 0 : err_errno(e, -ENOMEM, "cannot describe the disk of '%s'", s->path);
}

/* The inverse, read. */
struct disk_inverse {
	const struct disk_backend *backend;
	const char *device;
	const json_t *how, *repair; /* repair NULL: there is no file system to repair */
	double begun_s;
};

static int disk_inverse_read(const json_t *inverse, struct disk_inverse *i, struct err *e)
{
	*i = (struct disk_inverse){.backend = backend_find(jget_text(inverse, "backend")),
		.device = jget_text(inverse, "device"),
		.how = jget(inverse, "how"),
		.repair = jget(inverse, "repair"),
		.begun_s = jget_real(inverse, "begun_s")};
	return i->backend && i->device && i->how
		? 0
		: err_set(e, -EBADMSG, "the inverse of a slow disk is damaged");
}

const char *disk_backend_name(const json_t *inverse)
{
	return jget_text(inverse, "backend");
}

int disk_act(const json_t *inverse, struct err *e)
{
	struct disk_inverse i;

	return disk_inverse_read(inverse, &i, e) ?: i.backend->act(i.how, e);
}

int disk_counters(const json_t *inverse, json_t **out, struct err *e)
{
	auto_json json_t *all = NULL;
	struct disk_inverse i;
	int rc = disk_inverse_read(inverse, &i, e);

	if (rc)
		return rc;
	all = json_pack(
		"{s:s, s:f}", "backend", i.backend->name, "seconds", clock_mono_s() - i.begun_s);
	if (!all)
		return err_errno(e, -ENOMEM, "cannot read the disk's counters");
	rc = device_stat(i.device, all, e) ?: i.backend->count(i.how, all, e);
	if (!rc)
		*out = AUTO_TAKE(all);
	return rc;
}

static int disk_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct disk_inverse i;
	int rc = disk_inverse_read(inverse, &i, e) ?: i.backend->undo(i.how, was_there, e);

	return rc || !i.repair ? rc : readonly_primitive.undo(i.repair, was_there, e);
}

static int disk_verify(const json_t *inverse, struct err *e)
{
	struct disk_inverse i;
	int rc = disk_inverse_read(inverse, &i, e) ?: i.backend->verify_undone(i.how, e);

	return rc || !i.repair ? rc : readonly_primitive.verify_undone(i.repair, e);
}

const struct primitive disk_primitive = {
	.name = "disk",
	.ends_with_boot = true,
	.undo = disk_undo,
	.verify_undone = disk_verify,
};

/* A file system that has met errors stays broken over a reboot. */
const struct primitive disk_errors_primitive = {
	.name = "disk-errors",
	.slow = true,
	.undo = disk_undo,
	.verify_undone = disk_verify,
};
