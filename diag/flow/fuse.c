/*
 * FUSE requests: from the kernel's records, and from what a daemon reads from and writes to
 * /dev/fuse, whose headers (struct fuse_in_header, fuse_out_header of linux/fuse.h) carry the same
 * number.
 */
#include "diag/flow/flow_impl.h"

#include <linux/fuse.h>
#include <stdlib.h>

enum {
	MAYBES = 4096, /* requests that wait for one FUSE request's answer */
	SLACK = 512,   /* bytes of headers that a protocol may put around a FUSE request's data */
	LOOK_BACK = 64 /* requests that may fit by content */
};

#define SILENT_NS 10000000000 /* of a thread that makes no calls */

static uint64_t fuse_key_of(uint32_t node, uint64_t unique)
{
	return hash_mix(hash_mix(0, node), unique);
}

/* The newest with this key; older ones are its chain. */
static struct fuse *newest_of(const struct flow *f, uint64_t key)
{
	return (struct fuse *)(uintptr_t)map_get(&f->fuses, key);
}

struct fuse *fuse_by_serial(const struct flow *f, uint64_t serial)
{
	struct fuse *u = serial ? f->by_serial[serial & (f->fuse_size - 1)] : NULL;

	return u && u->serial == serial ? u : NULL;
}

static void leave_thread(struct fuse *u)
{
	struct fuse **at;

	if (!u->thread)
		return;
	at = &u->thread->fuses;
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	u->thread = NULL;
}

bool fuse_may_have_caused(struct flow *f, struct fuse *u, const struct request *r)
{
	(void)f;
	if (!u || r->maybe || r->cause || u->ending || u->n_maybes == MAYBES ||
		(u->resolved && !u->alone))
		return false;
	u->n_maybes++;
	u->open++;
	return true;
}

static void resolve(struct flow *f, struct fuse *u, bool alone)
{
	struct request *r = u->maybes;

	if (u->resolved)
		return;
	u->resolved = true;
	u->alone = alone;
	u->maybes = NULL;
	u->open++; /* it does not end here */
	for (struct request *next; r; r = next) {
		next = r->next_held;
		request_resolved(f, r, u);
	}
	u->open--;
}

static void put_down(struct flow *f, struct fuse *u)
{
	struct thread *t = u->reader ? thread_find(f, u->node, u->reader) : NULL;

	u->reader = 0;
	if (!t)
		return;
	t->hands -= t->hands > 0;
	if (t->hand == u->serial)
		t->hand = 0;
}

/* Hands it and its requests on, and forgets it. */
static void fuse_end(struct flow *f, struct fuse *u)
{
	const uint64_t key = fuse_key_of(u->node, u->pub.unique);
	struct fuse *newest;

	u->ending = true;
	resolve(f, u, false);
	put_down(f, u);
	leave_thread(u);
	newest = newest_of(f, key);
	if (newest != u) {
		while (newest->chain != u)
			newest = newest->chain;
		newest->chain = u->chain;
	} else if (u->chain) {
		map_put(&f->fuses, key, (uintptr_t)u->chain);
	} else {
		map_remove(&f->fuses, key, (uintptr_t)u);
	}
	*(u->older ? &u->older->newer : &f->oldest_fuse) = u->newer;
	*(u->newer ? &u->newer->older : &f->newest_fuse) = u->older;
	f->by_serial[u->serial & (f->fuse_size - 1)] = NULL;
	f->n_fuses--;
	for (struct request *r = u->held, *next; r; r = next) {
		next = r->next_held;
		request_emit(f, r, u);
	}
	f->counts.fuse++;
	f->counts.fuse_in_call += u->pub.call.how != FLOW_UNBOUND;
	f->counts.reasons[FLOW_NO_APPLICATION] += u->pub.call.how == FLOW_UNBOUND;
	if (u->pub.kernel.how && u->pub.kernel.end_ns)
		depth_span(f, LAYER_FUSE, u->node, u->pub.kernel.begin_ns, u->pub.kernel.end_ns);
	if (!f->rc && f->sink.fuse)
		f->rc = f->sink.fuse(f->sink.ctx, u->node, &u->pub, f->error);
	free(u->path);
	free(u);
}

void fuse_check(struct flow *f, struct fuse *u)
{
	bool over = u->begun ? u->pub.ended : u->answered;

	if (over && !u->over_ns)
		u->over_ns = f->now_ns;
	if (over && !u->open && !u->ending && (u->settled || !u->begun))
		fuse_end(f, u);
}

void fuse_hold(struct flow *f, struct fuse *u, struct request *r)
{
	r->next_held = NULL;
	*u->held_end = r;
	u->held_end = &r->next_held;
	u->open--;
	fuse_check(f, u);
}

