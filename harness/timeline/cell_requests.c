/* Draws the requests that flow.h links, as slices and arrows. */
#include <stdio.h>
#include <stdlib.h>

#include "diag/record/calls.h"
#include "diag/record/fuse.h"
#include "harness/base/alloc.h"
#include "harness/timeline/cell_impl.h"

#define NO_SLICE UINT32_MAX

static enum timeline_link link_of(uint8_t how)
{
	return how == FLOW_EXACT     ? TIMELINE_EXACT
		: how == FLOW_THREAD ? TIMELINE_BY_THREAD
				     : TIMELINE_BY_CONTENT;
}

static void arrow(struct filling *c, uint32_t from, uint32_t to, enum timeline_link link)
{
	if (from != NO_SLICE && to != NO_SLICE)
		timeline_arrow_add(c->t, from, to, link);
}

static bool is_node(const struct filling *c, uint32_t node)
{
	return node < c->n_nodes;
}

/* ---- disk calls ---- */

static uint32_t disk(struct filling *c, uint32_t node, const struct flow_disk *d)
{
	const bool data = d->class != CALL_OTHER;
	struct cell_slice s = {.node = node,
		.name = cell_call_name(c, node, LOG_SYSTEM, d->nr),
		.category = data ? c->category.disk : c->category.metadata,
		.begin_ns = d->begin_ns,
		.end_ns = d->end_ns,
		.flags = d->result < 0 ? TIMELINE_FAILED : 0};

	s.track = cell_thread(c, node, LOG_SYSTEM, c->nodes[node].calls, d->pid, d->tid)->track;
	if (d->result < 0)
		cell_number(&s, c->key.error, cell_difference(0, d->result));
	else if (data)
		cell_number(&s, c->key.result, d->result);
	cell_number(&s, c->key.offset, d->offset);
	if (d->inode)
		cell_number(&s, c->key.inode, (int64_t)(d->inode & INT64_MAX));
	return cell_slice(c, &s);
}

static int lone_disk(void *ctx, uint32_t node, const struct flow_disk *d, struct err *e)
{
	struct filling *c = ctx;

	(void)e;
	if (is_node(c, node) && cell_shows(c, node, d->begin_ns) &&
		cell_difference(d->end_ns, d->begin_ns) >= c->slower_ns)
		disk(c, node, d);
	return 0;
}

/* ---- requests ---- */

static uint32_t request_name(struct filling *c, const struct flow_request *r)
{
	char name[48];

	snprintf(name, sizeof(name), "procedure %u", r->procedure);
	return timeline_word(c->t, r->name ? r->name : name);
}

/* Do the nodes' shifts contradict the messages during this request? */
static bool contradicts(const struct filling *c, const struct flow_request *r)
{
	int64_t moved, off, at_client, at_server;

	if (r->width_ns < 0 || !is_node(c, r->client) || !is_node(c, r->server))
		return true;
	at_client = r->sent.how ? r->sent.begin_ns : r->returned.end_ns;
	at_server = r->received.how ? r->received.begin_ns
		: r->answered.how   ? r->answered.begin_ns
				    : at_client + r->offset_ns;
	moved = cell_difference(cell_ahead(&c->nodes[r->server], at_server),
		cell_ahead(&c->nodes[r->client], at_client));
	off = cell_difference(moved, r->offset_ns);
	return off > r->width_ns / 2 + 1 || off < -r->width_ns / 2 - 1;
}

static void missing(const struct flow_request *r, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (unsigned i = 0; i < FLOW_REASONS; i++)
		if (r->reasons & 1u << i && n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "; " : "",
				flow_reason_name((enum flow_reason)i));
}

static uint32_t at_client(struct filling *c, const struct flow_request *r, uint8_t flags)
{
	struct cell_slice s = {.node = r->client,
		.name = request_name(c, r),
		.category = c->category.request,
		.begin_ns = r->sent.begin_ns,
		.end_ns = r->returned.how ? r->returned.end_ns : r->sent.end_ns,
		.flags = flags};
	const struct cell_node *n = &c->nodes[r->client];
	struct flow_parts p;
	char why[256];

	if (!r->returned.how)
		s.flags |= TIMELINE_UNFINISHED;
	s.track = n->to && is_node(c, r->server) ? n->to[r->server] : n->requests;
	flow_request_parts(r, &p);
	missing(r, why, sizeof(why));
	cell_number(&s, c->key.id, (int64_t)(r->id & INT64_MAX));
	cell_span(&s, c->key.there, p.there);
	cell_number(&s, c->key.waiting, p.waiting);
	cell_number(&s, c->key.disk, p.disk);
	cell_number(&s, c->key.answering, p.answering);
	cell_span(&s, c->key.back, p.back);
	cell_number(&s, c->key.call, (int64_t)r->call_bytes);
	cell_number(&s, c->key.answer, (int64_t)r->answer_bytes);
	cell_number(&s, c->key.width, r->width_ns);
	cell_text(c, &s, c->key.missing, why);
	if (r->doubtful)
		cell_text(c, &s, c->key.doubtful,
			"there or back: shorter than half of the clocks' uncertainty");
	return s.track == TIMELINE_NONE ? NO_SLICE : cell_slice(c, &s);
}

