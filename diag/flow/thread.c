/* Threads of nodes: what each has done since it last took or gave a message. */
#include "diag/flow/flow_impl.h"

#include <stdlib.h>

struct thread *thread_find(const struct flow *f, uint32_t node, uint32_t tid)
{
	return (struct thread *)(uintptr_t)map_get(&f->nodes[node].threads, tid);
}

struct thread *thread_of(struct flow *f, uint32_t node, uint32_t tid)
{
	struct flow_node *n = &f->nodes[node];
	struct thread *t = n->last;

	if (t && t->tid == tid)
		return t;
	t = thread_find(f, node, tid);
	if (!t) {
		t = alloc_zero(1, sizeof(*t));
		t->tid = tid;
		t->node = node;
		t->actions = 1;
		map_keep(&n->threads, tid, (uintptr_t)t);
	}
	n->last = t;
	return t;
}

struct thread *thread_at(const struct map *threads, size_t slot)
{
	return (struct thread *)(uintptr_t)threads->slot[slot].value;
}

static void thread_end(struct flow *f, struct thread *t)
{
	struct request *r = t->returned;

	t->returned = NULL;
	if (r)
		request_released(f, r);
	fuse_thread_gone(f, t);
	disks_clear(f, t);
	free(t);
}

void thread_gone(struct flow *f, uint32_t node, uint32_t tid)
{
	struct flow_node *n = &f->nodes[node];
	struct thread *t = thread_find(f, node, tid);

	if (!t || tid == NO_THREAD)
		return;
	if (t->n_disks)
		disks_bequeath(f, t, thread_of(f, node, NO_THREAD));
	map_remove(&n->threads, tid, (uintptr_t)t);
	n->last = NULL;
	thread_end(f, t);
}

void threads_free(struct flow *f)
{
	for (size_t i = 0; i < f->n_nodes; i++) {
		struct flow_node *n = &f->nodes[i];

		/* What they give back may be another thread's, made for it. */
		while (n->threads.n) {
			struct map all = n->threads;

			n->threads = (struct map){0};
			n->last = NULL;
			for (size_t k = 0; k < map_room(&all); k++)
				if (thread_at(&all, k))
					thread_end(f, thread_at(&all, k));
			map_clear(&all);
		}
		map_clear(&n->threads);
	}
}

void thread_moves_on(struct flow *f, struct thread *t)
{
	struct request *r = t->returned;

	t->actions++;
	t->cause = 0;
	t->returned = NULL;
	if (r)
		request_released(f, r);
}

/* Requests that waited for their threads end while disk calls can still be told to be theirs. */
void threads_finish(struct flow *f)
{
	for (size_t i = 0; i < f->n_nodes; i++) {
		const struct flow_node *n = &f->nodes[i];

		thread_of(f, (uint32_t)i, NO_THREAD); /* what they give back needs no new table */
		for (size_t k = 0; k < map_room(&n->threads); k++)
			if (thread_at(&n->threads, k))
				thread_moves_on(f, thread_at(&n->threads, k));
	}
}

/* ---- disk calls ---- */

static bool is_data(enum call_class class)
{
	return class == CALL_READ || class == CALL_WRITE || class == CALL_COPY ||
		class == CALL_SYNC;
}

/* Is the call about a file of the server's? */
static bool is_on_file(const struct log *l, struct stream_item *item, bool data)
{
	const struct fd_state *fd = item_fd(item);

	if (!fd)
		return !data && item->call->path >= 0;
	if (l->storage)
		return fd->object.kind == OBJECT_STORAGE_FILE ||
			(!data && fd->object.kind == OBJECT_STORAGE);
	return fd->now.kind == FD_FILE || (!data && fd->now.kind == FD_DIR) ||
		(fd->now.kind == FD_DEVICE && fd->now.tag.device && !fd->now.tag.inode);
}

static bool is_servers(const struct flow *f, const struct log *l)
{
	return l->owner == OWNER_SERVER || (l->owner == OWNER_UNKNOWN && f->nodes[l->node].serves);
}

void thread_disk(struct flow *f, struct log *l, struct stream_item *item, struct thread *t)
{
	const struct record_call *c = &item->record->call;
	const enum call_class class = item->call->class;
	const bool data = is_data(class);
	const struct fd_state *fd;
	struct flow_disk d;

	if ((item->call->fd < 0 && item->call->path < 0) || !is_servers(f, l) ||
		!is_on_file(l, item, data))
		return;
	fd = item_fd(item);
	d = (struct flow_disk){.begin_ns = c->start_ns,
		.end_ns = c->start_ns + c->service_ns,
		.pid = c->pid,
		.tid = c->tid,
		.nr = c->nr,
		.how = FLOW_THREAD,
		.class = data ? (uint8_t) class : CALL_OTHER,
		.result = c->result,
		.offset = c->offset,
		.device = fd ? fd->now.tag.device : 0,
		.inode = fd ? fd->now.tag.inode : 0};
	*(data ? &f->counts.disk_calls : &f->counts.meta_calls) += 1;
	depth_span(f, data ? LAYER_DISK : LAYER_META, l->node, d.begin_ns, d.end_ns);
	disks_put(f, t, &(struct disk){.pub = d, .send = t->sends, .seen_ns = f->now_ns});
}

void thread_records_lost(struct flow *f, uint32_t node)
{
	struct flow_node *n = &f->nodes[node];

	for (size_t k = 0; k < map_room(&n->threads); k++) {
		struct thread *t = thread_at(&n->threads, k);

		if (t)
			thread_drop(f, t, t->sends, FLOW_GAP);
	}
}
