/* Reads one log and gives each record to consumers, with its meaning for the cluster. */
#include "diag/record/stream.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/address.h"
#include "diag/record/reading.h"
#include "harness/base/alloc.h"
#include "harness/base/map.h"

enum { STREAM_CALLS = 1024, PORTS = 65536 };

struct stream {
	struct log_reader *log; /* NULL: reads 'source' */
	struct stream_source source;
	struct log_head head;    /* of 'source' */
	struct stream_item item; /* the current record */
	bool at_hand;            /* 'item' is not applied yet */
	char *path, *folder; /* 'folder': storage or mount, without slashes at its end; "": none */
	struct stream_spec spec;
	const struct call_arch *arch;
	const struct call_info *calls[STREAM_CALLS]; /* by number */
	struct fdtable *fds;
	uint64_t lost;

	struct {
		struct stream_consumer c;
		void *ctx;
	} consumers[STREAM_CONSUMERS];
	size_t n_consumers;
	bool names;

	struct stream_thread *threads, *current; /* 'current': of the last call */
	size_t n_used, room;
	struct map by_tid; /* index in 'threads', plus 1 */

	uint32_t *free_ids, n_free, n_ids;

	bool *listens; /* by port: a traced process listens there. NULL: not needed */
};

static struct stream_thread *find_thread(const struct stream *s, uint32_t tid)
{
	uint64_t i = map_get(&s->by_tid, tid);

	return i ? &s->threads[i - 1] : NULL;
}

/* Removes ended threads and makes room for as many as remain. */
static void stream_make_room(struct stream *s)
{
	size_t kept = 0, room = 64;

	map_clear(&s->by_tid);
	for (size_t i = 0; i < s->n_used; i++) {
		const struct stream_thread *t = &s->threads[i];

		if (t->state == THREAD_GONE && !(s->names && t->named))
			continue;
		s->threads[kept] = *t;
		map_keep(&s->by_tid, t->tid, ++kept);
	}
	while (room < kept * 2)
		room *= 2;
	s->threads = alloc_resize(s->threads, room, sizeof(*s->threads));
	s->room = room;
	s->n_used = kept;
	s->current = NULL;
}

/* The thread's entry; adds one if needed. */
static struct stream_thread *thread_of(struct stream *s, uint32_t tid)
{
	struct stream_thread *t = find_thread(s, tid);

	if (!t) {
		if (s->n_used == s->room)
			stream_make_room(s);
		t = &s->threads[s->n_used++];
		*t = (struct stream_thread){.tid = tid};
		map_keep(&s->by_tid, tid, s->n_used);
	}
	t->state = THREAD_LIVE;
	return t;
}

static int stream_make(
	const char *path, const struct stream_spec *spec, struct stream **out, struct err *e)
{
	struct stream *s;
	const char *folder = "";
	size_t n;

	if (spec->owner == OWNER_SERVER &&
		(spec->index < 0 || (size_t)spec->index >= spec->n_servers))
		return err_set(e, -EINVAL, "'%s': no server %d of %zu", path, spec->index,
			spec->n_servers);
	s = alloc_zero(1, sizeof(*s));
	s->spec = *spec;
	if (spec->owner == OWNER_SERVER && spec->servers[spec->index].storage)
		folder = spec->servers[spec->index].storage;
	else if (spec->owner == OWNER_APP && spec->mount)
		folder = spec->mount;
	for (n = strlen(folder); n && folder[n - 1] == '/';)
		n--;
	s->path = alloc_copy(path);
	s->folder = alloc_format("%.*s", (int)n, folder);
	if (spec->owner == OWNER_SERVER && !address_port(&spec->servers[spec->index].address))
		s->listens = alloc_zero(PORTS, sizeof(*s->listens));
	s->item.stream = s;
	s->fds = fdtable_new();
	if (!s->fds)
		alloc_end();
	*out = s;
	return 0;
}

/* Call when the head is known. */
static void look_up_calls(struct stream *s)
{
	s->arch = call_arch(stream_head(s)->arch);
	for (uint32_t nr = 0; nr < STREAM_CALLS; nr++)
		s->calls[nr] = call_info(s->arch, nr);
}

int stream_new(const char *path, const struct stream_spec *spec, struct stream **out, struct err *e)
{
	struct stream *s;
	int rc = stream_make(path, spec, &s, e);

	if (rc)
		return rc;
	rc = log_reader_new(path, &s->log, e);
	if (rc) {
		stream_free(s);
		return rc;
	}
	look_up_calls(s);
	*out = s;
	return 0;
}

