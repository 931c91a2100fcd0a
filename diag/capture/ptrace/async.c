/* Follows asynchronous disk operations of io_submit in the process's memory: keeps them at the
 * entry of io_submit, and finds them again by the events from io_getevents.
 * diag/capture/ebpf/async.h defines the operations, the service time and the loss. Operations of
 * io_uring are not seen: their requests are in memory shared with the kernel, which takes them at
 * any time. */
#include <errno.h>
#include <linux/aio_abi.h>
#include <search.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "diag/capture/ptrace/tracer.h"
#include "harness/base/clock.h"

enum { SUBMIT_MOST = 4096, REAP_MOST = 1 << 16, KEPT_MOST = 1 << 16 };

struct async_op {
	pid_t pid;
	uint64_t iocb, context; /* with pid, iocb is the key */
	int64_t begin_ns;       /* CLOCK_MONOTONIC */
	struct record_call call;
};

static int async_compare(const void *a, const void *b)
{
	const struct async_op *p = a, *q = b;

	if (p->pid != q->pid)
		return p->pid < q->pid ? -1 : 1;
	return p->iocb < q->iocb ? -1 : p->iocb > q->iocb;
}

static bool peek(pid_t pid, uint64_t address, void *out, size_t size)
{
	struct iovec local = {out, size}, remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void lose(struct tracer *t, uint64_t n)
{
	struct record rec = {
		.type = RECORD_LOST, .lost = {.start_ns = clock_real_ns(), .count = n}};

	t->lost += n;
	tracer_emit(t, &rec);
}

static void emit(struct tracer *t, const struct async_op *op, int64_t now_ns, bool unfinished)
{
	struct record rec = {.type = RECORD_CALL, .call = op->call};

	rec.call.service_ns = now_ns - op->begin_ns;
	rec.call.unfinished = unfinished;
	tracer_emit(t, &rec);
}

static void async_drop(struct tracer *t, struct async_op *op)
{
	tdelete(op, &t->asyncs, async_compare);
	t->n_asyncs--;
	free(op);
}

static struct async_op *async_find(struct tracer *t, pid_t pid, uint64_t iocb)
{
	struct async_op key = {.pid = pid, .iocb = iocb};
	struct async_op *const *at = tfind(&key, &t->asyncs, async_compare);

	return at ? *at : NULL;
}

/* False: no room. */
static bool ptrace_async_keep(struct tracer *t, const struct async_op *op)
{
	struct async_op *was = async_find(t, op->pid, op->iocb), *new;

	if (was) {
		lose(t, 1); /* the end of the previous one was not seen */
		async_drop(t, was);
	}
	new = t->n_asyncs < KEPT_MOST ? malloc(sizeof(*new)) : NULL;
	if (!new)
		return false;
	*new = *op;
	if (!tsearch(new, &t->asyncs, async_compare)) {
		free(new);
		return false;
	}
	t->n_asyncs++;
	return true;
}

/* The number of the call that does the same; -1: none. */
static int call_of(uint16_t command)
{
	switch (command) {
	case IOCB_CMD_PREAD: return SYS_pread64;
	case IOCB_CMD_PWRITE: return SYS_pwrite64;
	case IOCB_CMD_PREADV: return SYS_preadv;
	case IOCB_CMD_PWRITEV: return SYS_pwritev;
	case IOCB_CMD_FSYNC: return SYS_fsync;
	case IOCB_CMD_FDSYNC: return SYS_fdatasync;
	default: return -1;
	}
}

/* A regular file or a block device. */
static bool is_disk(const struct fd_state *f)
{
	return f &&
		(f->now.kind == FD_FILE ||
			(f->now.kind == FD_DEVICE && f->now.tag.device && !f->now.tag.inode));
}

/* False: no room. */
static bool async_add(
	struct tracer *t, struct tracee_thread *th, uint64_t iocb, const struct iocb *cb)
{
	const bool sync = cb->aio_lio_opcode == IOCB_CMD_FSYNC ||
		cb->aio_lio_opcode == IOCB_CMD_FDSYNC;
	const pid_t pid = th->process->pid;
	const int nr = call_of(cb->aio_lio_opcode);
	struct async_op op = {.pid = pid,
		.iocb = iocb,
		.context = th->call.args[0],
		.begin_ns = clock_ns(CLOCK_MONOTONIC)};

	if (nr < 0 || !is_disk(fdtable_get(t->fds, (uint32_t)pid, (int32_t)cb->aio_fildes)))
		return true;
	op.call = (struct record_call){.seq = ++t->seq,
		.start_ns = clock_real_ns(),
		.pid = (uint32_t)pid,
		.tid = (uint32_t)th->tid,
		.nr = (uint32_t)nr | RECORD_ASYNC_NR,
		.args = {cb->aio_fildes},
		.offset = sync ? -1 : cb->aio_offset};
	if (!sync) {
		op.call.args[1] = cb->aio_buf;
		op.call.args[2] = cb->aio_nbytes;
		op.call.args[3] = (uint64_t)cb->aio_offset;
	}
	return !call_wanted(&t->filter, &op.call) || ptrace_async_keep(t, &op);
}

void async_submit(struct tracer *t, struct tracee_thread *th)
{
	const struct record_call *c = &th->call;
	uint64_t n = (int64_t)c->args[1] > SUBMIT_MOST ? SUBMIT_MOST : c->args[1], iocb;
	struct iocb cb;
	int64_t checked = -1;

	th->submitted = 0;
	if ((int64_t)c->args[1] < 0)
		return;
	while (th->submitted < n && peek(th->tid, c->args[2] + 8 * th->submitted, &iocb, 8) &&
		peek(th->tid, iocb, &cb, sizeof(cb))) {
		if (checked != cb.aio_fildes)
			fds_check(t, th, (int)cb.aio_fildes);
		checked = cb.aio_fildes;
		if (!async_add(t, th, iocb, &cb))
			return;
		th->submitted++;
	}
}

/* The kernel took 'result' operations of the list. */
static void submitted(struct tracer *t, struct tracee_thread *th)
{
	const struct record_call *c = &th->call;
	uint64_t taken = c->result > 0 ? (uint64_t)c->result : 0, iocb;

	if (taken > th->submitted)
		lose(t, taken - th->submitted);
	for (uint64_t i = taken; i < th->submitted; i++) {
		struct async_op *op = peek(th->tid, c->args[2] + 8 * i, &iocb, 8)
			? async_find(t, th->process->pid, iocb)
			: NULL;

		if (op && op->call.tid == c->tid && op->call.seq > c->seq)
			async_drop(t, op);
	}
}

static void reaped(struct tracer *t, struct tracee_thread *th, int64_t now_ns)
{
	const struct record_call *c = &th->call;
	struct io_event ev;

	for (int64_t i = 0; i < c->result && i < REAP_MOST; i++) {
		struct async_op *op = NULL;

		if (peek(th->tid, c->args[3] + (uint64_t)i * sizeof(ev), &ev, sizeof(ev)))
			op = async_find(t, th->process->pid, ev.obj);
		if (!op)
			continue;
		op->call.result = ev.res;
		emit(t, op, now_ns, false);
		async_drop(t, op);
	}
}

struct ending {
	pid_t pid; /* 0: all */
	bool one_context;
	uint64_t context, before; /* 'before': operations with a lower number */
	struct async_op *found;
};

static void match(const void *node, VISIT visit, void *ctx)
{
	struct async_op *op = *(struct async_op *const *)node;
	struct ending *e = ctx;

	if ((visit == postorder || visit == leaf) && !e->found && (!e->pid || op->pid == e->pid) &&
		(!e->one_context || (op->context == e->context && op->call.seq < e->before)))
		e->found = op;
}

static void async_finish(struct tracer *t, struct ending *e)
{
	const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	while (t->n_asyncs && (e->found = NULL, twalk_r(t->asyncs, match, e), e->found)) {
		emit(t, e->found, now_ns, true);
		async_drop(t, e->found);
	}
}

void async_end(struct tracer *t, pid_t pid)
{
	struct ending e = {.pid = pid};

	async_finish(t, &e);
}

void async_exit(struct tracer *t, struct tracee_thread *th, int64_t now_ns)
{
	const struct record_call *c = &th->call;
	struct ending e = {.pid = th->process->pid,
		.one_context = true,
		.context = c->args[0],
		.before = c->seq};

	switch (c->nr) {
	case SYS_io_submit: submitted(t, th); break;
	case SYS_io_getevents:
	case SYS_io_pgetevents: reaped(t, th, now_ns); break;
	case SYS_io_destroy:
		if (!c->result)
			async_finish(t, &e);
		break;
	case SYS_io_uring_setup:
	case SYS_io_uring_enter: t->unseen[UNSEEN_RINGS]++; break;
	}
}

void async_free(struct tracer *t)
{
	tdestroy(t->asyncs, free);
}
