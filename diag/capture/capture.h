/*
 * Tracers, as everybody starts them:
 *
 *   culprit-agent trace [--tracer NAME] [--mode sums|events|flow] [--heads] [--causal] [filters]
 *                       --out FILE [--ready-fd N] (-p PID ... | -- COMMAND ...)
 *
 * With -p it attaches to every thread of the processes, follows what they start, and on
 * SIGTERM, SIGINT or SIGHUP, on a failed write, or when all have ended, detaches and closes the
 * log; the processes continue as if nothing had been. With a command it starts that, passes those
 * signals on to it, ends when the last process has ended, and returns the command's exit code
 * (128+signal if it was killed; 127 if there is no such program). On SIGQUIT (TRACE_LEAVE), and
 * when the command has not ended 5 s after SIGTERM or SIGHUP, it detaches and closes the log with a
 * command as well; if that continues, the exit code is 0.
 *
 * With --ring TIME only the last so many seconds are kept, in memory, and written to FILE at the
 * end; on SIGUSR1 also to FILE.1, FILE.2 ..., which are there once they are whole. --control-fd N
 * takes lines: "off" and "on" end and begin the recording of calls (processes and descriptors are
 * followed all the time), "filter WORDS" chooses which (choice.h) in place of those chosen before,
 * "write" does as SIGUSR1. RECORD_MARK says it in the log. A socket gets the line back once it is
 * done, or a line that begins with "error". ebpf only.
 *
 * Once everything is attached (the command started), the line "ready" is written to descriptor N.
 * Exit code without a command: 0 log whole; 2 usage, no such process, no permission;
 * 3 the log could not be written to its end (also with a command).
 *
 * A tracer is one function, which does all that for a request that has been read and checked.
 */
#ifndef CULPRIT_DIAG_CAPTURE_CAPTURE_H
#define CULPRIT_DIAG_CAPTURE_CAPTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/base/err.h"

struct choice;

enum trace_mode {
	TRACE_EVENTS, /* every selected call is a record */
	TRACE_SUMS,   /* one RECORD_SUM per second, process, class of call and of descriptor */
	TRACE_FLOW,   /* events, and what ties them together: see record_call.positioned */
};

/* What is recorded; all that is given must hold ("any of" within one list). All zero: everything.
 * ptrace takes 'calls' and 'tids' only, and refuses the others. */
struct trace_filter {
	const uint32_t *calls; /* numbers on this machine's architecture */
	size_t n_calls;
	const pid_t *tids; /* threads, as this process sees their numbers */
	size_t n_tids;
	const char *cgroup; /* folder of a cgroup v2: its processes and those of cgroups below it */
	/* Absolute path prefixes: calls on descriptors of files at or below one, and calls that
	 * name such a file. */
	const char *const *paths;
	size_t n_paths;
	const struct choice *choice; /* choice.h, but for paths; or NULL. ebpf: while it runs, a
				      * control line puts another in the place of it and 'paths' */
};

struct trace_request {
	/* "auto": ebpf, or ptrace with a word on standard error where the kernel refuses. */
	const char *tracer;
	enum trace_mode mode;
	/* TRACE_SUMS: messages of more bytes (0: none) are summed apart, as bulk data; those of
	 * 'bulk_header' bytes at most are only their headers, and not counted. */
	uint64_t bulk_above;
	uint32_t bulk_header;
	bool heads;      /* TRACE_FLOW: record_call.head, too */
	bool causal;     /* TRACE_FLOW: record_call.cpu_ns and record_fd.peer, too */
	const char *out; /* file to make */
	int ready_fd;    /* -1: none */
	const pid_t *pids;
	size_t n_pids;
	bool skip_ended;     /* ebpf, ptrace: no error if some of pids, but not all, have ended */
	bool no_descendants; /* ebpf, ptrace, strace: not what pids have forked before */
	char **command;      /* ended by NULL; or NULL: pids are given */
	struct trace_filter filter;
	/* A flight recorder: the log has only the last 'ring_ns' (0: all), 'ring_bytes' at most.
	 * SIGUSR1 writes them into OUT.1, OUT.2 ... too. */
	int64_t ring_ns;
	uint64_t ring_bytes;
	/* The log's bound (log_writer_bound): it is taken away while it is written. 0: none */
	uint64_t bound_bytes;
	int control_fd;        /* 0: none; lines come from it, as above */
	uint64_t memory_bytes; /* most that buffers in the kernel may take; 0: 64 MiB. Besides
				* them go up to 3 MiB for descriptors, files and threads, and
				* 3 MiB for asynchronous operations under way */
};

