/*
 * From bytes to messages. What the calls of either end began with is laid side by side by stream
 * position; where a message is known to begin, its header is read from it, and so the next one's
 * beginning is known. A direction that was attached to, or lost, in the middle of a message comes
 * into step where a call begins with what is a header.
 */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

static void copy_head(
	const struct segment *seg, uint64_t at, uint8_t header[FLOW_HEADER], uint64_t *known)
{
	uint64_t from = seg->begin > at ? seg->begin : at;
	uint64_t to = seg->begin + seg->head_size;

	if (to > at + FLOW_HEADER)
		to = at + FLOW_HEADER;
	for (uint64_t p = from; p < to; p++) {
		header[p - at] = seg->head[p - seg->begin];
		*known |= 1ull << (p - at);
	}
}

/* What either end's calls say of the bytes from 'at' on. */
static uint64_t frame_gather(const struct half *h, uint64_t at, uint8_t header[FLOW_HEADER])
{
	uint64_t known = 0;

	for (int k = 0; k < 2; k++) {
		const struct segments *s = &h->side[k].segments;
		uint32_t low = 0, high = s->n, mid;

		while (low < high) { /* the first one that ends behind 'at' */
			mid = (low + high) / 2;
			if (segment_at(s, mid)->end <= at)
				low = mid + 1;
			else
				high = mid;
		}
		for (; low < s->n && segment_at(s, low)->begin < at + FLOW_HEADER; low++)
			copy_head(segment_at(s, low), at, header, &known);
	}
	return known;
}

static int read_at(const struct flow *f, const struct half *h, uint64_t at, bool continues,
	struct flow_header *out)
{
	uint8_t header[FLOW_HEADER] = {0};
	uint64_t known = frame_gather(h, at, header);

	return flow_header_read(f->spec.protocol, header, known, continues, out);
}

static void frame_lost(struct flow *f, struct half *h, enum flow_reason why)
{
	f->counts.reasons[why]++;
	h->in_step = h->continues = false;
	h->candidate = 0;
}

/* A header may stand where a call begins. */
static bool try_at(struct flow *f, struct half *h, uint64_t at)
{
	struct flow_header header, next;
	int rc;

	if (at < h->framed_to)
		return false;
	rc = read_at(f, h, at, false, &header);
	if (rc == 0)
		h->candidate = at;
	if (rc <= 0 || header.kind == FLOW_OTHER ||
		read_at(f, h, at + header.bytes, !header.last, &next) < 0)
		return false;
	h->in_step = true;
	h->framed_to = at;
	return true;
}

void frame_segment(struct flow *f, struct half *h, int which, const struct segment *seg)
{
	(void)which;
	if (h->in_step)
		return;
	f->counts.reasons[FLOW_NO_HEADS] += !seg->head_size;
	if (!(h->candidate && seg->begin > h->candidate &&
		    seg->begin < h->candidate + FLOW_HEADER && try_at(f, h, h->candidate)))
		try_at(f, h, seg->begin);
}

