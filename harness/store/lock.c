/* Ensures that only one orchestrator uses a run at a time. */
#include "harness/store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"

static int open_lock(const char *folder, int flags)
{
	auto_free char *path = alloc_format("%s/lock", folder);
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static pid_t read_pid(int fd)
{
	char text[32] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? (pid_t)atoi(text) : 0;
}

int run_lock(const char *folder, int *out, struct err *e)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock(folder, O_RDWR | O_CREAT), rc = fd < 0 ? fd : 0;

	if (!rc && fcntl(fd, F_OFD_SETLK, &lock) < 0)
		rc = -errno;
	if (rc == -EAGAIN || (rc == -EACCES && fd >= 0))
		rc = err_set(e, -EBUSY, "the run '%s' is in progress in process %d", folder,
			(int)read_pid(fd));
	else if (rc)
		err_errno(e, rc, "cannot lock the run '%s'", folder);
	if (rc) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	/* The number is only for people; the lock works without it, and the disk may be full. */
	if (dprintf(fd, "%-10d\n", (int)getpid()) < 0)
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
	/* F_OFD_GETLK of a write lock needs no write access. */
	locked = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (locked && pid)
		*pid = read_pid(fd);
	close(fd);
	return locked;
}
