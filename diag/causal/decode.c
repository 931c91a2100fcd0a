/* Decodes causal logs into operations on files and messages between threads. */
#include "diag/causal/decode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>

#include "diag/record/calls.h"
#include "diag/record/describe.h"

enum {
	/* A thread that polls again within this time has not computed in between. */
	SPIN_NS = 50000,
};

enum doing {
	DO_OP = 1, /* on a descriptor or a path */
	DO_OPEN,
	DO_CLOSE,
	DO_DUP,
	DO_FCNTL,
	DO_CHDIR,
	DO_MAP,
	DO_SEGMENT,
	DO_LOOK,  /* polls for messages; 0 or EAGAIN: none found */
	DO_YIELD, /* polls without ever receiving */
	DO_SLEEP,
	DO_COPY, /* inside the kernel: not captured */
};

/* The kind of a call, and its argument indexes; 0: no such argument (none of these comes first). */
struct call_rule_of {
	const char *name;
	uint8_t doing, call;
	uint8_t flags, mode, size, offset;
};

static const struct call_rule_of rules[] = {
	{"open", DO_OPEN, APP_OPEN, 1, 2, 0, 0},
	{"openat", DO_OPEN, APP_OPEN, 2, 3, 0, 0},
	{"openat2", DO_OPEN, APP_OPEN, 0, 0, 0, 0},
	{"creat", DO_OPEN, APP_OPEN, 0, 1, 0, 0},
	{"close", DO_CLOSE, APP_CLOSE, 0, 0, 0, 0},
	{"dup", DO_DUP, 0, 0, 0, 0, 0},
	{"dup2", DO_DUP, 0, 0, 0, 0, 0},
	{"dup3", DO_DUP, 0, 0, 0, 0, 0},
	{"fcntl", DO_FCNTL, 0, 0, 0, 0, 0},
	{"read", DO_OP, APP_READ, 0, 0, 0, 0},
	{"readv", DO_OP, APP_READ, 0, 0, 0, 0},
	{"pread64", DO_OP, APP_PREAD, 0, 0, 0, 0},
	{"preadv", DO_OP, APP_PREAD, 0, 0, 0, 0},
	{"preadv2", DO_OP, APP_PREAD, 0, 0, 0, 0},
	{"write", DO_OP, APP_WRITE, 0, 0, 0, 0},
	{"writev", DO_OP, APP_WRITE, 0, 0, 0, 0},
	{"pwrite64", DO_OP, APP_PWRITE, 0, 0, 0, 0},
	{"pwritev", DO_OP, APP_PWRITE, 0, 0, 0, 0},
	{"pwritev2", DO_OP, APP_PWRITE, 0, 0, 0, 0},
	{"lseek", DO_OP, APP_SEEK, 0, 0, 0, 0},
	{"fsync", DO_OP, APP_FSYNC, 0, 0, 0, 0},
	{"fdatasync", DO_OP, APP_FDATASYNC, 0, 0, 0, 0},
	{"ftruncate", DO_OP, APP_TRUNCATE, 0, 0, 1, 0},
	{"truncate", DO_OP, APP_TRUNCATE, 0, 0, 1, 0},
	{"stat", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"lstat", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"fstat", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"newfstat", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"newfstatat", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"statx", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"access", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"faccessat", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"faccessat2", DO_OP, APP_STAT, 0, 0, 0, 0},
	{"unlink", DO_OP, APP_UNLINK, 0, 0, 0, 0},
	{"unlinkat", DO_OP, APP_UNLINK, 2, 0, 0, 0},
	{"rename", DO_OP, APP_RENAME, 0, 0, 0, 0},
	{"renameat", DO_OP, APP_RENAME, 0, 0, 0, 0},
	{"renameat2", DO_OP, APP_RENAME, 0, 0, 0, 0},
	{"mkdir", DO_OP, APP_MKDIR, 0, 1, 0, 0},
	{"mkdirat", DO_OP, APP_MKDIR, 0, 2, 0, 0},
	{"rmdir", DO_OP, APP_RMDIR, 0, 0, 0, 0},
	{"getdents64", DO_OP, APP_READDIR, 0, 0, 2, 0},
	{"getdents", DO_OP, APP_READDIR, 0, 0, 2, 0},
	{"fallocate", DO_OP, APP_FALLOCATE, 1, 0, 3, 2},
	{"chdir", DO_CHDIR, 0, 0, 0, 0, 0},
	{"fchdir", DO_CHDIR, 0, 0, 0, 0, 0},
	{"mmap", DO_MAP, 0, 0, 0, 0, 0},
	{"shmat", DO_SEGMENT, 0, 0, 0, 0, 0},
	{"sched_yield", DO_YIELD, 0, 0, 0, 0, 0},
	{"poll", DO_LOOK, 0, 0, 0, 1, 0},
	{"ppoll", DO_LOOK, 0, 0, 0, 1, 0},
	{"select", DO_LOOK, 0, 0, 0, 0, 0},
	{"pselect6", DO_LOOK, 0, 0, 0, 0, 0},
	{"epoll_wait", DO_LOOK, 0, 0, 0, 0, 0},
	{"epoll_pwait", DO_LOOK, 0, 0, 0, 0, 0},
	{"epoll_pwait2", DO_LOOK, 0, 0, 0, 0, 0},
	{"recvfrom", DO_LOOK, 0, 0, 0, 0, 0},
	{"recvmsg", DO_LOOK, 0, 0, 0, 0, 0},
	{"nanosleep", DO_SLEEP, 0, 0, 0, 0, 0},
	{"clock_nanosleep", DO_SLEEP, 0, 0, 0, 0, 0},
	{"sendfile", DO_COPY, 0, 0, 0, 0, 0},
	{"splice", DO_COPY, 0, 0, 0, 0, 0},
	{"copy_file_range", DO_COPY, 0, 0, 0, 0, 0},
};

