/* What moved last between a client daemon and each server, and how many requests have no answer. */
#include "diag/derive/events_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "diag/derive/message.h"
#include "harness/base/alloc.h"

#define WAITING_S 0.5
#define ANSWERED_S 5.0
#define SETTLE_S 0.02

struct links {
	bool ended;
	double since_s; /* when data moved last, or of the first end */
	const char *call, *error;
	uint32_t pid; /* the socket that data moved on last */
	int32_t fd;

	int64_t balance;   /* requests minus answers; events.h says what counts */
	double negative_s; /* since when it is below 0; INFINITY: it is not */
	struct message answer;
	/* The last write that moved data: thread, call, record, memory, length, result. */
	uint32_t write_tid, write_nr;
	uint64_t write_number, write_at, write_count, write_got;
	bool write_blocked; /* the rest of a request waits for room in the socket */
};

void links_new(struct events *s)
{
	s->links = alloc_zero(s->n_servers, sizeof(*s->links));
	for (size_t i = 0; i < s->n_servers; i++)
		s->links[i] = (struct links){.since_s = -1e9, .fd = -1, .negative_s = INFINITY};
}

/* A stretch ends at 'now_s': it is kept if it is long, or if the connection was down. */
static void keep(struct events *s, size_t server, double now_s, bool open)
{
	struct links *l = &s->links[server];
	struct event ev = {.kind = EVENT_LINK_QUIET,
		.server = (int32_t)server,
		.client = s->client,
		.first_s = l->since_s < 0 ? 0 : l->since_s,
		.last_s = now_s,
		.count = 1,
		.call = l->call,
		.error = l->error,
		.open = open};

	if (now_s - ev.first_s > SETTLE_S && l->balance < 0)
		l->balance = 0;
	ev.waiting = l->balance > 0 ? (uint32_t)l->balance : 0;
	ev.state = l->ended ? LINK_ENDED : ev.waiting ? LINK_WAITING : LINK_ANSWERED;
	if (!l->ended && now_s - ev.first_s < (ev.waiting ? WAITING_S : ANSWERED_S))
		return;
	events_put(s, &ev);
}

/* Is this write, the next call of the thread that wrote last, the rest of the same request? The
 * next request may follow at once, too, but lies elsewhere in memory. */
static bool goes_on(const struct links *l, const struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	uint64_t at = c->args[1], was = l->write_at;

	if (!l->write_number || l->write_tid != c->tid || l->write_nr != c->nr ||
		l->fd != (int32_t)c->args[info->fd] || item->thread->last_call != l->write_number)
		return false;
	if (!strcmp(info->name, "writev"))
		return at >= was && at <= was + l->write_count * sizeof(struct iovec) &&
			c->args[2] <= l->write_count;
	if (!strcmp(info->name, "sendmsg"))
		return at == was;
	return at == was + l->write_got && c->args[2] == l->write_count - l->write_got;
}

/* Before a read, whatever it returns: an answer that is whole by now is over. */
static void begin_read(const struct events *s, struct links *l, uint32_t tid)
{
	if (message_is_whole(&l->answer, s->stream, tid))
		l->answer = (struct message){0};
}

static void moved(struct events *s, size_t server, const struct stream_item *item)
{
	const struct record *rec = item->record;
	const struct record_call *c = &rec->call;
	const struct call_info *info = item->call;
	const double now_s = s->end_s;
	struct links *l = &s->links[server];

	keep(s, server, now_s, false);
	if (l->ended || l->pid != c->pid || l->fd != (int32_t)c->args[info->fd]) {
		l->balance = 0;
		l->answer = (struct message){0};
		l->write_number = 0;
		l->write_blocked = false;
	}
	if (info->class == CALL_WRITE) {
		if (!l->write_blocked && !goes_on(l, item))
			l->balance++;
		l->write_blocked = false;
		l->write_tid = c->tid;
		l->write_nr = c->nr;
		l->write_number = rec->number;
		l->write_at = c->args[1];
		l->write_count = c->args[2];
		l->write_got = (uint64_t)c->result;
		l->answer.answered |= c->tid == l->answer.tid;
	} else {
		begin_read(s, l, c->tid);
		if (!l->answer.bytes)
			l->balance--;
		message_read(&l->answer, rec);
	}
	/* An answer may be recorded before its request if the writing thread returns late. If the
	 * balance stays below 0, a request was taken for the rest of another. */
	if (l->balance >= 0)
		l->negative_s = INFINITY;
	else if (l->negative_s == INFINITY)
		l->negative_s = now_s;
	else if (now_s - l->negative_s > SETTLE_S)
		l->balance = 0;
	l->ended = false;
	l->since_s = now_s;
	l->call = info->name;
	l->error = NULL;
	l->pid = c->pid;
	l->fd = (int32_t)c->args[info->fd];
}

/* The connection is down, or was not made; it stays so until data moves. */
static void ended(struct events *s, size_t server, const char *call, const char *error)
{
	const double now_s = s->end_s;
	struct event ev = {.kind = EVENT_LINK_END,
		.server = (int32_t)server,
		.client = s->client,
		.first_s = now_s,
		.last_s = now_s,
		.count = 1,
		.call = call,
		.error = error};
	struct links *l = &s->links[server];

	burst_add(s, &ev);
	if (l->ended)
		return;
	keep(s, server, now_s, false);
	l->ended = true;
	l->since_s = now_s;
	l->call = call;
	l->error = error;
}

void link_call(struct events *s, size_t server, const struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	const bool reads = info->class == CALL_READ, writes = info->class == CALL_WRITE;
	struct links *l = &s->links[server];

	if (c->unfinished || c->result <= -512 || c->result == -EINTR)
		return;
	if (c->result == -EAGAIN) {
		if (reads) {
			begin_read(s, l, c->tid);
			l->answer.wanted_more = true;
		} else if (writes && goes_on(l, item)) {
			l->write_blocked = true;
		}
	} else if ((reads || writes) && c->result > 0) {
		moved(s, server, item);
	} else if (reads && c->result == 0) {
		ended(s, server, info->name, "EOF");
	} else if (c->result < 0 &&
		(reads || writes ||
			(!strcmp(info->name, "connect") && c->result != -EINPROGRESS))) {
		ended(s, server, info->name, error_name(c->result));
	}
}

void link_closed(struct events *s, const struct object *o, const struct record_fd *f)
{
	const struct links *l = &s->links[o->server];

	/* Another socket than the one in use was an attempt of its own, or a spare. */
	if (l->ended || l->fd < 0 || (l->pid == f->pid && l->fd == f->fd))
		ended(s, o->server, "close", NULL);
}

void links_finish(struct events *s)
{
	for (size_t i = 0; i < s->n_servers; i++)
		keep(s, i, s->last_s, true);
}
