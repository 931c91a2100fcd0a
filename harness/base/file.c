/* Reads, writes, makes and removes whole files and trees. */
#include "harness/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_kind(mode_t mode)
{
	return S_ISDIR(mode)                     ? "a folder"
		: S_ISFIFO(mode)                 ? "a FIFO"
		: S_ISSOCK(mode)                 ? "a socket"
		: S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
						 : "a file";
}

/* Standard input and the pipes of <(...), both passed by the shell. */
static bool is_handed_over(const char *path)
{
	return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6) ||
		!strcmp(path, "/dev/stdin");
}

static int check_kind(const char *path, mode_t mode, struct err *e)
{
	if (S_ISDIR(mode) || S_ISSOCK(mode) || (S_ISFIFO(mode) && !is_handed_over(path)))
		return err_set(e, S_ISDIR(mode) ? -EISDIR : -EINVAL,
			"cannot read '%s': it is %s, not a file", path, file_kind(mode));
	return 0;
}

int file_check_readable(const char *path, struct err *e)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : check_kind(path, st.st_mode, e);
}

int file_open_readable(const char *path, const char *what, struct err *e)
{
	/* Without O_NONBLOCK the open of a FIFO waits for a writer. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int rc;

	if (fd < 0) {
		const int why = -errno;

		rc = why == -ENXIO ? file_check_readable(path, e) : 0;
		return rc ? rc : err_errno(e, why, "cannot open %s'%s'", what, path);
	}
	if (fstat(fd, &st) < 0 || fcntl(fd, F_SETFL, 0) < 0)
		rc = err_errno(e, -errno, "cannot read %s'%s'", what, path);
	else
		rc = check_kind(path, st.st_mode, e);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int file_read(const char *path, char **data, size_t *size, struct err *e)
{
	char *buf = NULL;
	size_t len = 0, room = 0;
	int rc = 0;
	const int fd = file_open_readable(path, "", e);

	if (fd < 0)
		return fd;
	for (;;) {
		ssize_t n;

		if (room - len < 2) {
			char *more;

			room = room ? room * 2 : 4096;
			more = realloc(buf, room);
			if (!more) {
				rc = err_errno(e, -ENOMEM, "cannot read '%s'", path);
				goto out;
			}
			buf = more;
		}
		n = read(fd, buf + len, room - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = err_errno(e, -errno, "cannot read '%s'", path);
			goto out;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	*data = buf;
	buf = NULL;
	if (size)
		*size = len;
out:
	free(buf);
	close(fd);
	return rc;
}

int fd_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Resolves the links in 'path' one by one, so that the last one may dangle; malloced. Stops at
 * /proc, whose links show no path that could be replaced. */
static char *follow_links(const char *path)
{
	enum { LINKS_MAX = 40 };
	char *at = strdup(path), *next, target[PATH_MAX];
	ssize_t n;

	for (int i = 0; at && i < LINKS_MAX; i++) {
		n = strncmp(at, "/proc/", 6) ? readlink(at, target, sizeof(target) - 1) : -1;
		if (n < 0)
			return at;
		target[n] = '\0';
		if (*target == '/')
			next = strdup(target);
		else if (asprintf(&next, "%s/%s", dirname(at), target) < 0)
			next = NULL;
		free(at);
		at = next;
	}
	errno = at ? ELOOP : ENOMEM;
	free(at);
	return NULL;
}

/* An unwritable path is the user's mistake; a full disk is not. */
static enum err_class class_of_write(int rc)
{
	switch (-rc) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EIO:
	case ENOMEM: return ERR_HARNESS;
	default: return ERR_USAGE;
	}
}

int file_write_error(const char *path, int rc, struct err *e)
{
	err_errno(e, rc, "cannot write '%s'", path);
	return err_blame(e, class_of_write(rc), rc);
}

/* Opens 'path' for writing if it is not a regular file. Returns the descriptor, -1 if it is a
 * file or does not exist, or -errno if it cannot be written to. */
static int open_special(const char *target, int *fd)
{
	struct stat st;

	*fd = -1;
	if (strncmp(target, "/proc/", 6)) {
		if (stat(target, &st) < 0 || S_ISREG(st.st_mode))
			return 0;
		if (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode))
			return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	}
	/* Without O_NONBLOCK the open of a FIFO waits for a reader. */
	*fd = open(target, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return *fd < 0 || fcntl(*fd, F_SETFL, O_APPEND) < 0 ? -errno : 0;
}

int file_write_target(const char *path, char **target, int *fd, struct err *e)
{
	struct stat st;
	int rc;

	*target = follow_links(path);
	rc = *target ? open_special(*target, fd) : -errno;
	if (!rc)
		return 0;
	free(*target);
	*target = NULL;
	if ((rc != -EISDIR && rc != -ENXIO) || stat(path, &st) < 0)
		return file_write_error(path, rc, e);
	err_set(e, rc, "cannot write '%s': it is %s%s", path, file_kind(st.st_mode),
		S_ISFIFO(st.st_mode) ? " without a reader" : ", not a file");
	return err_blame(e, ERR_USAGE, rc);
}

