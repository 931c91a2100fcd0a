/* Attaches to threads by ptrace and steps them from call to call. */
#include "diag/capture/ptrace/tracer.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/ptrace.h>

#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

/* Never PTRACE_O_EXITKILL: a tracer that dies must not kill a file server. */
#define OPTIONS                                                                                    \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
		PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the ptrace tracer supports x86_64 and aarch64 only"
#endif

void tracer_emit(struct tracer *t, struct record *rec)
{
	if (fdtable_feed(t->fds, rec) < 0 && !t->failed)
		t->failed = err_set(&t->err, -ENOMEM, "out of memory");
	if (!t->failed)
		t->failed = log_write(t->log, rec, &t->err);
}

/* Field 'name' of /proc/TID/status as a number; -1 if it cannot be read. */
static long status_field(pid_t tid, const char *name)
{
	char path[32], *text, *at;
	long value = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (file_read(path, &text, NULL, NULL) < 0)
		return -1;
	at = strstr(text, name);
	if (at)
		value = strtol(at + strlen(name), NULL, 10);
	free(text);
	return value;
}

/* Is this signal pending for the thread itself? */
static bool is_pending(pid_t tid, int signo)
{
	char path[32], *text, *at;
	bool yes;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (file_read(path, &text, NULL, NULL) < 0)
		return false;
	at = strstr(text, "\nSigPnd:");
	yes = at && strtoull(at + 8, NULL, 16) >> (signo - 1) & 1;
	free(text);
	return yes;
}

static void emit_process(struct tracer *t, int what, pid_t pid, pid_t tid, int status)
{
	struct record rec = {.type = RECORD_PROCESS};
	char path[64], *name = NULL;
	long parent = what == PROCESS_START ? status_field(pid, "\nPPid:") : 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	if (what != PROCESS_EXIT && file_read(path, &name, NULL, NULL) == 0)
		name[strcspn(name, "\n")] = '\0';
	rec.process = (struct record_process){
		.start_ns = clock_real_ns(),
		.pid = (uint32_t)pid,
		.tid = (uint32_t)tid,
		.parent = parent > 0 ? (uint32_t)parent : 0,
		.what = what,
		.status = status,
		.name = name ? name : "",
	};
	if (pid == tid && what != PROCESS_START)
		async_end(t, pid);
	tracer_emit(t, &rec);
	free(name);
}

static struct tracee_process *process_add(struct tracer *t, pid_t pid, bool running)
{
	struct tracee_process *p = t->process[pid];

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->pidfd = -1;
	p->attached_ns = clock_real_ns();
	t->process[pid] = p;
	if (running) {
		emit_process(t, PROCESS_START, pid, pid, 0);
		fds_scan(t, p, p->attached_ns);
	}
	return p;
}

static void process_drop(struct tracer *t, struct tracee_process *p)
{
	t->process[p->pid] = NULL;
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p);
}

static struct tracee_thread *thread_add(struct tracer *t, struct tracee_process *p, pid_t tid)
{
	struct tracee_thread *th = calloc(1, sizeof(*th));

	if (!th) {
		t->failed = err_set(&t->err, -ENOMEM, "out of memory");
		return NULL;
	}
	th->tid = tid;
	th->process = p;
	t->thread[tid] = th;
	if (tid > t->top_tid)
		t->top_tid = tid;
	p->threads++;
	t->threads++;
	return th;
}

static void thread_drop(struct tracer *t, struct tracee_thread *th)
{
	struct tracee_process *p = th->process;

	if (!th->live) {
		p->unstopped--;
		t->unstopped--;
	}
	t->thread[th->tid] = NULL;
	t->threads--;
	if (--p->threads == 0)
		process_drop(t, p);
	free((char *)th->about.path);
	free(th->paths);
	free(th);
}

int tracer_new(struct log_writer *log, struct tracer **out, struct err *e)
{
	struct tracer *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->log = log;
	/* Untouched pages of these use no memory. */
	t->thread = calloc(MAX_PID, sizeof(struct tracee_thread *));
	t->process = calloc(MAX_PID, sizeof(struct tracee_process *));
	t->fds = fdtable_new();
	t->tags = tags_new();
	if (!t->thread || !t->process || !t->fds || !t->tags || fds_actions(t) < 0) {
		tracer_free(t);
		return err_set(e, -ENOMEM, "out of memory");
	}
	*out = t;
	return 0;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	free(t->thread);
	free(t->process);
	fdtable_free(t->fds);
	async_free(t);
	tags_free(t->tags);
	free(t->action);
	free(t);
}

