/* Collects failures, slow calls and silent connections from logs. */
#include "diag/derive/events_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "harness/base/alloc.h"

#define SLOW_S 1.0
#define BURST_GAP_S 1.0
enum { SLOW_MAX = 64 }; /* slow calls kept for each application's log */

const char *event_kind_name(enum event_kind k)
{
	static const char *const names[EVENT_KINDS] = {"server-error", "server-signal",
		"server-end", "app-error", "app-slow", "link-quiet", "link-end", "app-done"};

	return names[k];
}

const char *event_place_name(enum event_place p)
{
	static const char *const names[] = {
		NULL, "storage", "mount", "socket", "memory", "process", "path", "other"};

	return names[p];
}

const char *link_state_name(enum link_state s)
{
	static const char *const names[] = {NULL, "answered", "waiting", "ended"};

	return names[s];
}

const char *error_name(int64_t result)
{
	const char *name = result < 0 && result > -4096 ? strerrorname_np((int)-result) : NULL;

	return name ? name : "EUNKNOWN";
}

int events_new(
	size_t n_servers, int64_t start_ns, int32_t seconds, struct events **out, struct err *e)
{
	struct events *s;

	if (!n_servers || seconds <= 0)
		return err_set(e, -EINVAL,
			"events need at least one server and one second, not %zu and %d", n_servers,
			seconds);
	s = alloc_zero(1, sizeof(*s));
	s->n_servers = n_servers;
	s->start_ns = start_ns;
	s->seconds = seconds;
	*out = s;
	return 0;
}

static void forget_log(void *ctx)
{
	struct events *s = ctx;

	free(s->bursts);
	free(s->links);
	data_free(s->data);
	s->bursts = NULL;
	s->links = NULL;
	s->data = NULL;
	s->n_bursts = s->n_slow = 0;
}

void events_free(struct events *s)
{
	if (!s)
		return;
	forget_log(s);
	free(s->list);
	free(s);
}

/* Converts to seconds since the start, on the orchestrator's clock. */
static double events_time(const struct events *s, int64_t ns)
{
	return (double)(ns - s->offset_ns - s->start_ns) / 1e9;
}