static int replace(const char *path, mode_t mode, const void *data, size_t size)
{
	char *tmp = NULL;
	int fd, rc;

	if (asprintf(&tmp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(tmp, O_CLOEXEC);
	rc = fd < 0 ? -errno : fd_write_all(fd, data, size);
	if (!rc && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		rc = -errno;
	if (fd >= 0 && close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && rename(tmp, path) < 0)
		rc = -errno;
	if (rc && fd >= 0)
		unlink(tmp);
	free(tmp);
	return rc;
}

int file_write_atomic(const char *path, mode_t mode, const void *data, size_t size, struct err *e)
{
	char *target;
	int fd, rc = file_write_target(path, &target, &fd, e);

	if (rc)
		return rc;
	if (fd < 0) {
		rc = replace(target, mode, data, size);
	} else {
		rc = fd_write_all(fd, data, size);
		if (close(fd) < 0 && !rc)
			rc = -errno;
	}
	free(target);
	return rc ? file_write_error(path, rc, e) : 0;
}

int file_text_open(struct file_text *t, struct err *e)
{
	*t = (struct file_text){0};
	t->f = open_memstream(&t->text, &t->size);
	return t->f ? 0 : err_errno(e, -ENOMEM, "cannot write a file");
}

int file_text_save(struct file_text *t, const char *path, mode_t mode, struct err *e)
{
	bool bad = ferror(t->f);
	int rc = 0;

	if (fclose(t->f) || bad)
		rc = err_errno(e, -ENOMEM, "cannot write '%s'", path ? path : "a file");
	else if (path && !strcmp(path, "-"))
		rc = (rc = fd_write_all(1, t->text, t->size))
			? err_blame(e, ERR_HARNESS,
				  err_errno(e, rc, "cannot write to standard output"))
			: 0;
	else if (path)
		rc = file_write_atomic(path, mode, t->text, t->size, e);
	free(t->text);
	*t = (struct file_text){0};
	return rc;
}

/* Gives 'fd' (O_PATH) and everything below it to the user. Works on descriptors only, because the
 * user may replace names by links to other people's files while this runs. Takes 'fd'. */
static void file_give(int fd, uid_t uid, gid_t gid)
{
	struct dirent *d;
	struct stat st;
	DIR *dir = NULL;
	int child;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		bool folder = S_ISDIR(st.st_mode);

		if (st.st_uid == 0 && (folder || (S_ISREG(st.st_mode) && st.st_nlink == 1)) &&
			fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
			folder = false;
		if (folder && (child = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
			!(dir = fdopendir(child)))
			close(child);
	}
	while (dir && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			file_give(openat(fd, d->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC), uid, gid);
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
}

void file_give_to_sudo_user(const char *path)
{
	const char *user = getenv("SUDO_UID"), *group = getenv("SUDO_GID");
	char *real = geteuid() == 0 && user && group ? realpath(path, NULL) : NULL, *name;
	struct stat st;
	int parent;

	name = real ? strrchr(real, '/') : NULL;
	if (name && name[1]) {
		uid_t uid = (uid_t)strtoul(user, NULL, 10);
		gid_t gid = (gid_t)strtoul(group, NULL, 10);

		*name = '\0';
		parent = open(*real ? real : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (parent >= 0 && uid && fstat(parent, &st) == 0 && st.st_uid == uid)
			file_give(openat(parent, name + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC), uid,
				gid);
		if (parent >= 0)
			close(parent);
	}
	free(real);
}

int file_mkdirs(const char *path, mode_t mode, struct err *e)
{
	char *copy, *p;
	int rc = 0;

	copy = strdup(path);
	if (!copy)
		return err_errno(e, -ENOMEM, "cannot make '%s'", path);
	for (p = copy + 1; !rc; p++) {
		if (*p == '/' || *p == '\0') {
			char was = *p;

			*p = '\0';
			if (mkdir(copy, mode) < 0 && errno != EEXIST)
				rc = err_errno(e, -errno, "cannot make the folder '%s'", copy);
			*p = was;
			if (!was)
				break;
		}
	}
	free(copy);
	return rc;
}

static int make_above(const char *folder, struct err *e)
{
	if (mkdir(folder, 0777) == 0)
		file_give_to_sudo_user(folder);
	else if (errno != EEXIST)
		return err_errno(e, -errno, "cannot make the folder '%s'", folder);
	return 0;
}

int file_mkdirs_above(const char *path, struct err *e)
{
	char *copy = strdup(path), *p = copy;
	int rc = copy ? 0 : err_errno(e, -ENOMEM, "cannot make the folders of '%s'", path);

	while (!rc && (p = strchr(p, '/')) && p[strspn(p, "/")]) {
		*p = '\0';
		if (p > copy)
			rc = make_above(copy, e);
		*p = '/';
		p += strspn(p, "/");
	}
	free(copy);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int file_remove_tree(const char *path, struct err *e)
{
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT)
		return err_errno(e, -errno, "cannot remove '%s'", path);
	return 0;
}
