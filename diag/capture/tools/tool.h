/*
 * External tracers: a program that records to a file of its own format, started, watched and
 * stopped as capture.h promises of tracers. The command that is to be recorded, if there is one, is
 * our own child, as with every tracer, and waits until the tool is ready. Between us and the tool
 * stands a keeper, which is deaf to signals: whoever stops a traced program signals all our
 * children.
 */
#ifndef CULPRIT_DIAG_CAPTURE_TOOLS_TOOL_H
#define CULPRIT_DIAG_CAPTURE_TOOLS_TOOL_H

#include "diag/capture/capture.h"
#include "diag/capture/launch.h"

struct external {
	const struct trace_request *request;
	const char *name; /* for sentences */
	pid_t tool;       /* 0: ended */
	pid_t keeper;     /* its parent; 0: ended */
	pid_t command;    /* 0: none, or ended */
	struct launch launch;
	const pid_t *pids; /* what is recorded: the request's, or the command */
	size_t n_pids;

	/* Words to start the tool with, ended by NULL; it writes to the request's 'out', which is
	 * there and empty. */
	const char *const *argv;
	int stop_signal;
	int death_signal;    /* what it gets if we die */
	bool ends_by_itself; /* when all that is recorded has ended; else it is stopped then */
	/* Asked every few milliseconds. Has it begun? May it be stopped now (NULL: at any time)? */
	bool (*is_ready)(const struct external *x);
	bool (*is_calm)(struct external *x);
	/* Last word on the file once the tool has ended (NULL: none). 'code': its exit code, or
	 * 128+signal; 'told': it was sent the stop signal. -errno: not whole. */
	int (*finish)(struct external *x, int code, bool told, struct err *e);
	int64_t size_bytes; /* for the tool's own use */
};

/* Absolute path of the program in PATH or one of the folders (ended by NULL, may be NULL); NULL: it
 * is not there. The caller frees. */
char *external_find(const char *program, const char *const *folders);

/* Begins: makes the file, and the command's process if there is one, so that 'pids' are known. 0,
 * or an exit code, having said why. */
int external_begin(struct external *x);
/* Starts the tool and does all the rest; returns as a tracer does. */
int external_run(struct external *x);

#endif