static int attach_thread(struct tracer *t, struct tracee_process *p, pid_t tid)
{
	struct tracee_thread *th;

	if (ptrace(PTRACE_SEIZE, tid, 0, OPTIONS) < 0) {
		/* Already attached: made by a thread under trace, its first stop will follow. */
		if (errno == EPERM && status_field(tid, "\nTracerPid:") == getpid())
			return 0;
		return -errno;
	}
	th = thread_add(t, p, tid);
	if (!th)
		return -ENOMEM;
	p->unstopped++;
	t->unstopped++;
	return ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 && errno != ESRCH ? -errno : 0;
}

int tracer_attach(struct tracer *t, pid_t pid, struct err *e)
{
	struct tracee_process *p;
	struct dirent *d;
	char path[32];
	bool found;
	int rc = 0;

	if (pid <= 0 || pid >= MAX_PID || status_field(pid, "\nTgid:") != pid)
		return err_set(e, -ESRCH, "there is no process %d", pid);
	/* Forked by a process under trace: its first stop will follow. */
	if (!t->process[pid] && status_field(pid, "\nTracerPid:") == getpid())
		return 0;
	p = process_add(t, pid, true);
	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	/* Until a pass finds no new thread: one may have been started by a thread that was not
	 * attached yet. */
	do {
		DIR *dir = opendir(path);

		if (!dir)
			break;
		found = false;
		while ((d = readdir(dir)) && rc >= 0) {
			pid_t tid = atoi(d->d_name);

			if (tid <= 0 || t->thread[tid])
				continue;
			rc = attach_thread(t, p, tid);
			if (rc == -ESRCH || (rc == -EPERM && status_field(tid, "\nThreads:") < 0))
				rc = 0; /* it has just ended */
			found |= t->thread[tid] != NULL;
		}
		closedir(dir);
	} while (found && rc >= 0);
	if (rc == -EPERM && status_field(pid, "\nTracerPid:") > 0)
		return err_set(e, rc, "cannot trace process %d: process %ld is tracing it already",
			pid, status_field(pid, "\nTracerPid:"));
	if (rc == -EPERM)
		return err_set(e, rc,
			"cannot trace process %d: not permitted; be root, or see "
			"/proc/sys/kernel/yama/ptrace_scope",
			pid);
	if (rc < 0)
		return err_errno(e, rc, "cannot trace process %d", pid);
	if (!p->threads) {
		process_drop(t, p);
		return err_set(e, -ESRCH, "process %d has ended", pid);
	}
	return 0;
}

int tracer_attach_descendants(struct tracer *t, const pid_t *pids, size_t n, struct err *e)
{
	bool found;

	do {
		auto_free struct proc_id *below = NULL;
		int count = proc_descendants(pids, n, &below), rc;

		if (count < 0)
			return err_errno(e, count, "cannot look for descendants");
		found = false;
		for (int i = 0; i < count; i++) {
			if (below[i].pid >= MAX_PID || t->process[below[i].pid])
				continue;
			rc = tracer_attach(t, below[i].pid, e);
			if (rc < 0 && rc != -ESRCH)
				return rc;
			found |= t->process[below[i].pid] != NULL;
		}
	} while (found);
	return 0;
}

