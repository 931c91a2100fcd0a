/* Tracks of nodes, processes and threads, and slices on them. */
#include <stdio.h>
#include <stdlib.h>

#include "diag/record/calls.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/timeline/cell_impl.h"

enum { THREADS_MAX = 1500 /* tracks for a node's threads; further threads share a track */ };

void cell_words(struct filling *c)
{
	const struct {
		uint32_t *word;
		const char *text;
	} words[] = {
		{&c->category.request, "request"},
		{&c->category.server, "request at the server"},
		{&c->category.waiting, "waiting"},
		{&c->category.disk, "disk call"},
		{&c->category.metadata, "metadata call"},
		{&c->category.fuse, "FUSE request"},
		{&c->category.application, "application call"},
		{&c->category.message, "message"},
		{&c->key.id, "id"},
		{&c->key.there, "there_ns"},
		{&c->key.waiting, "waiting_ns"},
		{&c->key.disk, "disk_ns"},
		{&c->key.answering, "answering_ns"},
		{&c->key.back, "back_ns"},
		{&c->key.call, "call_bytes"},
		{&c->key.answer, "answer_bytes"},
		{&c->key.width, "clock_width_ns"},
		{&c->key.missing, "missing"},
		{&c->key.doubtful, "doubtful"},
		{&c->key.client, "client"},
		{&c->key.result, "result"},
		{&c->key.offset, "offset_bytes"},
		{&c->key.inode, "inode"},
		{&c->key.path, "path"},
		{&c->key.unique, "unique"},
		{&c->key.node, "nodeid"},
		{&c->key.daemon, "in_daemon_ns"},
		{&c->key.error, "error"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		*words[i].word = timeline_word(c->t, words[i].text);
}

static void node_tracks(struct filling *c, struct cell_node *n)
{
	struct timeline *t = c->t;
	const bool flows = !c->with_messages;

	n->requests = n->waiting = n->calls = n->fuse = n->messages = TIMELINE_NONE;
	if (flows && n->server) {
		n->requests = timeline_track(t, n->track, TIMELINE_LAYER, "requests");
		n->waiting = timeline_track(t, n->track, TIMELINE_LAYER, "waiting");
	}
	if (c->calls)
		n->calls = timeline_track(
			t, n->track, TIMELINE_LAYER, n->server ? "disk calls" : "application");
	if (flows && !n->server) {
		n->fuse = timeline_track(t, n->track, TIMELINE_LAYER, "FUSE");
		n->requests = timeline_track(t, n->track, TIMELINE_LAYER, "requests");
		n->to = alloc_zero(c->n_nodes, sizeof(*n->to));
		for (size_t i = 0; i < c->n_nodes; i++) {
			char name[96];

			snprintf(name, sizeof(name), "to %s", c->nodes[i].name);
			n->to[i] = c->nodes[i].server
				? timeline_track(t, n->requests, TIMELINE_LAYER, name)
				: n->requests;
		}
	}
	if (c->calls && !flows)
		n->messages = timeline_track(t, n->track, TIMELINE_LAYER, "messages");
	n->counters = timeline_track(t, n->track, TIMELINE_LAYER, "counters");
}

void cell_tracks(struct filling *c, int32_t root)
{
	for (size_t i = 0; i < c->n_nodes; i++) {
		struct cell_node *n = &c->nodes[i];

		n->track = timeline_track(c->t, root, TIMELINE_NODE, n->name);
		for (int g = 0; g < CELL_GROUPS; g++)
			n->groups[g] = TIMELINE_NONE;
		node_tracks(c, n);
	}
}

int32_t cell_group(struct filling *c, struct cell_node *n, enum cell_group group)
{
	static const char *const names[] = {"in flight", "disk", "network", "processors", "memory"};

	if (n->groups[group] == TIMELINE_NONE)
		n->groups[group] = timeline_track(c->t, n->counters, TIMELINE_LAYER, names[group]);
	return n->groups[group];
}

/* ---- threads ---- */

/* Valid until the next call. */
static struct cell_thread *cell_tracks_find(struct cell_threads *t, uint64_t key)
{
	uint64_t i = map_get(&t->index, key);

	if (i)
		return &t->v[i - 1];
	t->v = alloc_room(t->v, t->n, sizeof(*t->v));
	t->v[t->n++] = (struct cell_thread){.known = false};
	map_keep(&t->index, key, t->n);
	return &t->v[t->n - 1];
}

void cell_threads_clear(struct cell_threads *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].calls);
	free(t->v);
	map_clear(&t->index);
}

