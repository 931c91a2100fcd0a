/* Turns events from the kernel into records, with clocks corrected and losses counted. */
#include <errno.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "diag/capture/ebpf/ebpf.h"
#include "diag/record/fdtable.h"
#include "harness/base/vec.h"

enum {
	MAX_PID = 1 << 22, /* PID_MAX_LIMIT of 64-bit kernels */
	FORMER = 256,      /* a power of two */
};

struct event_process {
	unsigned threads;
	bool fatal; /* the signal that kills it has been recorded */
	bool leader_gone, group_dead;
	int status; /* of the leader; of the group, if that is how it ends */
};

struct event_thread {
	uint32_t pid;
	char *paths;                 /* of its current call; or NULL */
	uint32_t path2;              /* place of the second path, 0: none */
	struct record_signal signal; /* may be its end: written when that is known; signo 0: none */
};

struct ebpf_events {
	const struct call_rule *rules;
	record_fn fn;
	void *ctx;
	int64_t offset_ns;
	uint64_t base_ns; /* base of seq */
	struct fdtable *fds;
	struct first_seen *seen;
	struct event_thread **thread; /* by number */
	struct event_process **process;
	uint32_t top; /* highest number so far */
	/* The last previous meanings of descriptors, for calls still in progress. We own the
	 * paths. */
	struct fd_state former[FORMER];
	uint32_t n_former;
	uint64_t corrected; /* descriptors that were another file than earlier events said */
	char path[PARTS_MAX + 256];
};

struct ebpf_events *ebpf_events_new(const struct call_rule *rules, record_fn fn, void *ctx)
{
	struct ebpf_events *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->rules = rules;
	x->fn = fn;
	x->ctx = ctx;
	/* Untouched pages of these use no memory. */
	x->thread = calloc(MAX_PID, sizeof(struct event_thread *));
	x->process = calloc(MAX_PID, sizeof(struct event_process *));
	x->fds = fdtable_new();
	x->seen = first_seen_new();
	if (!x->thread || !x->process || !x->fds || !x->seen) {
		ebpf_events_free(x);
		return NULL;
	}
	return x;
}

void ebpf_events_free(struct ebpf_events *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i <= x->top && x->thread && x->process; i++) {
		if (x->thread[i])
			free(x->thread[i]->paths);
		free(x->thread[i]);
		free(x->process[i]);
	}
	free(x->thread);
	free(x->process);
	for (size_t i = 0; i < FORMER; i++)
		free((char *)x->former[i].now.path);
	fdtable_free(x->fds);
	first_seen_free(x->seen);
	free(x);
}

uint64_t events_corrected(const struct ebpf_events *x)
{
	return x->corrected;
}

void events_clock(struct ebpf_events *x, int64_t offset_ns)
{
	x->offset_ns = offset_ns;
}

/* The meaning of a descriptor ends. */
static void keep_former(struct ebpf_events *x, const struct record_fd *f)
{
	const struct fd_state *s = fdtable_get(x->fds, f->pid, f->fd);
	struct fd_state *to = &x->former[x->n_former % FORMER];

	if (!s || !s->mark)
		return;
	free((char *)to->now.path);
	*to = *s;
	to->now.path = strdup(s->now.path);
	x->n_former += to->now.path != NULL;
}

static int emit(struct ebpf_events *x, struct record *rec)
{
	int rc;

	if (rec->type == RECORD_FD)
		keep_former(x, &rec->fd);
	rc = fdtable_feed(x->fds, rec);
	x->fn(x->ctx, rec);
	return rc;
}

static int64_t real_ns(const struct ebpf_events *x, uint64_t ns)
{
	return (int64_t)ns + x->offset_ns;
}

static uint64_t seq(struct ebpf_events *x, uint64_t start_ns)
{
	if (!x->base_ns)
		x->base_ns = start_ns - 1;
	return start_ns - x->base_ns;
}

