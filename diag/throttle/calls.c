/* Examines a call that stopped. It reads the memory of a waiting thread, which other threads of the
 * process may change at the same time, so the answer only decides whether to delay. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "diag/capture/trapped.h"
#include "diag/throttle/supervisor_impl.h"
#include "harness/base/text.h"

enum { PATH_ROOM = 4096 };

static bool is_below(const char *root, const char *path)
{
	size_t n = strcmp(root, "/") ? strlen(root) : 0;

	return !strncmp(path, root, n) && (!path[n] || path[n] == '/');
}

static bool link_of(pid_t tid, const char *what, int fd, char *text, size_t size)
{
	char path[64];
	ssize_t n;

	if (fd >= 0)
		snprintf(path, sizeof(path), "/proc/%d/%s/%d", tid, what, fd);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", tid, what);
	n = readlink(path, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Reads a string from the thread's memory page by page, since the page after it may be unmapped. */
static bool string_of(pid_t tid, uint64_t at, char *text, size_t size)
{
	size_t n = 0;

	while (n < size) {
		size_t part = 4096 - (size_t)((at + n) & 4095);
		struct iovec here = {text + n, part < size - n ? part : size - n};
		struct iovec there = {(void *)(uintptr_t)(at + n), here.iov_len};
		ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);

		if (got <= 0)
			return false;
		if (memchr(text + n, 0, (size_t)got))
			return true;
		n += (size_t)got;
	}
	return false;
}

static bool fd_on_file(const char *root, pid_t tid, int fd, bool *below)
{
	char text[PATH_ROOM];

	if (!link_of(tid, "fd", fd, text, sizeof(text)) || *text != '/' ||
		!strncmp(text, "/dev/", 5))
		return false;
	*below = is_below(root, text);
	return true;
}

bool call_on_file(const char *root, pid_t tid, const struct seccomp_data *d, int kind, bool *below)
{
	char path[PATH_ROOM], whole[2 * PATH_ROOM + 2] = "";
	bool at = kind == TRAPPED_PATH_AT;
	int fd = (int)d->args[0];

	*below = false;
	if (kind == TRAPPED_FD)
		return fd >= 0 && fd_on_file(root, tid, fd, below);
	if (!string_of(tid, d->args[at], path, sizeof(path)))
		return true;
	if (!*path)
		return at && fd >= 0 && fd_on_file(root, tid, fd, below);
	if (*path != '/' &&
		!link_of(tid, at && fd != AT_FDCWD ? "fd" : "cwd", at && fd != AT_FDCWD ? fd : -1,
			whole, PATH_ROOM))
		return true;
	strcat(whole, "/");
	strcat(whole, path);
	text_tidy_path(whole);
	*below = is_below(root, whole);
	return true;
}
