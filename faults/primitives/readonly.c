#include "faults/primitives/readonly.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/server.h"
#include "faults/primitives/storage.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define LOCK_WAIT_S 900 /* another e2fsck may hold it */
#define CHECK_S 3600
#define BUSY_S 20
#define GRACE_S 3

struct readonly_inverse {
	const char *dir, *point, *source, *super, *data, *uuid, *boot, *sysfs;
	json_int_t flags, errors;
	int major, minor, by_error;
	json_t *server; /* NULL: none */
};

static int read_inverse(const json_t *j, struct readonly_inverse *i, struct err *e)
{
	if (json_unpack((json_t *)j,
		    "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:b, s:o}", "dir",
		    &i->dir, "point", &i->point, "source", &i->source, "super", &i->super, "data",
		    &i->data, "uuid", &i->uuid, "boot", &i->boot, "sysfs", &i->sysfs, "flags",
		    &i->flags, "errors", &i->errors, "major", &i->major, "minor", &i->minor,
		    "by_error", &i->by_error, "server", &i->server) < 0 ||
		i->dir[0] != '/' || i->point[0] != '/' || !i->point[1])
		return err_set(e, -EBADMSG, "the inverse of a read-only file system is damaged");
	i->server = json_is_object(i->server) ? i->server : NULL;
	return 0;
}

/* ext4's UUID as 32 hexadecimal digits. */
static int read_uuid(const char *device, char out[33], struct err *e)
{
	unsigned char uuid[16], magic[2];
	int fd = open(device, O_RDONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", device);
	if (pread(fd, magic, 2, 1024 + 0x38) != 2 || pread(fd, uuid, 16, 1024 + 0x68) != 16)
		rc = err_errno(e, errno ? -errno : -EIO, "cannot read '%s'", device);
	else if (magic[0] != 0x53 || magic[1] != 0xef)
		rc = err_set(e, -EINVAL, "there is no ext4 on '%s'", device);
	for (int i = 0; i < 16 && !rc; i++)
		snprintf(out + 2 * i, 3, "%02x", uuid[i]);
	close(fd);
	return rc;
}

static char *read_boot(void)
{
	char *text = NULL;

	if (!file_read("/proc/sys/kernel/random/boot_id", &text, NULL, NULL))
		text[strcspn(text, "\n")] = '\0';
	return text;
}

/* -errno if that cannot be found out. */
static long errors_count(const char *sysfs, struct err *e)
{
	char path[128], *text;
	long n;

	snprintf(path, sizeof(path), "%s/errors_count", sysfs);
	n = file_read(path, &text, NULL, e);
	if (!n) {
		n = atol(text);
		free(text);
	}
	return n;
}

/* "/sys/fs/ext4/DEV", under the kernel's own name of the device. 1, 0 if errors cannot be triggered
 * there, or -errno if that cannot be found out. */
static int find_sysfs(const struct mounted *m, char *out, size_t size)
{
	char path[64], link[512], trigger[200];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", m->major, m->minor);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	link[n] = '\0';
	snprintf(out, size, "/sys/fs/ext4/%.80s", basename(link));
	snprintf(trigger, sizeof(trigger), "%.120s/trigger_fs_error", out);
	return !access(trigger, W_OK);
}

int readonly_prepare(const char *path, pid_t pid, const char *dir, json_t **out, struct err *e)
{
	struct mounted *m = calloc(2, sizeof(*m)), *own = m ? m + 1 : NULL;
	char uuid[33] = "", sysfs[128] = "", data[512], *boot = read_boot();
	json_t *server = NULL, *inverse;
	struct stat st;
	unsigned long flags;
	long errors = 0;
	int by_error = 0, rc = -ENOMEM;

	if (!m || !boot) {
		err_errno(e, rc, "cannot look at '%s'", path);
		goto out;
	}
	rc = mounted_at(path, m, e);
	if (!rc)
		rc = mounted_at(dir, own, e);
	if (rc)
		goto out;
	if (geteuid() != 0)
		rc = err_set(e, -EPERM, "making '%s' read-only needs root", path);
	else if (!strcmp(m->point, "/"))
		rc = err_set(e, -EPERM,
			"'%s' lies on the root file system: the storage must be a mount of its own",
			path);
	else if (m->major == own->major && m->minor == own->minor)
		rc = err_set(e, -EPERM,
			"'%s' lies on the same file system as the agent's journal in '%s'", path,
			dir);
	else if (mounted_readonly(m))
		rc = err_set(e, -EROFS, "'%s' is read-only already", m->point);
	if (rc)
		goto out;
	if (!strcmp(m->type, "ext4") && !strcmp(m->root, "/") && !stat(m->source, &st) &&
		S_ISBLK(st.st_mode) && st.st_rdev == makedev(m->major, m->minor))
		by_error = find_sysfs(m, sysfs, sizeof(sysfs));
	if (by_error < 0)
		rc = err_errno(e, by_error, "cannot look at the device of '%s'", path);
	else if (by_error)
		rc = read_uuid(m->source, uuid, e);
	if (!rc && by_error && (errors = errors_count(sysfs, e)) < 0)
		rc = (int)errors;
	if (!rc && pid)
		rc = server_learn(pid, &server, e);
	if (rc)
		goto out;
	flags = mounted_flags(m, data);
	inverse = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:b, s:O?}", "dir",
		dir, "point", m->point, "source", m->source, "super", m->super, "data", data,
		"uuid", uuid, "boot", boot, "sysfs", sysfs, "flags", (json_int_t)flags, "errors",
		(json_int_t)errors, "major", (int)m->major, "minor", (int)m->minor, "by_error",
		by_error, "server", server);
	if (inverse)
		*out = inverse;
	else
		rc = err_errno(e, -ENOMEM, "cannot describe '%s'", path);
