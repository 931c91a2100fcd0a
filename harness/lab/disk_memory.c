/* Keeps the content of a modelled disk in memory. */
#include "harness/lab/disk_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

int disk_memory_new(const char *name, uint64_t size, struct err *e)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	/* Linux before 6.3 refuses the flag; a later one may require it (vm.memfd_noexec). */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		return fd;
	err_errno(e, -errno, "cannot make disk '%s'", name);
	if (fd >= 0)
		close(fd);
	return -EIO;
}

int64_t disk_memory_room(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : (int64_t)st.st_blocks * 512;
}

static bool fresh(int fd, size_t size, uint64_t position)
{
	off_t data = lseek(fd, (off_t)position, SEEK_DATA);

	return data < 0 ? errno == ENXIO : (uint64_t)data >= position + size;
}

static bool all_zero(const void *data, size_t size)
{
	const char *p = data;

	return !size || (!p[0] && !memcmp(p, p + 1, size - 1));
}

int disk_memory_read(int fd, void *data, size_t size, uint64_t position)
{
	for (char *to = data; size;) {
		ssize_t n = pread(fd, to, size, (off_t)position);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		to += n;
		size -= (size_t)n;
		position += (uint64_t)n;
	}
	return 0;
}

int disk_memory_write(int fd, const void *data, size_t size, uint64_t position)
{
	if (all_zero(data, size) && fresh(fd, size, position))
		return 0;
	return lseek(fd, (off_t)position, SEEK_SET) < 0 ? -errno : fd_write_all(fd, data, size);
}

int disk_memory_zero(int fd, uint64_t size, uint64_t position)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)position,
		       (off_t)size) < 0
		? -errno
		: 0;
}