static const struct call_rule_of *rule_of(struct decode *d, const struct stream_item *item)
{
	uint32_t nr = item->record->call.nr;
	const struct call_rule_of **known = &d->log->rules[nr & 511];

	if (!item->call || nr > 511)
		return NULL;
	if (*known)
		return (*known)->name ? *known : NULL;
	static const struct call_rule_of none;
	*known = &none;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!strcmp(rules[i].name, item->call->name))
			*known = &rules[i];
	return (*known)->name ? *known : NULL;
}

int decode_emit(struct decode *d, const struct causal_event *ev, struct err *e)
{
	if (ev->kind == EVENT_OP) {
		d->threads[ev->thread].ops++;
		d->processes[d->threads[ev->thread].process]->ops++;
	}
	return d->fn(d->ctx, ev, e);
}

/* Accounts the thread's time between its last call and this one. */
static void account_before(struct decode_thread *t, const struct record_call *c)
{
	uint64_t gap = c->cpu_ns > t->cpu_ns ? c->cpu_ns - t->cpu_ns : 0;

	if (!t->fruitless || gap > SPIN_NS)
		t->compute_ns += gap;
	t->cpu_ns = c->cpu_ns + c->cpu_call_ns;
}

static uint64_t off_processor(const struct record_call *c)
{
	return c->service_ns > 0 && (uint64_t)c->service_ns > c->cpu_call_ns
		? (uint64_t)c->service_ns - c->cpu_call_ns
		: 0;
}

static bool is_fruitless(const struct stream_item *item, const struct call_rule_of *r)
{
	const struct record_call *c = &item->record->call;

	if (r && r->doing == DO_YIELD)
		return true;
	if (r && r->doing == DO_LOOK && item->call->class == CALL_POLL)
		return c->result == 0;
	return item->call && item->call->class == CALL_READ && c->result == -EAGAIN;
}

/* Accounts the thread's time inside a call that is no operation. */
static void account_inside(struct decode *d, struct decode_thread *t, struct stream_item *item,
	const struct call_rule_of *r)
{
	const struct record_call *c = &item->record->call;
	const struct fd_state *s;

	t->fruitless = is_fruitless(item, r);
	if (t->fruitless) {
		if (r && r->doing == DO_LOOK && strstr(item->call->name, "epoll") == NULL &&
			item->call->class == CALL_POLL && c->args[r->size] == 0)
			t->away_ns += off_processor(c); /* without descriptors it sleeps */
		return;
	}
	t->compute_ns += c->cpu_call_ns;
	if (r && r->doing == DO_SLEEP) {
		t->away_ns += off_processor(c);
	} else if (item->call && item->call->fd >= 0) {
		s = stream_fd(d->log->stream, c->pid, (int32_t)c->args[item->call->fd]);
		if (s && (s->now.kind == FD_FILE || s->now.kind == FD_DIR))
			t->away_ns += off_processor(c);
	}
}

