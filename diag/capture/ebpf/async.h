/*
 * Asynchronous disk operations: io_submit and io_getevents (PREAD, PWRITE, PREADV, PWRITEV, FSYNC,
 * FDSYNC), and io_uring (READ, WRITE, READV, WRITEV, READ_FIXED, WRITE_FIXED, FSYNC), on regular
 * files and block devices. Each counts, or is recorded, as the call that does the same, made by the
 * thread that submitted it. Opens and closes by io_uring are not recorded, but the descriptors that
 * they change, and the object of each request, are read when the request ends.
 *
 * Service time. io_submit: from the entry into io_submit to the exit of the io_getevents (or
 * io_pgetevents) that delivers its event. That is exact if a thread waits there when the operation
 * ends; otherwise it includes the time until a thread asks. The kernel has no tracepoint at the end
 * itself. A file system may perform the operation inside io_submit: that time is included as well.
 * io_uring: from the submission of the request to its completion, by its own tracepoints.
 *
 * Losses are counted: operations submitted under trace whose iocb could not be read, for which
 * there was no room, or whose iocb was submitted again although no end had been seen (a program may
 * take events from the ring in its memory without a call). Operations that were pending when the
 * tracer attached are not recorded, like a call that a thread was inside of. An io_destroy ends its
 * context's operations without a result.
 */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_ASYNC_H
#define CULPRIT_DIAG_CAPTURE_EBPF_ASYNC_H

#include "diag/capture/ebpf/sums.h"

/* linux/aio_abi.h, io_uring.h */
struct user_iocb {
	u64 data;
	u32 key, rw_flags;
	u16 opcode;
	u16 priority;
	u32 fd;
	u64 buffer, bytes;
	s64 offset;
	u64 reserved;
	u32 flags, eventfd;
};

struct user_event {
	u64 data, iocb;
	s64 result, result2;
};

enum {
	SUBMIT_MOST = 4096, /* operations of one io_submit; further ones are lost */
	REAP_MOST = 1 << 16,
	CMD_PREAD = 0,
	CMD_PWRITE = 1,
	CMD_FSYNC = 2,
	CMD_FDSYNC = 3,
	CMD_PREADV = 7,
	CMD_PWRITEV = 8,
	OP_NOP = 0,
	OP_READV = 1,
	OP_WRITEV = 2,
	OP_FSYNC = 3,
	OP_READ_FIXED = 4,
	OP_WRITE_FIXED = 5,
	OP_ACCEPT = 13,
	OP_OPENAT = 18,
	OP_CLOSE = 19,
	OP_OPENAT2 = 28,
	OP_SOCKET = 45,
	OP_READ = 22,
	OP_WRITE = 23,
	REQ_FIXED_FILE = 1,
	FSYNC_DATASYNC = 1,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct async_key);
	__type(value, struct async_op);
} asyncs SEC(".maps");

/* Room to make an operation: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct async_op);
} async_scratch SEC(".maps");

static __noinline void lose(u64 n)
{
	struct account *a = account();

	if (!a)
		return;
	__sync_fetch_and_add(&a->pending, n);
	__sync_fetch_and_add(&a->lost, n);
}

/* The number of the call that does the same; RULES: none. */
static __always_inline u32 async_call(u32 command)
{
	return command < ASYNC_CALLS ? async_calls[command] : RULES;
}

/* Keeps an operation until it ends. False: no room. */
static __noinline bool async_keep(struct async_key *k, struct async_op *op)
{
	if (bpf_map_update_elem(&asyncs, k, op, 1 /* BPF_NOEXIST */) == 0)
		return true;
	if (!bpf_map_lookup_elem(&asyncs, k))
		return false;
	lose(1); /* the end of the previous one was not seen */
	return bpf_map_update_elem(&asyncs, k, op, 0) == 0;
}

