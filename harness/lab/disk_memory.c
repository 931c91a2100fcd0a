#include "harness/lab/disk_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"

#define BLOCK 4096u
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

struct disk_memory {
	int fd;
	uint8_t *written; /* one bit per block */
};

/* Linux before 6.3 refuses the flag; a later one may require it (sysctl vm.memfd_noexec). */
static int memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : fd;
}

int disk_memory_new(const char *name, uint64_t size, struct disk_memory **out, struct err *e)
{
	struct disk_memory *s = alloc_zero(1, sizeof(*s));
	int rc;

	s->fd = memory_file(name);
	s->written = alloc_zero(1, size / BLOCK / 8 + 2);
	if (s->fd >= 0 && !ftruncate(s->fd, (off_t)size)) {
		*out = s;
		return 0;
	}
	rc = err_errno(e, -errno, "cannot make disk '%s'", name);
	disk_memory_free(s);
	return rc;
}

void disk_memory_free(struct disk_memory *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->written);
	free(s);
}

int64_t disk_memory_room(const struct disk_memory *s)
{
	struct stat st;

	return fstat(s->fd, &st) < 0 ? -errno : (int64_t)st.st_blocks * 512;
}

static bool fresh(const struct disk_memory *s, size_t size, uint64_t position)
{
	for (uint64_t b = position / BLOCK; b * BLOCK < position + size; b++)
		if (s->written[b / 8] & 1u << b % 8)
			return false;
	return true;
}

static bool all_zero(const void *data, size_t size)
{
	const char *p = data;

	return !size || (!p[0] && !memcmp(p, p + 1, size - 1));
}

/* Reads into 'data', or writes from it. */
static int transfer(int fd, bool out, char *data, size_t size, uint64_t position)
{
	while (size) {
		ssize_t n = out ? pwrite(fd, data, size, (off_t)position)
				: pread(fd, data, size, (off_t)position);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
		position += (uint64_t)n;
	}
	return 0;
}

int disk_memory_read(const struct disk_memory *s, void *data, size_t size, uint64_t position)
{
	if (!fresh(s, size, position))
		return transfer(s->fd, false, data, size, position);
	memset(data, 0, size);
	return 0;
}

int disk_memory_write(struct disk_memory *s, const void *data, size_t size, uint64_t position)
{
	if (fresh(s, size, position) && all_zero(data, size))
		return 0;
	for (uint64_t b = position / BLOCK; b * BLOCK < position + size; b++)
		s->written[b / 8] |= (uint8_t)(1u << b % 8);
	return transfer(s->fd, true, (char *)data, size, position);
}

int disk_memory_zero(struct disk_memory *s, uint64_t size, uint64_t position)
{
	/* The mark means "may hold data": a block that is zeroed only in part keeps it. */
	uint64_t b = (position + BLOCK - 1) / BLOCK;

	if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)position,
		    (off_t)size) < 0)
		return -errno;
	for (; (b + 1) * BLOCK <= position + size; b++)
		s->written[b / 8] &= (uint8_t) ~(1u << b % 8);
	return 0;
}