int stream_over(const struct stream_source *source, const struct log_head *head,
	const struct stream_spec *spec, struct stream **out, struct err *e)
{
	struct stream *s;
	int rc = stream_make("records", spec, &s, e);

	if (rc)
		return rc;
	s->source = *source;
	s->head = *head;
	look_up_calls(s);
	*out = s;
	return 0;
}

void stream_forget(struct stream *s)
{
	fdtable_free(s->fds);
	s->fds = fdtable_new();
	if (!s->fds)
		alloc_end();
	map_clear(&s->by_tid);
	s->n_used = s->n_free = s->n_ids = 0;
	s->current = NULL;
	if (s->listens)
		memset(s->listens, 0, PORTS * sizeof(*s->listens));
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_consumers; i++)
		if (s->consumers[i].c.free)
			s->consumers[i].c.free(s->consumers[i].ctx);
	log_reader_free(s->log);
	fdtable_free(s->fds);
	free(s->threads);
	map_clear(&s->by_tid);
	free(s->free_ids);
	free(s->listens);
	free(s->folder);
	free(s->path);
	free(s);
}

void stream_add(struct stream *s, const struct stream_consumer *c, void *ctx)
{
	s->consumers[s->n_consumers].c = *c;
	if (!c->classes)
		s->consumers[s->n_consumers].c.classes = UINT_MAX;
	s->consumers[s->n_consumers++].ctx = ctx;
	s->names = s->names || c->names;
}

const struct log_head *stream_head(const struct stream *s)
{
	return s->log ? log_reader_head(s->log) : &s->head;
}

const struct stream_spec *stream_spec(const struct stream *s)
{
	return &s->spec;
}

const struct call_arch *stream_arch(const struct stream *s)
{
	return s->arch;
}

uint64_t stream_lost(const struct stream *s)
{
	return s->lost;
}

const struct fd_state *stream_fd(const struct stream *s, uint32_t pid, int32_t fd)
{
	return fdtable_get(s->fds, pid, fd);
}

uint64_t stream_last_poll(const struct stream *s, uint32_t tid)
{
	const struct stream_thread *t = s->current;

	if (!t || t->tid != tid)
		t = find_thread(s, tid);
	return t ? t->last_poll : 0;
}

const char *stream_name(const struct stream *s, uint32_t pid, uint32_t tid)
{
	const struct stream_thread *t = find_thread(s, tid ? tid : pid);

	if (t && t->named)
		return t->name;
	return tid && tid != pid ? stream_name(s, pid, pid) : "";
}

static bool is_server(const struct stream *s, const struct sockaddr_storage *remote)
{
	for (size_t i = 0; i < s->spec.n_servers; i++)
		if (address_is_same_host(remote, &s->spec.servers[i].address))
			return true;
	return false;
}

/* Is it a client's socket? 'accepted': known to have been accepted. */
static bool is_clients(const struct stream *s, const struct sockaddr_storage *local,
	const struct sockaddr_storage *remote, bool accepted)
{
	const struct stream_spec *spec = &s->spec;

	if (spec->owner != OWNER_SERVER ||
		!address_is_service(local, &spec->servers[spec->index].address))
		return false;
	return !s->listens ||
		((accepted || (s->listens[address_port(local)] && address_port(remote))) &&
			!is_server(s, remote));
}

/* Classifies a socket by its ends: the server's own service, or a connection to a server. */
static struct object socket_object(const struct stream *s, const struct sockaddr_storage *local,
	const struct sockaddr_storage *remote, bool accepted)
{
	const struct stream_spec *spec = &s->spec;

	if (is_clients(s, local, remote, accepted))
		return (struct object){OBJECT_SERVICE, (uint32_t)spec->index};
	for (size_t i = 0; i < spec->n_servers; i++)
		if (address_is_service(remote, &spec->servers[i].address))
			return (struct object){OBJECT_PEER, (uint32_t)i};
	return (struct object){OBJECT_SOCKET};
}

/* Is it the storage device, opened by any name? */
static bool is_storage_device(const struct stream *s, const struct record_fd *f)
{
	const struct stream_spec *spec = &s->spec;
	uint64_t device = spec->owner == OWNER_SERVER ? spec->servers[spec->index].storage_device
						      : 0;

	return device && f->kind == FD_DEVICE && !f->tag.inode && f->tag.device == device;
}

static struct object file_object(const struct stream *s, const struct record_fd *f)
{
	const bool below = path_is_below(f->path, s->folder);
	const bool itself = *s->folder && f->path && !strcmp(f->path, s->folder);
	bool data;

	if (is_storage_device(s, f))
		return (struct object){OBJECT_STORAGE_FILE, (uint32_t)s->spec.index};
	if (!below && !itself)
		return (struct object){OBJECT_OTHER};
	if (s->spec.owner == OWNER_APP)
		return (struct object){OBJECT_MOUNT};
	data = f->kind == FD_FILE || (itself && f->kind == FD_DEVICE);
	return (struct object){
		data ? OBJECT_STORAGE_FILE : OBJECT_STORAGE, (uint32_t)s->spec.index};
}

