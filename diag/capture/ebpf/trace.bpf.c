/*
 * The tracer's programs in the kernel: two on every system call, five on the life of threads and on
 * signals, one that the agent runs over all tasks. files.h describes descriptors, below.h filters
 * by path, sums.h adds up, async.h follows asynchronous operations; flow.h and fuse.h add the data
 * of a log of flows.
 */
#include "diag/capture/ebpf/asked.h"
#include "diag/capture/ebpf/async.h"
#include "diag/capture/ebpf/chosen.h"
#include "diag/capture/ebpf/processor.h"
#include "diag/capture/ebpf/flow.h"
#include "diag/capture/ebpf/fuse.h"
#include "diag/capture/ebpf/sums.h"
#include "diag/capture/ebpf/tables.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline struct traced_thread *thread_new(struct task_struct *task)
{
	struct traced_thread *t = bpf_task_storage_get(
		&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 tid = tid_of(task);

	if (!t) {
		__sync_fetch_and_add(&missed, 1);
		return NULL;
	}
	t->pid = pid_of(task);
	t->tid = tid;
	t->entered = 1;
	t->selected = !has_tids || bpf_map_lookup_elem(&tids, &tid);
	__sync_fetch_and_add(&live, 1);
	__sync_fetch_and_add(&started, 1);
	return t;
}

static __always_inline void put_process(
	struct task_struct *task, struct traced_thread *t, u8 type, u32 former, u64 at_ns)
{
	struct ev_process e = {.former = former};
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);

	head(&e.h, type, at_ns, t->pid, t->tid);
	e.parent = type == EV_START && parent ? pid_of(parent) : 0;
	BPF_CORE_READ_STR_INTO(&e.name, task, comm);
	put(&e.h, sizeof(e), 0);
}

/* Emits the path arguments as a separate event. False if one is not in memory. */
static __noinline bool put_paths(struct traced_thread *t, u64 at_ns)
{
	const volatile struct call_rule *rule;
	struct scratch *s;
	u32 zero = 0, nr = t->nr;
	long n = 0, m = 0;

	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s || nr >= RULES)
		return true;
	rule = &rules[nr];
	if (rule->path < 0)
		return true;
	n = bpf_probe_read_user_str(s->paths.text, PARTS_MAX, (void *)t->args[rule->path & 3]);
	if (n < 0)
		return false;
	if (rule->path2 >= 0) {
		m = bpf_probe_read_user_str(s->paths.text + (n & (2 * PARTS_MAX - 1)), PARTS_MAX,
			(void *)t->args[rule->path2 & 3]);
		if (m < 0)
			return false;
	}
	head(&s->paths.h, EV_PATHS, at_ns, t->pid, t->tid);
	s->paths.size[0] = n;
	s->paths.size[1] = m;
	put(&s->paths.h, sizeof(s->paths) + (n & (2 * PARTS_MAX - 1)) + (m & (2 * PARTS_MAX - 1)),
		0);
	return true;
}

/* The offset at which a call begins to read or write; -1: none. */
static __always_inline s64 offset_of(
	struct task_struct *task, struct traced_thread *t, const volatile struct call_rule *rule)
{
	struct file *file = open_file(task, t->args[rule->fd & 3]);
	struct inode *inode;
	u16 mode;
	s64 at;

	if (!file)
		return -1;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & IFMT;
	if (mode != IFREG && mode != IFBLK) {
		if (flow)
			flow_note(t, rule, file, inode, mode);
		return -1;
	}
	if (rule->offset == OFFSET_ARGUMENT) {
		at = t->args[rule->offset_arg & 3];
		if (at != -1)
			return at;
	} else if (rule->offset == OFFSET_POINTER && t->args[rule->offset_arg & 3]) {
		return bpf_probe_read_user(&at, sizeof(at), (void *)t->args[rule->offset_arg & 3])
			? -1
			: at;
	}
	t->append = rule->class == CLASS_WRITE && (BPF_CORE_READ(file, f_flags) & FLAG_APPEND);
	return BPF_CORE_READ(file, f_pos);
}

static __always_inline void read_args(struct traced_thread *t, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	if (t->nr & NR_FOREIGN) {
		t->args[0] = (u32)regs->bx;
		t->args[1] = (u32)regs->cx;
		t->args[2] = (u32)regs->dx;
		t->args[3] = (u32)regs->si;
		t->args[4] = (u32)regs->di;
		t->args[5] = (u32)regs->bp;
		return;
	}
	t->args[0] = regs->di;
	t->args[1] = regs->si;
	t->args[2] = regs->dx;
	t->args[3] = regs->r10;
	t->args[4] = regs->r8;
	t->args[5] = regs->r9;
#else
	t->args[0] = regs->orig_x0;
	for (int i = 1; i < 6; i++)
		t->args[i] = regs->regs[i];
#endif
}

