/*
 * From messages to requests: a call and its answer have the same id on one connection, the one in
 * each direction.
 */
#include "diag/flow/flow_impl.h"

#include <errno.h>
#include <stdlib.h>

#define ORPHAN_NS 10000000000 /* of an answer whose call is not known yet */

/* ---- the table of those that further messages may belong to ---- */

static uint64_t request_key_of(uint64_t life, int dir, uint64_t id)
{
	return hash_mix(hash_mix(0, life * 2 + (uint64_t)dir), id);
}

static int direction(const struct half *h)
{
	return h == &h->life->half[1];
}

/* The open request of this id whose call travels on 'h'. */
static struct request *request_find(const struct flow *f, const struct half *h, uint64_t id)
{
	const uint64_t key = request_key_of(h->life->number, direction(h), id);
	struct request *r = (struct request *)(uintptr_t)map_get(&f->table, key);

	while (r && (r->pub.id != id || r->half != h))
		r = r->chain;
	return r;
}

static void take_out(struct flow *f, struct request *r)
{
	uint64_t key;
	struct request *newest;

	if (!r->tabled)
		return;
	key = request_key_of(r->life, direction(r->half), r->pub.id);
	newest = (struct request *)(uintptr_t)map_get(&f->table, key);
	if (newest != r) {
		while (newest->chain != r)
			newest = newest->chain;
		newest->chain = r->chain;
	} else if (r->chain) {
		map_put(&f->table, key, (uintptr_t)r->chain);
	} else {
		map_remove(&f->table, key, (uintptr_t)r);
	}
	*(r->older ? &r->older->newer : &f->oldest) = r->newer;
	*(r->newer ? &r->newer->older : &f->newest) = r->older;
	f->n_tabled--;
	r->half->life->open--;
	r->tabled = false;
}

static void append(struct flow *f, struct request *r)
{
	r->older = f->newest;
	r->newer = NULL;
	*(r->older ? &r->older->newer : &f->oldest) = r;
	f->newest = r;
	r->used_ns = f->now_ns;
}

static void try_finish(struct flow *f, struct request *r)
{
	if (!r->messages && !r->tabled && !r->waiting && !r->followers)
		request_finish(f, r);
}

void request_let_go(struct flow *f, struct request *r)
{
	struct request *p = r->previous;

	r->previous = NULL;
	if (p && !--p->followers)
		try_finish(f, p);
}

/* No further message is its own. */
static void close_request(struct flow *f, struct request *r)
{
	take_out(f, r);
	try_finish(f, r);
}

static struct request *request_new(struct flow *f, struct half *h, uint64_t id)
{
	struct request *r = alloc_zero(1, sizeof(*r));
	uint64_t key;

	if (f->n_tabled >= f->spec.limit) {
		f->oldest->pub.reasons |= 1u << FLOW_OVER_LIMIT;
		f->counts.reasons[FLOW_OVER_LIMIT]++;
		close_request(f, f->oldest);
	}
	r->half = h;
	r->life = h->life->number;
	r->begun_ns = f->now_ns;
	r->pub = (struct flow_request){.id = id,
		.connection = r->life,
		.client = FLOW_NO_NODE,
		.server = FLOW_NO_NODE,
		.width_ns = -1};
	key = request_key_of(r->life, direction(h), id);
	r->chain = (struct request *)(uintptr_t)map_get(&f->table, key);
	map_put(&f->table, key, (uintptr_t)r);
	r->tabled = true;
	f->n_tabled++;
	h->life->open++;
	f->n_requests++;
	append(f, r);
	r->number = ++f->born;
	r->elder = f->youngest;
	*(r->elder ? &r->elder->younger : &f->eldest) = r;
	f->youngest = r;
	return r;
}

static void touch(struct flow *f, struct request *r)
{
	*(r->older ? &r->older->newer : &f->oldest) = r->newer;
	*(r->newer ? &r->newer->older : &f->newest) = r->older;
	r->wait_for = f->born;
	append(f, r);
}

/* Its last message is so long ago that a further one would be another request's. */
static bool has_lingered(const struct flow *f, const struct request *r)
{
	return f->now_ns - r->used_ns > FLOW_LINGER_NS && f->spec.protocol->parts && r->has_call &&
		r->has_answer && !r->messages;
}

