/* Consumers of the logs' streams: applications' calls on the mount and, if the logs show no
 * requests, calls on the connections between servers and clients. */
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/timeline/cell_impl.h"

struct watcher {
	struct filling *cell;
	uint32_t node;
	bool draw;
};

static void application(struct watcher *w, struct stream_item *item)
{
	const struct record_call *r = &item->record->call;
	const struct fd_state *fd = item_fd(item);
	const struct cell_call call = {.node = w->node,
		.nr = r->nr,
		.span = {.begin_ns = r->start_ns,
			.end_ns = (int64_t)((uint64_t)r->start_ns + (uint64_t)r->service_ns),
			.node = w->node,
			.pid = r->pid,
			.tid = r->tid,
			.calls = 1,
			.how = FLOW_THREAD},
		.offset = r->offset,
		.result = r->result,
		.path = fd && fd->now.path ? fd->now.path : r->path};

	cell_application_call(w->cell, &call);
}

static void message(struct watcher *w, const struct record_call *r)
{
	struct filling *c = w->cell;
	struct cell_slice s = {.node = w->node,
		.name = cell_call_name(c, w->node, LOG_SYSTEM, r->nr),
		.category = c->category.message,
		.begin_ns = r->start_ns,
		.end_ns = (int64_t)((uint64_t)r->start_ns + (uint64_t)r->service_ns),
		.flags = (uint8_t)(r->unfinished ? TIMELINE_UNFINISHED : 0)};

	s.track = cell_thread(c, w->node, LOG_SYSTEM, c->nodes[w->node].messages, r->pid, r->tid)
			  ->track;
	cell_number(&s, c->key.result, r->result);
	cell_slice(c, &s);
}

static int cell_calls_feed(void *ctx, struct stream_item *item, struct err *e)
{
	struct watcher *w = ctx;
	struct filling *c = w->cell;
	const struct record_call *r = &item->record->call;
	enum object_kind kind;

	(void)e;
	if (item->record->type != RECORD_CALL)
		return 0;
	c->calls += !w->draw;
	if (!w->draw || w->node >= c->n_nodes || !cell_shows(c, w->node, r->start_ns) ||
		r->service_ns < c->slower_ns)
		return 0;
	kind = item_object(item).kind;
	if (kind == OBJECT_MOUNT && stream_spec(item->stream)->owner == OWNER_APP)
		application(w, item);
	else if (c->with_messages && r->result > 0 && item->call &&
		(item->call->class == CALL_READ || item->call->class == CALL_WRITE ||
			item->call->class == CALL_COPY) &&
		(kind == OBJECT_SERVICE || kind == OBJECT_PEER))
		message(w, r);
	return 0;
}

void cell_watch(struct filling *c, struct stream *s, uint32_t node, bool draw)
{
	const struct stream_consumer consumer = {
		.feed = cell_calls_feed, .free = free, .names = true};
	struct watcher *w = alloc_zero(1, sizeof(*w));

	*w = (struct watcher){c, node, draw};
	stream_add(s, &consumer, w);
}
