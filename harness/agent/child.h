/* Programs that were started: their ends, their output, and waiting for them. */
#ifndef CULPRIT_HARNESS_AGENT_CHILD_H
#define CULPRIT_HARNESS_AGENT_CHILD_H

#include "harness/agent/handle.h"

#define TRACER_GRACE_S 3 /* for a tracer to detach and close its log */

struct child_spec {
	struct process_spec p; /* but for 'argv' and 'tag' */
	const char **argv;     /* the list is allocated */
	size_t n;

	int pipe[2];      /* from the child to 'readable'; -1: none */
	bool pipe_output; /* it takes stdout and stderr; else the child gets it as one more */
	double max_s;
	json_t *also; /* more members of the inverse, for a primitive that undoes more; borrowed */
};

#define CHILD_SPEC_INIT .p = {.in = -1, .out = -1, .err = -1, .pass = -1}, .pipe = {-1, -1}

int child_open_pipe(struct child_spec *s, struct err *e);
void child_spec_clear(struct child_spec *s);
static inline void auto_child_spec_(struct child_spec *s)
{
	child_spec_clear(s);
}

/* Forks, records, releases. On failure nothing runs, and the handle stays the caller's to free. */
int child_start(struct agent *a, struct handle *h, struct child_spec *s, struct err *e);

/* Reaps all that have ended. */
void children_reap(struct agent *a);

/* The state's deadline has passed, or its process has ended. */
void child_step(struct agent *a, struct handle *h);

/* Signals what 'parent' has started, by descent; SIGKILL reaches children's children, too. Returns
 * how many children there were. */
int child_signal_descent(pid_t parent, int signo);

/* Signals it, and has it undone when it has ended, or after 'grace_s'. Then 'id' is answered. */
void child_stop(struct agent *a, json_t *id, struct handle *h, int signo, double grace_s);

/* The result of process.status; NULL with 'e'. */
json_t *child_status(struct handle *h, struct err *e);

/* link.c: the program's standard input becomes a socket. Each line that it writes there is an event
 * {"event":"line","handle":"p1","line":"..."}; link_tell writes it one. */
#define LINK_LINE_MAX 1024
#define LINK_TOLD_MAX (16u << 20) /* bytes that a program may leave unread */
int link_open(struct handle *h, struct child_spec *s, struct err *e);
/* In place of what child_start set: lines are not output. */
void link_readable(struct agent *a, struct handle *h);
int link_tell(struct handle *h, const char *line, struct err *e);
/* The program takes more of what it was told. */
void link_writable(struct handle *h);

/* log_summary.c: {records, lost, bytes, whole} of the log at 'path' from its own text; 'whole' is
 * false if it was cut short. The files of strace and sysstat are not our log format: there, records
 * and lost are null, and the file is whole if its tracer ended in order. */
json_t *log_summary(const char *path, bool ended_in_order);
/* So, by its END record alone: of a log of which parts have been taken away. */
json_t *log_end_summary(const char *path);

#endif