int tracer_launch(struct tracer *t, char **argv, struct err *e)
{
	int go[2], failed[2], code = 0;
	struct tracee_process *p;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot make a pipe");
	if (pipe2(failed, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return err_errno(e, -errno, "cannot make a pipe");
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		signal(SIGPIPE, SIG_DFL);
		if (read(go[0], &code, 1) == 1)
			execvp(argv[0], argv);
		code = errno;
		if (write(failed[1], &code, sizeof(code)) < 0)
			_exit(126);
		_exit(127);
	}
	close(go[0]);
	close(failed[1]);
	if (pid < 0) {
		code = err_errno(e, -errno, "cannot fork");
		goto out;
	}
	t->child = pid;
	if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS) < 0) {
		code = err_errno(e, -errno, "cannot trace '%s'", argv[0]);
		goto out;
	}
	p = process_add(t, pid, false);
	if (!p || !thread_add(t, p, pid)) {
		code = err_set(e, -ENOMEM, "out of memory");
		goto out;
	}
	p->unstopped++;
	t->unstopped++;
	if (write(go[1], "", 1) != 1) {
		code = err_errno(e, -errno, "cannot start '%s'", argv[0]);
		goto out;
	}
	while (!t->child_running && tracer_step(t, e) > 0)
		;
	if (!t->child_running) {
		if (read(failed[0], &code, sizeof(code)) != sizeof(code) || !code)
			code = ECHILD;
		code = err_errno(e, -code, "cannot run '%s'", argv[0]);
	}
out:
	close(go[1]);
	close(failed[0]);
	return code;
}

bool tracer_ready(const struct tracer *t)
{
	return t->unstopped == 0;
}

/* Writes the delivered signal that is still held back. */
static void flush_signal(struct tracer *t, struct tracee_thread *th, bool fatal)
{
	struct record rec = {.type = RECORD_SIGNAL};

	if (!th->signal.signo)
		return;
	rec.signal = th->signal;
	rec.signal.fatal = fatal;
	th->process->fatal |= fatal;
	th->signal.signo = 0;
	tracer_emit(t, &rec);
}

static void keep_signal(struct tracer *t, struct tracee_thread *th, int signo)
{
	th->signal = (struct record_signal){
		.seq = ++t->seq,
		.start_ns = clock_real_ns(),
		.pid = (uint32_t)th->process->pid,
		.tid = (uint32_t)th->tid,
		.signo = (uint32_t)signo,
	};
}

/* 'status' (as waitpid's) is how the thread ends. */
static void flush_fatal(struct tracer *t, struct tracee_thread *th, int status)
{
	if (!WIFSIGNALED(status) || th->process->fatal) {
		flush_signal(t, th, false);
		return;
	}
	if (th->signal.signo != (uint32_t)WTERMSIG(status)) {
		flush_signal(t, th, false);
		keep_signal(t, th, WTERMSIG(status));
	}
	flush_signal(t, th, true);
}

static void call_end(struct tracer *t, struct tracee_thread *th, int64_t now_ns, bool unfinished)
{
	struct record rec = {.type = RECORD_CALL};

	if (!th->in_call)
		return;
	th->in_call = false;
	th->call.service_ns = now_ns - th->entry_ns;
	th->call.unfinished = unfinished;
	rec.call = th->call;
	if (call_wanted(&t->filter, &rec.call))
		fds_emit(t, th, &rec);
}

/* Checks the descriptors that the call uses, if it is written. */
static void check_fds(struct tracer *t, struct tracee_thread *th, const struct call_info *info)
{
	const struct record_call *c = &th->call;

	if (!info || !call_wanted(&t->filter, c)) {
		fds_keep(t, th, -1);
		return;
	}
	if (info->fd >= 0)
		fds_check(t, th, (int)c->args[info->fd]);
	if (info->fd2 >= 0)
		fds_check(t, th, (int)c->args[info->fd2]);
	fds_keep(t, th, info->fd >= 0 ? (int)c->args[info->fd] : -1);
}

/* As in diag/capture/ebpf/trace.bpf.c. Files in memory are recognised by their paths. */
static void note_mapping(struct tracer *t, const struct tracee_thread *th)
{
	static const char *const memory[] = {"/dev/shm/", "/memfd:", "/dev/zero", "/SYSV", NULL};
	const struct record_call *c = &th->call;
	const struct fd_state *s = fdtable_get(t->fds, c->pid, (int32_t)c->args[4]);
	bool disk = s &&
		(s->now.kind == FD_FILE || (s->now.kind == FD_DEVICE && !s->now.tag.inode));

	if ((c->result < 0 && c->result >= -4095) || !disk || !(c->args[3] & MAP_SHARED) ||
		(c->args[3] & MAP_ANONYMOUS))
		return;
	for (size_t i = 0; memory[i]; i++)
		disk = disk && strncmp(s->now.path, memory[i], strlen(memory[i])) != 0;
	t->unseen[UNSEEN_MAPPINGS] += disk;
}

