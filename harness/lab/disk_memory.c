#include "harness/lab/disk_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096u
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

struct store {
	int fd;
	uint64_t size;
	uint8_t *written; /* one bit a block */
};

/* Linux before 6.3 does not know the flag; later ones may insist on it (sysctl vm.memfd_noexec). */
static int memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : fd;
}

int store_new(const char *name, uint64_t size, struct store **out, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_errno(e, -ENOMEM, "cannot make disk '%s'", name);
	s->size = size;
	s->fd = memory_file(name);
	s->written = calloc(1, size / BLOCK / 8 + 2);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)size) < 0)
		rc = err_errno(e, -errno, "cannot make disk '%s'", name);
	else if (!s->written)
		rc = err_errno(e, -ENOMEM, "cannot make disk '%s'", name);
	else
		rc = 0;
	if (rc)
		store_free(s);
	else
		*out = s;
	return rc;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->written);
	free(s);
}

int64_t store_room(const struct store *s)
{
	struct stat st;

	return fstat(s->fd, &st) < 0 ? -errno : (int64_t)st.st_blocks * 512;
}

static bool fresh(const struct store *s, size_t size, uint64_t position)
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

int store_read(const struct store *s, void *data, size_t size, uint64_t position)
{
	char *p = data;

	if (fresh(s, size, position)) {
		memset(data, 0, size);
		return 0;
	}
	while (size) {
		ssize_t n = pread(s->fd, p, size, (off_t)position);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		size -= (size_t)n;
		position += (uint64_t)n;
	}
	return 0;
}

int store_write(struct store *s, const void *data, size_t size, uint64_t position)
{
	const char *p = data;

	if (fresh(s, size, position) && all_zero(data, size))
		return 0;
	for (uint64_t b = position / BLOCK; b * BLOCK < position + size; b++)
		s->written[b / 8] |= (uint8_t)(1u << b % 8);
	while (size) {
		ssize_t n = pwrite(s->fd, p, size, (off_t)position);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
		position += (uint64_t)n;
	}
	return 0;
}

int store_zero(struct store *s, uint64_t size, uint64_t position)
{
	/* A block that is only partly zeroed keeps its mark: the mark means "may hold data". */
	uint64_t b = (position + BLOCK - 1) / BLOCK;

	if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)position,
		    (off_t)size) < 0)
		return -errno;
	for (; (b + 1) * BLOCK <= position + size; b++)
		s->written[b / 8] &= (uint8_t) ~(1u << b % 8);
	return 0;
}