/* The number of the call to which the registers belong. */
static __always_inline u32 called_number(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

/* Are these the registers before the call? seccomp restores them for SIGSYS. */
static __always_inline bool is_rolled_back(struct pt_regs *regs, s64 result)
{
#if defined(__TARGET_ARCH_x86)
	return result == (s64)regs->orig_ax;
#else
	return result == (s64)regs->orig_x0;
#endif
}

static __always_inline bool is_foreign(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & THREAD_COMPAT;
#else
	return false;
#endif
}

/* Checks every descriptor that the call uses. */
static __always_inline void check_fds(
	struct task_struct *task, struct traced_thread *t, const volatile struct call_rule *rule)
{
	if (rule->fd >= 0)
		t->file = short_identity(check_fd(task, t->pid, t->args[rule->fd & 3], FD_CHECKED));
	if (rule->fd2 >= 0)
		check_fd(task, t->pid, t->args[rule->fd2 & 3], FD_CHECKED);
}

/* 'enters': else the call is refused, and descriptors and submissions, which take stack, are not
 * examined. */
static __always_inline void begin_call(struct task_struct *task, struct traced_thread *t,
	struct pt_regs *regs, u32 nr, const bool enters)
{
	const volatile struct call_rule *rule;
	bool followed;

	barrier_var(nr); /* the verifier must see the bounds of the used value, not of a copy */
	t->in_call = 0;
	t->refused = 0;
	if (is_foreign(task) || nr >= RULES)
		rule = &rules[RULES - 1]; /* no such call: selected if everything is */
	else
		rule = &rules[nr];
	followed = is_followed(t);
	if (followed && is_foreign(task) && !t->bias)
		not_seen(NOT_FOREIGN);
	t->record = rule->selected && followed;
	if (!t->record && !rule->action && !t->bias)
		return;
	t->nr = is_foreign(task) ? nr | NR_FOREIGN : nr;
	read_args(t, regs);
	t->offset = -1;
	t->file = 0;
	t->append = 0;
	t->end = END_NONE;
	t->paths_later = 0;
	if (sums) {
		if (t->record)
			key_of(task, t, rule);
	} else if (t->record) {
		t->maybe = 0;
		if (filters_on && !call_is_chosen(task, t, rule))
			t->record = 0;
		else if (has_prefixes())
			t->record = call_is_below(task, t, rule);
		if (!t->record && !t->maybe && !rule->action)
			return;
		if (enters)
			check_fds(task, t, rule);
		if (rule->offset != OFFSET_NONE && rule->offset != OFFSET_SEEK)
			t->offset = offset_of(task, t, rule);
		if (flow && rule->class == CLASS_COPY && t->end == END_NONE)
			flow_note_target(task, t, rule);
		if (rule->path >= 0)
			t->paths_later = !t->record || !put_paths(t, bpf_ktime_get_ns());
	} else {
		t->maybe = 0;
	}
	if (enters && rule->action == ACT_SUBMIT && followed && kind_is_chosen(KIND_DISK))
		async_submit(task, t);
	t->in_call = 1;
	t->start_ns = bpf_ktime_get_ns();
	if (causal)
		t->cpu_enter_ns = processor_ns(t, t->start_ns);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct traced_thread *t;

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t)
		return 0;
	t->entered = 1;
	if (!t->silent)
		begin_call(task, t, regs, id, true);
	return 0;
}

static __always_inline void fill_call(struct ev_call *e, struct account *a, struct traced_thread *t,
	s64 result, u64 now_ns, u8 flags)
{
	head(&e->h, EV_CALL, now_ns, t->pid, t->tid);
	e->h.lost = a->pending;
	if (a->pending)
		__sync_fetch_and_sub(&a->pending, (u64)e->h.lost);
	e->h.flags = flags | (t->record ? 0 : EV_SILENT) | (causal ? EV_TIMED : 0) |
		(t->refused ? EV_REFUSED : 0);
	e->cpu_ns = causal ? t->cpu_enter_ns : 0;
	e->cpu_call_ns = causal ? processor_ns(t, now_ns) - t->cpu_enter_ns : 0;
	e->start_ns = t->start_ns;
	e->nr = t->nr;
	e->file = t->file;
	e->pad = 0;
	e->asked = flags & EV_UNFINISHED || t->offset != -1 ? 0 : asked_of_vector(t, result);
	e->result = result;
	e->offset = t->offset;
#pragma unroll
	for (int i = 0; i < 6; i++)
		e->args[i] = t->args[i];
}

