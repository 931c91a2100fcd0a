/* Limits how much unread data a log's file may hold. */
#include "diag/record/bound.h"

#include <errno.h>
#include <unistd.h>

#include "diag/record/layout.h"

/* Bytes of the file that no reader has taken. On file systems without holes: all bytes. */
static uint64_t held_bytes(int fd)
{
	const off_t size = lseek(fd, 0, SEEK_END);
	off_t data = lseek(fd, LOG_KEPT, SEEK_DATA);

	if (data < 0)
		data = errno == ENXIO ? size : LOG_KEPT;
	lseek(fd, size, SEEK_SET);
	return size > data ? (uint64_t)(size - data) : 0;
}

int log_bound_look(struct log_bound *b, int fd, uint64_t more)
{
	uint64_t held;

	if (!b->most)
		return 0;
	held = held_bytes(fd) + more;
	b->full = held + LAYOUT_BLOCK_HEAD + LAYOUT_PAYLOAD > b->most;
	return held > 2 * b->most ? -ENOBUFS : 0;
}

bool log_bound_drops(struct log_bound *b, const struct record *rec)
{
	const unsigned droppable = 1u << RECORD_CALL | 1u << RECORD_SIGNAL | 1u << RECORD_FUSE |
		1u << RECORD_SUM | 1u << RECORD_READING;

	if (!b->most || !b->full || !(droppable >> rec->type & 1))
		return false;
	b->dropped++;
	b->last_ns = record_end_ns(rec);
	return true;
}

bool log_bound_tell(struct log_bound *b, struct record *lost, bool now)
{
	if (b->dropped == b->reported || (b->full && !now))
		return false;
	*lost = (struct record){.type = RECORD_LOST,
		.lost = {.start_ns = b->last_ns, .count = b->dropped - b->reported}};
	b->reported = b->dropped;
	return true;
}