void requests_expire(struct flow *f)
{
	struct request *r;

	/* Calls without an answer wait; only the front is examined, and moves behind. */
	while ((r = f->oldest) && f->now_ns - r->used_ns > FLOW_LINGER_NS) {
		if (r->has_call ? has_lingered(f, r) : f->now_ns - r->begun_ns > ORPHAN_NS)
			close_request(f, r);
		else
			touch(f, r);
	}
}

/* ---- messages ---- */

void request_named(struct flow *f, struct request *r, const struct flow_header *h)
{
	r->pub.program = h->program;
	r->pub.procedure = h->procedure;
	r->pub.name = flow_protocol_name(f->spec.protocol, h->program, h->procedure);
}

static struct request *of_call(struct flow *f, struct half *h, const struct flow_header *header)
{
	struct request *r = request_find(f, h, header->id);

	if (r && r->has_call) {
		if (!r->has_answer) {
			r->pub.reasons |= 1u << FLOW_ID_REUSED;
			f->counts.reasons[FLOW_ID_REUSED]++;
		}
		close_request(f, r);
		r = NULL;
	}
	if (r)
		r->joined = true;
	else
		r = request_new(f, h, header->id);
	r->has_call = true;
	if (header->named)
		request_named(f, r, header);
	return r;
}

/* As 'find'. After a silence, requests_expire has not looked yet. */
static struct request *find_waiting(struct flow *f, const struct half *h, uint64_t id)
{
	struct request *r = request_find(f, h, id);

	if (!r || !has_lingered(f, r))
		return r;
	close_request(f, r);
	return NULL;
}

static struct request *of_answer(struct flow *f, struct half *h, uint64_t id)
{
	struct half *back = &h->life->half[!direction(h)];
	struct request *r = find_waiting(f, back, id);

	if (!r && f->spec.protocol->parts && (r = find_waiting(f, h, id)))
		return r; /* data that follows the call */
	if (r && r->has_answer && !f->spec.protocol->parts) {
		close_request(f, r);
		r = NULL;
	}
	if (!r)
		r = request_new(f, back, id);
	r->has_answer = true;
	return r;
}

void request_framed(struct flow *f, struct half *h, struct flow_message *m)
{
	const struct flow_header *header = &m->header;
	struct request *r;

	if (header->kind == FLOW_OTHER)
		return;
	r = header->kind == FLOW_CALL ? of_call(f, h, header) : of_answer(f, h, header->id);
	m->request = r;
	r->messages++;
	if (r->has_call && r->has_answer && !f->spec.protocol->parts)
		take_out(f, r);
	else
		touch(f, r);
}

/* A client's thread sends a call: what it is at is the cause. */
static void call_sent(struct flow *f, struct half *h, struct request *r, const struct segment *seg)
{
	struct thread *t;

	r->pub.first_pid = seg->pid;
	r->pub.first_tid = seg->tid;
	if (!seg->maybe)
		request_caused(f, r, fuse_by_serial(f, seg->cause), FLOW_THREAD);
	else if (fuse_may_have_caused(f, fuse_by_serial(f, seg->cause), r))
		r->maybe = seg->cause;
	t = r->cause ? NULL : thread_find(f, h->side[SENT].node, seg->tid);
	if (!t || !t->returned || t->sends != seg->order + 1 || t->returned == r || r->previous)
		return;
	r->previous = t->returned;
	r->previous->followers++;
	r->pub.first_pid = r->previous->pub.first_pid;
	r->pub.first_tid = r->previous->pub.first_tid;
}

void request_sending(
	struct flow *f, struct half *h, struct flow_message *m, const struct segment *seg)
{
	struct request *r = m->request;
	struct thread *t;

	if (!r)
		return;
	if (h == r->half && m->header.kind == FLOW_CALL) {
		call_sent(f, h, r, seg);
	} else if (h != r->half) {
		t = thread_find(f, h->side[SENT].node, seg->tid);
		if (t)
			thread_give(f, t, seg->order, r);
	}
}

void request_received(
	struct flow *f, struct half *h, struct flow_message *m, const struct segment *seg)
{
	const uint32_t node = h->side[RECEIVED].node;
	struct request *r = m->request;
	struct thread *t;

