/* Does a client's mount work? */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/lab/lab_impl.h"

/* Beyond the first piece of a file: the first large file may make a file system create folders, and
 * if several clients do so at once, some may fail for a moment. It must not happen in a user's run.
 */
#define FAR (4 << 20)

int client_try_file(const char *name, struct err *e)
{
	char path[64], text[64], back[64] = "";
	int fd, rc = 0;
	ssize_t n = snprintf(text, sizeof(text), "%s was here", name);

	snprintf(path, sizeof(path), LAB_MOUNT "/.try-%s", name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)n) != n || fsync(fd) < 0 ||
		pread(fd, back, (size_t)n, 0) != n)
		rc = err_errno(e, errno ? -errno : -EIO, "cannot write and read '%s'", path);
	else if (strcmp(text, back))
		rc = err_set(e, -EIO, "'%s' does not hold what was written", path);
	for (int i = 0; !rc && pwrite(fd, text, 1, FAR) != 1; i++) {
		if (i == 250)
			rc = err_errno(e, -errno, "cannot write '%s' beyond its first piece", path);
		usleep(20000);
	}
	if (fd >= 0)
		close(fd);
	if (!rc && unlink(path) < 0)
		rc = err_errno(e, -errno, "cannot remove '%s'", path);
	return rc;
}
