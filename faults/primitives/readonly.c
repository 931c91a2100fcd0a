/* Makes a server's file system read-only and restores it. */
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
#include "harness/base/text.h"

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
	auto_fd int fd = open(device, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", device);
	if (pread(fd, magic, 2, 1024 + 0x38) != 2 || pread(fd, uuid, 16, 1024 + 0x68) != 16)
		return err_errno(e, errno ? -errno : -EIO, "cannot read '%s'", device);
	if (magic[0] != 0x53 || magic[1] != 0xef)
		return err_set(e, -EINVAL, "there is no ext4 on '%s'", device);
	text_hex(uuid, 16, out);
	return 0;
}

static int read_boot(char out[64], struct err *e)
{
	return procfs_line("/proc/sys/kernel/random/boot_id", out, 64, e);
}

/* -errno if that cannot be found out. */
static long errors_count(const char *sysfs, struct err *e)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "%s/errors_count", sysfs);
	return procfs_line(path, text, sizeof(text), e) ?: atol(text);
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

static int check_mount(const char *path, const struct mounted *m, const char *dir, struct err *e)
{
	struct mounted own;
	struct stat st;
	int rc = mounted_at(dir, &own, e);

	if (rc)
		return rc;
	if (geteuid() != 0)
		return err_set(e, -EPERM, "making '%s' read-only needs root", path);
	if (!stat(path, &st) && S_ISBLK(st.st_mode))
		return err_set(e, -ENOTSUP,
			"'%s' is a block device: there is no file system to turn read-only", path);
	if (!strcmp(m->point, "/"))
		return err_set(e, -EPERM,
			"'%s' lies on the root file system: the storage must be a mount of its own",
			path);
	if (m->major == own.major && m->minor == own.minor)
		return err_set(e, -EPERM,
			"'%s' lies on the same file system as the agent's journal in '%s'", path,
			dir);
	return mounted_readonly(m) ? err_set(e, -EROFS, "'%s' is read-only already", m->point) : 0;
}

/* A remount is refused while files are open for writing; -EBUSY if the server has one open. */
static int check_writers(pid_t pid, const struct mounted *m, struct err *e)
{
	auto_dir DIR *dir = NULL;
	char path[64];
	pid_t fd;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (fd = procfs_next(dir))) {
		auto_free char *text = NULL;
		const char *flags;
		unsigned value;
		struct stat st;

		snprintf(path, sizeof(path), "fdinfo/%d", (int)fd);
		if (fstatat(dirfd(dir), path + strlen("fdinfo/"), &st, 0) < 0 ||
			st.st_dev != makedev(m->major, m->minor) || !S_ISREG(st.st_mode) ||
			procfs_read(pid, path, &text, NULL) ||
			!(flags = procfs_after(text, "flags:")) ||
			sscanf(flags, " %o", &value) != 1 || (value & O_ACCMODE) == O_RDONLY)
			continue;
		return err_set(e, -EBUSY,
			"'%s' (%s) can only be remounted here, which the kernel refuses while "
			"process %d has files on it open for writing",
			m->point, m->type, (int)pid);
	}
	return 0;
}

int readonly_prepare(const char *path, pid_t pid, const char *dir, json_t **out, struct err *e)
{
	char uuid[33] = "", sysfs[128] = "", data[512], boot[64];
	auto_json json_t *server = NULL;
	struct mounted m;
	struct stat st;
	unsigned long flags;
	long errors = 0;
	int by_error = 0, rc = read_boot(boot, e) ?: mounted_at(path, &m, e);

	rc = rc ?: check_mount(path, &m, dir, e);
	if (rc)
		return rc;
	if (!strcmp(m.type, "ext4") && !strcmp(m.root, "/") && !stat(m.source, &st) &&
		S_ISBLK(st.st_mode) && st.st_rdev == makedev(m.major, m.minor))
		by_error = find_sysfs(&m, sysfs, sizeof(sysfs));
	if (by_error < 0)
		return err_errno(e, by_error, "cannot look at the device of '%s'", path);
	if (by_error) {
		rc = read_uuid(m.source, uuid, e);
		if (!rc && (errors = errors_count(sysfs, e)) < 0)
			rc = (int)errors;
	}
	rc = rc ?: (pid ? server_learn(pid, &server, e) : 0);
	if (!rc && pid && !by_error)
		rc = check_writers(pid, &m, e);
	if (rc)
		return rc;
	flags = mounted_flags(&m, data);
	*out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:b, s:O?}",
		"dir", dir, "point", m.point, "source", m.source, "super", m.super, "data", data,
		"uuid", uuid, "boot", boot, "sysfs", sysfs, "flags", (json_int_t)flags, "errors",
		(json_int_t)errors, "major", (int)m.major, "minor", (int)m.minor, "by_error",
		by_error, "server", server);
	return *out ? 0 : err_errno(e, -ENOMEM, "cannot describe '%s'", path);
}

