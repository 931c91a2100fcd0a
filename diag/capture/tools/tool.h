/*
 * External tracers: a program that records to a file in its own format, run with the interface that
 * capture.h promises. The recorded command, if any, is our own child, as with every tracer, and
 * waits until the tool is ready. Between us and the tool is a keeper that ignores signals, because
 * a program that stops a tracer also signals its children.
 */
#ifndef CULPRIT_DIAG_CAPTURE_TOOLS_TOOL_H
#define CULPRIT_DIAG_CAPTURE_TOOLS_TOOL_H

#include "diag/capture/capture.h"
#include "diag/capture/launch.h"

struct external {
	const struct trace_request *request;
	const char *name; /* for messages */
	pid_t tool;       /* 0: ended */
	pid_t keeper;     /* its parent; 0: ended */
	pid_t command;    /* 0: none, or ended */
	struct launch launch;
	const pid_t *pids; /* the recorded processes: the request's, or the command */
	size_t n_pids;

	/* The tool's command line, NULL at the end; it writes to the request's 'out', which exists
	 * and is empty. */
	const char *const *argv;
	int stop_signal;
	int death_signal; /* signal for the tool if we die */
	/* ends when all recorded processes have ended; else it is stopped then */
	bool ends_by_itself;
	/* Polled every few milliseconds. Has it begun? May it be stopped now (NULL: at any
	 * time)? */
	bool (*is_ready)(const struct external *x);
	bool (*is_calm)(struct external *x);
	/* Checks the file after the tool has ended (NULL: no check). 'code': its exit code, or
	 * 128+signal; 'stopped': it was sent the stop signal. -errno: incomplete. */
	int (*finish)(struct external *x, int code, bool stopped, struct err *e);
	int64_t size_bytes; /* for the tool's code */
};

/* Absolute path of the program in PATH or one of the folders (NULL at the end, may be NULL); NULL:
 * not found. The caller frees. */
char *external_find(const char *program, const char *const *folders);

/* Creates the file, and the command's process if there is one, so that 'pids' are known. 0, or an
 * exit code after printing the reason. */
int external_begin(struct external *x);
/* Starts the tool and does everything else; returns as a tracer does. */
int external_run(struct external *x);

#endif