static struct fuse *fuse_new(struct flow *f, uint32_t node, uint64_t unique)
{
	struct fuse *u = alloc_zero(1, sizeof(*u));
	const uint64_t key = fuse_key_of(node, unique);
	uint64_t serial = ++f->fuse_serial;
	struct fuse *was = f->by_serial[serial & (f->fuse_size - 1)];

	if (was) {
		f->counts.reasons[FLOW_OVER_LIMIT]++;
		fuse_end(f, was);
	}
	u->serial = serial;
	u->node = node;
	u->pub.unique = unique;
	u->held_end = &u->held;
	u->maybes_end = &u->maybes;
	f->by_serial[serial & (f->fuse_size - 1)] = u;
	u->chain = newest_of(f, key);
	map_put(&f->fuses, key, (uintptr_t)u);
	u->older = f->newest_fuse;
	*(u->older ? &u->older->newer : &f->oldest_fuse) = u;
	f->newest_fuse = u;
	f->n_fuses++;
	return u;
}

/* ---- the kernel's records ---- */

static struct fuse *fuse_find(const struct flow *f, uint32_t node, const struct record_fuse *r)
{
	struct fuse *u = newest_of(f, fuse_key_of(node, r->unique));

	for (; u; u = u->chain)
		if (u->pub.unique == r->unique && u->node == node &&
			(!u->begun || u->pub.device == r->device) && !u->pub.ended &&
			(r->ended || u->pub.opcode == r->opcode))
			return u;
	return NULL;
}

static void fuse_begin(struct flow *f, uint32_t node, const struct record_fuse *r)
{
	struct fuse *u = fuse_find(f, node, r);
	struct thread *t;

	if (u && u->begun)
		return; /* two tracers of one node */
	if (!u)
		u = fuse_new(f, node, r->unique);
	u->begun = true;
	u->pub.nodeid = r->nodeid;
	u->pub.device = r->device;
	u->pub.opcode = r->opcode;
	u->pub.kernel = (struct flow_span){.begin_ns = r->start_ns,
		.node = node,
		.pid = r->pid,
		.tid = r->tid,
		.calls = 1,
		.how = FLOW_EXACT};
	t = thread_of(f, node, r->tid);
	u->thread = t;
	u->next = t->fuses;
	t->fuses = u;
}

void fuse_record(struct flow *f, const struct log *l, const struct record_fuse *r)
{
	struct fuse *u;

	if (!r->ended) {
		fuse_begin(f, l->node, r);
		return;
	}
	u = fuse_find(f, l->node, r);
	if (!u || !u->begun)
		return;
	u->pub.ended = true;
	u->pub.error = r->error;
	u->pub.kernel.end_ns = r->start_ns;
	fuse_check(f, u);
}

/* ---- the daemon ---- */

/* The one that was read, or answered, through a descriptor. */
static struct fuse *of_daemon(const struct flow *f, uint32_t node, uint64_t unique, uint32_t opcode,
	uint64_t nodeid, bool reads)
{
	struct fuse *u = newest_of(f, fuse_key_of(node, unique));

	for (; u; u = u->chain) {
		if (u->pub.unique != unique || u->node != node || u->answered)
			continue;
		if (reads && !u->pub.daemon.how && u->pub.opcode == opcode &&
			u->pub.nodeid == nodeid)
			return u;
		if (!reads && u->pub.daemon.how)
			return u;
	}
	return NULL;
}

/* Of two in one hand, nobody can tell what is sent for which. */
static void take_in_hand(struct flow *f, struct fuse *u, struct thread *t)
{
	struct fuse *other = fuse_by_serial(f, t->hand);

	t->hand = t->hands ? 0 : u->serial;
	t->hands++;
	u->reader = t->tid;
	if (other) {
		resolve(f, other, false);
		fuse_check(f, other);
	}
}

static void daemon_reads(
	struct flow *f, const struct log *l, const struct record_call *c, struct thread *t)
{
	struct fuse_in_header in;
	struct fuse *u;

	memset(&in, 0, sizeof(in));
	memcpy(&in, c->head, c->head_size < sizeof(in) ? c->head_size : sizeof(in));
	if (in.opcode == FUSE_FORGET || in.opcode == FUSE_BATCH_FORGET ||
		in.opcode == FUSE_INTERRUPT)
		return; /* nobody waits for it */
	u = of_daemon(f, l->node, in.unique, in.opcode, in.nodeid, true);
	if (!u) {
		u = fuse_new(f, l->node, in.unique);
		u->pub.opcode = in.opcode;
		u->pub.nodeid = in.nodeid;
	}
	u->length = in.len;
	u->pub.daemon = (struct flow_span){.begin_ns = c->start_ns + c->service_ns,
		.node = l->node,
		.pid = c->pid,
		.tid = c->tid,
		.calls = 1,
		.how = FLOW_EXACT};
	t->cause = u->serial;
	take_in_hand(f, u, t);
}