static __always_inline void put_async(struct async_op *op, s64 result, u64 now_ns, u8 flags)
{
	struct account *a = account();
	struct ev_async *e;
	u64 wake = 0;

	e = call_place(a, sizeof(*e), &wake);
	if (!e || !a)
		return;
	head(&e->h, EV_ASYNC, now_ns, op->pid, op->tid);
	e->h.lost = a->pending;
	if (a->pending)
		__sync_fetch_and_sub(&a->pending, (u64)e->h.lost);
	e->h.flags = flags;
	e->start_ns = op->start_ns;
	e->nr = op->nr;
	e->pad = 0;
	e->result = result;
#pragma unroll
	for (int i = 0; i < 4; i++)
		e->args[i] = op->args[i];
	bpf_ringbuf_submit(e, wake);
}

static __noinline void async_end(struct async_op *op, s64 result, u64 now_ns)
{
	if (sums)
		sum_add(&op->key, now_ns, now_ns - op->start_ns, result);
	else
		put_async(op, result, now_ns, 0);
}

/* ---- io_submit ---- */

struct bpf_map;

struct submitting {
	struct task_struct *task;
	u64 list, start_ns, context;
	u32 pid, tid, kept;
};

static __always_inline bool iocb_at(u64 list, u32 i, struct async_key *k)
{
	return bpf_probe_read_user(&k->address, sizeof(k->address), (void *)(list + 8ull * i)) == 0;
}

static long submit_one(u32 i, void *ctx)
{
	struct submitting *s = ctx;
	struct async_key k = {.pid = s->pid};
	struct async_op *op;
	struct user_iocb cb;
	struct file *file;
	u32 zero = 0, nr;

	op = bpf_map_lookup_elem(&async_scratch, &zero);
	if (!op || !iocb_at(s->list, i, &k) ||
		bpf_probe_read_user(&cb, sizeof(cb), (void *)k.address) < 0)
		return 1;
	nr = async_call(cb.opcode);
	if (!sums && nr < RULES && rules[nr].selected)
		check_fd(s->task, s->pid, cb.fd, FD_CHECKED);
	file = nr < RULES && rules[nr].selected ? file_at(s->task->files, cb.fd) : NULL;
	__builtin_memset(&op->key, 0, sizeof(op->key));
	op->key.selected = 1;
	if (file && disk_key(file, &op->key) && (sums || op->key.selected)) {
		op->key.pid = op->pid = s->pid;
		op->key.class = rules[nr & (RULES - 1)].class;
		op->tid = s->tid;
		op->nr = nr;
		op->start_ns = s->start_ns;
		op->context = s->context;
		op->args[0] = cb.fd;
		op->args[1] = cb.opcode == CMD_FSYNC || cb.opcode == CMD_FDSYNC ? 0 : cb.buffer;
		op->args[2] = op->args[1] ? cb.bytes : 0;
		op->args[3] = op->args[1] ? cb.offset : 0;
		if (!async_keep(&k, op))
			return 1;
	}
	s->kept = i + 1;
	return 0;
}

/* Runs before the call: another thread may get an event before it returns. */
static __noinline void async_submit(struct task_struct *task, struct traced_thread *t)
{
	struct submitting s = {.task = task,
		.list = t->args[2],
		.start_ns = bpf_ktime_get_ns(),
		.context = t->args[0],
		.pid = t->pid,
		.tid = t->tid};
	s64 n = t->args[1];

	t->submit_ns = s.start_ns;
	if (n > 0)
		bpf_loop(n < SUBMIT_MOST ? n : SUBMIT_MOST, submit_one, &s, 0);
	t->submitted = s.kept;
}

struct refusing {
	u64 list, submit_ns;
	u32 first, pid;
};

static long refuse_one(u32 i, void *ctx)
{
	struct refusing *r = ctx;
	struct async_key k = {.pid = r->pid};
	struct async_op *op;

	if (!iocb_at(r->list, r->first + i, &k))
		return 1;
	op = bpf_map_lookup_elem(&asyncs, &k);
	if (op && op->start_ns == r->submit_ns)
		bpf_map_delete_elem(&asyncs, &k);
	return 0;
}

