/* Shared by the programs: settings, maps, and the way of an event into the ring of its CPU. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_MAPS_H
#define CULPRIT_DIAG_CAPTURE_EBPF_MAPS_H

#include "diag/capture/ebpf/kernel.h"

/* Constant once loaded: the kernel removes the code that they disable. */
const volatile struct call_rule rules[RULES];
/* By IOCB_CMD_*: number of the call that does the same; RULES: none. */
const volatile u16 async_calls[ASYNC_CALLS];
const volatile bool sums, has_cgroup, has_tids;
const volatile bool flow, heads; /* flow: positions and FUSE requests; heads: also first bytes */
const volatile bool causal;      /* processor times, and peers of Unix sockets */
const volatile bool filters_on;  /* there is a filter, or may be one later */
/* Bytes of a ring that calls may fill; the rest is reserved for all other events, which are lost
 * last. */
const volatile u64 call_room;
const volatile u64 wake_at; /* fill level of a ring at which the agent is woken; a power of two */

u32 level; /* of the agent's PID namespace */
u32 iter_mode;
bool recording;           /* descriptors are known: calls are recorded from now on */
u64 live;                 /* threads under trace */
u64 started;              /* total */
u64 missed;               /* threads that could not be traced: out of memory */
s64 clock_ns;             /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
u64 unseen[UNSEEN_KINDS]; /* enum unseen of record.h, except the last one, which the agent counts */
u32 renames;              /* earlier decisions about files must be made again */
/* filters[filter_at & 1] is in use. The agent fills the other one, then increments. */
struct filter filters[2];
u32 filter_at;
u32 n_bias;
u64 bias_ns[BIAS_CALLS];
/* Ports on which traced processes listen: a connected socket with such a port is a server's. */
u8 listening[65536];

/* A thread under trace. */
struct traced_thread {
	u32 pid, tid;
	u8 silent;      /* the command, before its exec */
	u8 bias;        /* measures the tracer: its calls are not recorded */
	u8 selected;    /* by the filter of threads */
	u8 in_call;     /* the following fields are about its current call */
	u8 record;      /* the call is selected; else it only changes descriptors */
	u8 paths_later; /* the path was not in memory yet */
	u8 maybe;       /* the call is selected if the file that it opens is */
	u8 append;      /* writes go to the end of the file */
	u8 end;         /* enum flow_end: flow, the object that the call moves bytes on */
	u8 entered;     /* set by sys_enter, cleared by sys_exit */
	u8 refused;     /* seccomp refused the call */
	u8 chosen;      /* by the filter of processes, as of 'judged' */
	u32 judged;     /* filter_at + 1 at that time; 0: never */
	u32 nr;
	u32 file;   /* ev_call.file */
	u64 socket; /* the kernel's struct socket of the file */
	u64 start_ns;
	u64 args[6];
	s64 offset;
	/* causal: since when it is on a processor (0: it is not), its processor time before that,
	 * and its processor time when the call began. */
	u64 on_ns, cpu_ns, cpu_enter_ns;
	u64 polled_ns;      /* its last wait for descriptors */
	u64 submit_ns;      /* io_submit: since when its operations are kept; 0: none */
	u32 submitted;      /* examined operations of its list */
	struct sum_key key; /* sums: the key of the call */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct traced_thread);
} threads SEC(".maps");

/* Processes to attach to, by number; the value is 0 or TARGET_*. A server may have forked one for
 * each client. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1100);
	__type(key, u32);
	__type(value, u32);
} tids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} cgroups SEC(".maps");

struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* CPUs: set before load */
	__type(key, u32);
	__array(values, struct ring_map);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

/*
 * The last meaning of a descriptor reported to the agent: a hash of process, descriptor and
 * identity of the open file; 0: none. If a call's descriptor is another file, the descriptor is
 * reported again, however it was changed: through a table shared with another process, io_uring, a
 * 32-bit program, a supervisor of seccomp, or a lost event. Descriptors that share an entry are
 * reported more often, which the agent ignores.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DESCRIBED);
	__type(key, u32);
	__type(value, u64);
} described SEC(".maps");

/* Room to build an event of variable size. [1] is for the iterators, which, unlike the other
 * programs, can be preempted. */