/* 'now_ns' is CLOCK_MONOTONIC right after the wait. */
static void syscall_stop(struct tracer *t, struct tracee_thread *th, int64_t now_ns)
{
	struct __ptrace_syscall_info info;
	struct record_call *c = &th->call;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, th->tid, sizeof(info), &info) < 0)
		return; /* killed; its end will be reported */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		c->pid = (uint32_t)th->process->pid;
		c->tid = (uint32_t)th->tid;
		c->nr = (uint32_t)info.entry.nr;
		if (info.arch != NATIVE_ARCH) {
			c->nr |= RECORD_FOREIGN_NR;
			t->unseen[UNSEEN_FOREIGN]++;
		}
		for (int i = 0; i < 6; i++)
			c->args[i] = info.entry.args[i];
		c->result = 0;
		check_fds(t, th, call_info(t->calls, c->nr));
		call_enter(t, th, call_info(t->calls, c->nr));
		c->seq = ++t->seq;
		th->in_call = true;
		if (c->nr == SYS_io_submit)
			async_submit(t, th);
		/* As late as possible: the kernel begins the call when the thread is resumed. */
		c->start_ns = clock_real_ns();
		th->entry_ns = clock_ns(CLOCK_MONOTONIC);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && th->in_call) {
		c->result = info.exit.rval;
		/* A seccomp filter that answers with SIGSYS restores the registers. */
		if (c->result == (int64_t)(c->nr & ~RECORD_FOREIGN_NR) &&
			is_pending(th->tid, SIGSYS)) {
			c->result = 0;
			call_end(t, th, now_ns, true);
			return;
		}
		call_exit(th, call_info(t->calls, c->nr));
		/* Interrupted by our own detaching: the thread is still inside the call, and
		 * restarts it. */
		async_exit(t, th, now_ns);
		if (c->nr == SYS_mmap)
			note_mapping(t, th);
		call_end(t, th, now_ns, t->leaving && c->result <= -512 && c->result >= -516);
		if (c->nr < MAX_ACTION && t->action[c->nr])
			fds_call(t, th->process, c);
	}
}

/* exec leaves one thread, with the leader's number, even if another thread called it. */
static struct tracee_thread *exec_stop(struct tracer *t, struct tracee_thread *th)
{
	struct tracee_process *p = th->process;
	unsigned long former = (unsigned long)th->tid;

	ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &former);
	if (former != (unsigned long)th->tid && former < MAX_PID && t->thread[former]) {
		struct tracee_thread *caller = t->thread[former];
		pid_t tid = th->tid;

		call_end(t, th, clock_ns(CLOCK_MONOTONIC), true);
		emit_process(t, PROCESS_EXIT, p->pid, (pid_t)former, 0);
		p->threads++; /* must outlive both */
		thread_drop(t, th);
		t->thread[former] = NULL;
		caller->tid = tid;
		caller->call.tid = (uint32_t)tid;
		t->thread[tid] = caller;
		p->threads--;
		th = caller;
	}
	if (p->pid == t->child && !t->child_running) {
		t->child_running = true;
		emit_process(t, PROCESS_START, p->pid, p->pid, 0);
	} else {
		emit_process(t, PROCESS_EXEC, p->pid, p->pid, 0);
	}
	fds_scan(t, p, clock_real_ns());
	return th;
}

static void exit_stop(struct tracer *t, struct tracee_thread *th, int64_t now_ns)
{
	unsigned long status = 0;

	if (ptrace(PTRACE_GETEVENTMSG, th->tid, 0, &status) == 0)
		flush_fatal(t, th, (int)status);
	call_end(t, th, now_ns, true);
}

static void thread_gone(struct tracer *t, struct tracee_thread *th, int status, int64_t now_ns)
{
	struct tracee_process *p = th->process;

	if (p->pid == t->child && th->tid == t->child)
		t->child_status = status;
	if (p->pid != t->child || t->child_running) {
		flush_fatal(t, th, status);
		call_end(t, th, now_ns, true);
		emit_process(t, PROCESS_EXIT, p->pid, th->tid, status);
	}
	thread_drop(t, th);
}