/* The kernel took 'result' operations of the list. */
static __noinline void submit_exit(struct traced_thread *t, s64 result)
{
	struct refusing r = {.list = t->args[2], .submit_ns = t->submit_ns, .pid = t->pid};
	u32 kept = t->submitted;

	if (!t->submit_ns)
		return;
	t->submit_ns = 0;
	if (result < 0)
		result = 0;
	if (result > kept)
		lose(result - kept);
	r.first = result;
	if (result < kept)
		bpf_loop((kept - (u32)result) & (2 * SUBMIT_MOST - 1), refuse_one, &r, 0);
}

struct reaping {
	u64 list, now_ns;
	u32 pid;
};

static long reap_one(u32 i, void *ctx)
{
	struct reaping *r = ctx;
	struct async_key k = {.pid = r->pid};
	struct user_event ev;
	struct async_op *op;

	if (bpf_probe_read_user(&ev, sizeof(ev), (void *)(r->list + sizeof(ev) * (u64)i)) < 0)
		return 1;
	k.address = ev.iocb;
	op = bpf_map_lookup_elem(&asyncs, &k);
	if (!op)
		return 0;
	async_end(op, ev.result, r->now_ns);
	bpf_map_delete_elem(&asyncs, &k);
	return 0;
}

struct destroying {
	u64 context, before_ns, now_ns;
	u32 pid;
};

static long destroy_one(struct bpf_map *map, struct async_key *k, struct async_op *op, void *ctx)
{
	struct destroying *d = ctx;

	if (k->ring || k->pid != d->pid || op->context != d->context || op->start_ns > d->before_ns)
		return 0;
	if (!sums)
		put_async(op, 0, d->now_ns, EV_UNFINISHED);
	bpf_map_delete_elem(map, k);
	return 0;
}

static __noinline void async_exit(struct traced_thread *t, u8 action, s64 result, u64 now_ns)
{
	if (action == ACT_SUBMIT) {
		submit_exit(t, result);
	} else if (action == ACT_REAP && result > 0) {
		struct reaping r = {.list = t->args[3], .now_ns = now_ns, .pid = t->pid};

		bpf_loop(result < REAP_MOST ? result : REAP_MOST, reap_one, &r, 0);
	} else if (action == ACT_DESTROY && result == 0) {
		struct destroying d = {.context = t->args[0],
			.before_ns = t->start_ns,
			.now_ns = now_ns,
			.pid = t->pid};

		bpf_for_each_map_elem(&asyncs, destroy_one, &d, 0);
	} else if (action == ACT_RING) {
		not_seen(NOT_RINGS);
	}
}

/* ---- io_uring ---- */

static __always_inline u32 command_of(struct io_kiocb *req)
{
	switch (BPF_CORE_READ(req, opcode)) {
	case OP_READV: return CMD_PREADV;
	case OP_WRITEV: return CMD_PWRITEV;
	case OP_READ:
	case OP_READ_FIXED: return CMD_PREAD;
	case OP_WRITE:
	case OP_WRITE_FIXED: return CMD_PWRITE;
	case OP_FSYNC:
		return BPF_CORE_READ((struct io_sync *)req, flags) & FSYNC_DATASYNC ? CMD_FDSYNC
										    : CMD_FSYNC;
	default: return ASYNC_CALLS;
	}
}

/* The submitting thread. With IORING_SETUP_SQPOLL that is a kernel thread in the process, which is
 * not under trace, so the process's first thread is used. */
static __always_inline struct traced_thread *ring_thread(struct task_struct *task)
{
	struct traced_thread *t = NULL;
	struct task_struct *leader;

	if (task->bpf_storage)
		t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (t || !(task->flags & IO_WORKER))
		return t;
	leader = task->group_leader;
	return leader ? bpf_task_storage_get(&threads, leader, NULL, 0) : NULL;
}