static struct object sum_object(const struct stream *s, const struct record_sum *sum)
{
	static const struct sockaddr_storage none;

	switch (sum->fd_class) {
	case FD_CLASS_NONE: return (struct object){0};
	case FD_CLASS_DISK:
		return sum->selected && s->spec.owner == OWNER_SERVER
			? (struct object){OBJECT_STORAGE_FILE, (uint32_t)s->spec.index}
			: (struct object){OBJECT_OTHER};
	case FD_CLASS_SERVER: return socket_object(s, &sum->local, &sum->remote, true);
	case FD_CLASS_CLIENT: return socket_object(s, &none, &sum->remote, false);
	default: return (struct object){OBJECT_OTHER};
	}
}

static struct object reading_object(const struct stream *s, const struct record_reading *r)
{
	static const struct sockaddr_storage none;

	if (!reading_is_tcp(r->what))
		return (struct object){0};
	if (r->accepted && s->spec.owner == OWNER_SERVER && !(s->listens && is_server(s, &r->peer)))
		return (struct object){OBJECT_SERVICE, (uint32_t)s->spec.index};
	if (r->accepted)
		return (struct object){OBJECT_SOCKET};
	return socket_object(s, &none, &r->peer, false);
}

/* A free number for a connection. */
static uint32_t id_new(struct stream *s)
{
	s->free_ids = alloc_room(s->free_ids, s->n_ids, sizeof(*s->free_ids));
	return s->n_free ? s->free_ids[--s->n_free] : s->n_ids++;
}

static bool is_connection(const struct object *o)
{
	return o->kind == OBJECT_SERVICE || o->kind == OBJECT_PEER;
}

static void classify(struct stream *s, struct fd_state *f)
{
	f->object = f->now.kind == FD_SOCKET
		? socket_object(s, &f->now.local, &f->now.remote, false)
		: file_object(s, &f->now);
	if (is_connection(&f->object))
		f->object.id = id_new(s);
}

/* The port on which a socket listens; 0: none. */
static unsigned listening_port(const struct record_fd *f)
{
	return f->open && f->kind == FD_SOCKET && f->sock_type == SOCK_STREAM &&
			!address_port(&f->remote)
		? address_port(&f->local)
		: 0;
}

/* Reclassifies an accepted socket that was described before its listening socket. */
static void classify_late(void *ctx, const struct fd_state *known)
{
	struct stream *s = ctx;
	struct fd_state *f = fdtable_get(s->fds, known->now.pid, known->now.fd);

	if (f->object.kind == OBJECT_SOCKET)
		classify(s, f);
}

/* Notes the ports on which traced processes listen, before the record is applied. True: a new
 * port. */
static bool note_listener(struct stream *s, const struct record_fd *f)
{
	const struct fd_state *was = fdtable_get(s->fds, f->pid, f->fd);
	unsigned port = listening_port(f), before = was ? listening_port(&was->now) : 0;
	bool new = port && !s->listens[port];

	/* The socket was bound to connect, not to listen. */
	if (before && f->open && f->kind == FD_SOCKET && address_port(&f->remote) &&
		address_port(&f->local) == before)
		s->listens[before] = false;
	if (port)
		s->listens[port] = true;
	return new;
}

const struct fd_state *item_fd(struct stream_item *item)
{
	const struct record *rec = item->record;

	if (item->fd_found)
		return item->fd;
	item->fd_found = true;
	item->fd = NULL;
	if (rec->type == RECORD_CALL && item->call && item->call->fd >= 0)
		item->fd = fdtable_get(
			item->stream->fds, rec->call.pid, (int32_t)rec->call.args[item->call->fd]);
	else if (rec->type == RECORD_FD)
		item->fd = fdtable_get(item->stream->fds, rec->fd.pid, rec->fd.fd);
	/* The operation was submitted on an earlier file with the same descriptor. */
	if (item->async && item->fd && item->fd->now.start_ns > rec->call.start_ns)
		item->fd = NULL;
	return item->fd;
}

uint32_t stream_mark(const struct fd_state *f)
{
	return f->mark;
}

void stream_set_mark(const struct fd_state *f, uint32_t mark)
{
	((struct fd_state *)f)->mark = mark; /* entries of the table are never constant */
}

struct object item_object(struct stream_item *item)
{
	const struct fd_state *f;

	switch (item->record->type) {
	case RECORD_SUM: return sum_object(item->stream, &item->record->sum);
	case RECORD_READING: return reading_object(item->stream, &item->record->reading);
	default: f = item_fd(item); return f ? f->object : (struct object){0};
	}
}

