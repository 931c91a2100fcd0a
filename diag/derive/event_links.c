/* Follows the traffic between a client daemon and each server: what moved last, and how many
 * requests have no answer. */
#include "diag/derive/events_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "diag/derive/message.h"
#include "diag/record/describe.h"
#include "harness/base/alloc.h"

#define WAITING_S 0.5
#define ANSWERED_S 5.0
#define SETTLE_S 0.02

struct links {
	bool ended;
	double since_s; /* when data last moved, or of the first end */
	const char *call, *error;
	uint32_t pid; /* the socket that data last moved on */
	int32_t fd;

	bool asked;       /* the last transfer is a write that began after every read */
	int64_t read_ns;  /* end of the last read that moved data */
	uint64_t at_rest; /* idle intervals whose balance agreed: no request open */
	uint64_t amiss;   /* idle intervals whose balance disagreed */

	int64_t balance;   /* requests minus answers, as events.h counts them */
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

enum stretch_end { BY_READ, BY_WRITE, BY_CLOSE, BY_LOG };

/* Do the balances of this daemon's links agree with the idle intervals that were seen? */
static bool counts_hold(const struct events *s)
{
	uint64_t at_rest = 0, amiss = 0;

	for (size_t i = 0; i < s->n_servers; i++) {
		at_rest += s->links[i].at_rest;
		amiss += s->links[i].amiss;
	}
	return amiss <= at_rest;
}

/* Requests that were open in an interval that began at 'since_s', by the rule in events.h. */
static uint32_t open_requests(
	struct events *s, struct links *l, double since_s, double now_s, enum stretch_end end)
{
	if (now_s - since_s > SETTLE_S && l->balance < 0)
		l->balance = 0;
	if (!l->ended && now_s - since_s >= WAITING_S && !l->asked && end == BY_WRITE) {
		*(l->balance > 0 ? &l->amiss : &l->at_rest) += 1;
		l->balance = 0;
	}
	if ((l->asked || (end == BY_READ && l->call && !l->ended)) && l->balance <= 0)
		return 1;
	if (!l->asked && (end == BY_CLOSE || end == BY_LOG) && !counts_hold(s))
		return 0;
	return l->balance > 0 ? (uint32_t)l->balance : 0;
}

/* An interval ends at 'now_s': keeps it if it is long, or if the connection was down. */
static void event_links_keep(struct events *s, size_t server, double now_s, enum stretch_end end)
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
		.open = end == BY_LOG};

	ev.waiting = open_requests(s, l, ev.first_s, now_s, end);
	ev.state = l->ended ? LINK_ENDED : ev.waiting ? LINK_WAITING : LINK_ANSWERED;
	if (!l->ended && now_s - ev.first_s < (ev.waiting ? WAITING_S : ANSWERED_S))
		return;
	events_put(s, &ev);
}

/* Is this write, the next call of the thread that wrote last, the rest of the same request? The
 * next request may also follow at once, but from elsewhere in memory. */
static bool continues_request(const struct links *l, const struct stream_item *item)
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

/* Before a read, whatever it returns: an answer that is whole by now has ended. */
static void begin_read(const struct events *s, struct links *l, uint32_t tid, uint64_t asked)
{
	if (message_is_whole(&l->answer, s->stream, tid, asked))
		l->answer = (struct message){0};
}

static void moved(struct events *s, size_t server, const struct stream_item *item)
{
	const struct record *rec = item->record;
	const struct record_call *c = &rec->call;
	const struct call_info *info = item->call;
	const double now_s = s->end_s;
	struct links *l = &s->links[server];

	event_links_keep(s, server, now_s, info->class == CALL_WRITE ? BY_WRITE : BY_READ);
	if (l->ended || l->pid != c->pid || l->fd != (int32_t)c->args[info->fd]) {
		l->balance = 0;
		l->asked = false;
		l->answer = (struct message){0};
		l->write_number = 0;
		l->write_blocked = false;
	}
	if (info->class == CALL_WRITE) {
		if (!l->write_blocked && !continues_request(l, item))
			l->balance++;
		l->write_blocked = false;
		l->asked = c->start_ns >= l->read_ns;
		l->write_tid = c->tid;
		l->write_nr = c->nr;
		l->write_number = rec->number;
		l->write_at = c->args[1];
		l->write_count = c->args[2];
		l->write_got = (uint64_t)c->result;
		l->answer.answered |= c->tid == l->answer.tid;
	} else {
		const uint64_t asked = message_asked(info, c);

		begin_read(s, l, c->tid, asked);
		if (!l->answer.bytes)
			l->balance--;
		message_read(&l->answer, rec, asked);
		l->asked = false;
		l->read_ns = c->start_ns + c->service_ns;
	}
	/* An answer may be recorded before its request if the writing thread returns late. If the
	 * balance stays below 0, a request was mistaken for the rest of another. */
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

/* The connection is down or could not be made, until data moves again. */
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
	/* The client had closed the connection, and now finds the server gone. */
	if (l->ended && (l->error || !error))
		return;
	event_links_keep(s, server, now_s, BY_CLOSE);
	/* The last transfer was a request, which stays open in the new interval. */
	if (l->asked && l->balance <= 0)
		l->balance = 1;
	l->ended = true;
	l->asked = false;
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
			const uint64_t asked = message_asked(info, c);

			begin_read(s, l, c->tid, asked);
			if (message_nothing(&l->answer, asked))
				l->answer = (struct message){0};
		} else if (writes && continues_request(l, item)) {
			l->write_blocked = true;
		}
	} else if ((reads || writes) && c->result > 0) {
		if (!call_peeks(info, c))
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

	/* Another socket than the one in use was a separate attempt, or a spare. */
	if (l->ended || l->fd < 0 || (l->pid == f->pid && l->fd == f->fd))
		ended(s, o->server, "close", NULL);
}

void links_finish(struct events *s)
{
	for (size_t i = 0; i < s->n_servers; i++)
		event_links_keep(s, i, s->last_s, BY_LOG);
}