static struct event_thread *thread_get(struct ebpf_events *x, const struct ev *ev)
{
	struct event_thread *t = x->thread[ev->tid];

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->pid = ev->pid;
	x->thread[ev->tid] = t;
	if (!x->process[ev->pid]) {
		x->process[ev->pid] = calloc(1, sizeof(struct event_process));
		if (!x->process[ev->pid])
			return NULL;
	}
	x->process[ev->pid]->threads++;
	if (ev->tid > x->top)
		x->top = ev->tid;
	if (ev->pid > x->top)
		x->top = ev->pid;
	return t;
}

static int flush_signal(struct ebpf_events *x, struct event_thread *t, bool fatal)
{
	struct record rec = {.type = RECORD_SIGNAL};

	if (!t->signal.signo)
		return 0;
	rec.signal = t->signal;
	rec.signal.fatal = fatal;
	t->signal.signo = 0;
	return emit(x, &rec);
}

static int feed_signal(struct ebpf_events *x, const struct ev *ev, uint32_t signo, bool deadly)
{
	struct event_thread *t = thread_get(x, ev);
	int rc;

	if (!t)
		return -ENOMEM;
	rc = flush_signal(x, t, false);
	t->signal = (struct record_signal){
		.seq = seq(x, ev->at_ns),
		.start_ns = real_ns(x, ev->at_ns),
		.pid = ev->pid,
		.tid = ev->tid,
		.signo = signo,
	};
	return rc < 0 || deadly ? rc : flush_signal(x, t, false);
}

static void drop_paths(struct event_thread *t)
{
	free(t->paths);
	t->paths = NULL;
}

static int feed_paths(struct ebpf_events *x, const struct ev_paths *ev, uint32_t size)
{
	struct event_thread *t;
	uint32_t room, n, m;

	if (size < sizeof(*ev))
		return 0;
	room = size - (uint32_t)sizeof(*ev);
	n = ev->size[0];
	m = ev->size[1];
	if (!n || n > room || m > room - n || ev->text[n - 1] || (m && ev->text[n + m - 1]))
		return 0;
	t = thread_get(x, &ev->h);
	if (!t)
		return -ENOMEM;
	drop_paths(t);
	t->paths = malloc(n + m);
	if (!t->paths)
		return -ENOMEM;
	memcpy(t->paths, ev->text, n + m);
	t->path2 = m ? n : 0;
	return 0;
}

static int closed(struct ebpf_events *x, uint32_t pid, int32_t fd, int64_t now_ns)
{
	struct record rec = {.type = RECORD_FD, .fd = {.start_ns = now_ns, .pid = pid, .fd = fd}};

	return emit(x, &rec);
}

struct range {
	uint64_t first, last;
	int64_t before_ns;
	size_t n;
	int32_t *fd;
};

static void range_add(void *ctx, const struct fd_state *s)
{
	struct range *r = ctx;
	int32_t *fd;

	if (s->now.fd < 0 || (uint64_t)s->now.fd < r->first || (uint64_t)s->now.fd > r->last ||
		s->now.start_ns > r->before_ns)
		return;
	fd = vec_room(r->fd, r->n, sizeof(*fd));
	if (!fd)
		return;
	r->fd = fd;
	r->fd[r->n++] = s->now.fd;
}

/* A closed number may have been given to another file, and that been recorded, before the closing
 * call has ended: a descriptor that is newer than the call's start stays. */
static int feed_closes(struct ebpf_events *x, const struct ev_call *ev, uint8_t action)
{
	struct range r = {.before_ns = real_ns(x, ev->start_ns)};
	int64_t now_ns = real_ns(x, ev->h.at_ns);
	int rc = 0;

	if (action == ACT_CLOSE) {
		const struct fd_state *s = fdtable_get(x->fds, ev->h.pid, (int32_t)ev->args[0]);

		/* Any other failure (EIO, EINTR ...) comes after the number has been freed. */
		if (ev->result == -EBADF || !s || s->now.start_ns > r.before_ns)
			return 0;
		return closed(x, ev->h.pid, (int32_t)ev->args[0], now_ns);
	}
	if (action != ACT_CLOSE_RANGE || ev->result < 0 || (ev->args[2] & CLOSE_RANGE_CLOEXEC))
		return 0;
	r.first = (uint32_t)ev->args[0];
	r.last = (uint32_t)ev->args[1];
	fdtable_each(x->fds, ev->h.pid, range_add, &r);
	for (size_t i = 0; i < r.n && rc == 0; i++)
		rc = closed(x, ev->h.pid, r.fd[i], now_ns);
	free(r.fd);
	return rc;
}

