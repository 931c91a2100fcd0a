/* Loads a log's zone index. */
#include "diag/query/zones.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "diag/query/zones_impl.h"
#include "diag/record/growing.h"
#include "diag/record/layout.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/sha256.h"

enum { SETTLED_S = 60 }; /* a log without END that nobody has written to for so long is cut short */

static int64_t nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct zones_file zones_file_of(const struct stat *st)
{
	return (struct zones_file){.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.changed_ns = nanoseconds(st->st_mtim),
		.touched_ns = nanoseconds(st->st_ctim)};
}

uint32_t zones_crc(const struct zones *z)
{
	const size_t skip = offsetof(struct zones_head, file);
	uLong crc = crc32(0, (const Bytef *)&z->head + skip, sizeof(z->head) - skip);

	/* zlib begins anew where it is given NULL. */
	if (z->head.n_zones)
		crc = crc32_z(crc, (const Bytef *)z->zone, z->head.n_zones * sizeof(*z->zone));
	if (z->head.n_checkpoints)
		crc = crc32_z(crc, (const Bytef *)z->checkpoint,
			z->head.n_checkpoints * sizeof(*z->checkpoint));
	return (uint32_t)crc;
}

int zones_path(const char *log, char **path, struct err *e)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	auto_free char *real = realpath(log, NULL), *folder = NULL;
	char name[SHA256_HEX];

	if (!real)
		return err_errno(e, -errno, "cannot find the log '%s'", log);
	if (cache && *cache == '/')
		folder = alloc_format("%s/culprit/index", cache);
	else if (home && *home == '/')
		folder = alloc_format("%s/.cache/culprit/index", home);
	else
		return err_set(e, -ENOENT, "there is no cache: $HOME is not set");
	sha256_hex(real, strlen(real), name);
	*path = alloc_format("%s/%.32s", folder, name);
	return 0;
}

void zones_free(struct zones *z)
{
	if (!z)
		return;
	free(z->zone);
	free(z->checkpoint);
	free(z->path);
	free(z);
}

static int damaged(const char *path, struct err *e)
{
	return err_set(e, -EBADMSG, "the index '%s' is damaged; it can be removed", path);
}

/* Does each zone continue where the last one ended, inside the log? */
static bool zones_hang_together(const struct zones *z)
{
	uint64_t at = LAYOUT_HEAD, before = 0;

	for (uint64_t i = 0; i < z->head.n_zones; i++) {
		const struct zone *zone = &z->zone[i];
		uint64_t next = i + 1 < z->head.n_zones ? z->zone[i + 1].offset : z->head.end;

		if (zone->offset != at || zone->before != before || !zone->records || next <= at ||
			next - at > LAYOUT_BLOCK_HEAD + LAYOUT_PAYLOAD)
			return false;
		at = next;
		before += zone->records;
	}
	return at == z->head.end && at <= z->head.file.size;
}

static bool checkpoints_hang_together(const struct zones *z, uint64_t state_size)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < z->head.n_checkpoints; i++) {
		const struct zone_checkpoint *c = &z->checkpoint[i];

		if (c->zone <= last || c->zone >= z->head.n_zones || c->offset < LAYOUT_HEAD ||
			c->offset > state_size || c->before > UINT32_MAX || c->records > UINT32_MAX)
			return false;
		last = c->zone;
	}
	return true;
}

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* The parts behind the head, whose numbers are not trusted yet. */
static int load_parts(int fd, uint64_t size, struct zones *z, struct err *e)
{
	const struct zones_head *h = &z->head;
	uint64_t left = size - sizeof(*h), zones = h->n_zones, checkpoints = h->n_checkpoints;

	if (zones > left / sizeof(*z->zone))
		return damaged(z->path, e);
	left -= zones * sizeof(*z->zone);
	if (checkpoints > left / sizeof(*z->checkpoint))
		return damaged(z->path, e);
	left -= checkpoints * sizeof(*z->checkpoint);
	z->state = size - left;
	z->zone = alloc_zero(zones, sizeof(*z->zone));
	z->checkpoint = alloc_zero(checkpoints, sizeof(*z->checkpoint));
	if (!read_at(fd, z->zone, zones * sizeof(*z->zone), sizeof(*h)) ||
		!read_at(fd, z->checkpoint, checkpoints * sizeof(*z->checkpoint),
			sizeof(*h) + zones * sizeof(*z->zone)) ||
		zones_crc(z) != h->crc || !zones_hang_together(z) ||
		!checkpoints_hang_together(z, left))
		return damaged(z->path, e);
	return 0;
}

/* Is the index of this file, or of its beginning while it grows? */
static bool is_of(const struct zones_head *h, const struct zones_file *file, const char *log)
{
	if (!memcmp(&h->file, file, sizeof(*file)))
		return true;
	return h->file.device == file->device && h->file.inode == file->inode &&
		h->file.size <= file->size && !h->whole && log_is_growing(log);
}

int zones_load(const char *path, const char *log, struct zones **out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat of_log, st;
	struct zones_file file;
	struct zones *z;
	int rc = 0;

	if (fd < 0 || fstat(fd, &st) || stat(log, &of_log))
		return err_errno(e, -errno, "cannot open the index '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, -EPERM, "the index '%s' is not yours alone", path);
	z = alloc_zero(1, sizeof(*z));
	z->path = alloc_copy(path);
	file = zones_file_of(&of_log);
	if (st.st_size < (off_t)sizeof(z->head) || !read_at(fd, &z->head, sizeof(z->head), 0) ||
		memcmp(z->head.magic, ZONES_MAGIC, sizeof(z->head.magic)))
		rc = damaged(path, e);
	else if (z->head.version != ZONES_VERSION || !is_of(&z->head, &file, log))
		rc = err_set(e, -ESTALE, "the index '%s' is of another log", path);
	else
		rc = load_parts(fd, (uint64_t)st.st_size, z, e);
	if (rc)
		zones_free(z);
	else
		*out = z;
	return rc;
}

/* Will nothing be added to the log? */
static bool is_settled(const char *log, const struct stat *st)
{
	struct record_end end;

	if (log_is_growing(log))
		return false;
	return !log_read_end(log, &end, NULL, NULL) ||
		clock_real_ns() - nanoseconds(st->st_mtim) > SETTLED_S * 1000000000ll;
}

int zones_get(const char *log, uint64_t least_bytes, const struct zones_stop *stop,
	struct zones **out, struct err *e)
{
	auto_free char *path = NULL;
	struct stat st;
	int rc;

	*out = NULL;
	if (stat(log, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < least_bytes ||
		zones_path(log, &path, NULL))
		return 0;
	if (!zones_load(path, log, out, NULL) || !is_settled(log, &st))
		return 0;
	rc = zones_make(path, log, 0, stop, e);
	if (rc == -EINTR)
		return rc;
	if (!rc)
		zones_load(path, log, out, NULL);
	return 0;
}
