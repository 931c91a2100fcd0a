/* Sorts records that do not fit into memory, in a temporary file. */
#include "harness/web/timeline/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"

/* An unnamed file, which is deleted when its descriptor is closed. */
static int open_unnamed(struct err *e)
{
	const char *folder = getenv("TMPDIR");
	char *path;
	int fd;

	if (!folder || !*folder)
		folder = "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (fd >= 0)
		return fd;
	path = alloc_format("%s/culprit-timeline.XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	else
		fd = err_errno(
			e, -errno, "cannot make a temporary file in '%s' (set TMPDIR)", folder);
	free(path);
	return fd;
}

int spill_init(struct spill *s, size_t record, size_t room, spill_compare *compare, struct err *e)
{
	int fd = open_unnamed(e);

	*s = (struct spill){.fd = fd, .record = record, .room = room, .compare = compare};
	return fd < 0 ? fd : 0;
}

static void unmap(struct spill *s);

void spill_clear(struct spill *s)
{
	unmap(s);
	free(s->buffer);
	free(s->ends);
	if (s->record && s->fd >= 0)
		close(s->fd);
	*s = (struct spill){.fd = -1};
}

static void spill_flush(struct spill *s)
{
	if (!s->n || s->error)
		return;
	if (s->compare)
		qsort(s->buffer, s->n, s->record, s->compare);
	unmap(s);
	s->error = fd_write_all(s->fd, s->buffer, s->n * s->record);
	s->written += s->n;
	s->n = 0;
	if (!s->compare)
		return;
	s->ends = alloc_room(s->ends, s->n_runs, sizeof(*s->ends));
	s->ends[s->n_runs++] = s->written;
}

void spill_add(struct spill *s, const void *record)
{
	if (s->error)
		return;
	if (!s->buffer)
		s->buffer = alloc_zero(s->room, s->record);
	memcpy(s->buffer + s->n * s->record, record, s->record);
	if (++s->n == s->room)
		spill_flush(s);
}

static void unmap(struct spill *s)
{
	if (s->map)
		munmap(s->map, s->map_size);
	s->map = NULL;
}

const void *spill_map(struct spill *s)
{
	void *map;

	spill_flush(s);
	if (s->map || s->error || !s->written)
		return s->map;
	s->map_size = s->written * s->record;
	map = mmap(NULL, s->map_size, PROT_READ, MAP_SHARED, s->fd, 0);
	if (map == MAP_FAILED)
		s->error = -errno;
	else
		s->map = map;
	return s->map;
}

static const char *least_of(const struct spill_merge *m, size_t i)
{
	return m->base + m->heap[i].at * m->record;
}

static void sink(struct spill_merge *m, size_t i)
{
	struct spill_run moved;

	for (;;) {
		size_t least = i, child = 2 * i + 1;

		for (size_t c = child; c < child + 2 && c < m->n; c++)
			if (m->compare(least_of(m, c), least_of(m, least)) < 0)
				least = c;
		if (least == i)
			return;
		moved = m->heap[i];
		m->heap[i] = m->heap[least];
		m->heap[least] = moved;
		i = least;
	}
}

void spill_merge_init(struct spill_merge *m, struct spill *s)
{
	*m = (struct spill_merge){.base = spill_map(s), .record = s->record, .compare = s->compare};
	if (!m->base)
		return;
	m->heap = alloc_zero(s->n_runs, sizeof(*m->heap));
	for (size_t i = 0; i < s->n_runs; i++)
		m->heap[m->n++] = (struct spill_run){i ? s->ends[i - 1] : 0, s->ends[i]};
	for (size_t i = m->n; i-- > 0;)
		sink(m, i);
}

const void *spill_next(struct spill_merge *m)
{
	const char *next;

	if (!m->n)
		return NULL;
	next = least_of(m, 0);
	if (++m->heap[0].at == m->heap[0].end)
		m->heap[0] = m->heap[--m->n];
	sink(m, 0);
	return next;
}

void spill_merge_clear(struct spill_merge *m)
{
	free(m->heap);
	*m = (struct spill_merge){0};
}
