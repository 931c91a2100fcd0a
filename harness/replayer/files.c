/* Makes and opens the dummy files of a replay. */
#include "harness/replayer/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/units.h"

#define BLOCK (1u << 20)

static int by_path(const void *a, const void *b, void *trace)
{
	const uint32_t *x = a, *y = b;

	return strcmp(app_file(trace, *x)->path, app_file(trace, *y)->path);
}

int files_init(struct files *f, const struct app_trace *t, const char *root, struct err *e)
{
	size_t n = app_n_files(t);

	*f = (struct files){.trace = t, .root = root, .root_fd = -1};
	for (uint32_t i = 0; i < n; i++)
		if (!app_path_ok(app_file(t, i)->path))
			return err_set(e, -EINVAL,
				"the trace's path '%.200s' leaves the folder of the replay",
				app_file(t, i)->path);
	f->by_path = malloc((n + 1) * sizeof(*f->by_path));
	f->bytes = malloc(BLOCK);
	if (!f->by_path || !f->bytes) {
		files_clear(f);
		return err_errno(e, -ENOMEM, "cannot hold the trace's files");
	}
	for (uint32_t i = 0; i < n; i++)
		f->by_path[i] = i;
	qsort_r(f->by_path, n, sizeof(*f->by_path), by_path, (void *)t);
	/* All blocks differ, so that compression and deduplication have no effect. */
	for (uint64_t i = 0, x = 88172645463325252u; i < BLOCK; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		f->bytes[i] = (unsigned char)(x >> 32);
	}
	return 0;
}

void files_clear(struct files *f)
{
	free(f->by_path);
	free(f->bytes);
	if (f->root_fd >= 0)
		close(f->root_fd);
	*f = (struct files){.root_fd = -1};
}

/* -1: it does not exist. */
static int64_t size_now(const struct files *f, const struct app_file *a)
{
	auto_free char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/%s", f->root, a->path) < 0) {
		path = NULL;
		return -1;
	}
	return lstat(path, &st) ? -1 : S_ISREG(st.st_mode) ? (int64_t)st.st_size : 0;
}

int files_fit(const struct files *f, struct err *e)
{
	auto_free char *folder = strdup(f->root);
	uint64_t bytes = 0, inodes = 0, free_bytes;
	char need[32], has[32];
	struct statvfs v;

	for (uint32_t i = 0; i < app_n_files(f->trace); i++) {
		const struct app_file *a = app_file(f->trace, i);
		int64_t most = a->before > a->after ? a->before : a->after, now = size_now(f, a);

		inodes += now < 0;
		if (!a->directory && most > 0 && most > now)
			bytes += (uint64_t)(most - (now > 0 ? now : 0));
	}
	/* The root may not exist yet. */
	while (folder && statvfs(folder, &v) < 0) {
		char *slash = strrchr(folder, '/');

		if (errno != ENOENT || !slash || slash == folder)
			return err_errno(e, -errno, "cannot examine '%s'", folder);
		*slash = '\0';
	}
	if (!folder)
		return err_errno(e, -ENOMEM, "cannot examine '%s'", f->root);
	free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
	if (bytes > free_bytes)
		return err_set(e, -ENOSPC, "the trace's files need %s more, but '%s' has %s",
			unit_format(UNIT_BYTES, (double)bytes, need, sizeof(need)), folder,
			unit_format(UNIT_BYTES, (double)free_bytes, has, sizeof(has)));
	if (v.f_files && inodes > v.f_favail)
		return err_set(e, -ENOSPC,
			"the trace needs %llu more files, but '%s' has room for %llu",
			(unsigned long long)inodes, folder, (unsigned long long)v.f_favail);
	return 0;
}

/* Opens the root; from Linux 5.6 the kernel refuses links on the path below it. */
static int open_root(struct files *f, struct err *e)
{
	if (f->root_fd >= 0)
		return 0;
	f->root_fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->root_fd < 0 ? err_errno(e, -errno, "cannot open '%s'", f->root) : 0;
}

int files_open(const struct files *f, const char *path, int flags, mode_t mode)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, f->root_fd, *path ? path : ".", &how, sizeof(how));

	if (fd < 0 && errno == ENOSYS)
		fd = openat(f->root_fd, *path ? path : ".", flags | O_CLOEXEC | O_NOFOLLOW, mode);
	return fd;
}