/* First stop of a thread that the kernel attached for us. */
static struct tracee_thread *thread_new(struct tracer *t, pid_t tid)
{
	long pid = status_field(tid, "\nTgid:");
	struct tracee_process *p;
	struct tracee_thread *th;

	if (pid <= 0)
		pid = tid; /* already killed; its end will be reported */
	p = process_add(t, (pid_t)pid, true);
	if (!p) {
		t->failed = err_set(&t->err, -ENOMEM, "out of memory");
		return NULL;
	}
	th = thread_add(t, p, tid);
	if (!th)
		return NULL;
	th->live = true;
	if (tid != pid)
		emit_process(t, PROCESS_START, (pid_t)pid, tid, 0);
	return th;
}

static void thread_live(struct tracer *t, struct tracee_thread *th)
{
	struct tracee_process *p = th->process;

	th->live = true;
	t->unstopped--;
	if (th->tid != p->pid)
		emit_process(t, PROCESS_START, p->pid, th->tid, 0);
	/* Finds descriptors changed while only some of the threads were under trace. */
	if (--p->unstopped == 0 && p->pid != t->child)
		fds_scan(t, p, p->attached_ns);
}

static void detach_thread(struct tracer *t, struct tracee_thread *th, int signo, int64_t now_ns)
{
	if (ptrace(PTRACE_DETACH, th->tid, 0, signo) < 0 && errno == ESRCH)
		return; /* killed; its end will be reported */
	flush_signal(t, th, false);
	call_end(t, th, now_ns, true);
	thread_drop(t, th);
}

static void handle_stop(struct tracer *t, struct tracee_thread *th, int status, int64_t now_ns)
{
	int event = (status >> 16) & 0xff, sig = WSTOPSIG(status), request = PTRACE_SYSCALL,
	    inject = 0;

	if (!th->live)
		thread_live(t, th);
	if (event == PTRACE_EVENT_EXIT) {
		exit_stop(t, th, now_ns);
	} else {
		flush_signal(t, th, false);
		if (event == PTRACE_EVENT_EXEC)
			th = exec_stop(t, th);
		else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
			request = PTRACE_LISTEN; /* a group stop: stays stopped until SIGCONT */
		else if (sig == (SIGTRAP | 0x80))
			syscall_stop(t, th, now_ns);
		else if (!event) {
			keep_signal(t, th, sig);
			inject = sig;
		}
	}
	if (t->leaving || t->failed)
		detach_thread(t, th, inject, now_ns);
	else {
		ptrace(request, th->tid, 0, inject);
		t->last = th->tid;
	}
}

static void handle_event(struct tracer *t)
{
	struct tracee_thread *th;
	int64_t now_ns;
	int status;
	pid_t tid = wait_event(t->last, &status);

	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (tid < 0) {
		if (errno == ECHILD)
			t->threads = 0;
		return;
	}
	th = t->thread[tid];
	if (!WIFSTOPPED(status)) {
		if (th)
			thread_gone(t, th, status, now_ns);
		return;
	}
	if (!th)
		th = thread_new(t, tid);
	if (th)
		handle_stop(t, th, status, now_ns);
	else
		ptrace(PTRACE_DETACH, tid, 0, 0);
}

int tracer_step(struct tracer *t, struct err *e)
{
	if (!t->threads)
		return 0;
	handle_event(t);
	if (t->failed) {
		if (e)
			*e = t->err;
		return t->failed;
	}
	return t->threads ? 1 : 0;
}

void tracer_detach(struct tracer *t)
{
	/* A thread blocked in disk I/O cannot stop; the kernel detaches it when the tracer ends. */
	const double deadline = clock_mono_s() + 5;

	t->leaving = true;
	t->last = 0;
	for (pid_t tid = 1; tid <= t->top_tid; tid++)
		if (t->thread[tid])
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	while (t->threads && clock_mono_s() < deadline)
		handle_event(t);
	for (pid_t tid = 1; tid <= t->top_tid; tid++)
		if (t->thread[tid]) {
			call_end(t, t->thread[tid], clock_ns(CLOCK_MONOTONIC), true);
			thread_drop(t, t->thread[tid]);
		}
	async_end(t, 0);
}
