/* Uses a lock to show whether a log is still being written. */
#include "diag/record/growing.h"

#include <fcntl.h>
#include <unistd.h>

#include "harness/base/auto.h"

/* Locks of an open file description (Linux 3.15), not of a process: a reader in the writer's own
 * process also sees them, and closing another descriptor of the file does not drop them. */
void log_hold(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	fcntl(fd, F_OFD_SETLK, &all);
}

bool log_is_held(int fd)
{
	struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return !fcntl(fd, F_OFD_GETLK, &all) && all.l_type == F_WRLCK;
}

bool log_is_growing(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && log_is_held(fd);
}