out:
	json_decref(server);
	free(boot);
	free(m);
	return rc;
}

static int trigger(const struct readonly_inverse *i, struct err *e)
{
	char path[200], with[600];
	int fd, rc = 0;

	/* errors=panic would stop the host, and errors=continue would do nothing. */
	if (!strstr(i->super, "errors=remount-ro")) {
		snprintf(with, sizeof(with), "%s%serrors=remount-ro", i->data, *i->data ? "," : "");
		if (mount(NULL, i->point, NULL, MS_REMOUNT | (unsigned long)i->flags, with) < 0)
			return err_errno(
				e, -errno, "cannot set errors=remount-ro on '%s'", i->point);
	}
	fd = open(i->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		if (syncfs(fd) < 0)
			rc = err_errno(e, -errno, "cannot sync '%s'", i->point);
		close(fd);
	}
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%.120s/trigger_fs_error", i->sysfs);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", path);
	if (write(fd, "1", 1) < 0)
		rc = err_errno(e, -errno, "cannot write '%s'", path);
	close(fd);
	return rc;
}

int readonly_act(const json_t *inverse, struct err *e)
{
	struct readonly_inverse i;
	int lock, rc;

	rc = read_inverse(inverse, &i, e);
	if (!rc)
		rc = server_lock(i.dir, LOCK_WAIT_S, &lock, e);
	if (rc)
		return rc;
	if (i.by_error)
		rc = trigger(&i, e);
	else if (mount(NULL, i.point, NULL, MS_REMOUNT | MS_RDONLY | (unsigned long)i.flags,
			 i.data) < 0)
		rc = err_errno(e, -errno, "cannot remount '%s' read-only%s", i.point,
			errno == EBUSY ? ": files are open for writing" : "");
	close(lock);
	return rc;
}

/* ---- undo ---- */

static bool is_mounted(const struct readonly_inverse *i, struct mounted *m)
{
	return !mounted_at(i->point, m, NULL) && !strcmp(m->point, i->point) &&
		!strcmp(m->source, i->source);
}

static bool is_healthy(const struct readonly_inverse *i)
{
	struct mounted *m = malloc(sizeof(*m));
	bool healthy;
	long errors = 0;

	if (i->by_error)
		errors = errors_count(i->sysfs, NULL);
	healthy = m && is_mounted(i, m) && !mounted_readonly(m) && !strcmp(m->super, i->super) &&
		errors >= 0 && errors <= i->errors;
	free(m);
	return healthy;
}