static void mark_file(struct ebpf_events *x, uint32_t pid, int32_t fd, uint32_t file)
{
	struct fd_state *s = fdtable_get(x->fds, pid, fd);

	if (s)
		s->mark = file;
}

/* The call is about another file, which its descriptor meant when the call began: writes that
 * meaning before the call, and the present meaning after it. */
static int emit_about(struct ebpf_events *x, struct record *rec, const struct fd_state *then)
{
	struct record before = {.type = RECORD_FD, .fd = then->now}, after = {.type = RECORD_FD};
	const uint32_t pid = then->now.pid, file = then->mark;
	const int32_t fd = then->now.fd;
	const struct fd_state *s = fdtable_get(x->fds, pid, fd);
	const uint32_t now = s ? s->mark : 0;
	char *path = strdup(s ? s->now.path : ""), *former = strdup(then->now.path);
	int rc = path && former ? 0 : -ENOMEM;

	after.fd = s ? s->now : (struct record_fd){.pid = pid, .fd = fd};
	after.fd.path = path;
	before.fd.path = former;
	before.fd.start_ns = after.fd.start_ns = rec->call.start_ns + rec->call.service_ns;
	rc = rc ?: emit(x, &before);
	mark_file(x, pid, fd, file);
	rc = rc ?: emit(x, rec);
	rc = rc ?: emit(x, &after);
	mark_file(x, pid, fd, now);
	free(path);
	free(former);
	x->corrected++;
	return rc;
}

/* Writes a call that has ended, whose descriptor may have changed since. */
static int emit_call(struct ebpf_events *x, struct record *rec, const struct ev_call *ev)
{
	const int at = ev->nr < RULES && ev->file ? x->rules[ev->nr].fd : -1;
	const int32_t fd = at < 0 ? -1 : (int32_t)ev->args[at];
	const struct fd_state *s = at < 0 ? NULL : fdtable_get(x->fds, ev->h.pid, fd);

	if (at < 0 || (s && s->mark == ev->file))
		return emit(x, rec);
	for (uint32_t i = 1; i <= FORMER && i <= x->n_former; i++) {
		s = &x->former[(x->n_former - i) % FORMER];
		if (s->mark == ev->file && s->now.pid == ev->h.pid && s->now.fd == fd)
			return emit_about(x, rec, s);
	}
	return emit(x, rec);
}

/* Adds the data of a log of flows to a call. */
static void flow_of(struct record_call *c, const struct ev_flow *ev, uint32_t size)
{
	if (size < FLOW_BARE)
		return;
	c->positioned = ev->c.h.flags & EV_POSITIONED;
	if (c->positioned)
		c->position = ev->position;
	if (size < sizeof(*ev) || !ev->head_size || ev->head_size > RECORD_HEAD)
		return;
	c->head_size = ev->head_size;
	c->head = ev->head;
}

static int feed_fuse(struct ebpf_events *x, const struct ev_fuse *ev, uint32_t size)
{
	struct record rec = {.type = RECORD_FUSE};

	if (size < sizeof(*ev))
		return 0;
	rec.fuse = (struct record_fuse){
		.start_ns = real_ns(x, ev->h.at_ns),
		.pid = ev->h.pid,
		.tid = ev->h.tid,
		.unique = ev->unique,
		.nodeid = ev->nodeid,
		.device = ev->dev & 0xfffff,
		.opcode = ev->opcode,
		.ended = ev->ended != 0,
		.error = ev->ended ? ev->error : 0,
	};
	return emit(x, &rec);
}

