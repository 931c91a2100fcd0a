#include "faults/primitives/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/procfs.h"
#include "harness/base/clock.h"
#include "harness/base/proc.h"

#define BUSY_S 20
#define EXT4_OWN_INODES 11

struct storage {
	const char *path, *prune, *dir, *name;
	char image[PATH_MAX], in_path[300]; /* its end, by which a loop device's file is known */
	char control[128], device[128];     /* made by us where /dev lacks them */
	json_int_t size, inodes, spare;
};

json_t *storage_describe(const char *path, const char *prune, const char *dir, const char *name,
	json_int_t size_bytes, json_int_t inodes, json_int_t spare)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "path", path, "prune",
		prune ? prune : "", "dir", dir, "name", name, "size_bytes", size_bytes, "inodes",
		inodes, "spare", spare);
}

static int read_storage(const json_t *j, struct storage *s, struct err *e)
{
	if (json_unpack((json_t *)j, "{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "path", &s->path,
		    "prune", &s->prune, "dir", &s->dir, "name", &s->name, "size_bytes", &s->size,
		    "inodes", &s->inodes, "spare", &s->spare) < 0 ||
		s->path[0] != '/' || s->dir[0] != '/' || strlen(s->name) < 8 ||
		strchr(s->name, '/'))
		return err_set(e, -EBADMSG, "the inverse of a small storage is damaged");
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
	return 0;
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
static int attach(
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

/* ---- folders ---- */

static void copy_attributes(const char *from, const char *to)
{
	char names[8192], value[65536];
	ssize_t n = llistxattr(from, names, sizeof(names));

	for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		ssize_t size = lgetxattr(from, p, value, sizeof(value));

		if (size >= 0)
			lsetxattr(to, p, value, (size_t)size, 0);
	}
}

static bool holds_link(const char *path)
{
	auto_dir DIR *dir = opendir(path);
	struct dirent *d;
	bool holds = false;

	while (dir && !holds && (d = readdir(dir)))
		holds = d->d_type == DT_LNK;
	return holds;
}

static int copy_one(const FTSENT *f, const char *path, int to)
{
	const struct stat *st = f->fts_statp;
	char link[PATH_MAX], made[PATH_MAX];
	ssize_t n;

	if (f->fts_info == FTS_SL) {
		n = readlink(f->fts_path, link, sizeof(link) - 1);
		if (n <= 0)
			return 0;
		link[n] = '\0';
		return symlinkat(link, to, path) < 0 ||
				fchownat(to, path, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0
			? -errno
			: 0;
	}
	if ((f->fts_level && mkdirat(to, path, 0700) < 0) ||
		fchownat(to, path, st->st_uid, st->st_gid, 0) < 0 ||
		fchmodat(to, path, st->st_mode & 07777, 0) < 0)
		return -errno;
	snprintf(made, sizeof(made), "/proc/self/fd/%d/%s", to, path);
	copy_attributes(f->fts_path, made);
	return 0;
}

/* Folders and links below the open folder 'from' to below 'to', or only counted if 'to' is -1. One
 * file system only. */
static int copy_folders(int from, int to, const char *prune, json_int_t *count)
{
	char root[64], *roots[] = {root, NULL};
	size_t skip = (size_t)snprintf(root, sizeof(root), "/proc/self/fd/%d/.", from);
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	int rc = tree ? 0 : -errno;
	FTSENT *f;

	errno = 0;
	while (!rc && tree && (f = fts_read(tree))) {
		const char *path = f->fts_level ? f->fts_path + skip + 1 : ".";

		if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR || f->fts_info == FTS_NS)
			rc = f->fts_errno == ENOENT ? 0 : -f->fts_errno;
		if (f->fts_info != FTS_D && f->fts_info != FTS_SL)
			continue;
		if (f->fts_info == FTS_D && f->fts_level &&
			(!strcmp(f->fts_name, "lost+found") ||
				(*prune && !fnmatch(prune, path, FNM_PATHNAME | FNM_PERIOD) &&
					!holds_link(f->fts_path)))) {
			fts_set(tree, f, FTS_SKIP);
			continue;
		}
		++*count;
		if (to >= 0)
			rc = copy_one(f, path, to);
	}
	if (tree)
		fts_close(tree);
	return rc;
}

/* What the folders take, 'spare' more, and those that ext4 reserves. */
static int count_inodes(struct storage *s, struct err *e)
{
	auto_fd int fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	json_int_t count = 0;
	int rc;

	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", s->path);
	rc = copy_folders(fd, -1, s->prune, &count);
	s->inodes = count + s->spare + EXT4_OWN_INODES;
	return rc ? err_errno(e, rc, "cannot read the folders of '%s'", s->path) : 0;
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
	json_int_t ignored = 0;
	char path[32] = "";
	int rc;

	if (below < 0)
		return err_errno(e, -errno, "cannot open '%s'", s->path);
	rc = attach(s, &loop, &used, path, e);
	if (rc)
		return rc;
	if (mount(used, s->path, "ext4", MS_NOATIME, NULL) < 0)
		return err_errno(e, -errno, "cannot mount the small storage on '%s'", s->path);
	top = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_errno(e, -errno, "cannot open '%s'", s->path);
	unlinkat(top, "lost+found", AT_REMOVEDIR);
	rc = copy_folders(below, top, s->prune, &ignored);
	return rc ? err_errno(e, rc, "the folders of '%s' do not fit on the small storage", s->path)
		  : 0;
}

int storage_make(const json_t *j, int lock, struct err *e)
{
	struct storage s;
	int rc = read_storage(j, &s, e);

	rc = rc ?: (s.spare ? count_inodes(&s, e) : 0) ?: make_image(&s, lock, e);
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
