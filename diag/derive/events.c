#include "diag/derive/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "diag/record/address.h"
#include "diag/derive/events_impl.h"

#define SLOW_S 1.0
enum { SLOW_MAX = 64 }; /* slow calls kept of one application's log */

/* What a descriptor is to us, in fd_state.user; of a socket, the server's index + USE_LINK. */
enum { USE_UNKNOWN, USE_FOLDER, USE_SOCKET, USE_OTHER, USE_LINK };

const char *event_kind_name(enum event_kind k)
{
	static const char *const names[EVENT_KINDS] = {"server-error", "server-signal",
		"server-end", "app-error", "app-slow", "link-quiet", "link-end"};

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

int events_new(const struct metrics_server *servers, size_t n_servers, int64_t start_ns,
	int32_t seconds, struct events **out, struct err *e)
{
	struct events *s;

	if (!n_servers || seconds <= 0)
		return err_set(e, -EINVAL,
			"events need at least one server and one second, not %zu and %d", n_servers,
			seconds);
	s = calloc(1, sizeof(*s));
	if (s)
		s->servers = calloc(n_servers, sizeof(*s->servers));
	if (!s || !s->servers) {
		events_free(s);
		return err_errno(e, -ENOMEM, "cannot make a table of events");
	}
	s->start_ns = start_ns;
	s->seconds = seconds;
	s->n_servers = n_servers;
	for (size_t i = 0; i < n_servers; i++) {
		s->servers[i].address = servers[i].address;
		s->servers[i].storage = strdup(servers[i].storage ? servers[i].storage : "");
		if (!s->servers[i].storage) {
			events_free(s);
			return err_errno(e, -ENOMEM, "cannot make a table of events");
		}
	}
	*out = s;
	return 0;
}

static void forget_log(struct events *s)
{
	fdtable_free(s->fds);
	free(s->bursts);
	links_free(s->links);
	s->fds = NULL;
	s->bursts = NULL;
	s->links = NULL;
	s->n_bursts = s->n_slow = 0;
}

void events_free(struct events *s)
{
	if (!s)
		return;
	forget_log(s);
	for (size_t i = 0; s->servers && i < s->n_servers; i++)
		free((char *)s->servers[i].storage);
	free(s->servers);
	free(s->events);
	free(s);
}

static uint64_t classify(const struct events *s, const struct record_fd *fd)
{
	if (fd->kind != FD_SOCKET)
		return path_is_below(fd->path, s->folder) ||
				(fd->path && *s->folder && !strcmp(fd->path, s->folder))
			? USE_FOLDER
			: USE_OTHER;
	for (size_t i = 0; s->links && i < s->n_servers; i++)
		if (address_is_service(&fd->remote, &s->servers[i].address))
			return USE_LINK + i;
	return USE_SOCKET;
}

static uint64_t use_of(const struct events *s, uint32_t pid, int32_t fd)
{
	struct fd_state *f = fdtable_get(s->fds, pid, fd);

	if (!f)
		return USE_UNKNOWN;
	if (f->user == USE_UNKNOWN)
		f->user = classify(s, &f->now);
	return f->user;
}

static bool one_of(const char *name, const char *const list[])
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

static enum event_place place_of(
	const struct events *s, const struct record_call *c, const struct call_info *info)
{
	static const char *const memory[] = {
		"mmap", "brk", "mremap", "munmap", "mprotect", "madvise", "mlock", "mlock2", NULL};
	static const char *const process[] = {
		"fork", "vfork", "clone", "clone3", "execve", "execveat", "wait4", "waitid", NULL};
	uint64_t use = info->fd >= 0 ? use_of(s, c->pid, (int32_t)c->args[info->fd]) : USE_UNKNOWN;

	if (!strcmp(info->name, "mmap") && (c->args[3] & MAP_ANONYMOUS))
		return PLACE_MEMORY; /* whatever its descriptor */
	if (use == USE_FOLDER)
		return *s->folder && s->client >= 0 ? PLACE_MOUNT : PLACE_STORAGE;
	if (one_of(info->name, process))
		return PLACE_PROCESS;
	if (use == USE_SOCKET || use >= USE_LINK)
		return PLACE_SOCKET;
	if (use == USE_OTHER)
		return PLACE_OTHER;
	if (one_of(info->name, memory))
		return PLACE_MEMORY;
	return info->args && strstr(info->args, "path") ? PLACE_PATH : PLACE_OTHER;
}

static bool failed(const struct record_call *c)
{
	return !c->unfinished && c->result < 0 && c->result > -512 && c->result != -EINTR;
}

static int add_error(struct events *s, const struct record_call *c, const struct call_info *info,
	enum event_place place)
{
	double end_s = events_time(s, c->start_ns + c->service_ns);
	struct event ev = {.kind = s->server >= 0 ? EVENT_SERVER_ERROR : EVENT_APP_ERROR,
		.server = s->server,
		.client = s->client,
		.first_s = end_s,
		.last_s = end_s,
		.count = 1,
		.call = info->name,
		.error = error_name(c->result),
		.place = place,
		.longest_s = (double)c->service_ns / 1e9};

	return burst_add(s, &ev);
}

/* The longest ones are kept; those that never returned before those that did. */
static int add_slow(struct events *s, const struct record_call *c, const struct call_info *info,
	enum event_place place)
{
	struct event ev = {.kind = EVENT_APP_SLOW,
		.server = -1,
		.client = s->client,
		.first_s = events_time(s, c->start_ns),
		.last_s = events_time(s, c->start_ns + c->service_ns),
		.count = 1,
		.call = info->name,
		.error = failed(c) ? error_name(c->result) : NULL,
		.place = place,
		.longest_s = (double)c->service_ns / 1e9,
		.open = c->unfinished};
	size_t was = s->n, least = SIZE_MAX;
	int rc;

	if (s->n_slow < SLOW_MAX) {
		rc = events_put(s, &ev);
		s->n_slow += s->n - was;
		return rc;
	}
	for (size_t i = s->first_slow; i < s->n; i++) {
		const struct event *old = &s->events[i];

		if (old->kind == EVENT_APP_SLOW && !old->open &&
			(least == SIZE_MAX || old->longest_s < s->events[least].longest_s))
			least = i;
	}
	if (least != SIZE_MAX && ev.first_s < s->seconds && ev.last_s >= 0 &&
		(ev.open || ev.longest_s > s->events[least].longest_s))
		s->events[least] = ev;
	return 0;
}

static int add_call(struct events *s, const struct record *rec)
{
	const struct record_call *c = &rec->call;
	const struct call_info *info = call_info(s->arch, c->nr);
	enum event_place place;
	uint64_t use;
	bool slow;
	int rc = 0;

	if (s->links) {
		use = info && info->fd >= 0 ? use_of(s, c->pid, (int32_t)c->args[info->fd])
					    : USE_UNKNOWN;
		rc = use >= USE_LINK ? link_call(s, (size_t)(use - USE_LINK), rec, info) : 0;
		return rc ? rc : links_note(s, rec, info);
	}
	if (!info)
		return 0;
	slow = s->client >= 0 && info->class != CALL_POLL &&
		c->service_ns >= (int64_t)(SLOW_S * 1e9);
	if (!failed(c) && !slow)
		return 0;
	place = place_of(s, c, info);
	if (s->client >= 0 && place != PLACE_MOUNT && place != PLACE_PATH)
		return 0;
	if (failed(c))
		rc = add_error(s, c, info, place);
	if (!rc && slow)
		rc = add_slow(s, c, info, place);
	return rc;
}

static int add_signal(struct events *s, const struct record_signal *sig)
{
	const char *name = sigabbrev_np((int)sig->signo);
	double at_s = events_time(s, sig->start_ns);
	struct event ev = {.kind = EVENT_SERVER_SIGNAL,
		.server = s->server,
		.client = -1,
		.first_s = at_s,
		.last_s = at_s,
		.count = 1,
		.signal = name ? name : "RT"};

	return s->server >= 0 ? burst_add(s, &ev) : 0;
}

static int add_end(struct events *s, const struct record_process *p)
{
	double at_s = events_time(s, p->start_ns);
	struct event ev = {.kind = EVENT_SERVER_END,
		.server = s->server,
		.client = -1,
		.first_s = at_s,
		.last_s = at_s,
		.count = 1};

	if (s->server < 0 || p->what != PROCESS_EXIT || p->pid != p->tid)
		return 0;
	if (WIFSIGNALED(p->status))
		ev.signal = sigabbrev_np(WTERMSIG(p->status)) ? sigabbrev_np(WTERMSIG(p->status))
							      : "RT";
	else
		ev.status = WEXITSTATUS(p->status);
	return events_put(s, &ev);
}

/* A socket to a server is closed, or its descriptor gets another meaning, or the daemon is gone. */
struct closing {
	struct events *s;
	double at_s;
	int rc;
};

static void close_one(void *ctx, const struct fd_state *f)
{
	struct closing *c = ctx;
	uint64_t use = f->user == USE_UNKNOWN ? classify(c->s, &f->now) : f->user;

	if (use >= USE_LINK && !c->rc)
		c->rc = link_closed(c->s, (size_t)(use - USE_LINK), f->now.pid, f->now.fd, c->at_s);
}

static int before_change(struct events *s, const struct record *rec)
{
	struct closing c = {.s = s};
	const struct fd_state *f;

	if (rec->type == RECORD_FD) {
		c.at_s = events_time(s, rec->fd.start_ns);
		f = rec->fd.open ? NULL : fdtable_get(s->fds, rec->fd.pid, rec->fd.fd);
		if (f)
			close_one(&c, f);
	} else if (rec->process.what == PROCESS_EXIT) {
		links_forget(s, rec->process.tid);
		c.at_s = events_time(s, rec->process.start_ns);
		if (rec->process.pid == rec->process.tid)
			fdtable_each(s->fds, rec->process.pid, close_one, &c);
	}
	return c.rc;
}

static int64_t record_end_ns(const struct record *rec)
{
	switch (rec->type) {
	case RECORD_CALL: return rec->call.start_ns + rec->call.service_ns;
	case RECORD_SIGNAL: return rec->signal.start_ns;
	case RECORD_PROCESS: return rec->process.start_ns;
	case RECORD_END: return rec->end.start_ns;
	default: return 0;
	}
}

static int add_record(struct events *s, const struct record *rec)
{
	int64_t end_ns = record_end_ns(rec);
	int rc = 0;

	if (end_ns && events_time(s, end_ns) > s->last_s)
		s->last_s = events_time(s, end_ns);
	switch (rec->type) {
	case RECORD_CALL: s->calls = true; return add_call(s, rec);
	case RECORD_SIGNAL: return add_signal(s, &rec->signal);
	case RECORD_FD:
	case RECORD_PROCESS:
		if (s->links && s->calls)
			rc = before_change(s, rec);
		if (!rc && rec->type == RECORD_PROCESS)
			rc = add_end(s, &rec->process);
		return rc ? rc : fdtable_feed(s->fds, rec);
	default: return 0;
	}
}

/* The log of server 'server' or of client 'client'; 'folder' is storage or mount. */
static int add_log(struct events *s, int32_t server, int32_t client, int64_t offset_ns,
	const char *folder, bool daemon, const char *path, struct err *e)
{
	struct log_reader *r = NULL;
	const struct record *rec;
	size_t n = strlen(folder);
	char *trimmed;
	int rc, got;

	while (n && folder[n - 1] == '/')
		n--;
	trimmed = strndup(folder, n);
	s->server = server;
	s->client = client;
	s->offset_ns = offset_ns;
	s->folder = trimmed;
	s->first_slow = s->n;
	s->last_s = 0;
	s->calls = false;
	rc = log_reader_new(path, &r, e);
	if (rc)
		goto out;
	s->arch = call_arch(log_reader_head(r)->arch);
	if (!s->arch) {
		rc = err_set(e, -EINVAL, "'%s': the calls of architecture '%s' are not known", path,
			log_reader_head(r)->arch);
		goto out;
	}
	s->fds = fdtable_new();
	if (!trimmed || !s->fds || (daemon && links_new(s))) {
		rc = err_errno(e, -ENOMEM, "cannot read '%s'", path);
		goto out;
	}
	while ((got = log_next(r, &rec, e)) == 1 && !rc)
		rc = add_record(s, rec);
	if (got == 1 || rc)
		rc = err_errno(e, rc, "cannot read '%s'", path);
	else
		rc = got;
	if (!rc && s->calls && s->links && links_finish(s))
		rc = err_errno(e, -ENOMEM, "cannot read '%s'", path);
out:
	log_reader_free(r);
	forget_log(s);
	free(trimmed);
	s->folder = NULL;
	return rc;
}

int events_add_server(
	struct events *s, int32_t server, int64_t clock_offset_ns, const char *path, struct err *e)
{
	if (server < 0 || (size_t)server >= s->n_servers)
		return err_set(e, -EINVAL, "there is no server %d among %zu", server, s->n_servers);
	return add_log(s, server, -1, clock_offset_ns, s->servers[server].storage, false, path, e);
}

int events_add_app(struct events *s, int32_t client, int64_t clock_offset_ns, const char *mount,
	const char *path, struct err *e)
{
	return add_log(s, -1, client, clock_offset_ns, mount, false, path, e);
}

int events_add_daemon(
	struct events *s, int32_t client, int64_t clock_offset_ns, const char *path, struct err *e)
{
	return add_log(s, -1, client, clock_offset_ns, "", true, path, e);
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
		qsort(s->events, s->n, sizeof(*s->events), by_time);
	*out = s->events;
	return s->n;
}