static uint32_t at_server(struct filling *c, const struct flow_request *r, uint8_t flags)
{
	struct cell_slice s = {.node = r->server,
		.track = c->nodes[r->server].requests,
		.name = request_name(c, r),
		.category = c->category.server,
		.begin_ns = r->received.how ? r->received.end_ns : r->answered.begin_ns,
		.end_ns = r->answered.how ? r->answered.end_ns : r->received.end_ns,
		.flags = flags};
	struct flow_parts p;

	if (!r->answered.how)
		s.flags |= TIMELINE_UNFINISHED;
	flow_request_parts(r, &p);
	cell_number(&s, c->key.id, (int64_t)(r->id & INT64_MAX));
	cell_number(&s, c->key.waiting, p.waiting);
	cell_number(&s, c->key.disk, p.disk);
	cell_number(&s, c->key.answering, p.answering);
	if (is_node(c, r->client))
		cell_text(c, &s, c->key.client, c->nodes[r->client].name);
	return s.track == TIMELINE_NONE ? NO_SLICE : cell_slice(c, &s);
}

static uint32_t waiting(struct filling *c, const struct flow_request *r)
{
	struct cell_slice s = {.node = r->server,
		.track = c->nodes[r->server].waiting,
		.name = request_name(c, r),
		.category = c->category.waiting,
		.begin_ns = r->received.end_ns,
		.end_ns = r->answered.begin_ns};

	for (size_t i = 0; i < r->n_disks; i++)
		if (r->disks[i].begin_ns < s.end_ns)
			s.end_ns = r->disks[i].begin_ns;
	if (!r->received.how || !r->answered.how || s.end_ns <= s.begin_ns ||
		s.track == TIMELINE_NONE)
		return NO_SLICE;
	return cell_slice(c, &s);
}

static int64_t took(const struct flow_request *r)
{
	int64_t client = r->sent.how && r->returned.how
		? cell_difference(r->returned.end_ns, r->sent.begin_ns)
		: 0;
	int64_t server = r->received.how && r->answered.how
		? cell_difference(r->answered.end_ns, r->received.end_ns)
		: 0;

	return client > server ? client : server;
}

/* Is it shown, according to its start? */
static bool shows(const struct filling *c, const struct flow_request *r)
{
	if (took(r) < c->slower_ns)
		return false;
	if (r->sent.how && is_node(c, r->client))
		return cell_shows(c, r->client, r->sent.begin_ns);
	if (!is_node(c, r->server) || !(r->received.how || r->answered.how))
		return false;
	return cell_shows(
		c, r->server, r->received.how ? r->received.end_ns : r->answered.begin_ns);
}

static void remember(struct filling *c, uint32_t slice, enum timeline_link link)
{
	c->pending = alloc_room(c->pending, c->n_pending, sizeof(*c->pending));
	c->pending[c->n_pending++] = (struct cell_pending){slice, link};
}

static int request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct filling *c = ctx;
	uint32_t client = NO_SLICE, server = NO_SLICE;
	uint8_t flags;

	(void)e;
	if (!shows(c, r)) {
		for (size_t i = 0; i < r->n_disks; i++)
			if (!c->o->slower_s)
				lone_disk(c, r->server, &r->disks[i], e);
		return 0;
	}
	flags = r->width_ns >= took(r) || contradicts(c, r) ? TIMELINE_DOUBTFUL : 0;
	if (r->sent.how && is_node(c, r->client))
		client = at_client(c, r, flags);
	if ((r->received.how || r->answered.how) && is_node(c, r->server)) {
		server = at_server(c, r, flags);
		arrow(c, client, server, TIMELINE_EXACT);
		arrow(c, server, waiting(c, r), TIMELINE_EXACT);
	}
	for (size_t i = 0; i < r->n_disks && is_node(c, r->server); i++)
		arrow(c, server, disk(c, r->server, &r->disks[i]), link_of(r->disks[i].how));
	if (r->returned.how && r->answered.how)
		arrow(c, server, client, TIMELINE_EXACT);
	if (r->fuse && client != NO_SLICE)
		remember(c, client, link_of(r->fuse_how));
	return 0;
}

