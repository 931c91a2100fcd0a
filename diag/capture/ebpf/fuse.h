/* Requests of the kernel's FUSE client that traced threads make. The tracepoints exist since Linux
 * 6.10; before 6.18 a request has no 'unique' yet when it begins. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_FUSE_H
#define CULPRIT_DIAG_CAPTURE_EBPF_FUSE_H

#include "diag/capture/ebpf/maps.h"

/* Pending requests by address; the value is 'unique'. An address may be reused by a request whose
 * beginning was not seen. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* more in mode flow: set before load */
	__type(key, u64);
	__type(value, u64);
} fuse_requests SEC(".maps");

/* Does the current thread send a request that it made itself? When too many are pending, the thread
 * that ends one sends the next, which may be another thread's. */
static __always_inline bool fuse_is_own(struct task_struct *task, const struct fuse_req *req)
{
	u32 pid = BPF_CORE_READ(req, in.h.pid), at, nr = 0;
	struct pid *own = task->thread_pid;

	if (!pid || !own)
		return true; /* made by the kernel, for this thread */
	at = bpf_core_field_offset(struct pid, numbers) +
		BPF_CORE_READ(req, fm, fc, pid_ns, level) * bpf_core_type_size(struct upid);
	bpf_probe_read_kernel(
		&nr, sizeof(nr), (void *)own + at + bpf_core_field_offset(struct upid, nr));
	return nr == pid;
}

static __always_inline void fuse_put(
	const struct fuse_req *req, u32 pid, u32 tid, u64 now_ns, bool ended)
{
	struct ev_fuse e = {};

	head(&e.h, EV_FUSE, now_ns, pid, tid);
	e.unique = BPF_CORE_READ(req, in.h.unique);
	e.nodeid = BPF_CORE_READ(req, in.h.nodeid);
	e.opcode = BPF_CORE_READ(req, in.h.opcode);
	e.dev = BPF_CORE_READ(req, fm, fc, dev);
	e.ended = ended;
	e.error = ended ? BPF_CORE_READ(req, out.h.error) : 0;
	put(&e.h, sizeof(e), 0);
}

SEC("tp_btf/fuse_request_send")
int BPF_PROG(on_fuse_send, const struct fuse_req *req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)req, unique;
	struct traced_thread *t;

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t || t->silent || t->bias || !is_followed(t) || !kind_is_chosen(KIND_FUSE) ||
		!fuse_is_own(task, req))
		return 0;
	unique = BPF_CORE_READ(req, in.h.unique);
	bpf_map_update_elem(&fuse_requests, &key, &unique, 0);
	fuse_put(req, t->pid, t->tid, bpf_ktime_get_ns(), false);
	return 0;
}

SEC("tp_btf/fuse_request_end")
int BPF_PROG(on_fuse_end, const struct fuse_req *req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = (u64)req, *unique = bpf_map_lookup_elem(&fuse_requests, &key), began;

	if (!unique)
		return 0;
	began = *unique;
	bpf_map_delete_elem(&fuse_requests, &key);
	if (!began || began == BPF_CORE_READ(req, in.h.unique))
		fuse_put(req, pid_of(task), tid_of(task), bpf_ktime_get_ns(), true);
	return 0;
}

#endif