SEC("?tp_btf/io_uring_submit_req")
int BPF_PROG(on_ring_submit, struct io_kiocb *req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct async_key k = {.address = (u64)req, .ring = 1};
	struct io_rw *rw = (struct io_rw *)req;
	struct traced_thread *t;
	struct async_op *op;
	u32 zero = 0, nr;

	t = ring_thread(task);
	if (!t)
		return 0;
	op = bpf_map_lookup_elem(&async_scratch, &zero);
	if (t->silent || t->bias || !op)
		return 0;
	nr = async_call(command_of(req));
	if (nr >= RULES && BPF_CORE_READ(req, opcode) != OP_NOP && is_followed(t))
		not_seen(NOT_REQUESTS);
	if (nr >= RULES || !rules[nr].selected || !is_followed(t) || !kind_is_chosen(KIND_DISK)) {
		bpf_map_delete_elem(&asyncs, &k); /* the kernel reuses requests */
		return 0;
	}
	op->pid = t->pid;
	op->tid = tid_of(task);
	op->nr = nr;
	op->context = 0;
	op->args[0] = BPF_CORE_READ(req, cqe.fd);
	if (BPF_CORE_READ(req, flags) & REQ_FIXED_FILE)
		op->args[0] = FIXED_FILES + (op->args[0] & (FIXED_FILES - 1));
	op->args[1] = op->args[2] = op->args[3] = 0;
	if (BPF_CORE_READ(req, opcode) != OP_FSYNC) {
		op->args[1] = BPF_CORE_READ(rw, addr);
		op->args[2] = BPF_CORE_READ(rw, len);
		op->args[3] = BPF_CORE_READ(rw, kiocb.ki_pos);
	}
	op->start_ns = bpf_ktime_get_ns();
	if (!async_keep(&k, op))
		lose(1);
	return 0;
}

/* A request that opens or closes a descriptor has ended: reports the new meaning, if the thread
 * that ends it has the process's table; else the next call that uses the descriptor notices it. */
static __noinline void ring_changes(struct io_kiocb *req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct traced_thread *t = ring_thread(task);
	s64 fd = BPF_CORE_READ(req, cqe.res);
	u32 how = FD_CHECKED | FD_EXPECTED;
	u8 opcode = BPF_CORE_READ(req, opcode);

	if (!t || t->silent || t->bias || fd < 0)
		return;
	if (opcode == OP_CLOSE)
		check_fd(task, t->pid, BPF_CORE_READ((struct io_close *)req, fd), how);
	else if (opcode == OP_OPENAT || opcode == OP_OPENAT2 || opcode == OP_ACCEPT ||
		opcode == OP_SOCKET)
		check_fd(task, t->pid, fd, how);
}

SEC("?tp_btf/io_uring_complete")
int BPF_PROG(on_ring_complete, void *ring, struct io_kiocb *req)
{
	struct async_key k = {.address = (u64)req, .ring = 1};
	struct async_op *op = req ? bpf_map_lookup_elem(&asyncs, &k) : NULL;
	struct file *file;
	u64 now_ns;

	if (req && !op && !sums)
		ring_changes(req);
	if (!op)
		return 0;
	now_ns = bpf_ktime_get_ns();
	file = BPF_CORE_READ(req, file);
	__builtin_memset(&op->key, 0, sizeof(op->key));
	op->key.selected = 1;
	op->key.pid = op->pid;
	op->key.class = rules[op->nr & (RULES - 1)].class;
	if (file && disk_key(file, &op->key) && (sums || op->key.selected)) {
		if (!sums)
			check_file(bpf_get_current_task_btf(), file, op->pid, op->args[0]);
		async_end(op, BPF_CORE_READ(req, cqe.res), now_ns);
	} else if (op->key.fd_class != FD_DISK) {
		not_seen(NOT_REQUESTS);
	}
	bpf_map_delete_elem(&asyncs, &k);
	return 0;
}

#endif