/* Converts to the trace's clock. */
static int64_t on_clock(const struct decode_log *l, int64_t node_ns)
{
	return (int64_t)((uint64_t)node_ns - (uint64_t)l->of->offset_ns);
}

static int64_t since_start(const struct decode *d, const struct record_call *c)
{
	int64_t at_ns = on_clock(d->log, c->start_ns);

	return at_ns > d->start_ns ? at_ns - d->start_ns : 0;
}

/* A damaged log may hold any processor time; a trace holds only what fits a signed number. */
static uint64_t countable(uint64_t ns)
{
	return ns < INT64_MAX ? ns : INT64_MAX;
}

static struct app_op op_of(struct decode *d, struct decode_thread *t, const struct record_call *c,
	const struct call_rule_of *r)
{
	struct app_op op = {.call = r->call,
		.file = APP_NO_FILE,
		.file2 = APP_NO_FILE,
		.offset = -1,
		.start_ns = since_start(d, c),
		.took_ns = c->service_ns > 0 ? c->service_ns : 0,
		.result = c->result,
		.compute_ns = countable(t->compute_ns),
		.away_ns = countable(t->away_ns)};

	if (r->flags)
		op.flags = (uint32_t)c->args[r->flags];
	if (r->mode && (r->call != APP_OPEN || !r->flags || op.flags & O_CREAT))
		op.mode = (uint32_t)c->args[r->mode];
	if (r->size)
		op.size = c->args[r->size] & INT64_MAX;
	if (r->offset)
		op.offset = (int64_t)(c->args[r->offset] & INT64_MAX);
	t->fruitless = false;
	t->compute_ns = t->away_ns = 0;
	return op;
}

/* Handles an open: a failed one now, a successful one when the next record brings its
 * descriptor. */
static int feed_open(struct decode *d, struct stream_item *item, const struct call_rule_of *r,
	uint32_t thread, struct err *e)
{
	const struct record_call *c = &item->record->call;
	struct causal_event ev = {.kind = EVENT_OP, .thread = thread};
	uint32_t file = decode_call_file(d, item, false);

	if (c->result < 0 && file == APP_NO_FILE) {
		account_inside(d, &d->threads[thread], item, r);
		return 0;
	}
	ev.op = op_of(d, &d->threads[thread], c, r);
	if (!r->flags)
		ev.op.flags = r->mode ? O_CREAT | O_WRONLY | O_TRUNC : O_RDWR;
	ev.op.file = file;
	if (c->result < 0)
		return decode_emit(d, &ev, e);
	d->opening = alloc_room(d->opening, d->n_opening, sizeof(*d->opening));
	d->opening[d->n_opening++] = (struct decode_opening){thread, (int32_t)c->result, ev.op};
	return 0;
}

static void set_place(const struct stream_item *item, struct app_op *op)
{
	const struct record_call *c = &item->record->call;
	int64_t asked;

	if (op->call < APP_READ || op->call > APP_PWRITE)
		return;
	asked = call_asked(item->call, c);
	op->size = asked >= 0 ? (uint64_t)asked : c->result > 0 ? (uint64_t)c->result : 0;
	op->offset = c->offset >= 0 ? c->offset : -1;
	if (op->call == APP_PREAD || op->call == APP_PWRITE) {
		if (c->args[3] == UINT64_MAX) /* preadv2 and pwritev2 use the file position */
			op->call = op->call == APP_PREAD ? APP_READ : APP_WRITE;
	}
}

/* Sets the handle and file of an operation on a descriptor. False: the file is not captured. */
static bool set_descriptor(struct decode *d, struct stream_item *item, struct app_op *op)
{
	const struct record_call *c = &item->record->call;
	int index = item->call->fd >= 0 ? item->call->fd : item->call->path > 0 ? 0 : -1;

	if (index < 0)
		return false;
	op->handle = decode_handle(decode_process_of(d, c->pid), (int32_t)c->args[index]);
	if (op->handle)
		op->file = d->handles[op->handle - 1].file;
	return op->handle;
}