static uint64_t cell_tracks_key_of(uint32_t node, enum cell_log log, int32_t parent, uint32_t id)
{
	return ((uint64_t)(node * 4 + log * 2 + 1) << 50) ^ ((uint64_t)(uint32_t)parent << 32) ^ id;
}

static int32_t named_track(struct filling *c, int32_t parent, enum timeline_kind kind,
	const struct stream *s, uint32_t pid, uint32_t tid)
{
	const char *known = s ? stream_name(s, pid, tid) : "";
	auto_free char *name = alloc_format("%s %u", *known ? known : "?", tid ? tid : pid);

	return timeline_track(c->t, parent, kind, name);
}

static int32_t process_track(
	struct filling *c, uint32_t node, enum cell_log log, int32_t parent, uint32_t pid)
{
	struct cell_thread *p = cell_tracks_find(
		&c->processes, cell_tracks_key_of(node, log, parent, pid));

	if (!p->known) {
		p->known = true;
		p->track = named_track(
			c, parent, TIMELINE_PROCESS, c->nodes[node].logs[log], pid, 0);
	}
	return p->track;
}

static struct cell_thread *other_thread(struct filling *c, struct cell_node *n)
{
	if (!n->others.known)
		n->others = (struct cell_thread){.known = true,
			.track = timeline_track(c->t, n->track, TIMELINE_LAYER, "further threads")};
	return &n->others;
}

struct cell_thread *cell_thread(struct filling *c, uint32_t node, enum cell_log log, int32_t parent,
	uint32_t pid, uint32_t tid)
{
	struct cell_thread *t = cell_tracks_find(
		&c->threads, cell_tracks_key_of(node, log, parent, tid));
	struct cell_node *n = &c->nodes[node];

	if (t->known)
		return t;
	if (n->threads == THREADS_MAX)
		return other_thread(c, n);
	n->threads++;
	t->known = true;
	t->track = named_track(c, process_track(c, node, log, parent, pid), TIMELINE_THREAD,
		n->logs[log], pid, tid);
	return t;
}

/* ---- slices ---- */

bool cell_shows(const struct filling *c, uint32_t node, int64_t begin_ns)
{
	const int64_t at = cell_difference(begin_ns, cell_ahead(&c->nodes[node], begin_ns));

	return at >= c->from_ns && at < c->to_ns;
}

uint32_t cell_slice(struct filling *c, const struct cell_slice *s)
{
	const struct cell_node *n = &c->nodes[s->node];
	const struct timeline_slice out = {.track = s->track,
		.name = s->name,
		.category = s->category,
		.start_ns = cell_difference(s->begin_ns, cell_ahead(n, s->begin_ns)),
		.duration_ns = cell_difference(s->end_ns, s->begin_ns),
		.flags = (uint8_t)(s->flags |
			(cell_doubts(n, s->begin_ns) ? TIMELINE_DOUBTFUL : 0)),
		.n_args = s->n_args,
		.args = s->args};

	c->shown++;
	return timeline_slice_add(c->t, &out);
}

void cell_number(struct cell_slice *s, uint32_t key, int64_t value)
{
	if (value >= 0 && s->n_args < TIMELINE_ARGS_MAX)
		s->args[s->n_args++] = (struct timeline_arg){key, TIMELINE_NUMBER, value};
}

void cell_span(struct cell_slice *s, uint32_t key, int64_t value)
{
	if (value != -1 && s->n_args < TIMELINE_ARGS_MAX)
		s->args[s->n_args++] = (struct timeline_arg){key, TIMELINE_NUMBER, value};
}

void cell_text(struct filling *c, struct cell_slice *s, uint32_t key, const char *text)
{
	if (text && *text && s->n_args < TIMELINE_ARGS_MAX)
		s->args[s->n_args++] = (struct timeline_arg){
			key, TIMELINE_TEXT, timeline_word(c->t, text)};
}

uint32_t cell_call_name(struct filling *c, uint32_t node, enum cell_log log, uint32_t nr)
{
	const struct stream *s = c->nodes[node].logs[log];
	const struct call_info *info = s && !(nr & RECORD_FOREIGN_NR)
		? call_info(stream_arch(s), nr & ~RECORD_ASYNC_NR)
		: NULL;
	char name[48];

	if (!info)
		snprintf(
			name, sizeof(name), "call %u", nr & ~(RECORD_FOREIGN_NR | RECORD_ASYNC_NR));
	return timeline_word(c->t, info ? info->name : name);
}