struct scratch {
	union {
		struct ev_fd fd;
		struct ev_paths paths;
		u8 bytes[2 * PARTS_MAX + 1024];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline u32 number_in(struct pid *pid)
{
	u32 at = bpf_core_field_offset(struct pid, numbers) +
		level * bpf_core_type_size(struct upid);
	u32 nr = 0;

	bpf_probe_read_kernel(
		&nr, sizeof(nr), (void *)pid + at + bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* The number in the agent's namespace; 0 for a task outside it. */
static __always_inline u32 tid_of(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;

	return pid && BPF_CORE_READ(pid, level) >= level ? number_in(pid) : 0;
}

static __always_inline u32 pid_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);

	return pid && BPF_CORE_READ(pid, level) >= level ? number_in(pid) : 0;
}

static __always_inline struct filter *filter_now(void)
{
	return &filters[filter_at & 1];
}

static __always_inline bool has_prefixes(void)
{
	return filters_on && filter_now()->n_prefixes;
}

static __noinline bool judge_process(struct traced_thread *t, struct filter *f)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 name[FILTER_NAME / 8] = {};

	for (u32 i = 0; i < FILTER_PIDS && i < f->n_pids; i++)
		if (f->pids[i] == t->pid)
			return true;
	bpf_probe_read_kernel_str(name, sizeof(name),
		(void *)BPF_CORE_READ(task, group_leader) +
			bpf_core_field_offset(struct task_struct, comm));
	for (u32 i = 0; i < FILTER_NAMES && i < f->n_names; i++)
		if (f->names[i][0] == name[0] && f->names[i][1] == name[1])
			return true;
	return false;
}

/* Is the current thread in a process that the filter selects? */
static __always_inline bool is_chosen(struct traced_thread *t)
{
	struct filter *f = filter_now();
	u32 at = filter_at + 1;

	if (!filters_on || (!f->n_pids && !f->n_names))
		return true;
	if (t->judged != at) {
		t->chosen = judge_process(t, f);
		t->judged = at;
	}
	return t->chosen;
}

static __always_inline bool kind_is_chosen(u32 kind)
{
	return !filters_on || !filter_now()->calls || (filter_now()->calls & kind);
}

static __always_inline bool is_followed(struct traced_thread *t)
{
	return t->selected && recording && is_chosen(t) &&
		(!has_cgroup || bpf_current_task_under_cgroup(&cgroups, 0) == 1);
}

/* The agent is woken when the ring holds wake_at bytes, and again at each eighth above that,
 * because an event between the query of the fill level and the reservation may have hidden the
 * first time. An event takes more than its size: a header and rounding. */
static __always_inline u64 wake_flags(u64 before, u64 size)
{
	u64 after = before + ((size + BPF_RINGBUF_HDR_SZ + 7) & ~7ull), step = wake_at / 8;

	return after >= wake_at && ((before ^ after) & ~(step - 1)) ? BPF_RB_FORCE_WAKEUP
								    : BPF_RB_NO_WAKEUP;
}

static __always_inline struct account *account(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&accounts, &zero);
}

static __always_inline void *own_ring(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rings, &cpu);
}

static __always_inline void not_seen(u32 what)
{
	__sync_fetch_and_add(&unseen[what % UNSEEN_KINDS], 1);
}

static __always_inline void count_lost(struct account *a)
{
	__sync_fetch_and_add(&a->pending, 1);
	__sync_fetch_and_add(&a->lost, 1);
}

static __always_inline void head(struct ev *h, u8 type, u64 at_ns, u32 pid, u32 tid)
{
	h->at_ns = at_ns;
	h->pid = pid;
	h->tid = tid;
	h->lost = 0;
	h->type = type;
	h->flags = 0;
	h->cpu = bpf_get_smp_processor_id();
}

/* Reserves room for a call's event in this processor's ring, and returns how to submit it; NULL: no
 * room, which is counted. 'size' is constant, as the verifier requires. NULL is returned right
 * where it is found: before Linux 6.2 the verifier does not carry the result of a null test over to
 * a second one, and takes the record as never submitted. */
static __always_inline void *call_place(struct account *a, const u64 size, u64 *wake)
{
	void *ring = own_ring(), *e;
	u64 filled;

	if (!a || !ring)
		return NULL;
	filled = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	e = filled < call_room ? bpf_ringbuf_reserve(ring, size, 0) : NULL;
	if (!e) {
		count_lost(a);
		return NULL;
	}
	*wake = wake_flags(filled, size);
	return e;
}

/* Emits any event except calls: may use the room that calls leave free, so that it is lost last.
 * False: lost. */
static __always_inline bool put(struct ev *h, u64 size, u64 more)
{
	struct account *a = account();
	void *ring = own_ring();
	u64 filled;

	if (!a || !ring)
		return false;
	filled = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	h->lost = a->pending;
	if (bpf_ringbuf_output(ring, h, size, more | wake_flags(filled, size)) < 0) {
		if (h->type != EV_PATHS)
			count_lost(a);
		return false;
	}
	__sync_fetch_and_sub(&a->pending, (u64)h->lost);
	return true;
}

#endif