static __always_inline void put_call(struct traced_thread *t, s64 result, u64 now_ns, u8 flags)
{
	struct account *a = account();
	struct ev_call *e;
	u64 wake = 0;

	e = call_place(a, sizeof(*e), &wake);
	if (!e || !a)
		return;
	fill_call(e, a, t, result, now_ns, flags);
	bpf_ringbuf_submit(e, wake);
}

/* 'size' is constant, and includes the head if there is one: the verifier must know it. */
static __always_inline void put_flow(
	struct traced_thread *t, s64 result, u64 now_ns, const struct flow_told *f, const u64 size)
{
	struct account *a = account();
	struct ev_flow *e;
	u64 wake = 0;

	e = call_place(a, size, &wake);
	if (!e || !a)
		return;
	fill_call(&e->c, a, t, result, now_ns, f->positioned ? EV_POSITIONED : 0);
	e->position = f->position;
	e->head_size = f->g.at;
	if (size > FLOW_BARE)
		__builtin_memcpy(e->head, f->g.bytes, FLOW_HEAD);
	bpf_ringbuf_submit(e, wake);
}

/* Emits a call that moved bytes on a TCP socket or /dev/fuse in a log of flows. */
static __noinline int put_moved(struct traced_thread *t, s64 result, u64 now_ns)
{
	struct flow_told f = {};

	if (!flow_of(t, result, &f))
		put_call(t, result, now_ns, 0);
	else if (f.g.at)
		put_flow(t, result, now_ns, &f, sizeof(struct ev_flow));
	else
		put_flow(t, result, now_ns, &f, FLOW_BARE);
	return 0;
}

/* Emits a call that has returned. Most are not flows, so the stack for flows is in a separate
 * function. */
static __noinline int put_return(struct traced_thread *t, s64 result, u64 now_ns)
{
	if (flow && t->end != END_NONE && result > 0)
		put_moved(t, result, now_ns);
	else
		put_call(t, result, now_ns, 0);
	return 0;
}

static __noinline void put_pair(
	struct task_struct *task, struct traced_thread *t, u64 address, u64 now_ns)
{
	s32 fd[2];

	if (bpf_probe_read_user(fd, sizeof(fd), (void *)address) < 0)
		return;
	put_fd(task, t->pid, fd[0], now_ns, 0);
	put_fd(task, t->pid, fd[1], now_ns, 0);
}

static __always_inline bool makes_descriptor(u32 fcntl_cmd)
{
	return fcntl_cmd == 0 || fcntl_cmd == 1030; /* F_DUPFD, F_DUPFD_CLOEXEC */
}

/* Emits the descriptors that a call has made or changed. The agent derives closed ones from the
 * call. */
static __always_inline void put_changes(
	struct task_struct *task, struct traced_thread *t, u8 action, s64 result, u64 now_ns)
{
	u32 cmd = t->args[1], fd = result;

	switch (action) {
	case ACT_PAIR: put_pair(task, t, t->args[0], now_ns); return;
	case ACT_SOCKETPAIR: put_pair(task, t, t->args[3], now_ns); return;
	case ACT_RECVMSG: put_rights(task, t->pid, now_ns, t->args[1], 1); return;
	case ACT_RECVMMSG: put_rights(task, t->pid, now_ns, t->args[1], result); return;
	case ACT_FCNTL:
		if (!makes_descriptor(cmd))
			return;
		break;
	case ACT_BIND:
	case ACT_CONNECT: fd = t->args[0]; break;
	case ACT_RESULT: break;
	default: return;
	}
	put_fd(task, t->pid, fd, now_ns, 0);
}

static __always_inline bool is_dying(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;

	return (signal->flags & SIGNAL_GROUP_EXIT) ||
		(bpf_core_field_exists(signal->group_exec_task) && signal->group_exec_task &&
			signal->group_exec_task != task);
}

/* A file that is mapped shared is read and written without calls. Files in memory are left out,
 * because processes use them to share memory. */
static __noinline void note_mapping(struct task_struct *task, struct traced_thread *t)
{
	struct file *file = open_file(task, t->args[4]);
	struct inode *inode;
	u64 magic;
	u16 mode;

	if (!file || !(t->args[3] & MAP_SHARING) || (t->args[3] & MAP_NO_FILE))
		return;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & IFMT;
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	if (mode == IFBLK || (mode == IFREG && magic != TMPFS && magic != HUGETLBFS))
		not_seen(NOT_MAPPINGS);
}