static int feed_op(struct decode *d, struct stream_item *item, const struct call_rule_of *r,
	uint32_t thread, struct err *e)
{
	const struct record_call *c = &item->record->call;
	struct decode_thread *t = &d->threads[thread];
	struct causal_event ev = {.kind = EVENT_OP, .thread = thread};
	struct app_op *op = &ev.op;
	bool by_path = c->path && *c->path;
	struct app_op found = {.file = APP_NO_FILE, .file2 = APP_NO_FILE};

	if (by_path) {
		found.file = decode_call_file(d, item, false);
		found.file2 = c->path2 ? decode_call_file(d, item, true) : APP_NO_FILE;
	} else {
		set_descriptor(d, item, &found);
	}
	/* Shells stat their working folder; that alone must not make them ranks. */
	if (found.file == APP_NO_FILE || (r->call == APP_STAT && !*d->files[found.file]) ||
		(r->call == APP_RENAME && found.file2 == APP_NO_FILE)) {
		account_inside(d, t, item, r);
		return 0;
	}
	*op = op_of(d, t, c, r);
	op->file = found.file;
	op->file2 = found.file2;
	op->handle = found.handle;
	set_place(item, op);
	if (op->call == APP_UNLINK) {
		if (op->flags & AT_REMOVEDIR)
			op->call = APP_RMDIR;
		op->flags = 0;
	}
	if (op->call == APP_MKDIR || op->call == APP_RMDIR)
		d->directories[op->file] = true;
	return decode_emit(d, &ev, e);
}

static int feed_close(struct decode *d, struct stream_item *item, const struct call_rule_of *r,
	uint32_t thread, struct err *e)
{
	const struct record_call *c = &item->record->call;
	struct decode_process *p = decode_process_of(d, c->pid);
	int32_t fd = (int32_t)c->args[0];
	struct causal_event ev = {.kind = EVENT_OP, .thread = thread};
	uint32_t handle = decode_handle(p, fd);

	if (!handle || c->result == -EBADF || !decode_last(p, fd)) {
		account_inside(d, &d->threads[thread], item, r);
		return 0;
	}
	ev.op = op_of(d, &d->threads[thread], c, r);
	ev.op.handle = handle;
	ev.op.file = d->handles[handle - 1].file;
	return decode_emit(d, &ev, e);
}

static void feed_dup(struct decode *d, const struct record_call *c)
{
	struct decode_process *p = decode_process_of(d, c->pid);

	if (p && c->result >= 0 && c->result != (int64_t)c->args[0])
		decode_set_handle(p, (int32_t)c->result, decode_handle(p, (int32_t)c->args[0]));
}

/* Counts calls on files below the root that are not captured as operations. */
static void note_not_captured(struct decode *d, struct stream_item *item, const struct call_info *i)
{
	const struct record_call *c = &item->record->call;
	struct decode_process *p = decode_process_of(d, c->pid);
	bool second = i && i->fd2 >= 0 && decode_handle(p, (int32_t)c->args[i->fd2]);

	if (c->result >= 0 &&
		(second || (i && i->fd >= 0 && decode_handle(p, (int32_t)c->args[i->fd]))))
		d->not_captured++;
}

static int feed_call(struct decode *d, struct stream_item *item, struct err *e)
{
	const struct record_call *c = &item->record->call;
	const struct call_rule_of *r = rule_of(d, item);
	uint32_t thread;

	if (item->async) {
		note_not_captured(d, item, item->call);
		return 0;
	}
	d->calls++;
	thread = decode_thread_of(d, c->pid, c->tid);
	account_before(&d->threads[thread], c);
	if (c->unfinished || !item->call) {
		d->threads[thread].compute_ns += c->cpu_call_ns;
		return 0;
	}
	switch (r && !(c->result <= -512 && c->result >= -516) ? r->doing : 0) {
	case DO_OPEN: return feed_open(d, item, r, thread, e);
	case DO_OP:
		if (item->call->path >= 0 || item->call->class == CALL_OTHER ||
			decode_handle(decode_process_of(d, c->pid), (int32_t)c->args[0]) ||
			c->result <= 0)
			return feed_op(d, item, r, thread, e);
		break;
	case DO_CLOSE: return feed_close(d, item, r, thread, e);
	case DO_DUP: feed_dup(d, c); break;
	case DO_FCNTL:
		if (c->args[1] == F_DUPFD || c->args[1] == F_DUPFD_CLOEXEC)
			feed_dup(d, c);
		break;
	case DO_CHDIR:
		if (!c->result)
			decode_chdir(d, item);
		break;
	case DO_MAP:
		if (!(c->args[3] & MAP_ANONYMOUS))
			note_not_captured(d, item, item->call);
		decode_note_mapping(d, item);
		break;
	case DO_SEGMENT: decode_note_segment(d, item); break;
	case DO_COPY: note_not_captured(d, item, item->call); break;
	default: break;
	}
	account_inside(d, &d->threads[thread], item, r);
	return decode_messages(d, item, thread, e);
}