/* The trace's entry of 'path', or NULL. */
static const struct app_file *files_find(const struct files *f, const char *path, size_t length)
{
	size_t from = 0, to = app_n_files(f->trace);

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct app_file *a = app_file(f->trace, f->by_path[middle]);
		int order = strncmp(path, a->path, length);

		if (!order && !a->path[length])
			return a;
		if (order > 0)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

/* Makes the folders above 'path', except those that the application itself makes. */
static int make_parents(struct files *f, const char *path, struct err *e)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		const struct app_file *a = files_find(f, path, n);
		char part[APP_PATH];

		if (a && a->before < 0)
			return 0;
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		if (mkdirat(f->root_fd, part, 0777) && errno != EEXIST)
			return err_errno(e, -errno, "cannot make '%s/%s'", f->root, part);
	}
	return 0;
}

static int remove_new(struct files *f, struct err *e)
{
	/* Entries of a folder come after it. */
	for (size_t i = app_n_files(f->trace); i-- > 0;) {
		const struct app_file *a = app_file(f->trace, f->by_path[i]);

		if (a->before >= 0 || !*a->path)
			continue;
		if (!unlinkat(f->root_fd, a->path, 0) || errno == ENOENT || errno == ENOTDIR)
			continue;
		if ((errno == EISDIR || errno == EPERM) &&
			(!unlinkat(f->root_fd, a->path, AT_REMOVEDIR) || errno == ENOENT))
			continue;
		return err_errno(e, -errno, "cannot remove '%s/%s', which an earlier pass made",
			f->root, a->path);
	}
	return 0;
}

int files_folders(struct files *f, struct err *e)
{
	int rc = file_mkdirs(f->root, 0755, e) ?: open_root(f, e) ?: remove_new(f, e);

	for (size_t i = 0; i < app_n_files(f->trace) && !rc; i++) {
		const struct app_file *a = app_file(f->trace, f->by_path[i]);

		rc = make_parents(f, a->path, e);
		if (!rc && a->directory && a->before >= 0 && *a->path &&
			mkdirat(f->root_fd, a->path, 0777) && errno != EEXIST)
			rc = err_errno(e, -errno, "cannot make '%s/%s'", f->root, a->path);
	}
	return rc;
}

static int write_rest(
	struct files *f, int fd, int64_t from, int64_t to, struct peers *alive, struct err *e)
{
	while (from < to) {
		size_t n = (uint64_t)(to - from) < BLOCK ? (size_t)(to - from) : BLOCK;
		ssize_t done;

		memcpy(f->bytes, &from, n < sizeof(from) ? n : sizeof(from));
		done = pwrite(fd, f->bytes, n, from);
		if (peers_stopped(alive))
			return err_set(e, -ECANCELED, "stopped");
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_errno(e, done ? -errno : -EIO, "cannot write");
		peers_alive(alive);
		from += done;
	}
	if (fsync(fd) < 0)
		return err_errno(e, -errno, "cannot write");
	/* Drop the cache: the replay must read it from storage, like the application. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int make_file(struct files *f, const struct app_file *a, struct peers *alive, struct err *e)
{
	int64_t now = size_now(f, a);
	auto_fd int fd = -1;
	int rc = 0;

	if (now == a->before)
		return 0;
	fd = files_open(f, a->path, O_WRONLY | O_CREAT, 0666);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make '%s/%s'", f->root, a->path);
	if (now > a->before && ftruncate(fd, a->before) < 0)
		rc = err_errno(e, -errno, "cannot truncate it");
	if (now < a->before)
		rc = write_rest(f, fd, now > 0 ? now : 0, a->before, alive, e);
	return rc ? err_prefix(e, rc, "'%s/%s'", f->root, a->path) : 0;
}

int files_make(struct files *f, unsigned me, unsigned n, struct peers *alive, struct err *e)
{
	int rc = open_root(f, e);

	for (uint32_t i = me; i < app_n_files(f->trace) && !rc; i += n) {
		const struct app_file *a = app_file(f->trace, i);

		if (!a->directory && a->before >= 0)
			rc = make_file(f, a, alive, e);
	}
	return rc;
}
