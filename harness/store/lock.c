#include "harness/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_lock(const char *folder, int flags)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/lock", folder) < 0)
		return -ENOMEM;
	fd = open(path, flags | O_CLOEXEC, 0600);
	fd = fd < 0 ? -errno : fd;
	free(path);
	return fd;
}

static pid_t read_pid(int fd)
{
	char text[32] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? (pid_t)atoi(text) : 0;
}

int run_lock(const char *folder, int *out, struct err *e)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock(folder, O_RDWR | O_CREAT), rc = 0;
	char text[32];

	if (fd < 0)
		return err_errno(e, fd, "cannot lock the run '%s'", folder);
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		rc = errno == EAGAIN || errno == EACCES
			? err_set(e, -EBUSY, "the run '%s' is going on, in process %d", folder,
				  (int)read_pid(fd))
			: err_errno(e, -errno, "cannot lock the run '%s'", folder);
		close(fd);
		return rc;
	}
	snprintf(text, sizeof(text), "%-10d\n", (int)getpid());
	/* For people; the lock itself needs nothing written, and the disk may be full. */
	if (pwrite(fd, text, strlen(text), 0) < 0)
		errno = 0;
	*out = fd;
	return 0;
}

bool run_is_locked(const char *folder, pid_t *pid)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock(folder, O_RDONLY);
	bool locked;

	if (fd < 0)
		return false;
	/* F_OFD_GETLK of a write lock wants no write access. */
	locked = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (locked && pid)
		*pid = read_pid(fd);
	close(fd);
	return locked;
}
