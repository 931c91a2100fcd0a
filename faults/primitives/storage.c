/* Mounts a small file system over a server's storage. */
#include "faults/primitives/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/tree.h"
#include "harness/base/clock.h"
#include "harness/base/proc.h"

#define CHECK_S 0.5
#define BUSY_S 20
#define EXT4_OWN_INODES 11
/* Half a minute at 8 MB/s, in which the server is down. */
#define KEPT_MIB 256

struct storage {
	const char *path, *dir, *name;
	struct tree_rule rule;
	char image[PATH_MAX], in_path[300]; /* its end, by which a loop device's file is known */
	char control[128], device[128];     /* made by us where /dev lacks them */
	json_int_t size, inodes, spare;
};

json_t *storage_describe(const struct storage_spec *spec, const char *dir, const char *name)
{
	return json_pack("{s:s, s:s, s:O?, s:s, s:s, s:I, s:I, s:I}", "path", spec->path, "prune",
		spec->prune ? spec->prune : "", "keep", spec->keep, "dir", dir, "name", name,
		"size_bytes", spec->size_bytes, "inodes", spec->inodes, "spare", spec->spare);
}

static int read_storage(const json_t *j, struct storage *s, struct err *e)
{
	json_t *keep = NULL;

	if (json_unpack((json_t *)j, "{s:s, s:s, s?o, s:s, s:s, s:I, s:I, s:I}", "path", &s->path,
		    "prune", &s->rule.prune, "keep", &keep, "dir", &s->dir, "name", &s->name,
		    "size_bytes", &s->size, "inodes", &s->inodes, "spare", &s->spare) < 0 ||
		s->path[0] != '/' || s->dir[0] != '/' || strlen(s->name) < 8 ||
		strchr(s->name, '/'))
		return err_set(e, -EBADMSG, "the inverse of a small storage is damaged");
	s->rule.keep = json_is_array(keep) ? keep : NULL;
	snprintf(s->in_path, sizeof(s->in_path), "/%.200s.img", s->name);
	snprintf(s->image, sizeof(s->image), "%s/%s.img", s->dir, s->name);
	/* In /dev, since the session's folder may lie on a mount that allows no devices. */
	snprintf(s->control, sizeof(s->control), "/dev/.%.100s-control", s->name);
	snprintf(s->device, sizeof(s->device), "/dev/.%.100s", s->name);
	return 0;
}

int storage_run(const char *const *argv, int lock, double timeout_s, int ok_mask, struct err *e)
{
	auto_free char *output = NULL;
	char *end;
	int rc;

	fcntl(lock, F_SETFD, 0);
	rc = proc_run(argv, timeout_s, &output, e);
	fcntl(lock, F_SETFD, FD_CLOEXEC);
	if (rc <= 0 || !(rc & ~ok_mask))
		return rc < 0 ? rc : 0;
	/* The last line, without its newline. */
	if (output && (end = strrchr(output, '\n')))
		*end = '\0';
	end = output ? strrchr(output, '\n') : NULL;
	return err_set(e, -EIO, "'%s' ended with %d: %s", argv[0], rc,
		end ? end + 1 : output ?: "");
}

/* Adds what is kept to the size, and if 'spare' is set counts the inodes: what is copied, 'spare'
 * more, and those that ext4 reserves. */
static int add_kept(struct storage *s, double patience_s, struct tree_size *size, struct err *e)
{
	auto_fd int fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? err_errno(e, -errno, "cannot open '%s'", s->path)
			: tree_measure(fd, &s->rule, patience_s, size, e);

	if (rc)
		return rc;
	s->size += size->kept_bytes;
	if (s->spare)
		s->inodes = size->inodes + s->spare + EXT4_OWN_INODES;
	return 0;
}

/* Can the files that are kept be copied? The agent must not be busy with this for longer than its
 * guard's lease: what a large or slow tree holds is found out when it is copied. */