static int feed_call(struct ebpf_events *x, const struct ev_call *ev, uint32_t size)
{
	struct record rec = {.type = RECORD_CALL};
	struct event_thread *t;
	int rc = 0;

	if (size < sizeof(*ev))
		return 0;
	t = thread_get(x, &ev->h);
	if (!t)
		return -ENOMEM;
	if (!(ev->h.flags & EV_SILENT)) {
		rec.call = (struct record_call){
			.seq = seq(x, ev->start_ns),
			.start_ns = real_ns(x, ev->start_ns),
			.service_ns = (int64_t)(ev->h.at_ns - ev->start_ns),
			.pid = ev->h.pid,
			.tid = ev->h.tid,
			.nr = ev->nr,
			.unfinished = ev->h.flags & EV_UNFINISHED,
			.result = ev->result,
			.offset = ev->offset,
			.asked = ev->offset == -1 ? ev->asked : 0,
			.path = t->paths,
			.path2 = t->paths && t->path2 ? t->paths + t->path2 : NULL,
		};
		memcpy(rec.call.args, ev->args, sizeof(rec.call.args));
		rec.call.timed = ev->h.flags & EV_TIMED;
		if (rec.call.timed) {
			rec.call.cpu_ns = ev->cpu_ns;
			rec.call.cpu_call_ns = ev->cpu_call_ns;
		}
		flow_of(&rec.call, (const struct ev_flow *)ev, size);
		rc = emit_call(x, &rec, ev);
	}
	if (t->paths)
		drop_paths(t);
	if (rc == 0 && ev->nr < RULES && !(ev->h.flags & (EV_UNFINISHED | EV_REFUSED)))
		rc = feed_closes(x, ev, x->rules[ev->nr].action);
	return rc;
}

static struct record async_record(struct ebpf_events *x, uint64_t start_ns, uint64_t end_ns,
	uint32_t nr, uint32_t pid, uint32_t tid, const uint64_t args[4])
{
	struct record rec = {.type = RECORD_CALL};

	rec.call = (struct record_call){
		.seq = seq(x, start_ns),
		.start_ns = real_ns(x, start_ns),
		.service_ns = (int64_t)(end_ns - start_ns),
		.pid = pid,
		.tid = tid,
		.nr = nr | RECORD_ASYNC_NR,
		.offset = args[1] ? (int64_t)args[3] : -1,
	};
	memcpy(rec.call.args, args, 4 * sizeof(args[0]));
	return rec;
}

static int feed_async(struct ebpf_events *x, const struct ev_async *ev, uint32_t size)
{
	struct record rec;

	if (size < sizeof(*ev) || ev->nr >= RULES || ev->h.at_ns < ev->start_ns)
		return 0;
	rec = async_record(x, ev->start_ns, ev->h.at_ns, ev->nr, ev->h.pid, ev->h.tid, ev->args);
	rec.call.unfinished = ev->h.flags & EV_UNFINISHED;
	rec.call.result = ev->result;
	return emit(x, &rec);
}

void events_async(struct ebpf_events *x, const struct async_op *op, int64_t end_ns)
{
	uint64_t end = (uint64_t)(end_ns - x->offset_ns);
	struct record rec = async_record(x, op->start_ns, end > op->start_ns ? end : op->start_ns,
		op->nr, op->pid, op->tid, op->args);

	rec.call.unfinished = true;
	emit(x, &rec);
}

/* Does the log's table already have this meaning? */
static bool events_is_known(
	const struct fd_state *s, const struct ev_fd *ev, const struct record_fd *f)
{
	return s && s->now.kind == f->kind && !strcmp(s->now.path, f->path) &&
		(!s->now.tag.inode || s->now.tag.inode == ev->ino);
}

