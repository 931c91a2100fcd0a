/*
 * Calls of one end on one direction, in order of position.
 *
 * A call's position is read when it returns, so the bytes of a call that another thread made
 * meanwhile on the same socket are counted into it: it then seems to lie higher than it does, by
 * just these bytes, and both claim them. What overlaps is resolved by extending the call that
 * begins lower downwards; the call that lies inside it keeps its bytes.
 */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

static void segments_grow(struct segments *s)
{
	uint32_t room = s->room ? s->room * 2 : 8;
	struct segment *ring = alloc_resize(NULL, room, sizeof(*ring));

	for (uint32_t i = 0; i < s->n; i++)
		ring[i] = *segment_at(s, i);
	free(s->ring);
	s->ring = ring;
	s->room = room;
	s->first = 0;
}

static void segments_advance(struct segments *s)
{
	while (s->ready < s->n && segment_at(s, s->ready)->begin <= s->frontier) {
		if (segment_at(s, s->ready)->end > s->frontier)
			s->frontier = segment_at(s, s->ready)->end;
		s->ready++;
	}
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The new one lies among those that wait behind a gap, or overlaps what is there. */
static enum insert insert_among(struct segments *s, struct segment seg)
{
	enum insert how = INSERTED;
	uint32_t at = s->n;
	uint64_t both;

	if (seg.end <= s->frontier)
		return INSERT_LATE;
	while (at > s->ready && segment_at(s, at - 1)->begin > seg.begin)
		at--;
	for (uint32_t i = at; i < s->n && segment_at(s, i)->begin < seg.end; i++) {
		both = smaller(seg.end, segment_at(s, i)->end) - segment_at(s, i)->begin;
		seg.begin -= smaller(both, seg.begin);
		how = INSERTED_OVERLAP;
	}
	if (at > s->ready && segment_at(s, at - 1)->end > seg.begin) {
		struct segment *before = segment_at(s, at - 1);

		both = smaller(before->end, seg.end) - seg.begin;
		before->begin -= smaller(both, before->begin);
		if (before->begin < s->frontier)
			before->begin = s->frontier;
		how = INSERTED_OVERLAP;
	}
	if (seg.begin < s->frontier) {
		seg.begin = s->frontier;
		how = INSERTED_OVERLAP;
	}
	while (at > s->ready && segment_at(s, at - 1)->begin > seg.begin)
		at--;
	for (uint32_t i = s->n; i > at; i--)
		*segment_at(s, i) = *segment_at(s, i - 1);
	*segment_at(s, at) = seg;
	s->n++;
	segments_advance(s);
	return how;
}

enum insert segments_insert(struct segments *s, const struct segment *seg)
{
	if (s->n == s->room)
		segments_grow(s);
	if (!s->seen) {
		s->seen = true;
		s->base = s->frontier = seg->begin;
	}
	if (seg->begin != s->frontier || s->ready != s->n)
		return insert_among(s, *seg);
	*segment_at(s, s->n) = *seg;
	s->n++;
	s->ready++;
	s->frontier = seg->end;
	return INSERTED;
}

void segments_pop(struct segments *s)
{
	s->first = (s->first + 1) & (s->room - 1);
	s->n--;
	s->ready -= s->ready > 0;
}

uint64_t segments_skip(struct segments *s)
{
	uint64_t bytes;

	if (s->ready == s->n)
		return 0;
	bytes = segment_at(s, s->ready)->begin - s->frontier;
	s->gaps += bytes;
	s->frontier += bytes;
	segments_advance(s);
	return bytes;
}