/* ---- FUSE requests and applications' calls ---- */

uint32_t cell_application_call(struct filling *c, const struct cell_call *call)
{
	const struct flow_span *span = &call->span;
	struct cell_thread *t = cell_thread(
		c, call->node, LOG_APPLICATION, c->nodes[call->node].calls, span->pid, span->tid);
	const bool failed = call->result < 0;
	struct cell_slice s = {.node = call->node,
		.track = t->track,
		.name = cell_call_name(c, call->node, LOG_APPLICATION, call->nr),
		.category = c->category.application,
		.begin_ns = span->begin_ns,
		.end_ns = span->end_ns,
		.flags = failed ? TIMELINE_FAILED : 0};
	uint32_t slice;

	if (!t->calls)
		t->calls = alloc_zero(CELL_CALLS, sizeof(*t->calls));
	for (uint32_t i = 1; i <= CELL_CALLS && i <= t->n; i++)
		if (t->calls[(t->n - i) % CELL_CALLS].begin_ns == span->begin_ns)
			return t->calls[(t->n - i) % CELL_CALLS].slice;
	cell_number(&s, failed ? c->key.error : c->key.result,
		failed ? cell_difference(0, call->result) : call->result);
	cell_number(&s, c->key.offset, call->offset);
	cell_text(c, &s, c->key.path, call->path);
	slice = cell_slice(c, &s);
	t->calls[t->n % CELL_CALLS].begin_ns = span->begin_ns;
	t->calls[t->n++ % CELL_CALLS].slice = slice;
	return slice;
}

static uint32_t fuse_slice(struct filling *c, uint32_t node, const struct flow_fuse *u)
{
	const bool kernel = u->kernel.how != FLOW_UNBOUND;
	const struct flow_span *span = kernel ? &u->kernel : &u->daemon;
	const char *name = fuse_opcode_name(u->opcode);
	char number[32];
	struct cell_slice s = {.node = node,
		.track = c->nodes[node].fuse,
		.category = c->category.fuse,
		.begin_ns = span->begin_ns,
		.end_ns = span->end_ns,
		.flags = u->error < 0 ? TIMELINE_FAILED : 0};

	snprintf(number, sizeof(number), "opcode %u", u->opcode);
	s.name = timeline_word(c->t, name ? name : number);
	if (kernel ? !u->ended : !span->end_ns) {
		s.flags |= TIMELINE_UNFINISHED;
		s.end_ns = u->daemon.end_ns > s.begin_ns ? u->daemon.end_ns : s.begin_ns;
	}
	cell_number(&s, c->key.unique, (int64_t)(u->unique & INT64_MAX));
	cell_number(&s, c->key.node, (int64_t)(u->nodeid & INT64_MAX));
	if (u->daemon.how && u->daemon.end_ns)
		cell_number(
			&s, c->key.daemon, cell_difference(u->daemon.end_ns, u->daemon.begin_ns));
	if (u->error < 0)
		cell_number(&s, c->key.error, -(int64_t)u->error);
	return cell_slice(c, &s);
}

/* Called after all requests that it caused. */
static int fuse(void *ctx, uint32_t node, const struct flow_fuse *u, struct err *e)
{
	struct filling *c = ctx;
	const struct flow_span *span = u->kernel.how ? &u->kernel : &u->daemon;
	const size_t n = c->n_pending;
	uint32_t slice;

	(void)e;
	c->n_pending = 0;
	if (!is_node(c, node) || c->nodes[node].fuse == TIMELINE_NONE || !span->how)
		return 0;
	if (!n &&
		(!cell_shows(c, node, span->begin_ns) ||
			cell_difference(span->end_ns, span->begin_ns) < c->slower_ns))
		return 0;
	slice = fuse_slice(c, node, u);
	for (size_t i = 0; i < n; i++)
		arrow(c, slice, c->pending[i].slice, c->pending[i].link);
	if (u->call.how)
		arrow(c,
			cell_application_call(c,
				&(struct cell_call){
					node, u->nr, u->call, u->offset, u->result, u->path}),
			slice, TIMELINE_BY_THREAD);
	return 0;
}

const struct flow_sink cell_sink = {.request = request, .fuse = fuse, .disk = lone_disk};
