#include "harness/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read(const char *path, char **data, size_t *size, struct err *e)
{
	char *buf = NULL;
	size_t len = 0, room = 0;
	int fd, rc = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", path);
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

int file_write_atomic(const char *path, mode_t mode, const void *data, size_t size, struct err *e)
{
	char *tmp = NULL;
	int fd = -1, rc;

	if (asprintf(&tmp, "%s.XXXXXX", path) < 0)
		return err_errno(e, -ENOMEM, "cannot write '%s'", path);
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0) {
		rc = err_errno(e, -errno, "cannot write '%s'", path);
		goto out;
	}
	rc = fd_write_all(fd, data, size);
	if (!rc && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		rc = -errno;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && rename(tmp, path) < 0)
		rc = -errno;
	if (rc) {
		unlink(tmp);
		err_errno(e, rc, "cannot write '%s'", path);
	}
out:
	free(tmp);
	return rc;
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
