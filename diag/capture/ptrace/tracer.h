/*
 * The tracer's internals: threads and processes under trace, and the loop that steps them.
 *
 * A call that a thread is inside of when it is attached is not recorded. Attaching stops each
 * thread once. The kernel restarts the call that this interrupts, except those that signal(7) lists
 * as ending with EINTR on any stop (epoll_wait, semop ...).
 */
#ifndef CULPRIT_DIAG_CAPTURE_PTRACE_TRACER_H
#define CULPRIT_DIAG_CAPTURE_PTRACE_TRACER_H

#include <sys/types.h>

#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "diag/capture/capture.h"
#include "harness/base/err.h"

struct tracee_process {
	pid_t pid;
	unsigned threads;
	unsigned unstopped;  /* attached, but not seen to stop yet */
	int pidfd;           /* -1 until needed */
	bool fatal;          /* the signal that kills it has been recorded */
	int64_t attached_ns; /* CLOCK_REALTIME, before its first thread was stopped */
};

struct tracee_thread {
	pid_t tid;
	struct tracee_process *process;
	bool live; /* has stopped once: its calls are seen from now on */
	bool in_call;
	bool append;      /* writes to the end of a file */
	int64_t entry_ns; /* CLOCK_MONOTONIC of call.start_ns */
	struct record_call call;
	uint64_t submitted; /* io_submit: examined operations of its list */
	/* meaning of the call's descriptor when it began; path NULL: none */
	struct record_fd about;
	char *paths; /* memory of call.path and call.path2; NULL until needed */
	struct record_signal
		signal; /* delivered; written when its effect is known; signo 0: none */
};

enum {
	MAX_ACTION = 1024, /* limit of call numbers */
	MAX_PID = 1 << 22, /* PID_MAX_LIMIT of 64-bit kernels */
};

struct tracer {
	struct log_writer *log;
	struct fdtable *fds;
	struct tags *tags;
	const struct call_arch *calls;
	struct trace_filter filter;      /* 'calls' and 'tids' select the calls that are written */
	struct tracee_thread **thread;   /* by tid */
	struct tracee_process **process; /* by pid */
	pid_t top_tid;                   /* highest number in 'thread' so far */
	unsigned threads, unstopped;
	uint64_t seq, lost;
	void *asyncs; /* operations in progress: async.c's, a tree (tsearch(3)) */
	size_t n_asyncs;
	uint64_t unseen[UNSEEN_COUNT]; /* enum unseen */
	pid_t last;                    /* thread that was resumed last */
	uint8_t *action;               /* the effect of call nr on descriptors, see fds.c */
	pid_t child;                   /* launched command, or 0 */
	int child_status;
	bool child_running; /* its exec has succeeded */
	bool leaving;       /* detach every thread that stops */
	int failed;         /* the log could not be written: 'err' */
	struct err err;
};

/* The caller keeps owning 'log'. */
int tracer_new(struct log_writer *log, struct tracer **out, struct err *e);
void tracer_free(struct tracer *t);

/* Attaches to all threads of 'pid'. -ESRCH, -EPERM with what to do. */
int tracer_attach(struct tracer *t, pid_t pid, struct err *e);

/* Likewise for processes that the attached processes forked earlier. Later forks are followed, so a
 * pass that finds no new process has found all. */
int tracer_attach_descendants(struct tracer *t, const pid_t *pids, size_t n, struct err *e);

/* Starts argv under trace; the first recorded call is the first one after exec. -errno of exec. */
int tracer_launch(struct tracer *t, char **argv, struct err *e);

/* Handles one event, or EINTR. 1; 0 when no thread is left; -errno if the log failed. */
int tracer_step(struct tracer *t, struct err *e);

/* True once every thread of the attached processes has stopped once, or the command was
 * executed. */
bool tracer_ready(const struct tracer *t);

/* Detaches all threads and waits for that, at most 5 s if a timer interrupts it now and then; also
 * after errors of the log. */
void tracer_detach(struct tracer *t);

/* Writes 'rec' and applies it to the tables; keeps a failure in t->failed. */
void tracer_emit(struct tracer *t, struct record *rec);

/* fds.c: calls that change descriptors, and the records for them. */
int fds_actions(struct tracer *t);
void fds_scan(struct tracer *t, struct tracee_process *p, int64_t since_ns);
void fds_call(struct tracer *t, struct tracee_process *p, const struct record_call *c);

/* The thread is about to use 'fd': writes its meaning if the log's table differs. The descriptor
 * may have been changed by a process that shares the table, by io_uring, by a 32-bit call, or
 * through seccomp. Ignores AT_FDCWD. */
void fds_check(struct tracer *t, struct tracee_thread *th, int fd);

/* Keeps the meaning of 'fd' (-1: the call has none) until the thread's call ends; fds_emit then
 * writes the call's record, with the kept meaning before it, and the new meaning after it if it has
 * changed. */
void fds_keep(struct tracer *t, struct tracee_thread *th, int fd);
void fds_emit(struct tracer *t, struct tracee_thread *th, struct record *rec);

/* sockets.c: fills in addresses and type of the socket 'fd' (f->path is its link's target). */
void socket_addresses(struct tracee_process *p, int fd, struct record_fd *f);
/* Likewise from /proc/PID/net/{tcp,udp}*, by inode; false if it is not listed. */
bool socket_from_tables(pid_t pid, unsigned long inode, struct record_fd *f);

/* tags.c: fills in kind and tag of the target of 'link' (/proc/PID/fd/N); a file that was seen
 * before has the time of its first sight. A file recreated under a used inode number is a different
 * file. False: no target. */
struct tags *tags_new(void); /* NULL: out of memory */
void tags_free(struct tags *t);
bool tags_describe(struct tags *t, const char *link, int64_t now_ns, struct record_fd *f);

/* calls.c: fills in path, path2 and offset of the call that the thread enters ('info' may be NULL),
 * and decides whether it is written. */
void call_enter(const struct tracer *t, struct tracee_thread *th, const struct call_info *info);
/* Corrects the offset from the call's result. */
void call_exit(struct tracee_thread *th, const struct call_info *info);
bool call_wanted(const struct trace_filter *f, const struct record_call *c);

/* async.c: for the entry of io_submit and the exit of every call; async_end for a process that ends
 * or executes another program (0: all, when the tracer detaches). */
void async_submit(struct tracer *t, struct tracee_thread *th);
void async_exit(struct tracer *t, struct tracee_thread *th, int64_t now_ns);
void async_end(struct tracer *t, pid_t pid);
void async_free(struct tracer *t);

/* bias.c: median service time of a call that does nothing, under this tracer; 0: not measurable. */
int64_t bias_measure_ns(void);

/* Waits for a stop or the end of any thread. 'last' is the thread of the last stop (0: none), which
 * wait.c uses to choose the core. */
pid_t wait_event(pid_t last, int *status);

#endif
