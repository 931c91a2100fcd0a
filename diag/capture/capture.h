/*
 * Tracers and their common interface:
 *
 *   culprit-agent trace [--tracer NAME] [--mode sums|events|flow] [--heads] [--causal] [filters]
 *                       --out FILE [--ready-fd N] (-p PID ... | -- COMMAND ...)
 *
 * With -p the tracer attaches to every thread of the processes and follows their new descendants.
 * On SIGTERM, SIGINT or SIGHUP, on a failed write, or when all have ended, it detaches and closes
 * the log; the processes continue normally. With a command the tracer starts it, passes those
 * signals on to it, ends when the last process has ended, and returns the command's exit code
 * (128+signal if it was killed; 127 if there is no such program). On SIGQUIT (TRACE_LEAVE), and if
 * the command has not ended 5 s after SIGTERM or SIGHUP, the tracer also detaches from a command
 * and closes the log; if the command continues, the exit code is 0.
 *
 * With --ring TIME only the last TIME is kept, in memory, and written to FILE at the end; on
 * SIGUSR1 also to FILE.1, FILE.2 ..., which appear when they are complete. --control-fd N takes
 * lines: "off" and "on" end and begin the recording of calls (processes and descriptors are always
 * followed), "filter WORDS" replaces the selection of calls (choice.h), "write" does the same as
 * SIGUSR1. The log has a RECORD_MARK for each change. A socket gets the line back when it is in
 * effect, or a line that begins with "error". ebpf only.
 *
 * When everything is attached (the command started), the line "ready" is written to descriptor N.
 * Exit code without a command: 0 complete log; 2 usage, no such process, no permission; 3 the log
 * could not be written to its end (also with a command).
 *
 * A tracer is one function, which does all this for a parsed and checked request.
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
	TRACE_FLOW,   /* events, with what connects them across nodes: see record_call.positioned */
};

/* The selection of calls; all given conditions must hold, and any entry within one list. All zero:
 * everything. ptrace takes only 'calls' and 'tids', and refuses the others. */
struct trace_filter {
	const uint32_t *calls; /* numbers on this machine's architecture */
	size_t n_calls;
	const pid_t *tids; /* threads, numbered as this process sees them */
	size_t n_tids;
	/* Folder of a cgroup v2: selects its processes and those of cgroups below it. */
	const char *cgroup;
	/* Absolute path prefixes: calls on descriptors of files at or below one, and calls that
	 * name such a file. */
	const char *const *paths;
	size_t n_paths;
	/* choice.h, without paths; or NULL. ebpf: a control line replaces it and 'paths' at run
	 * time. */
	const struct choice *choice;
};

struct trace_request {
	/* "auto": ebpf, or, with a note on standard error, ptrace if the kernel refuses ebpf. */
	const char *tracer;
	enum trace_mode mode;
	/* TRACE_SUMS: messages of more bytes (0: none) are bulk data and summed separately;
	 * messages of at most 'bulk_header' bytes are bare headers, and not counted. */
	uint64_t bulk_above;
	uint32_t bulk_header;
	bool heads;      /* TRACE_FLOW: with record_call.head */
	bool causal;     /* TRACE_FLOW: with record_call.cpu_ns and record_fd.peer */
	const char *out; /* file to create */
	int ready_fd;    /* -1: none */
	const pid_t *pids;
	size_t n_pids;
	bool skip_ended;     /* ebpf, ptrace: no error if some of pids, but not all, have ended */
	bool no_descendants; /* ebpf, ptrace, strace: leave out existing descendants */
	char **command;      /* NULL at the end; or NULL: pids are given */
	struct trace_filter filter;
	/* A flight recorder: the log has only the last 'ring_ns' (0: all), at most 'ring_bytes'.
	 * SIGUSR1 also writes these into OUT.1, OUT.2 ... */
	int64_t ring_ns;
	uint64_t ring_bytes;
	/* The log's bound (log_writer_bound): it is taken away while it is written. 0: none. */
	uint64_t bound_bytes;
	int control_fd; /* 0: none; control lines, see above */
	/* Limit of buffers in the kernel; 0: 64 MiB. In addition up to 3 MiB for descriptors, files
	 * and threads, and 3 MiB for asynchronous operations in progress. */
	uint64_t memory_bytes;
};