static int feed_fd(struct ebpf_events *x, const struct ev_fd *ev, uint32_t size)
{
	struct record rec = {.type = RECORD_FD};
	struct fd_state *s;
	int rc;

	if (size < sizeof(*ev))
		return 0;
	s = fdtable_get(x->fds, ev->h.pid, ev->fd);
	if (ev->h.flags & FD_CLOSED) {
		x->corrected += s && !(ev->h.flags & FD_EXPECTED);
		return s ? closed(x, ev->h.pid, ev->fd, real_ns(x, ev->h.at_ns)) : 0;
	}
	if (!describe_fd(ev, size, &rec.fd, x->path))
		return 0;
	if (ev->h.flags & FD_CHECKED) {
		if (events_is_known(s, ev, &rec.fd)) {
			s->mark = ev->file;
			return 0;
		}
		x->corrected += !(ev->h.flags & FD_EXPECTED);
	}
	rec.fd.start_ns = real_ns(x, ev->h.at_ns);
	if (rec.fd.kind == FD_FILE || rec.fd.kind == FD_DIR || rec.fd.kind == FD_DEVICE) {
		rec.fd.tag.device = makedev(ev->dev >> 20, ev->dev & 0xfffff);
		rec.fd.tag.inode = ev->ino;
		rec.fd.tag.first_ns = first_seen_ns(
			x->seen, ev->dev, ev->ino, ev->generation, rec.fd.start_ns);
	}
	rc = emit(x, &rec);
	mark_file(x, rec.fd.pid, rec.fd.fd, ev->file);
	return rc;
}

static int process_record(struct ebpf_events *x, const struct ev *ev, int what, uint32_t tid,
	uint32_t parent, int status, const char *name)
{
	struct record rec = {.type = RECORD_PROCESS};

	rec.process = (struct record_process){
		.start_ns = real_ns(x, ev->at_ns),
		.pid = ev->pid,
		.tid = tid,
		.parent = parent,
		.what = what,
		.status = status,
		.name = name,
	};
	return emit(x, &rec);
}

static void thread_drop(struct ebpf_events *x, uint32_t tid)
{
	drop_paths(x->thread[tid]);
	free(x->thread[tid]);
	x->thread[tid] = NULL;
}

static void events_forget(struct ebpf_events *x, uint32_t tid)
{
	uint32_t pid = x->thread[tid]->pid;
	struct event_process *p = x->process[pid];

	thread_drop(x, tid);
	if (p && --p->threads == 0) {
		free(p);
		x->process[pid] = NULL;
	}
}

/* The thread's end is known now, and so whether a signal was the end of the process. */
static int flush_fatal(
	struct ebpf_events *x, const struct ev *ev, struct event_thread *t, int status)
{
	struct event_process *p = x->process[t->pid];
	int rc = 0;

	if (!WIFSIGNALED(status) || p->fatal)
		return flush_signal(x, t, false);
	if (t->signal.signo != (uint32_t)WTERMSIG(status))
		rc = feed_signal(x, ev, (uint32_t)WTERMSIG(status), true);
	p->fatal = true;
	return rc < 0 ? rc : flush_signal(x, t, true);
}

/* A leader that has ended remains until the last thread has ended, which is the end of the
 * process. */
static int feed_exit(struct ebpf_events *x, const struct ev_process *ev)
{
	struct event_thread *t = thread_get(x, &ev->h);
	struct event_process *p = x->process[ev->h.pid];
	int rc;

	if (!t || !p)
		return -ENOMEM;
	rc = flush_fatal(x, &ev->h, t, ev->status);
	thread_drop(x, ev->h.tid);
	p->threads--;
	if (ev->group_dead || (!p->group_dead && ev->h.tid == ev->h.pid))
		p->status = ev->status;
	p->group_dead |= ev->group_dead;
	if (ev->h.tid == ev->h.pid)
		p->leader_gone = true;
	else if (rc == 0)
		rc = process_record(x, &ev->h, PROCESS_EXIT, ev->h.tid, 0, ev->status, "");
	if (p->threads)
		return rc;
	if (p->leader_gone && rc == 0)
		rc = process_record(x, &ev->h, PROCESS_EXIT, ev->h.pid, 0, p->status, "");
	x->process[ev->h.pid] = NULL;
	free(p);
	return rc;
}

