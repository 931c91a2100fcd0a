/* Copies a storage folder's tree without its data. */
#include "faults/primitives/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/clock.h"

#define MATCH_FLAGS (FNM_PATHNAME | FNM_PERIOD)

/* A walk below 'from'; 'to' is -1 where it only measures. fts(3) is not used: glibc 2.36 crashes in
 * fts_open when there is no memory. */
struct walk {
	const struct tree_rule *rule;
	struct tree_size size;
	int from, to;
	double deadline;     /* monotonic; 0: none */
	char path[PATH_MAX]; /* of what is examined, below 'from' */
	struct stat st;      /* of the same */
};

static bool is_kept(const struct tree_rule *rule, const char *path)
{
	json_t *pattern;
	size_t i;

	json_array_foreach((json_t *)rule->keep, i, pattern) {
		if (!fnmatch(json_string_value(pattern), path, MATCH_FLAGS))
			return true;
	}
	return false;
}

/* The folder's entries; NULL and errno. */
static DIR *open_folder(int below, const char *path)
{
	int fd = openat(below, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

/* Does a link or a kept file lie in the folder that is examined? */
static bool is_used(const struct walk *w)
{
	auto_dir DIR *dir = open_folder(w->from, w->path);
	char name[PATH_MAX];
	struct dirent *d;
	bool used = false;

	while (dir && !used && (d = readdir(dir))) {
		snprintf(name, sizeof(name), "%s/%s", w->path, d->d_name);
		used = d->d_type == DT_LNK || (d->d_type == DT_REG && is_kept(w->rule, name));
	}
	return used;
}

static void copy_attributes(const struct walk *w)
{
	char from[PATH_MAX + 32], to[PATH_MAX + 32], names[8192], value[65536];
	ssize_t n, size;

	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", w->from, w->path);
	snprintf(to, sizeof(to), "/proc/self/fd/%d/%s", w->to, w->path);
	n = llistxattr(from, names, sizeof(names));
	for (char *p = names; n > 0 && p < names + n; p += strlen(p) + 1) {
		size = lgetxattr(from, p, value, sizeof(value));
		if (size >= 0)
			lsetxattr(to, p, value, (size_t)size, 0);
	}
}

/* The bytes from 'at' to 'end'. */
static int copy_range(int from, int to, off_t at, off_t end)
{
	char block[65536];

	while (at < end) {
		size_t want = end - at < (off_t)sizeof(block) ? (size_t)(end - at) : sizeof(block);
		ssize_t n = pread(from, block, want, at), done;

		/* It has been cut short in the meantime. */
		if (n <= 0)
			return n ? -errno : 0;
		done = pwrite(to, block, (size_t)n, at);
		if (done != n)
			return done < 0 ? -errno : -ENOSPC;
		at += n;
	}
	return 0;
}

static int copy_data(int from, int to, off_t size)
{
	off_t at = 0, end;
	int rc = ftruncate(to, size) < 0 ? -errno : 0;

	while (!rc && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		rc = end < 0 ? -errno : copy_range(from, to, at, end);
		at = end;
	}
	/* ENXIO: only a hole is left. */
	return rc ?: errno == ENXIO ? 0 : -errno;
}

static int copy_file(const struct walk *w)
{
	const struct timespec times[] = {w->st.st_atim, w->st.st_mtim};
	auto_fd int from = openat(w->from, w->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to = -1;
	int rc;

	if (from < 0)
		return -errno;
	to = openat(w->to, w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	rc = copy_data(from, to, w->st.st_size);
	if (rc || fchown(to, w->st.st_uid, w->st.st_gid) < 0 ||
		fchmod(to, w->st.st_mode & 07777) < 0)
		return rc ?: -errno;
	copy_attributes(w);
	/* The small file system writes late: what does not fit must be known now. */
	return futimens(to, times) < 0 || fsync(to) < 0 ? -errno : 0;
}

static int copy_link(const struct walk *w)
{
	char link[PATH_MAX];
	ssize_t n = readlinkat(w->from, w->path, link, sizeof(link) - 1);

	if (n <= 0)
		return 0;
	link[n] = '\0';
	return symlinkat(link, w->to, w->path) < 0 ||
			fchownat(w->to, w->path, w->st.st_uid, w->st.st_gid, AT_SYMLINK_NOFOLLOW) <
				0
		? -errno
		: 0;
}

static int copy_folder(const struct walk *w)
{
	if ((strcmp(w->path, ".") && mkdirat(w->to, w->path, 0700) < 0) ||
		fchownat(w->to, w->path, w->st.st_uid, w->st.st_gid, 0) < 0 ||
		fchmodat(w->to, w->path, w->st.st_mode & 07777, 0) < 0)
		return -errno;
	copy_attributes(w);
	return 0;
}

/* Counts, and copies, what is examined. */
static int tree_take(struct walk *w)
{
	w->size.inodes++;
	if (S_ISREG(w->st.st_mode))
		w->size.kept_bytes += 512 * (json_int_t)w->st.st_blocks;
	if (w->to < 0)
		return 0;
	return S_ISREG(w->st.st_mode)    ? copy_file(w)
		: S_ISLNK(w->st.st_mode) ? copy_link(w)
					 : copy_folder(w);
}

static bool is_left_out(const struct walk *w, const char *name, dev_t dev)
{
	if (!S_ISDIR(w->st.st_mode))
		return !S_ISLNK(w->st.st_mode) &&
			(!S_ISREG(w->st.st_mode) || !is_kept(w->rule, w->path));
	return w->st.st_dev != dev || !strcmp(name, "lost+found") ||
		(*w->rule->prune && !fnmatch(w->rule->prune, w->path, MATCH_FLAGS) && !is_used(w));
}

/* What lies in the folder that is examined. A file that goes away in the meantime is none. */
static int walk_folder(struct walk *w)
{
	auto_dir DIR *dir = open_folder(w->from, w->path);
	size_t end = strcmp(w->path, ".") ? strlen(w->path) + 1 : 0;
	const dev_t dev = w->st.st_dev;
	struct dirent *d;
	int rc = dir || errno == ENOENT ? 0 : -errno;

	while (!rc && dir && (errno = 0, d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (w->deadline && clock_mono_s() > w->deadline)
			return -ETIME;
		if (end + strlen(d->d_name) >= sizeof(w->path))
			return -ENAMETOOLONG;
		if (end)
			w->path[end - 1] = '/';
		strcpy(w->path + end, d->d_name);
		if (fstatat(w->from, w->path, &w->st, AT_SYMLINK_NOFOLLOW) < 0)
			rc = errno == ENOENT ? 0 : -errno;
		else if (!is_left_out(w, d->d_name, dev))
			rc = tree_take(w) ?: S_ISDIR(w->st.st_mode) ? walk_folder(w) : 0;
		if (!rc)
			strcpy(w->path + (end ? end - 1 : 0), end ? "" : ".");
	}
	return rc ?: dir ? -errno : 0;
}

static int walk(struct walk *w, struct err *e)
{
	int rc = fstat(w->from, &w->st) < 0 ? -errno : 0;

	strcpy(w->path, ".");
	rc = rc ?: tree_take(w) ?: walk_folder(w);
	return rc ? err_errno(e, rc, "cannot %s '%s' of the storage", w->to < 0 ? "read" : "copy",
			    w->path)
		  : 0;
}

int tree_measure(int from, const struct tree_rule *rule, double patience_s, struct tree_size *size,
	struct err *e)
{
	struct walk w = {.rule = rule,
		.from = from,
		.to = -1,
		.deadline = patience_s > 0 ? clock_mono_s() + patience_s : 0};
	int rc = walk(&w, e);

	if (!rc)
		*size = w.size;
	return rc;
}

int tree_copy(int from, int to, const struct tree_rule *rule, struct err *e)
{
	struct walk w = {.rule = rule, .from = from, .to = to};

	return walk(&w, e);
}