static int check_kept(struct storage *s, struct err *e)
{
	struct tree_size size = {0};
	struct statvfs v;
	int rc = add_kept(s, CHECK_S, &size, e);

	if (rc == -ETIME)
		return 0;
	if (rc)
		return rc;
	if (s->inodes && s->inodes < size.inodes + EXT4_OWN_INODES)
		return err_set(e, -ENOSPC,
			"the %lld folders, links and files in '%s' that a server needs to start do "
			"not fit on a storage with %lld inodes",
			(long long)size.inodes, s->path, (long long)s->inodes);
	if (!size.kept_bytes)
		return 0;
	if (size.kept_bytes > (json_int_t)KEPT_MIB << 20)
		return err_set(e, -EFBIG,
			"the files in '%s' that a server needs to start take %lld MiB, and at most "
			"%d MiB are copied",
			s->path, (long long)(size.kept_bytes >> 20), KEPT_MIB);
	if (!statvfs(s->dir, &v) && (json_int_t)(v.f_bavail * v.f_frsize) < size.kept_bytes)
		return err_set(e, -ENOSPC,
			"'%s' has no room for a copy of the files in '%s' that a server needs to "
			"start, %lld MiB",
			s->dir, s->path, (long long)(size.kept_bytes >> 20));
	return 0;
}

int storage_check(const json_t *j, struct err *e)
{
	const char *const argv[] = {"mkfs.ext4", "-V", NULL};
	struct storage s;
	struct stat st;
	int rc = read_storage(j, &s, e);

	if (rc)
		return rc;
	if (geteuid() != 0)
		return err_set(e, -EPERM, "mounting a small storage needs root");
	if (stat(s.path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, -EINVAL, "the storage '%s' is no folder", s.path);
	if (proc_run(argv, 10, NULL, NULL))
		return err_set(e, -ENOENT, "making a small storage needs mkfs.ext4");
	return check_kept(&s, e);
}

/* ---- loop device ---- */

/* Opens 'path' if it is that device, else makes the node 'own' for it. '*used' is the path. */
static int open_device(
	const char *path, const char *own, mode_t type, dev_t dev, const char **used, struct err *e)
{
	struct stat st;
	int fd;

	*used = path;
	if (stat(path, &st) < 0 || (st.st_mode & S_IFMT) != type || st.st_rdev != dev) {
		unlink(own);
		if (mknod(own, type | 0600, dev) < 0)
			return err_errno(e, -errno, "cannot make the device node '%s'", own);
		*used = own;
	}
	fd = open(*used, O_RDWR | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "cannot open '%s'", *used) : fd;
}

/* Attaches the image to a free loop device, which is detached at its last close. '*out' holds it
 * open. */
static int storage_attach(
	const struct storage *s, int *out, const char **used, char path[32], struct err *e)
{
	auto_fd int image = open(s->image, O_RDWR | O_CLOEXEC), control = -1;
	const char *ignored;
	int rc = -EBUSY;

	if (image < 0)
		return err_errno(e, -errno, "cannot open '%s'", s->image);
	control = open_device(
		"/dev/loop-control", s->control, S_IFCHR, makedev(10, 237), &ignored, e);
	if (control < 0)
		return control;
	/* Another program may take the free one first. */
	for (int tries = 0; rc == -EBUSY && tries < 32; tries++) {
		struct loop_config config = {.fd = (uint32_t)image,
			.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};
		int fd, number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			return err_errno(e, -errno, "there is no free loop device");
		snprintf(path, 32, "/dev/loop%d", number);
		fd = open_device(path, s->device, S_IFBLK, makedev(7, (unsigned)number), used, e);
		if (fd < 0)
			return fd;
		if (!ioctl(fd, LOOP_CONFIGURE, &config)) {
			*out = fd;
			return 0;
		}
		rc = err_errno(e, -errno, "cannot attach '%s' to a loop device", s->image);
		close(fd);
	}
	return rc;
}

/* The loop device whose backing file is the image; -ENODEV: none; or another -errno if that cannot
 * be found out. */
static int find_loop(const struct storage *s, struct err *e)
{
	auto_dir DIR *dir = opendir("/sys/block");
	char path[300], file[PATH_MAX];
	struct dirent *d;
	int rc;

	if (!dir)
		return err_errno(e, -errno, "cannot look for loop devices");
	while ((d = readdir(dir))) {
		if (strncmp(d->d_name, "loop", 4))
			continue;
		snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", d->d_name);
		rc = procfs_line(path, file, sizeof(file), e);
		/* Not attached; or detached while we read. */
		if (rc == -ENOENT || rc == -ENXIO || rc == -ENODEV)
			continue;
		if (rc || strstr(file, s->in_path))
			return rc ?: atoi(d->d_name + 4);
	}
	return -ENODEV;
}

/* ---- make and remove ---- */

static int make_image(const struct storage *s, int lock, struct err *e)
{
	char inodes[32];
	const char *argv[] = {"mkfs.ext4", "-q", "-F", "-m", "0", "-E",
		"nodiscard,lazy_itable_init=0,lazy_journal_init=0", s->image, NULL, NULL, NULL};
	auto_fd int fd = open(s->image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, s->size) < 0)
		return err_errno(e, -errno, "cannot make '%s'", s->image);
	if (s->inodes) {
		snprintf(inodes, sizeof(inodes), "%lld", (long long)s->inodes);
		argv[7] = "-N";
		argv[8] = inodes;
		argv[9] = s->image;
	}
	return storage_run(argv, lock, 120, 0, e);
}