	if (!r)
		return;
	if (h == r->half) {
		f->nodes[node].serves = true;
		return;
	}
	t = thread_find(f, node, seg->tid);
	if (!t || t->actions != seg->order)
		return;
	if (t->cause_set == t->actions && t->cause != r->cause) {
		t->cause = 0; /* several answers at once: what follows may be of any */
		return;
	}
	t->cause_set = t->actions;
	t->cause = r->cause;
	if (!r->cause && f->nodes[node].has_fuse && !t->returned && !r->waiting) {
		t->returned = r;
		r->thread = t;
		r->waiting = true;
	}
}

void request_released(struct flow *f, struct request *r)
{
	r->waiting = false;
	r->thread = NULL;
	try_finish(f, r);
}

void request_caused(struct flow *f, struct request *r, struct fuse *u, enum flow_how how)
{
	if (!u || r->cause)
		return;
	r->cause = u->serial;
	r->pub.fuse_how = (uint8_t)how;
	u->open++;
	u->pub.requests++;
	if (r->previous)
		request_caused(f, r->previous, u, how);
	request_let_go(f, r);
}

/* ---- legs ---- */

static enum flow_reason why_missing(
	const struct flow *f, const struct half *h, int which, const struct flow_message *m)
{
	const struct segments *s = &h->side[which].segments;

	if (!s->seen)
		return FLOW_PEER_UNSEEN;
	if (m->begin < s->base)
		return FLOW_BEFORE_ATTACH;
	if (m->end > s->frontier && wire_settled(f, h, which) == UINT64_MAX)
		return FLOW_AFTER_END;
	return FLOW_GAP;
}

static void set_span(struct flow *f, struct request *r, struct half *h, int which,
	const struct flow_message *m, struct flow_span *out)
{
	const struct leg *l = &m->legs[which];
	enum flow_reason why;

	if (l->bytes < m->end - m->begin) {
		why = why_missing(f, h, which, m);
		f->counts.reasons[why]++;
		r->pub.reasons |= 1u << why;
		return;
	}
	*out = (struct flow_span){.begin_ns = l->begin_ns,
		.end_ns = l->end_ns,
		.node = h->side[which].node,
		.pid = l->pid,
		.tid = l->tid,
		.calls = l->calls < UINT16_MAX ? (uint16_t)l->calls : UINT16_MAX,
		.how = FLOW_EXACT};
}

void request_settled(struct flow *f, struct half *h, struct flow_message *m)
{
	struct request *r = m->request;

	depth_message(f, h, m);
	if (!r)
		return;
	if (h == r->half) {
		r->pub.client = h->side[SENT].node;
		r->pub.server = h->side[RECEIVED].node;
		r->pub.call_bytes += m->end - m->begin;
		r->pub.call_messages++;
		if (m->header.kind == FLOW_CALL) {
			set_span(f, r, h, SENT, m, &r->pub.sent);
			set_span(f, r, h, RECEIVED, m, &r->pub.received);
		}
	} else {
		r->pub.server = h->side[SENT].node;
		r->pub.client = h->side[RECEIVED].node;
		r->pub.answer_bytes += m->end - m->begin;
		r->pub.answer_messages++;
		set_span(f, r, h, SENT, m, &r->pub.answered);
		set_span(f, r, h, RECEIVED, m, &r->pub.returned);
	}
	r->messages--;
	try_finish(f, r);
}

/* ---- ends ---- */

static void orphan(struct flow *f, struct half *h)
{
	for (; h->n; h->n--, h->first = (h->first + 1) & (h->room - 1))
		request_settled(f, h, message_at(h, 0));
}

void requests_of_life_end(struct flow *f, const struct flow_life *l)
{
	struct flow_life *life = (struct flow_life *)l;

	orphan(f, &life->half[0]);
	orphan(f, &life->half[1]);
	for (struct request *r = f->oldest, *next; r && life->open; r = next) {
		next = r->newer;
		if (r->life == l->number)
			close_request(f, r);
	}
}

void requests_finish(struct flow *f)
{
	while (f->oldest)
		close_request(f, f->oldest);
	requests_decide(f, true);
}

void requests_free(struct flow *f)
{
	requests_finish(f);
	map_clear(&f->table);
}