void events_put(struct events *s, const struct event *ev)
{
	if (ev->last_s < 0 || ev->first_s >= s->seconds)
		return;
	s->list = alloc_room(s->list, s->n, sizeof(*s->list));
	s->list[s->n++] = *ev;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct burst *burst_of(struct events *s, const struct event *ev)
{
	for (size_t i = 0; i < s->n_bursts; i++) {
		const struct event *key = &s->bursts[i].key;

		if (key->kind == ev->kind && key->place == ev->place && key->server == ev->server &&
			same_text(key->call, ev->call) && same_text(key->error, ev->error) &&
			same_text(key->signal, ev->signal))
			return &s->bursts[i];
	}
	s->bursts = alloc_room(s->bursts, s->n_bursts, sizeof(*s->bursts));
	s->bursts[s->n_bursts] = (struct burst){*ev, SIZE_MAX};
	return &s->bursts[s->n_bursts++];
}

size_t burst_add(struct events *s, const struct event *ev)
{
	struct burst *b = burst_of(s, ev);
	struct event *old = b->event != SIZE_MAX ? &s->list[b->event] : NULL;
	size_t was = s->n;

	if (!old || ev->last_s >= s->seconds || ev->first_s - old->last_s > BURST_GAP_S) {
		events_put(s, ev);
		b->event = s->n > was ? was : SIZE_MAX;
		return b->event;
	}
	old->count += ev->count;
	old->bytes += ev->bytes;
	if (ev->last_s > old->last_s)
		old->last_s = ev->last_s;
	if (ev->longest_s > old->longest_s)
		old->longest_s = ev->longest_s;
	return b->event;
}

static bool one_of(const char *name, const char *const list[])
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

static enum event_place events_place_of(struct stream_item *item)
{
	static const char *const memory[] = {
		"mmap", "brk", "mremap", "munmap", "mprotect", "madvise", "mlock", "mlock2", NULL};
	static const char *const process[] = {
		"fork", "vfork", "clone", "clone3", "execve", "execveat", "wait4", "waitid", NULL};
	const struct call_info *info = item->call;
	enum object_kind kind = item_object(item).kind;

	if (!strcmp(info->name, "mmap") && (item->record->call.args[3] & MAP_ANONYMOUS))
		return PLACE_MEMORY; /* also with a descriptor */
	if (kind == OBJECT_MOUNT)
		return PLACE_MOUNT;
	if (kind == OBJECT_STORAGE_FILE || kind == OBJECT_STORAGE)
		return PLACE_STORAGE;
	if (one_of(info->name, process))
		return PLACE_PROCESS;
	if (kind != OBJECT_UNKNOWN)
		return kind == OBJECT_OTHER ? PLACE_OTHER : PLACE_SOCKET;
	if (one_of(info->name, memory))
		return PLACE_MEMORY;
	return info->args && strstr(info->args, "path") ? PLACE_PATH : PLACE_OTHER;
}

static bool failed(const struct record_call *c)
{
	return !c->unfinished && c->result < 0 && c->result > -512 && c->result != -EINTR;
}

/* Keeps the longest calls, and calls that never returned before all others. */
static void add_slow(struct events *s, const struct event *ev)
{
	size_t was = s->n, least = SIZE_MAX;

	if (s->n_slow < SLOW_MAX) {
		events_put(s, ev);
		s->n_slow += s->n - was;
		return;
	}
	for (size_t i = s->first_slow; i < s->n; i++) {
		const struct event *old = &s->list[i];

		if (old->kind == EVENT_APP_SLOW && !old->open &&
			(least == SIZE_MAX || old->longest_s < s->list[least].longest_s))
			least = i;
	}
	if (least != SIZE_MAX && ev->first_s < s->seconds && ev->last_s >= 0 &&
		(ev->open || ev->longest_s > s->list[least].longest_s))
		s->list[least] = *ev;
}

static bool changes_storage(const struct event *ev, enum data_way way)
{
	return ev->kind == EVENT_SERVER_ERROR && ev->place == PLACE_STORAGE && way < DATA_CLOSE;
}

/* Adds a call of a server or an application. */
static void events_add_call(struct events *s, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	enum data_way way;
	struct event ev;
	bool slow, done;
	size_t at;

	if (!info)
		return;
	way = data_way(info);
	done = way != DATA_NONE && !c->unfinished && c->result >= 0;
	if (done && s->server >= 0)
		data_succeeded(s, item);
	done &= s->client >= 0;
	slow = s->client >= 0 && info->class != CALL_POLL &&
		c->service_ns >= (int64_t)(SLOW_S * 1e9);
	if (!failed(c) && !slow && !done)
		return;
	ev = (struct event){.kind = s->server >= 0 ? EVENT_SERVER_ERROR
			: failed(c)                ? EVENT_APP_ERROR
						   : EVENT_APP_DONE,
		.server = s->server,
		.client = s->client,
		.first_s = events_time(s, c->start_ns + c->service_ns),
		.last_s = events_time(s, c->start_ns + c->service_ns),
		.count = 1,
		.call = info->name,
		.error = failed(c) ? error_name(c->result) : NULL,
		.place = events_place_of(item),
		.longest_s = (double)c->service_ns / 1e9};
	if (s->client >= 0 && ev.place != PLACE_MOUNT && ev.place != PLACE_PATH)
		return;
	if (changes_storage(&ev, way))
		ev.bytes = data_asked(c, info);
	else if (done && info->class == CALL_WRITE)
		ev.bytes = (uint64_t)c->result;
	if (failed(c) || (done && ev.place == PLACE_MOUNT)) {
		at = burst_add(s, &ev);
		if (changes_storage(&ev, way))
			data_failed(s, item, at);
	}
	if (!slow)
		return;
	ev.bytes = 0;
	ev.kind = EVENT_APP_SLOW;
	ev.first_s = events_time(s, c->start_ns);
	ev.open = c->unfinished;
	add_slow(s, &ev);
}

static const char *signal_name(int signo)
{
	const char *name = sigabbrev_np(signo);

	return name ? name : "RT";
}

static struct event server_event(const struct events *s, enum event_kind kind, int64_t ns)
{
	return (struct event){.kind = kind,
		.server = s->server,
		.client = -1,
		.first_s = events_time(s, ns),
		.last_s = events_time(s, ns),
		.count = 1};
}

static void add_signal(struct events *s, const struct record_signal *sig)
{
	struct event ev = server_event(s, EVENT_SERVER_SIGNAL, sig->start_ns);

	ev.signal = signal_name((int)sig->signo);
	if (s->server >= 0)
		burst_add(s, &ev);
}

static void add_end(struct events *s, const struct record_process *p)
{
	struct event ev = server_event(s, EVENT_SERVER_END, p->start_ns);

	if (s->server < 0 || p->what != PROCESS_EXIT || p->pid != p->tid)
		return;
	if (WIFSIGNALED(p->status))
		ev.signal = signal_name(WTERMSIG(p->status));
	else
		ev.status = WEXITSTATUS(p->status);
	events_put(s, &ev);
}

/* A socket to a server is closed, or the daemon has ended. */
static void close_link(void *ctx, const struct fd_state *f)
{
	if (f->object.kind == OBJECT_PEER)
		link_closed(ctx, &f->object, &f->now);
}

static int derive_events_feed(void *ctx, struct stream_item *item, struct err *e)
{
	struct events *s = ctx;
	const struct record *rec = item->record;
	bool closes = rec->type == RECORD_FD
		? !rec->fd.open
		: rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXIT;

	(void)e;
	s->end_s = events_time(s, record_end_ns(rec));
	if (s->end_s > s->last_s)
		s->last_s = s->end_s;
	if (s->links && s->calls && closes)
		item_each_ending(item, close_link, s);
	if (rec->type == RECORD_CALL) {
		s->calls = true;
		if (!s->links)
			events_add_call(s, item);
		else if (item_object(item).kind == OBJECT_PEER)
			link_call(s, item_object(item).server, item);
	} else if (rec->type == RECORD_SIGNAL) {
		add_signal(s, &rec->signal);
	} else if (rec->type == RECORD_PROCESS) {
		add_end(s, &rec->process);
	}
	return 0;
}

static int finish_log(void *ctx, struct err *e)
{
	struct events *s = ctx;

	(void)e;
	if (s->calls && s->links)
		links_finish(s);
	return 0;
}

int events_attach(struct events *s, struct stream *stream, struct err *e)
{
	static const struct stream_consumer consumer = {
		.feed = derive_events_feed, .finish = finish_log, .free = forget_log};
	const struct stream_spec *spec = stream_spec(stream);

	if (!stream_arch(stream))
		return err_set(e, -EINVAL, "the log's architecture '%s' is not supported",
			stream_head(stream)->arch);
	s->stream = stream;
	s->server = spec->owner == OWNER_SERVER ? spec->index : -1;
	s->client = spec->owner == OWNER_SERVER ? -1 : spec->index;
	s->offset_ns = spec->clock_offset_ns;
	s->first_slow = s->n;
	s->last_s = 0;
	s->calls = false;
	if (spec->owner == OWNER_DAEMON)
		links_new(s);
	stream_add(stream, &consumer, s);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->first_s != y->first_s)
		return x->first_s < y->first_s ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->server != y->server ? (x->server < y->server ? -1 : 1)
				      : (x->client > y->client) - (x->client < y->client);
}

size_t events_list(struct events *s, const struct event **out)
{
	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), by_time);
	*out = s->list;
	return s->n;
}
