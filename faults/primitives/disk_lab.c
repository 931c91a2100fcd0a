/* Slows a modelled disk of 'culprit lab' through its control file. */
#include "faults/primitives/disk_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/procfs.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"

#define CONTROL "/run/culprit/disk" /* LAB_CONTROL of harness/lab/lab_impl.h */

/* 1, 0, or -errno if that cannot be found out. Asks no more of other files at this place. */
static int control_is_there(void)
{
	struct statfs fs;

	if (statfs(CONTROL, &fs) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return fs.f_type == FUSE_SUPER_MAGIC;
}

/* {"state": {...}, "counters": {...}}. -ENOENT: the disk is gone, and its node will be. */
static int control_get(json_t **out, struct err *e)
{
	auto_json json_t *got = NULL;
	auto_free char *text = NULL;
	int rc = control_is_there();

	if (rc > 0)
		rc = file_read(CONTROL, &text, NULL, e);
	else
		rc = err_errno(e, rc ?: -ENOENT, "cannot read '%s'", CONTROL);
	if (rc)
		return rc == -ENOTCONN || rc == -ECONNABORTED ? -ENOENT : rc;
	got = json_loads(text, 0, NULL);
	if (!json_is_object(jget(got, "state")))
		return err_set(e, -EBADMSG, "'%s' is not a disk's control file", CONTROL);
	*out = AUTO_TAKE(got);
	return 0;
}

static int control_set(const json_t *state, struct err *e)
{
	auto_free char *text = json_dumps(state, JSON_COMPACT);
	int rc = text ? disk_put(CONTROL, text) : -ENOMEM;

	return rc ? err_errno(e, rc, "the disk does not take %s", text ?: "its state") : 0;
}

/* Is every member 0? */
static bool is_plain(const json_t *state)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)state, key, v) {
		if (json_number_value(v) != 0)
			return false;
	}
	return true;
}

void disk_fingerprint(char *buf, size_t size)
{
	auto_json json_t *now = NULL;
	auto_free char *text = NULL;

	*buf = '\0';
	if (control_get(&now, NULL))
		return;
	text = json_dumps(jget(now, "state"), JSON_COMPACT);
	snprintf(buf, size, "modelled-disk %s", text ?: "");
}

/* Is the device a loop device, or a partition of one? */
static bool is_loop(const struct disk_storage *d)
{
	static const char *const of[] = {"", "/.."};
	char path[96];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u%s/loop/backing_file", d->major,
			d->minor, of[i]);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

/* Does the device lie on the disk that the control file is of? It does if the loop device's file
 * is in the same file system. 1, 0 or -errno. */
static int is_controlled(const struct disk_storage *d, struct err *e)
{
	struct loop_info64 info;
	struct stat control;
	auto_fd int fd = -1;
	int rc = control_is_there();

	if (rc <= 0 || !is_loop(d))
		return rc < 0 ? err_errno(e, rc, "cannot look at '%s'", CONTROL) : 0;
	fd = open(d->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0 || stat(CONTROL, &control) < 0)
		return err_errno(e, -errno, "cannot look at the device '%s'", d->path);
	return info.lo_device == control.st_dev;
}

/* The journal must never wait for the disk. */
static int check_journal(const struct disk_storage *d, const char *dir, struct err *e)
{
	struct mounted own;
	int rc = mounted_at(dir, &own, e);

	return !rc && own.major == d->major && own.minor == d->minor
		? err_set(e, -EPERM,
			  "the agent's journal in '%s' lies on the same device, %s: the undo must "
			  "not wait for it",
			  dir, d->path)
		: rc;
}

static int lab_prepare(const struct disk_spec *s, const struct disk_storage *d, const char *dir,
	const char *name, json_t **how, struct err *e)
{
	auto_json json_t *now = NULL;
	int rc = is_controlled(d, e);

	(void)name;
	if (rc < 0)
		return rc;
	if (!rc)
		return err_set(e, -ENOTSUP, "%s is not a disk of 'culprit lab'", d->path);
	rc = check_journal(d, dir, e) ?: control_get(&now, e);
	if (rc)
		return rc;
	if (!is_plain(jget(now, "state")))
		return err_set(e, -EBUSY, "the disk of '%s' is slowed already", s->path);
	*how = json_pack("{s:O, s:O, s:{s:f, s:f, s:f, s:f, s:f, s:f}}", "was", jget(now, "state"),
		"counted", jget(now, "counters"), "state", "latency_s", s->latency_s, "rate",
		s->rate, "factor", s->factor, "stall_s", s->stall_s, "every_s", s->every_s,
		"errors_pct", s->errors_pct);
	return *how ? 0 : err_errno(e, -ENOMEM, "cannot describe the disk of '%s'", s->path);
}

static int lab_read(const json_t *how, const json_t **was, const json_t **state, struct err *e)
{
	*was = jget(how, "was");
	*state = jget(how, "state");
	return json_is_object(*was) && json_is_object(*state)
		? 0
		: err_set(e, -EBADMSG, "the inverse of a slow disk is damaged");
}

static int lab_act(const json_t *how, struct err *e)
{
	const json_t *was, *state;

	return lab_read(how, &was, &state, e) ?: control_set(state, e);
}

/* Since the act: what the disk had counted before is in the inverse. */
static int lab_count(const json_t *how, json_t *out, struct err *e)
{
	const json_t *before = jget(how, "counted");
	auto_json json_t *now = NULL;
	const char *key;
	json_t *v;
	int rc = control_get(&now, e);

	if (rc)
		return rc;
	json_object_foreach(jget(now, "counters"), key, v) {
		json_object_set_new(out, key,
			json_is_integer(v)
				? json_integer(json_integer_value(v) - jget_int(before, key))
				: json_real(json_number_value(v) - jget_real(before, key)));
	}
	return 0;
}

/* 1 if the disk is not as it was, 0, or -errno. One that is gone is as it was. */
static int lab_is_changed(const json_t *was, struct err *e)
{
	auto_json json_t *now = NULL;
	int rc = control_get(&now, e);

	return rc == -ENOENT ? 0 : rc ?: !json_equal(jget(now, "state"), was);
}

static int lab_undo(const json_t *how, bool *was_there, struct err *e)
{
	const json_t *was, *state;
	int rc = lab_read(how, &was, &state, e) ?: lab_is_changed(was, e);

	if (rc <= 0)
		return rc;
	*was_there = true;
	return control_set(was, e);
}

static int lab_verify(const json_t *how, struct err *e)
{
	const json_t *was, *state;
	int rc = lab_read(how, &was, &state, e) ?: lab_is_changed(was, e);

	return rc > 0 ? err_set(e, -EBUSY, "the disk's '%s' is not as it was", CONTROL) : rc;
}

const struct disk_backend disk_lab = {
	.name = "lab",
	.prepare = lab_prepare,
	.act = lab_act,
	.count = lab_count,
	.undo = lab_undo,
	.verify_undone = lab_verify,
};