#define TRACE_LEAVE SIGQUIT

enum trace_exit {
	TRACE_EXIT_OK,
	TRACE_EXIT_USAGE = 2,
	TRACE_EXIT_NOT_WHOLE = 3,
	TRACE_EXIT_NO_PROGRAM = 127
};

/* Runs until it is told to stop and returns an exit code as above. The reason for one that is not 0
 * goes to standard error. -EOPNOTSUPP with the reason in 'why', nothing touched: this kernel, or
 * this user, cannot run it. */
typedef int (*trace_fn)(const struct trace_request *r, struct err *why);

enum trace_output {
	OUTPUT_LOG,   /* diag/record: 'culprit log' prints it */
	OUTPUT_OTHER, /* as the program of that name writes it */
};

enum {
	FILTER_CALLS = 1,
	FILTER_TIDS = 2,
	FILTER_CGROUP = 4,
	FILTER_PATHS = 8,
	TAKES_CONTROL = 16, /* no filter: ring_ns, control_fd */
	FILTER_CHOICE = 32,
};

/* All that the rest of the program knows of a tracer. */
struct trace_kind {
	const char *name;
	trace_fn trace;
	unsigned modes;   /* bits 1 << enum trace_mode */
	unsigned filters; /* FILTER_* */
	enum trace_output output;
	bool automatic;     /* "auto" may take it; in the order of the table */
	const char *limits; /* the sentence for a mode or filter that it does not have */
};

/* Ended by an entry without a name. */
extern const struct trace_kind trace_kinds[];

/* NULL: there is none of that name. */
const struct trace_kind *trace_kind(const char *name);

/* Traces with 'k', or -EOPNOTSUPP if it does not have the request's mode or filters. */
int trace_run(const struct trace_kind *k, const struct trace_request *r, struct err *why);

int ptrace_trace(const struct trace_request *r, struct err *why);  /* Kasick et al. 2009: syscap */
int strace_trace(const struct trace_request *r, struct err *why);  /* the program, its text */
int sysstat_trace(const struct trace_request *r, struct err *why); /* sadc, its binary file */
int sampler_trace(const struct trace_request *r, struct err *why); /* readings, once a second */
int ebpf_trace(const struct trace_request *r, struct err *why);

int trace_main(int argc, char **argv);

/* A tracer as it will be used: kernels refuse one mode's programs and load another's. */
struct tracer_try {
	const char *tracer, *mode; /* mode: NULL: the tracer's own */
	bool heads;
	int64_t memory_bytes; /* 0: the tracer's own */
};

/* Tries it on a program that does nothing, with its log in 'dir', for 20 s at most. 0; -EOPNOTSUPP
 * with the reason. */
int trace_able(const struct tracer_try *t, const char *dir, struct err *why);

/* For tracers. Signals that say stop are caught from here on; SIGALRM ticks every 250 ms, so that
 * no wait is longer and a signal that came just before a wait is seen. */
void trace_signals(void);

/* Number of the signal that says stop, 0: none yet. Negative: a terminal sent it to the command
 * too. Reset when taken. TRACE_LEAVE also when a command has had its time (trace_pass_stop). */
int trace_take_stop(void);
/* Passes what trace_take_stop returned (above 0) on to the command. Unless we trace it by ptrace:
 * also if it has asked for that itself, and waits in a stop. */
void trace_pass_stop(pid_t command, int signo, bool by_ptrace);
/* True once after each tick. */
bool trace_take_tick(void);
/* True once after each SIGUSR1. */
bool trace_take_write(void);

void trace_ready(const struct trace_request *r);    /* once */
int trace_complain(int code, const char *sentence); /* returns code */
int trace_exit_code(int wait_status);

#endif