static int decode_feed(struct decode *d, struct stream_item *item, struct err *e)
{
	const struct record *rec = item->record;
	const bool dropped = rec->type != RECORD_END && decode_dropped(d, record_pid(rec));
	int64_t end = on_clock(d->log, record_end_ns(rec));

	if (end > d->end_ns && rec->type != RECORD_END && !dropped)
		d->end_ns = end;
	switch (rec->type) {
	case RECORD_CALL:
		if (!dropped)
			return feed_call(d, item, e);
		/* reserves the thread's number */
		decode_thread_of(d, rec->call.pid, rec->call.tid);
		return 0;
	case RECORD_FD: return dropped ? 0 : decode_descriptor(d, &rec->fd, e);
	case RECORD_PROCESS:
		if (!d->start_ns && d->log == d->logs)
			d->start_ns = on_clock(d->log, rec->process.start_ns);
		return decode_life(d, &rec->process, e);
	case RECORD_END: d->lost += rec->end.lost; return 0;
	default: return 0;
	}
}

/* ---- merge of several logs ---- */

static int decode_next(struct decode_log *l, struct err *e)
{
	int rc = stream_next(l->stream, &l->item, e);
	int64_t at_ns;

	if (rc <= 0) {
		l->item = NULL;
		return rc;
	}
	at_ns = on_clock(l, record_end_ns(l->item->record));
	if (at_ns > l->at_ns)
		l->at_ns = at_ns;
	return 0;
}

static void set_address(struct decode_log *l)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a;

	if (!l->of->address)
		return;
	if (inet_pton(AF_INET, l->of->address, &in->sin_addr) == 1)
		a.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, l->of->address, &in6->sin6_addr) == 1)
		a.ss_family = AF_INET6;
	l->addressed = a.ss_family;
	if (l->addressed)
		decode_address(&a, l->address);
}

static int open_log(struct decode *d, struct decode_log *l, struct err *e)
{
	struct stream_spec spec = {0};
	int rc = stream_new(l->of->path, &spec, &l->stream, e);

	if (rc)
		return rc;
	if (!(stream_head(l->stream)->how & LOG_CAUSAL))
		return err_set(e, -EINVAL,
			"the log '%s' has no processor times: trace with '--mode flow --causal'",
			l->of->path);
	l->at_ns = INT64_MIN;
	while (strcmp(d->in->logs[l->node].node, l->of->node))
		l->node++;
	set_address(l);
	return decode_next(l, e);
}

/* The log with the oldest record, and until when it remains the oldest. NULL: all logs have
 * ended. */
static struct decode_log *oldest(struct decode *d, int64_t *until_ns)
{
	struct decode_log *first = NULL;

	*until_ns = INT64_MAX;
	for (struct decode_log *l = d->logs; l < d->logs + d->n_logs; l++) {
		if (!l->item)
			continue;
		if (first && first->at_ns <= l->at_ns) {
			*until_ns = l->at_ns < *until_ns ? l->at_ns : *until_ns;
			continue;
		}
		if (first)
			*until_ns = first->at_ns;
		first = l;
	}
	return first;
}

static int feed_all(struct decode *d, struct err *e)
{
	int64_t until_ns;
	int rc = 0;

	while (!rc && (d->log = oldest(d, &until_ns)))
		do
			rc = decode_feed(d, d->log->item, e) ?: decode_next(d->log, e);
		while (!rc && d->log->item && d->log->at_ns <= until_ns);
	return rc;
}

int decode_run(
	struct decode *d, const struct decode_input *in, event_fn fn, void *ctx, struct err *e)
{
	int rc = 0;

	*d = (struct decode){.in = in, .fn = fn, .ctx = ctx, .start_ns = in->start_ns};
	d->n_logs = in->n_logs;
	d->logs = alloc_zero(d->n_logs + 1, sizeof(*d->logs));
	for (size_t i = 0; !rc && i < d->n_logs; i++) {
		d->logs[i].of = &in->logs[i];
		rc = open_log(d, &d->logs[i], e);
	}
	rc = rc ?: feed_all(d, e);
	for (size_t i = 0; i < d->n_logs; i++) {
		stream_free(d->logs[i].stream);
		d->logs[i].stream = NULL;
	}
	d->log = NULL;
	return rc;
}