/* The kernel keeps the device busy for a moment after the last unmount. */
static int wait_unused(const char *device, struct err *e)
{
	double deadline = clock_mono_s() + BUSY_S;
	int fd;

	while ((fd = open(device, O_RDONLY | O_EXCL | O_CLOEXEC)) < 0)
		if (errno != EBUSY || !procfs_nap(deadline))
			return err_errno(
				e, -errno, "cannot check '%s': something still uses it", device);
	close(fd);
	return 0;
}

static int unmount(const struct readonly_inverse *i, struct err *e)
{
	double deadline = clock_mono_s() + BUSY_S;
	struct mounted *m = malloc(sizeof(*m));
	int rc = m ? 0 : err_errno(e, -ENOMEM, "cannot unmount '%s'", i->point);

	while (!rc && is_mounted(i, m))
		if (umount2(i->point, UMOUNT_NOFOLLOW) < 0 &&
			(errno != EBUSY || !procfs_nap(deadline)))
			rc = err_errno(e, -errno, "cannot unmount '%s' to check it", i->point);
	free(m);
	return rc;
}

static int repair(const struct readonly_inverse *i, int lock, struct err *e)
{
	const char *const argv[] = {"e2fsck", "-fy", i->source, NULL};
	/* A loop device may be detached at its last close, so one descriptor stays open. */
	int hold = open(i->source, O_RDONLY);
	char uuid[33];
	int rc = hold < 0 ? err_errno(e, -errno, "cannot open '%s'", i->source)
			  : read_uuid(i->source, uuid, e);

	/* After a reboot the name may be another disk's. */
	if (!rc && strcmp(uuid, i->uuid))
		rc = err_set(e, -EXDEV,
			"'%s' is not the file system any more that was made read-only", i->source);
	if (rc)
		goto out;
	rc = unmount(i, e);
	if (!rc)
		rc = wait_unused(i->source, e);
	if (!rc)
		rc = storage_run(argv, lock, CHECK_S, 3, e);
	if (!rc && mount(i->source, i->point, "ext4", (unsigned long)i->flags, i->data) < 0)
		rc = err_errno(e, -errno, "cannot mount '%s' on '%s'", i->source, i->point);
	/* Keeps the loop device for the next try. Refused if it is still mounted. */
	if (rc)
		mount(i->source, i->point, "ext4", MS_RDONLY | (unsigned long)i->flags, i->data);
out:
	fd_close(hold);
	return rc;
}

static bool same_boot(const struct readonly_inverse *i)
{
	char *boot = read_boot();
	bool same = boot && !strcmp(boot, i->boot);

	free(boot);
	return same;
}

static int readonly_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct readonly_inverse i;
	int lock, rc;

	rc = read_inverse(inverse, &i, e);
	if (!rc)
		rc = server_lock(i.dir, LOCK_WAIT_S, &lock, e);
	if (rc)
		return rc;
	if (!is_healthy(&i)) {
		*was_there = true;
		if (!i.by_error &&
			mount(NULL, i.point, NULL, MS_REMOUNT | (unsigned long)i.flags, i.data) < 0)
			rc = err_errno(e, -errno, "cannot remount '%s'", i.point);
		if (i.by_error && i.server && same_boot(&i))
			rc = server_stop(i.server, GRACE_S, was_there, e);
		if (i.by_error && !rc)
			rc = repair(&i, lock, e);
	}
	/* After a reboot, servers were started by the boot. */
	if (!rc && i.server && same_boot(&i))
		rc = server_restore(i.server, false, lock, was_there, e);
	close(lock);
	return rc;
}

static int readonly_verify(const json_t *inverse, struct err *e)
{
	struct readonly_inverse i;
	int rc = read_inverse(inverse, &i, e);

	if (rc)
		return rc;
	if (!is_healthy(&i))
		return err_set(
			e, -EBUSY, "'%s' is not mounted as it was, or holds errors", i.point);
	return i.server && same_boot(&i) ? server_verify(i.server, false, e) : 0;
}

const struct primitive readonly_primitive = {
	.name = "readonly",
	.slow = true,
	.undo = readonly_undo,
	.verify_undone = readonly_verify,
};