static __noinline void exit_sums(
	struct task_struct *task, struct traced_thread *t, s64 result, u64 now_ns)
{
	const volatile struct call_rule *rule = &rules[t->nr < RULES ? t->nr : RULES - 1];

	if (t->record)
		sum_call(t, rule, result, now_ns);
	if (result == 0 && rule->path2 >= 0)
		renames++;
	if (rule->action == ACT_RESULT ||
		(rule->action == ACT_FCNTL && makes_descriptor(t->args[1]))) {
		if (result >= 0)
			message_drop(t, t->pid, result);
	} else if (rule->action == ACT_CLOSE) {
		if (result != -9) /* EBADF */
			message_drop(t, t->pid, t->args[0]);
	} else if (rule->action == ACT_BIND || rule->action == ACT_CONNECT) {
		message_drop(t, t->pid, t->args[0]);
		if (rule->action == ACT_BIND)
			note_listener(task, t->args[0]);
	}
}

/*
 * The thread leaves a call that it has not entered. seccomp examines a call before sys_enter, so a
 * call that a filter refuses, or that a supervisor answers, reaches only sys_exit, with the
 * registers as set by the thread. (A thread that was forked, or was inside a call when the tracer
 * attached, is treated as if it had entered one.)
 */
static __noinline void begin_refused(
	struct task_struct *task, struct traced_thread *t, struct pt_regs *regs)
{
	begin_call(task, t, regs, called_number(regs), false);
	t->refused = 1;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const volatile struct call_rule *rule;
	struct traced_thread *t;
	u64 now_ns;
	u32 nr;
	u8 action;

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t)
		return 0;
	if (!t->entered && !t->silent)
		begin_refused(task, t, regs);
	t->entered = 0;
	if (!t->in_call)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (t->refused && is_rolled_back(regs, result)) {
		t->in_call = 0;
		if (t->record && !sums)
			put_call(t, 0, now_ns, EV_UNFINISHED);
		return 0;
	}
	/* The thread is killed inside the call, which would otherwise restart: the call has not
	 * ended here. */
	if (result <= -512 && result >= -516 && is_dying(task))
		return 0;
	t->in_call = 0;
	nr = t->nr;
	if (t->bias) {
		u32 n = n_bias;

		if (nr == NR_GETPPID && n < BIAS_CALLS) {
			bias_ns[n] = now_ns - t->start_ns;
			n_bias = n + 1;
		}
		return 0;
	}
	if (nr < RULES && rules[nr].action >= ACT_SUBMIT && rules[nr].action <= ACT_RING)
		async_exit(t, rules[nr].action, result, now_ns);
	if (nr < RULES && rules[nr].action == ACT_MAP && (result >= 0 || result < -4095) &&
		is_followed(t))
		note_mapping(task, t);
	if (sums) {
		exit_sums(task, t, result, now_ns);
		return 0;
	}
	action = ACT_NONE;
	if (nr < RULES) {
		rule = &rules[nr];
		action = rule->action;
		if (rule->offset == OFFSET_SEEK && result >= 0)
			t->offset = result;
		if (t->append && result > 0) {
			struct file *file = file_at(task->files, t->args[rule->fd & 3]);

			if (file)
				t->offset = BPF_CORE_READ(file, f_pos) - result;
		}
	}
	if (t->maybe && !t->record && result >= 0) {
		struct file *file = file_at(task->files, result);

		t->record = file && is_below(file);
	}
	if (t->paths_later && t->record)
		put_paths(t, now_ns);
	if (t->record || action == ACT_CLOSE || action == ACT_CLOSE_RANGE)
		put_return(t, result, now_ns);
	if (action == ACT_CLOSE && !t->refused)
		forget_fd(t->pid, t->args[0]);
	if (action && (result >= 0 || action == ACT_CONNECT))
		put_changes(task, t, action, result, now_ns);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct traced_thread *t;

	if (prev->bpf_storage) {
		t = bpf_task_storage_get(&threads, prev, NULL, 0);
		if (t)
			processor_left(t, now_ns);
	}
	if (next->bpf_storage) {
		t = bpf_task_storage_get(&threads, next, NULL, 0);
		if (t)
			t->on_ns = now_ns;
	}
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct traced_thread *p, *t;
	u64 now_ns;

	if (!parent->bpf_storage)
		return 0;
	p = bpf_task_storage_get(&threads, parent, NULL, 0);
	if (!p || p->silent || p->bias)
		return 0;
	t = thread_new(child);
	if (!t)
		return 0;
	now_ns = bpf_ktime_get_ns();
	put_process(child, t, EV_START, 0, now_ns);
	if (t->pid == t->tid && !sums) /* sums have recorded the listeners already */
		put_table(child, t->pid, now_ns, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	struct traced_thread *t;
	u32 former, type = EV_EXEC;
	u64 now_ns;

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t)
		return 0;
	former = t->tid;
	t->pid = pid_of(task);
	t->tid = tid_of(task);
	t->judged = 0;
	if (t->silent) {
		t->silent = 0;
		t->in_call = 0;
		type = EV_START;
	}
	now_ns = bpf_ktime_get_ns();
	put_process(task, t, type, former, now_ns);
	put_table(task, t->pid, now_ns, 0);
	return 0;
}

