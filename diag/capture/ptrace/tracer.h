/*
 * The tracer's inside: threads and processes under trace, and the loop that moves them.
 *
 * What is not recorded: a call that a thread was already inside when it was attached.
 * Attaching stops each thread once; the kernel restarts the call that this interrupts, but
 * for those that signal(7) names as ending with EINTR on any stop (epoll_wait, semop ...).
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
	unsigned unstopped;  /* attached by us and not seen to stop yet */
	int pidfd;           /* -1 until it is needed */
	bool fatal;          /* the signal that kills it has been recorded */
	int64_t attached_ns; /* CLOCK_REALTIME, before its first thread was stopped */
};

struct tracee_thread {
	pid_t tid;
	struct tracee_process *process;
	bool live; /* has stopped once: its calls are seen from here on */
	bool in_call;
	bool append;      /* a write to the end of a file */
	int64_t entry_ns; /* CLOCK_MONOTONIC of call.start_ns */
	struct record_call call;
	uint64_t submitted;     /* io_submit: operations of its list that were examined */
	struct record_fd about; /* what the call's descriptor was when it began; path NULL: none */
	char *paths;            /* where call.path and call.path2 are; NULL until there are any */
	struct record_signal
		signal; /* delivered, to be written when its effect is known; signo 0: none */
};

enum {
	MAX_ACTION = 1024, /* call numbers are below it */
	MAX_PID = 1 << 22, /* PID_MAX_LIMIT of 64-bit kernels */
};

struct tracer {
	struct log_writer *log;
	struct fdtable *fds;
	struct tags *tags;
	const struct call_arch *calls;
	struct trace_filter filter;      /* of it, calls and tids: whose calls are written */
	struct tracee_thread **thread;   /* by tid */
	struct tracee_process **process; /* by pid */
	pid_t top_tid;                   /* highest number in 'thread' so far */
	unsigned threads, unstopped;
	uint64_t seq, lost;
	void *asyncs; /* operations that are under way: async.c's, a tree (tsearch(3)) */
	size_t n_asyncs;
	uint64_t unseen[UNSEEN_COUNT]; /* enum unseen */
	pid_t last;                    /* thread that was resumed last */
	uint8_t *action;               /* what call nr does to descriptors, see fds.c */
	pid_t child;                   /* launched command, or 0 */
	int child_status;
	bool child_running; /* its exec has succeeded */
	bool leaving;       /* detach every thread that stops */
	int failed;         /* the log could not be written: 'err' */
	struct err err;
};

/* 'log' stays the caller's. */
int tracer_new(struct log_writer *log, struct tracer **out, struct err *e);
void tracer_free(struct tracer *t);

/* Attaches to all threads of 'pid'. -ESRCH, -EPERM with what to do. */
int tracer_attach(struct tracer *t, pid_t pid, struct err *e);

/* ... and to what the processes, which are attached, had forked before. What is forked later is
 * followed, so a look that finds nothing new has found all. */
int tracer_attach_descendants(struct tracer *t, const pid_t *pids, size_t n, struct err *e);

/* Starts argv under trace; its first recorded call is the first one after exec. -errno of exec. */
int tracer_launch(struct tracer *t, char **argv, struct err *e);

/* Handles one event, or EINTR. 1; 0 when no thread is left; -errno when the log failed. */
int tracer_step(struct tracer *t, struct err *e);

/* True once every thread of the attached processes has stopped once (the command has been
 * executed). */
bool tracer_ready(const struct tracer *t);

/* Detaches everything and waits for it, 5 s at most if a timer interrupts it now and then; errors
 * of the log do not hold it up. */
void tracer_detach(struct tracer *t);

/* Writes 'rec' and takes note of it; a failure is kept in t->failed. */
void tracer_emit(struct tracer *t, struct record *rec);

/* fds.c: which calls change descriptors, and the records for them. */
int fds_actions(struct tracer *t);
void fds_scan(struct tracer *t, struct tracee_process *p, int64_t since_ns);
void fds_call(struct tracer *t, struct tracee_process *p, const struct record_call *c);

/* The thread is about to use 'fd': writes what it is, if the log's table says something else. It
 * may have been changed by a process that shares the table, by io_uring, by a 32-bit call, or
 * through seccomp. AT_FDCWD is ignored. */
void fds_check(struct tracer *t, struct tracee_thread *th, int fd);

/* Keeps what 'fd' is (-1: the call has none) until the call of the thread ends; then writes the
 * call's record, with that before it and what the descriptor is now behind it if it has changed. */
void fds_keep(struct tracer *t, struct tracee_thread *th, int fd);
void fds_emit(struct tracer *t, struct tracee_thread *th, struct record *rec);

/* sockets.c: fills addresses and type of the socket 'fd' (f->path is its link's target). */
void socket_addresses(struct tracee_process *p, int fd, struct record_fd *f);
/* The same from /proc/PID/net/{tcp,udp}*, by inode; false where it is not there. */
bool socket_from_tables(pid_t pid, unsigned long inode, struct record_fd *f);

/* tags.c: fills kind and tag of what 'link' (/proc/PID/fd/N) leads to; a file that has been met
 * before has the time of then. A file made anew under an inode number that was used before is
 * another. False: nothing there. */
struct tags *tags_new(void); /* NULL: out of memory */
void tags_free(struct tags *t);
bool tags_describe(struct tags *t, const char *link, int64_t now_ns, struct record_fd *f);

/* calls.c: fills path, path2 and offset of the call that the thread enters ('info' may be NULL); is
 * it to be written? */
void call_enter(const struct tracer *t, struct tracee_thread *th, const struct call_info *info);
/* What its result says of the position in the file. */
void call_exit(struct tracee_thread *th, const struct call_info *info);
bool call_wanted(const struct trace_filter *f, const struct record_call *c);

/* async.c: at the entry of io_submit, at the exit of every call; and when a process ends or runs
 * another program (0: all, as the tracer leaves). */
void async_submit(struct tracer *t, struct tracee_thread *th);
void async_exit(struct tracer *t, struct tracee_thread *th, int64_t now_ns);
void async_end(struct tracer *t, pid_t pid);
void async_free(struct tracer *t);

/* bias.c: median service time of a call that does nothing, traced as here; 0 if it cannot be
 * had. */
int64_t bias_measure_ns(void);

/* Waits for a stop or the end of any thread. 'last' is whose stop was seen last (0: nobody's):
 * wait.c says why. */
pid_t wait_event(pid_t last, int *status);

#endif