static int trigger(const struct readonly_inverse *i, struct err *e)
{
	char path[200], with[600];
	auto_fd int top = -1, fd = -1;

	/* errors=panic would stop the host, and errors=continue would do nothing. */
	if (!strstr(i->super, "errors=remount-ro")) {
		snprintf(with, sizeof(with), "%s%serrors=remount-ro", i->data, *i->data ? "," : "");
		if (mount(NULL, i->point, NULL, MS_REMOUNT | (unsigned long)i->flags, with) < 0)
			return err_errno(
				e, -errno, "cannot set errors=remount-ro on '%s'", i->point);
	}
	top = open(i->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top >= 0 && syncfs(top) < 0)
		return err_errno(e, -errno, "cannot sync '%s'", i->point);
	snprintf(path, sizeof(path), "%.120s/trigger_fs_error", i->sysfs);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", path);
	return write(fd, "1", 1) < 0 ? err_errno(e, -errno, "cannot write '%s'", path) : 0;
}

static int remount(const struct readonly_inverse *i, unsigned long flags)
{
	return mount(NULL, i->point, NULL, MS_REMOUNT | flags | (unsigned long)i->flags, i->data);
}

/* Reads the inverse and takes the lock; the caller closes it. */
static int open_inverse(const json_t *inverse, struct readonly_inverse *i, int *lock, struct err *e)
{
	return read_inverse(inverse, i, e) ?: server_lock(i->dir, LOCK_WAIT_S, lock, e);
}

int readonly_act(const json_t *inverse, struct err *e)
{
	struct readonly_inverse i;
	auto_fd int lock = -1;
	int rc = open_inverse(inverse, &i, &lock, e);

	if (rc)
		return rc;
	if (i.by_error)
		return trigger(&i, e);
	return remount(&i, MS_RDONLY) < 0
		? err_errno(e, -errno, "cannot remount '%s' read-only%s", i.point,
			  errno == EBUSY ? ": files are open for writing" : "")
		: 0;
}

/* ---- undo ---- */

static bool is_mounted(const struct readonly_inverse *i, struct mounted *m)
{
	return !mounted_at(i->point, m, NULL) && !strcmp(m->point, i->point) &&
		!strcmp(m->source, i->source);
}

static bool is_healthy(const struct readonly_inverse *i)
{
	long errors = i->by_error ? errors_count(i->sysfs, NULL) : 0;
	struct mounted m;

	return is_mounted(i, &m) && !mounted_readonly(&m) && !strcmp(m.super, i->super) &&
		errors >= 0 && errors <= i->errors;
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
	struct mounted m;

	while (is_mounted(i, &m))
		if (umount2(i->point, UMOUNT_NOFOLLOW) < 0 &&
			(errno != EBUSY || !procfs_nap(deadline)))
			return err_errno(e, -errno, "cannot unmount '%s' to check it", i->point);
	return 0;
}

static int repair(const struct readonly_inverse *i, int lock, struct err *e)
{
	const char *const argv[] = {"e2fsck", "-fy", i->source, NULL};
	/* A loop device may be detached at its last close, so one descriptor stays open. */
	auto_fd int hold = open(i->source, O_RDONLY);
	char uuid[33];
	int rc = hold < 0 ? err_errno(e, -errno, "cannot open '%s'", i->source)
			  : read_uuid(i->source, uuid, e);

	if (rc)
		return rc;
	/* After a reboot the name may be another disk's. */
	if (strcmp(uuid, i->uuid))
		return err_set(e, -EXDEV,
			"'%s' is not the file system any more that was made read-only", i->source);
	rc = unmount(i, e) ?: wait_unused(i->source, e) ?: storage_run(argv, lock, CHECK_S, 3, e);
	if (!rc && mount(i->source, i->point, "ext4", (unsigned long)i->flags, i->data) < 0)
		rc = err_errno(e, -errno, "cannot mount '%s' on '%s'", i->source, i->point);
	/* Keeps the loop device for the next try. Refused if it is still mounted. */
	if (rc)
		mount(i->source, i->point, "ext4", MS_RDONLY | (unsigned long)i->flags, i->data);
	return rc;
}

static bool same_boot(const struct readonly_inverse *i)
{
	char boot[64];

	return !read_boot(boot, NULL) && !strcmp(boot, i->boot);
}

static int readonly_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct readonly_inverse i;
	auto_fd int lock = -1;
	int rc = open_inverse(inverse, &i, &lock, e);

	if (rc)
		return rc;
	if (!is_healthy(&i)) {
		*was_there = true;
		if (!i.by_error && remount(&i, 0) < 0)
			return err_errno(e, -errno, "cannot remount '%s'", i.point);
		if (i.by_error && i.server && same_boot(&i))
			rc = server_stop(i.server, GRACE_S, was_there, e);
		if (i.by_error)
			rc = rc ?: repair(&i, lock, e);
	}
	/* After a reboot, servers were started by the boot. */
	if (!rc && i.server && same_boot(&i))
		rc = server_restore(i.server, false, lock, was_there, e);
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