/* The name may be changed by the thread itself (prctl) or by another thread through /proc. A new
 * program's name comes with its EXEC. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *name)
{
	struct traced_thread *t;
	struct ev_process e = {};

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t || t->silent || t->bias ||
		(bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve)))
		return 0;
	head(&e.h, EV_NAME, bpf_ktime_get_ns(), t->pid, t->tid);
	bpf_probe_read_kernel_str(&e.name, sizeof(e.name), name);
	put(&e.h, sizeof(e), 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct *task)
{
	struct signal_struct *signal;
	struct traced_thread *t;
	u64 now_ns;

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t)
		return 0;
	/* SECCOMP_RET_KILL_THREAD does not reach sys_exit. */
	if (!t->entered && !t->silent && !t->bias && task->exit_code == SIGNAL_SYS &&
		!(task->signal->flags & SIGNAL_GROUP_EXIT))
		begin_refused(task, t, (struct pt_regs *)bpf_task_pt_regs(task));
	now_ns = bpf_ktime_get_ns();
	if (!t->silent && !t->bias) {
		struct ev_process e = {};

		if (t->in_call && t->record && !sums)
			put_call(t, 0, now_ns, EV_UNFINISHED);
		signal = task->signal;
		head(&e.h, EV_EXIT, now_ns, t->pid, t->tid);
		e.status = task->exit_code;
		if (signal->flags & SIGNAL_GROUP_EXIT) {
			e.status = signal->group_exit_code;
			e.group_dead = 1;
		}
		put(&e.h, sizeof(e), live == 1 ? BPF_RB_FORCE_WAKEUP : 0);
	}
	if (sums && t->tid != t->pid) {
		u32 tid = t->tid;

		bpf_map_delete_elem(&pollers, &tid);
	}
	/* While the process lives, ring_thread uses its first thread. */
	t->in_call = 0;
	if (t->tid != t->pid || (task->signal->flags & SIGNAL_GROUP_EXIT))
		bpf_task_storage_delete(&threads, task);
	__sync_fetch_and_sub(&live, 1);
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal, int signo, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ev_signal e = {};
	struct traced_thread *t;

	/* A SIGKILL is reported by the thread's end; here it may also come from exec or
	 * exit_group. */
	if (!task->bpf_storage || signo == 9)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t || t->silent || t->bias || !t->selected || !recording || sums || !is_chosen(t))
		return 0;
	head(&e.h, EV_SIGNAL, bpf_ktime_get_ns(), t->pid, t->tid);
	e.signo = signo;
	e.deadly = !action->sa.sa_handler;
	put(&e.h, sizeof(e), 0);
	return 0;
}

/* Walks over all tasks, for the agent. */
SEC("iter/task")
int each_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct traced_thread *t;
	u32 pid, *target;

	if (iter_mode == ITER_LEARN) {
		struct task_struct *self = bpf_get_current_task_btf();

		level = BPF_CORE_READ(self, thread_pid, level);
		return 0;
	}
	if (!task)
		return 0;
	if (iter_mode == ITER_ATTACH) {
		pid = pid_of(task);
		target = bpf_map_lookup_elem(&targets, &pid);
		if (!target || bpf_task_storage_get(&threads, task, NULL, 0))
			return 0;
		t = thread_new(task);
		if (!t)
			return 0;
		t->bias = *target == TARGET_BIAS;
		t->silent = *target == TARGET_COMMAND;
		if (!*target)
			put_process(task, t, EV_START, 0, bpf_ktime_get_ns());
		return 0;
	}
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t || t->silent || t->bias)
		return 0;
	if (iter_mode == ITER_DESCRIBE && t->pid == t->tid)
		put_table(task, t->pid, bpf_ktime_get_ns(), 1);
	if (iter_mode == ITER_LEAVE && t->in_call && t->record && !sums)
		put_call(t, 0, bpf_ktime_get_ns(), EV_UNFINISHED);
	return 0;
}