void item_each_ending(
	const struct stream_item *item, void (*fn)(void *ctx, const struct fd_state *f), void *ctx)
{
	const struct record *rec = item->record;
	const struct fd_state *f;

	if (rec->type == RECORD_FD) {
		f = fdtable_get(item->stream->fds, rec->fd.pid, rec->fd.fd);
		if (f)
			fn(ctx, f);
	} else if (rec->type == RECORD_PROCESS && rec->process.pid == rec->process.tid &&
		rec->process.what != PROCESS_NAME) {
		fdtable_each(item->stream->fds, rec->process.pid, fn, ctx);
	}
}

static void release_id(void *ctx, const struct fd_state *f)
{
	struct stream *s = ctx;

	if (is_connection(&f->object))
		s->free_ids[s->n_free++] = f->object.id;
}

/* Applies what the consumers must see: names, and the thread of a call. */
static void stream_prepare(struct stream *s, struct stream_item *item)
{
	const struct record *rec = item->record;
	struct stream_thread *t;
	uint32_t nr;

	item->fd_found = item->async = false;
	item->classes = UINT_MAX;
	if (rec->type == RECORD_CALL) {
		if (!s->current || s->current->tid != rec->call.tid)
			s->current = thread_of(s, rec->call.tid);
		item->thread = s->current;
		nr = rec->call.nr & ~RECORD_ASYNC_NR;
		item->async = rec->call.nr != nr;
		item->call = nr < STREAM_CALLS ? s->calls[nr] : NULL;
		item->classes = 1u << (item->call ? item->call->class : CALL_OTHER);
	} else if (rec->type == RECORD_LOST) {
		s->lost += rec->lost.count;
	} else if (rec->type == RECORD_END && rec->end.lost > s->lost) {
		s->lost = rec->end.lost;
	} else if (rec->type == RECORD_PROCESS && rec->process.what != PROCESS_EXIT && s->names) {
		t = thread_of(s, rec->process.tid);
		t->named = true;
		snprintf(t->name, sizeof(t->name), "%s", rec->process.name);
	}
}

/* Applies the rest of the record after the consumers have seen it. */
static int apply(struct stream *s, const struct stream_item *item)
{
	const struct record *rec = item->record;
	struct stream_thread *gone;
	struct fd_state *f;
	bool listener;
	int rc;

	if (item->async)
		return 0; /* its thread continued long ago */
	if (rec->type == RECORD_CALL) {
		s->current->last_call = rec->number;
		if (item->call && item->call->class == CALL_POLL)
			s->current->last_poll = rec->number;
		return 0;
	}
	if (rec->type != RECORD_FD && rec->type != RECORD_PROCESS)
		return 0;
	item_each_ending(item, release_id, s);
	if (rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXIT &&
		(gone = find_thread(s, rec->process.tid))) {
		gone->state = THREAD_GONE;
		gone->last_call = gone->last_poll = 0;
		s->current = NULL;
	}
	listener = s->listens && rec->type == RECORD_FD && note_listener(s, &rec->fd);
	rc = fdtable_feed(s->fds, rec);
	if (!rc && rec->type == RECORD_FD && rec->fd.open &&
		(f = fdtable_get(s->fds, rec->fd.pid, rec->fd.fd)))
		classify(s, f);
	if (!rc && listener)
		fdtable_each(s->fds, rec->fd.pid, classify_late, s);
	return rc;
}

int stream_next(struct stream *s, struct stream_item **out, struct err *e)
{
	struct stream_item *item = &s->item;
	int rc;

	if (s->at_hand && apply(s, item))
		return err_errno(e, -ENOMEM, "cannot read '%s'", s->path);
	s->at_hand = false;
	rc = s->log ? log_next(s->log, &item->record, e)
		    : s->source.next(s->source.ctx, &item->record, e);
	if (rc != 1)
		return rc;
	s->at_hand = true;
	stream_prepare(s, item);
	for (size_t i = 0; i < s->n_consumers; i++) {
		if (!(item->classes & s->consumers[i].c.classes))
			continue;
		rc = s->consumers[i].c.feed(s->consumers[i].ctx, item, e);
		if (rc)
			return rc;
	}
	*out = item;
	return 1;
}

int stream_run(struct stream *s, struct err *e)
{
	struct stream_item *item;
	int rc;

	while ((rc = stream_next(s, &item, e)) == 1)
		;
	for (size_t i = 0; i < s->n_consumers && !rc; i++)
		if (s->consumers[i].c.finish)
			rc = s->consumers[i].c.finish(s->consumers[i].ctx, e);
	return rc;
}