/* Mounts it, with the folders that it covers. */
static int mount_image(const struct storage *s, struct err *e)
{
	auto_fd int below = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), loop = -1, top = -1;
	const char *used = NULL;
	char path[32] = "";
	int rc;

	if (below < 0)
		return err_errno(e, -errno, "cannot open '%s'", s->path);
	rc = storage_attach(s, &loop, &used, path, e);
	if (rc)
		return rc;
	if (mount(used, s->path, "ext4", MS_NOATIME, NULL) < 0)
		return err_errno(e, -errno, "cannot mount the small storage on '%s'", s->path);
	top = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_errno(e, -errno, "cannot open '%s'", s->path);
	unlinkat(top, "lost+found", AT_REMOVEDIR);
	rc = tree_copy(below, top, &s->rule, e);
	return rc == -ENOSPC
		? err_prefix(e, rc, "what a server needs to start does not fit on a small storage")
		: rc;
}

int storage_make(const json_t *j, int lock, struct err *e)
{
	struct tree_size ignored;
	struct storage s;
	int rc = read_storage(j, &s, e) ?: add_kept(&s, 0, &ignored, e) ?: make_image(&s, lock, e);

	if (rc)
		return rc;
	rc = mount_image(&s, e);
	unlink(s.control);
	unlink(s.device);
	return rc;
}

/* 1, 0, or -errno if that cannot be found out. */
static int is_mounted(const struct storage *s, struct err *e)
{
	char path[64], file[PATH_MAX];
	struct mounted m;
	int rc = mounted_at(s->path, &m, e);

	if (!rc) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/loop/backing_file", m.major,
			m.minor);
		rc = procfs_line(path, file, sizeof(file), e);
	}
	/* No such folder, or no loop device. */
	return !rc ? strstr(file, s->in_path) != NULL : rc == -ENOENT ? 0 : rc;
}

int storage_is_mounted(const json_t *j, struct err *e)
{
	struct storage s;

	return read_storage(j, &s, e) ?: is_mounted(&s, e);
}

int storage_remove(const json_t *j, bool *was_there, struct err *e)
{
	double deadline = clock_mono_s() + BUSY_S;
	struct storage s;
	int number, rc = read_storage(j, &s, e);

	if (rc)
		return rc;
	while ((rc = is_mounted(&s, e)) > 0) {
		*was_there = true;
		if (umount2(s.path, UMOUNT_NOFOLLOW) < 0 &&
			(errno != EBUSY || !procfs_nap(deadline)))
			return err_errno(
				e, -errno, "cannot unmount the small storage on '%s'", s.path);
	}
	if (rc)
		return rc;
	/* The device is detached when its last user closes it, a moment after the unmount. */
	while ((number = find_loop(&s, e)) != -ENODEV) {
		if (number < 0)
			return number;
		*was_there = true;
		if (!procfs_nap(deadline))
			return err_set(
				e, -EBUSY, "loop device %d still holds '%s'", number, s.image);
	}
	if (!unlink(s.image))
		*was_there = true;
	else if (errno != ENOENT)
		return err_errno(e, -errno, "cannot remove '%s'", s.image);
	unlink(s.control);
	unlink(s.device);
	return 0;
}

int storage_verify_gone(const json_t *j, struct err *e)
{
	struct storage s;
	int rc = read_storage(j, &s, e) ?: is_mounted(&s, e);

	if (rc)
		return rc < 0
			? rc
			: err_set(e, -EBUSY, "the small storage is still mounted on '%s'", s.path);
	rc = find_loop(&s, e);
	if (rc < 0 && rc != -ENODEV)
		return rc;
	if (rc >= 0 || !access(s.image, F_OK))
		return err_set(e, -EBUSY, "the small storage '%s' is still there", s.image);
	return 0;
}