static void daemon_writes(
	struct flow *f, const struct log *l, const struct record_call *c, struct thread *t)
{
	struct fuse_out_header out;
	struct request *r = t->returned;
	struct fuse *u;

	memcpy(&out, c->head, sizeof(out));
	u = out.unique ? of_daemon(f, l->node, out.unique, 0, 0, false) : NULL;
	if (!u)
		return;
	t->returned = NULL;
	if (r) {
		request_caused(f, r, u, FLOW_THREAD);
		request_released(f, r);
	}
	u->answered = true;
	resolve(f, u, t->hand == u->serial);
	put_down(f, u);
	u->pub.daemon.end_ns = c->start_ns + c->service_ns;
	u->pub.daemon.calls = 2;
	if (!u->begun)
		u->pub.error = out.error;
	fuse_check(f, u);
}

void fuse_daemon(struct flow *f, const struct log *l, const struct record_call *c, struct thread *t,
	bool reads)
{
	f->nodes[l->node].has_fuse = true;
	if (reads)
		thread_moves_on(f, t);
	if (c->result <= 0 || c->head_size < sizeof(struct fuse_out_header))
		return;
	if (!reads)
		daemon_writes(f, l, c, t);
	else if (c->head_size >= 24)
		daemon_reads(f, l, c, t);
}

/* ---- applications ---- */

static void fuse_settle(struct flow *f, struct fuse *u)
{
	leave_thread(u);
	u->settled = true;
	fuse_check(f, u);
}

/* The file of the call that a thread was in, and what the thread is called. */
static void name_call(struct fuse *u, const struct log *l, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const struct fd_state *fd = item_fd(item);
	const char *path = fd && fd->now.path ? fd->now.path : c->path;

	snprintf(
		u->pub.thread, sizeof(u->pub.thread), "%s", stream_name(l->stream, c->pid, c->tid));
	free(u->path);
	u->pub.path = u->path = path ? alloc_copy(path) : NULL;
}

void fuse_call(struct flow *f, const struct log *l, struct stream_item *item, struct thread *t)
{
	const struct record_call *c = &item->record->call;
	bool any = false;

	for (struct fuse *u = t->fuses, *next; u; u = next) {
		next = u->next;
		if (u->pub.kernel.begin_ns >= c->start_ns) {
			any = true;
			u->pub.call = (struct flow_span){.begin_ns = c->start_ns,
				.end_ns = c->start_ns + c->service_ns,
				.node = u->node,
				.pid = c->pid,
				.tid = c->tid,
				.calls = 1,
				.how = FLOW_THREAD};
			u->pub.nr = c->nr;
			u->pub.offset = c->offset;
			u->pub.result = c->result;
			name_call(u, l, item);
		}
		fuse_settle(f, u);
	}
	if (any)
		depth_span(f, LAYER_APPLICATION, t->node, c->start_ns, c->start_ns + c->service_ns);
}

void fuse_thread_gone(struct flow *f, struct thread *t)
{
	while (t->fuses)
		fuse_settle(f, t->fuses);
}

/* ---- by content ---- */

static bool fits(const struct fuse *u, const struct request *r)
{
	const uint64_t data = u->length - sizeof(struct fuse_in_header) -
		sizeof(struct fuse_write_in);
	const struct flow_span *sent = &r->pub.sent;

	return u->node == r->pub.client && !u->ending && u->pub.opcode == FUSE_WRITE &&
		!u->pub.requests &&
		u->length > sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in) &&
		sent->how && u->pub.daemon.how && u->pub.daemon.begin_ns <= sent->begin_ns &&
		(!u->answered || u->pub.daemon.end_ns >= sent->end_ns) &&
		r->pub.call_bytes >= data && r->pub.call_bytes - data <= SLACK;
}

struct fuse *fuse_by_size(struct flow *f, const struct request *r)
{
	struct fuse *found = NULL;
	int n = 0;

	for (struct fuse *u = f->newest_fuse; u && n < LOOK_BACK; u = u->older, n++) {
		if (!fits(u, r))
			continue;
		if (found) {
			f->counts.reasons[FLOW_SEVERAL_FIT]++;
			return NULL;
		}
		found = u;
	}
	return found;
}

/* ---- ends ---- */

/* Whoever makes no calls (a kernel thread, a process that is not traced) will not say which call it
 * was in. */
void fuses_expire(struct flow *f)
{
	struct fuse *u;

	while ((u = f->oldest_fuse) && u->over_ns && !u->open &&
		f->now_ns - u->over_ns > SILENT_NS && !(u->thread && u->thread->calls)) {
		u->settled = true;
		fuse_check(f, u);
	}
}

void fuses_finish(struct flow *f)
{
	while (f->oldest_fuse)
		fuse_end(f, f->oldest_fuse);
}

void fuses_free(struct flow *f)
{
	fuses_finish(f);
	map_clear(&f->fuses);
	free(f->by_serial);
}
