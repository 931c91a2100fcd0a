/* Receives bound to sends. */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

enum {
	AHEAD = 1024,   /* calls that wait for the other end before its log is read first */
	PENDING = 4096, /* calls that wait for one that has not returned */
};

#define START (1ull << 40)
#define GAP_NS 1000000000 /* a call that waits returns within it, or its record is lost */

static int end_of(const struct half *h, int which)
{
	int from = h == &h->life->half[1];

	return which == SENT ? from : !from;
}

uint64_t wire_settled(const struct flow *f, const struct half *h, int which)
{
	const struct side *s = &h->side[which];

	if (s->absent || h->life->closed[end_of(h, which)] ||
		(s->node != FLOW_NO_NODE && !f->nodes[s->node].open_logs))
		return UINT64_MAX;
	return s->segments.seen ? s->segments.frontier : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The sends that hold the bytes of a receive, all of which are known. */
static void bind_one(struct flow *f, struct half *h, const struct segment *seg)
{
	const struct segments *sends = &h->side[SENT].segments;
	const struct segment *send, *last = NULL;
	uint64_t at = later(seg->begin, sends->base), covered = 0;

	while (h->source < sends->ready && segment_at(sends, h->source)->end <= seg->begin)
		h->source++;
	for (uint32_t i = h->source; i < sends->ready; i++) {
		send = segment_at(sends, i);
		if (send->begin >= seg->end)
			break;
		at = later(at, send->begin);
		if (earlier(send->end, seg->end) <= at)
			continue;
		covered += earlier(send->end, seg->end) - at;
		at = earlier(send->end, seg->end);
		last = send;
	}
	f->counts.bound_bytes += covered;
	if (covered == seg->end - seg->begin)
		f->counts.receives_bound++;
	else
		f->counts.reasons[seg->begin < sends->base ? FLOW_BEFORE_ATTACH : FLOW_GAP]++;
	if (last)
		clock_edge(
			f, h->side[SENT].node, h->side[RECEIVED].node, last->start_ns, seg->end_ns);
}

static void bind_receives(struct flow *f, struct half *h)
{
	const struct segments *sends = &h->side[SENT].segments;
	const struct segments *receives = &h->side[RECEIVED].segments;

	for (; h->bound < receives->ready; h->bound++) {
		const struct segment *seg = segment_at(receives, h->bound);

		if (sends->seen && seg->end <= sends->frontier)
			bind_one(f, h, seg);
		else if (wire_settled(f, h, SENT) == UINT64_MAX)
			f->counts.reasons[sends->seen ? FLOW_AFTER_END : FLOW_PEER_UNSEEN]++;
		else
			break;
	}
}

static void pop(struct flow *f, struct half *h, int which)
{
	struct side *s = &h->side[which];

	segments_pop(&s->segments);
	s->attached--;
	f->held--;
	if (which == RECEIVED)
		h->bound--;
	else if (h->source)
		h->source--;
}

/* Drops the calls whose bytes are bound and in messages. */
static void wire_drop(struct flow *f, struct half *h)
{
	struct side *sent = &h->side[SENT], *received = &h->side[RECEIVED];
	uint64_t taken = wire_settled(f, h, RECEIVED);

	if (h->bound < received->segments.ready)
		taken = segment_at(&received->segments, h->bound)->begin;
	while (sent->attached && segment_at(&sent->segments, 0)->end <= taken)
		pop(f, h, SENT);
	while (received->attached && h->bound)
		pop(f, h, RECEIVED);
}

/* Is the end so far ahead of the other that the other's logs should be read first? */
static void note_ahead(struct flow *f, struct side *s)
{
	bool ahead = s->segments.ready > (s->ahead ? AHEAD / 2 : AHEAD);

	if (ahead == s->ahead || s->node == FLOW_NO_NODE)
		return;
	s->ahead = ahead;
	f->turns++;
	f->nodes[s->node].ahead += ahead ? 1u : -1u;
}

/* A gap is closed where calls that returned long after those behind it still do not fill it. */
static bool is_lost(const struct segments *s)
{
	return s->n - s->ready > PENDING ||
		segment_at(s, s->n - 1)->end_ns - segment_at(s, s->ready)->end_ns > GAP_NS;
}

static void close_gaps(struct flow *f, struct half *h, int which)
{
	struct segments *s = &h->side[which].segments;

	while (s->ready < s->n && (is_lost(s) || wire_settled(f, h, which) == UINT64_MAX))
		segments_skip(s);
}

void wire_progress(struct flow *f, struct half *h)
{
	close_gaps(f, h, SENT);
	close_gaps(f, h, RECEIVED);
	bind_receives(f, h);
	if (f->spec.protocol) {
		frame_advance(f, h);
		frame_attach(f, h, SENT);
		frame_attach(f, h, RECEIVED);
		frame_retire(f, h);
	} else {
		h->side[SENT].attached = h->side[SENT].segments.ready;
		h->side[RECEIVED].attached = h->side[RECEIVED].segments.ready;
	}
	wire_drop(f, h);
	note_ahead(f, &h->side[SENT]);
	note_ahead(f, &h->side[RECEIVED]);
}

/* 64 bits from 32: the nearest to the last one. */
static uint64_t unwrap(struct half *h, uint32_t position)
{
	if (!h->based)
		h->latest = START + position;
	h->based = true;
	h->latest += (uint64_t)(int64_t)(int32_t)(position - (uint32_t)h->latest);
	return h->latest;
}

void wire_moved(struct flow *f, struct log *l, const struct record_call *c, struct endpoint *ep,
	bool send, struct thread *t)
{
	const int which = send ? SENT : RECEIVED, half = send ? ep->end : !ep->end;
	struct segment seg = {.start_ns = c->start_ns,
		.end_ns = c->start_ns + c->service_ns,
		.pid = c->pid,
		.tid = c->tid,
		.cause = t->cause ? t->cause : t->hand,
		.maybe = !t->cause,
		.order = send ? t->sends++ : t->actions};
	struct half *h;
	struct side *s;
	enum insert how;

	if (!ep->life)
		life_attach(f, ep, half, which, c);
	h = &ep->life->half[half];
	s = &h->side[which];
	s->node = l->node;
	s->absent = false;
	seg.end = unwrap(h, c->position);
	seg.begin = seg.end - (uint64_t)c->result;
	seg.head_size = c->head ? c->head_size : 0;
	if (seg.head_size > (uint64_t)c->result)
		seg.head_size = (uint8_t)c->result;
	if (seg.head_size)
		memcpy(seg.head, c->head, seg.head_size);
	how = segments_insert(&s->segments, &seg);
	f->counts.overlaps += how != INSERTED;
	if (how == INSERT_LATE) {
		f->counts.reasons[FLOW_GAP] += !send;
		return;
	}
	f->held++;
	if (f->held > f->counts.held_peak)
		f->counts.held_peak = f->held;
	if (f->spec.protocol)
		frame_segment(f, h, which, &seg);
	wire_progress(f, h);
}

/* ---- ends ---- */

static void each_half(struct flow *f, bool (*fn)(struct flow *f, struct half *h))
{
	for (size_t i = 0; i < map_room(&f->connections); i++) {
		struct connection *c = connection_at(f, i);

		for (struct flow_life *l = c ? c->lives : NULL; l; l = l->next)
			for (int k = 0; k < 2; k++)
				if (fn(f, &l->half[k]))
					wire_progress(f, &l->half[k]);
	}
}

static bool force(struct flow *f, struct half *h)
{
	bool done = false;

	(void)f;
	for (int k = 0; k < 2; k++) {
		if (!h->side[k].ahead)
			continue;
		if (!segments_skip(&h->side[!k].segments))
			h->side[!k].absent = true;
		done = true;
	}
	return done;
}

void wire_force(struct flow *f)
{
	each_half(f, force);
}

static bool any(struct flow *f, struct half *h)
{
	(void)f;
	(void)h;
	return true;
}

void wire_node_ended(struct flow *f, uint32_t node)
{
	(void)node;
	each_half(f, any);
}

static bool wire_end(struct flow *f, struct half *h)
{
	(void)f;
	h->side[SENT].absent = h->side[RECEIVED].absent = true;
	return true;
}

void wire_finish(struct flow *f)
{
	each_half(f, wire_end);
}