static int feed_process(struct ebpf_events *x, const struct ev_process *ev, uint32_t size)
{
	char name[sizeof(ev->name) + 1] = "";
	struct event_thread *t;
	int rc = 0;

	if (size < sizeof(*ev))
		return 0;
	memcpy(name, ev->name, sizeof(ev->name));
	if (ev->h.type == EV_EXIT)
		return feed_exit(x, ev);
	if (ev->h.type == EV_EXEC && ev->former != ev->h.tid && ev->former < MAX_PID &&
		x->thread[ev->former] && x->thread[ev->former]->pid == ev->h.pid) {
		/* The thread has the leader's number now; the leader has already ended. */
		rc = process_record(x, &ev->h, PROCESS_EXIT, ev->former, 0, 0, "");
		if (x->thread[ev->h.tid]) {
			thread_drop(x, ev->h.tid);
			x->process[ev->h.pid]->threads--;
		}
		x->thread[ev->h.tid] = x->thread[ev->former];
		x->thread[ev->former] = NULL;
	}
	t = thread_get(x, &ev->h);
	if (!t)
		return -ENOMEM;
	if (ev->h.type == EV_NAME)
		return process_record(x, &ev->h, PROCESS_NAME, ev->h.tid, 0, 0, name);
	if (ev->h.type == EV_EXEC)
		x->process[ev->h.pid]->leader_gone = x->process[ev->h.pid]->group_dead = false;
	if (rc == 0)
		rc = flush_signal(x, t, false);
	if (rc == 0)
		rc = process_record(x, &ev->h, ev->h.type == EV_EXEC ? PROCESS_EXEC : PROCESS_START,
			ev->h.tid, ev->h.pid == ev->h.tid ? ev->parent : 0, 0, name);
	return rc;
}

void events_lost(struct ebpf_events *x, uint32_t cpu, uint64_t count, uint64_t at_ns)
{
	struct record rec = {.type = RECORD_LOST};

	rec.lost = (struct record_lost){.start_ns = real_ns(x, at_ns), .cpu = cpu, .count = count};
	emit(x, &rec);
}

int events_feed(struct ebpf_events *x, const struct ev *ev, uint32_t size)
{
	struct event_thread *t;

	if (size < sizeof(*ev) || ev->pid >= MAX_PID || ev->tid >= MAX_PID)
		return 0;
	if (ev->type == EV_FUSE ? ev->lost : ev->pid && ev->tid && ev->lost)
		events_lost(x, ev->cpu, ev->lost, ev->at_ns);
	if (ev->type == EV_FUSE)
		return feed_fuse(x, (const struct ev_fuse *)ev, size);
	if (!ev->pid || !ev->tid)
		return 0;
	t = x->thread[ev->tid];
	if (t && t->pid != ev->pid) {
		/* Its end was lost, and the number was reused. */
		events_forget(x, ev->tid);
		t = NULL;
	}
	if (t && t->signal.signo && ev->type != EV_EXIT && ev->type != EV_FD &&
		ev->type != EV_ASYNC)
		flush_signal(x, t, false);
	switch (ev->type) {
	case EV_CALL: return feed_call(x, (const struct ev_call *)ev, size);
	case EV_PATHS: return feed_paths(x, (const struct ev_paths *)ev, size);
	case EV_FD: return feed_fd(x, (const struct ev_fd *)ev, size);
	case EV_ASYNC: return feed_async(x, (const struct ev_async *)ev, size);
	case EV_START:
	case EV_EXEC:
	case EV_NAME:
	case EV_EXIT: return feed_process(x, (const struct ev_process *)ev, size);
	case EV_SIGNAL:
		if (size < sizeof(struct ev_signal))
			return 0;
		return feed_signal(x, ev, ((const struct ev_signal *)ev)->signo,
			((const struct ev_signal *)ev)->deadly);
	default: return 0;
	}
}

void events_end(struct ebpf_events *x)
{
	for (uint32_t tid = 1; tid <= x->top; tid++)
		if (x->thread[tid])
			flush_signal(x, x->thread[tid], false);
}