#define TRACE_LEAVE SIGQUIT

enum trace_exit {
	TRACE_EXIT_OK,
	TRACE_EXIT_USAGE = 2,
	TRACE_EXIT_NOT_WHOLE = 3,
	TRACE_EXIT_NO_PROGRAM = 127
};

/* Runs until it is stopped, and returns an exit code as above; prints the reason for a non-zero one
 * on standard error. -EOPNOTSUPP with the reason in 'why', without any effect: this kernel, or this
 * user, cannot run it. */
typedef int (*trace_fn)(const struct trace_request *r, struct err *why);

enum trace_output {
	OUTPUT_LOG,   /* diag/record: 'culprit log' prints it */
	OUTPUT_OTHER, /* in that program's own format */
};

enum {
	FILTER_CALLS = 1,
	FILTER_TIDS = 2,
	FILTER_CGROUP = 4,
	FILTER_PATHS = 8,
	TAKES_CONTROL = 16, /* not a filter: ring_ns, control_fd */
	FILTER_CHOICE = 32,
};

/* The description of a tracer for the rest of the program. */
struct trace_kind {
	const char *name;
	trace_fn trace;
	unsigned modes;   /* bits 1 << enum trace_mode */
	unsigned filters; /* FILTER_* */
	enum trace_output output;
	bool automatic;     /* "auto" may choose it; in the order of the table */
	const char *limits; /* the error for an unsupported mode or filter */
};

/* The last entry has no name. */
extern const struct trace_kind trace_kinds[];

/* NULL: unknown name. */
const struct trace_kind *trace_kind(const char *name);

/* Traces with 'k'; -EOPNOTSUPP if it does not support the request's mode or filters. */
int trace_run(const struct trace_kind *k, const struct trace_request *r, struct err *why);

int ptrace_trace(const struct trace_request *r, struct err *why);  /* Kasick et al. 2009: syscap */
int strace_trace(const struct trace_request *r, struct err *why);  /* strace, in its own format */
int sysstat_trace(const struct trace_request *r, struct err *why); /* sadc, in its own format */
int sampler_trace(const struct trace_request *r, struct err *why); /* readings, once a second */
int ebpf_trace(const struct trace_request *r, struct err *why);

int trace_main(int argc, char **argv);

/* The configuration to try: a kernel may refuse one mode's programs and load another's. */
struct tracer_try {
	const char *tracer, *mode; /* mode: NULL: the tracer's default */
	bool heads;
	int64_t memory_bytes; /* 0: the tracer's default */
};

/* Tries it on a program that does nothing, with its log in 'dir', for at most 20 s. 0; -EOPNOTSUPP
 * with the reason. */
int trace_able(const struct tracer_try *t, const char *dir, struct err *why);

/* For tracers: catches the stop signals from now on. SIGALRM ticks every 250 ms, which limits each
 * wait, so that a signal just before a wait is not missed. */
void trace_signals(void);

/* The stop signal received, 0: none. Negative: a terminal has sent it to the command as well.
 * Resets it. TRACE_LEAVE also when a command's time is up (trace_pass_stop). */
int trace_take_stop(void);
/* Passes a signal above 0 from trace_take_stop on to the command. Unless it is traced by ptrace:
 * also wakes a command that waits in a ptrace stop that it requested. */
void trace_pass_stop(pid_t command, int signo, bool by_ptrace);
/* True once after each tick. */
bool trace_take_tick(void);
/* True once after each SIGUSR1. */
bool trace_take_write(void);

void trace_ready(const struct trace_request *r);    /* once */
int trace_complain(int code, const char *sentence); /* returns code */
int trace_exit_code(int wait_status);

#endif