static void frame_grow(struct half *h)
{
	uint32_t room = h->room ? h->room * 2 : 8;
	struct flow_message *ring = alloc_resize(NULL, room, sizeof(*ring));

	for (uint32_t i = 0; i < h->n; i++)
		ring[i] = *message_at(h, i);
	free(h->messages);
	h->messages = ring;
	h->room = room;
	h->first = 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t passed(const struct flow *f, const struct half *h)
{
	uint64_t sent = wire_settled(f, h, SENT), received = wire_settled(f, h, RECEIVED);
	const struct segments *s = &h->side[SENT].segments, *r = &h->side[RECEIVED].segments;

	if (sent != UINT64_MAX || received != UINT64_MAX)
		return smaller(sent, received);
	return s->frontier > r->frontier ? s->frontier : r->frontier;
}

static void frame_add(struct flow *f, struct half *h, const struct flow_header *header)
{
	struct flow_message *m;

	if (h->continues) {
		m = message_at(h, h->n - 1);
		m->end += header->bytes;
	} else {
		if (h->n == h->room)
			frame_grow(h);
		m = message_at(h, h->n++);
		*m = (struct flow_message){.begin = h->framed_to, .header = *header};
		m->end = m->begin + header->bytes;
		f->counts.messages++;
		request_framed(f, h, m);
	}
	h->framed_to = m->end;
	h->continues = !header->last;
}

static uint64_t last_end(const struct side *s)
{
	return s->segments.n ? segment_at(&s->segments, s->segments.n - 1)->end : 0;
}

void frame_advance(struct flow *f, struct half *h)
{
	struct flow_header header;
	int rc;

	while (h->in_step) {
		if (last_end(&h->side[SENT]) <= h->framed_to &&
			last_end(&h->side[RECEIVED]) <= h->framed_to)
			return;
		rc = read_at(f, h, h->framed_to, h->continues, &header);
		if (rc > 0) {
			frame_add(f, h, &header);
			continue;
		}
		if (rc < 0)
			frame_lost(f, h, FLOW_BAD_HEADER);
		else if (passed(f, h) >= h->framed_to + f->spec.protocol->header)
			frame_lost(f, h, FLOW_NO_HEADS);
		break;
	}
	/* What has gone by is in no message. A header may begin in what is left. */
	if (!h->in_step) {
		uint64_t to = passed(f, h);

		if (h->candidate && h->candidate < to && to - h->candidate < FLOW_HEADER)
			to = h->candidate;
		if (to > h->framed_to) {
			f->counts.reasons[FLOW_OUT_OF_STEP]++;
			h->framed_to = to;
		}
	}
}

/* ---- the calls that moved a message ---- */

static void leg_add(struct leg *l, const struct segment *seg, uint64_t bytes)
{
	if (!l->calls || seg->start_ns < l->begin_ns)
		l->begin_ns = seg->start_ns;
	if (!l->calls || seg->end_ns > l->end_ns)
		l->end_ns = seg->end_ns;
	l->pid = seg->pid;
	l->tid = seg->tid;
	l->bytes += bytes;
	l->calls++;
}

/* Fields of which a later call is the first to begin with the bytes. */
static void read_name(struct flow *f, const struct half *h, struct flow_message *m, uint64_t from)
{
	uint8_t header[FLOW_HEADER] = {0};

	if (m->header.kind != FLOW_CALL || m->header.named || !m->request ||
		from >= m->begin + FLOW_HEADER)
		return;
	if (flow_header_name(
		    f->spec.protocol, header, frame_gather(h, m->begin, header), &m->header))
		request_named(f, m->request, &m->header);
}

/* The bytes from 'from' to 'to' of a call belong to these messages. */
static void flow_frame_attach(struct flow *f, struct half *h, int which, const struct segment *seg,
	uint64_t from, uint64_t to)
{
	struct side *s = &h->side[which];

	while (s->message < h->n && message_at(h, s->message)->end <= from)
		s->message++;
	for (; s->message < h->n; s->message++) {
		struct flow_message *m = message_at(h, s->message);
		uint64_t a = from > m->begin ? from : m->begin, b = smaller(to, m->end);

		if (a >= b)
			return;
		s->touched = true;
		leg_add(&m->legs[which], seg, b - a);
		read_name(f, h, m, a);
		if (which == SENT && a == m->begin)
			request_sending(f, h, m, seg);
		/* A message that continues in a fragment not yet known has no end. */
		if (b < m->end || (h->continues && s->message + 1 == h->n))
			return;
		if (which == RECEIVED)
			request_received(f, h, m, seg);
	}
}

/* A call's bytes end where the next call's begin: of two that overlap the one inside keeps its own,
 * and what follows it as well. */
static uint64_t end_of(struct side *s, const struct segment *seg)
{
	const struct segments *all = &s->segments;
	uint64_t to;

	if (seg->end > s->covered)
		s->covered = seg->end;
	to = s->covered;
	if (s->attached + 1 < all->ready)
		to = smaller(to, segment_at(all, s->attached + 1)->begin);
	return to;
}

/* All bytes of a call are in messages, or in none. */
static void leave(struct flow *f, struct half *h, int which, const struct segment *seg)
{
	struct side *s = &h->side[which];
	struct thread *t = which == SENT ? thread_find(f, s->node, seg->tid) : NULL;

	if (t && t->n_disks && s->touched)
		thread_defer(t, seg->order);
	else if (t && t->n_disks)
		thread_drop(f, t, seg->order, FLOW_OUT_OF_STEP);
	s->touched = false;
}

void frame_attach(struct flow *f, struct half *h, int which)
{
	struct side *s = &h->side[which];

	for (; s->attached < s->segments.ready; s->attached++) {
		const struct segment *seg = segment_at(&s->segments, s->attached);
		uint64_t from = seg->begin > s->attached_to ? seg->begin : s->attached_to;
		uint64_t end = end_of(s, seg), to = smaller(end, h->framed_to);

		if (from < to) {
			s->attached_to = to;
			flow_frame_attach(f, h, which, seg, from, to);
		}
		if (end > h->framed_to)
			return;
		leave(f, h, which, seg);
	}
}

void frame_retire(struct flow *f, struct half *h)
{
	uint64_t sent, received;

	if (!h->n)
		return;
	sent = wire_settled(f, h, SENT);
	received = wire_settled(f, h, RECEIVED);
	for (int k = 0; k < 2; k++) {
		/* Known to have come, but not yet laid into messages. */
		const struct side *s = &h->side[k];
		uint64_t *to = k == SENT ? &sent : &received;

		if (s->attached < s->segments.n)
			*to = smaller(*to, s->attached_to);
	}
	while (h->n) {
		struct flow_message *m = message_at(h, 0);

		if (m->end > sent || m->end > received || (h->continues && h->n == 1))
			return;
		request_settled(f, h, m);
		h->first = (h->first + 1) & (h->room - 1);
		h->n--;
		for (int k = 0; k < 2; k++)
			h->side[k].message -= h->side[k].message > 0;
	}
}
