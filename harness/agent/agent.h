/*
 * The inside of 'culprit-agent serve': one thread, one poll loop, handles for
 * whatever was started, and answers that may come later than other answers.
 */
#ifndef CULPRIT_AGENT_AGENT_H
#define CULPRIT_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "faults/primitives/packets.h"
#include "faults/primitives/process.h"
#include "harness/agent/guard.h"
#include "harness/base/err.h"

#define LINE_MAX_BYTES (1u << 20)
#define OUTPUT_MAX_BYTES (64u << 10)
#define TRACER_GRACE_S 3 /* for a tracer to let go and close its log */

struct agent;
struct handle;

/* What a handle waits for, besides its end. */
enum handle_state {
	HANDLE_LIVE,
	HANDLE_STARTING, /* a tracer that has not said "ready" yet */
	HANDLE_STOPPING, /* was signalled; has until 'deadline' */
	HANDLE_SUMMARY,  /* a child reads the log that it wrote */
	HANDLE_UNDOING,  /* the guard is at it */
};

enum handle_kind {
	HANDLE_PROCESS,
	HANDLE_RUN,
	HANDLE_TRACE,
	HANDLE_PACKETS,
	HANDLE_COMMAND,
	HANDLE_LIMIT,
	HANDLE_STOP,
	HANDLE_SERVICE,
	HANDLE_READONLY,
};

struct handle {
	char name[16];
	enum handle_kind kind;
	enum handle_state state;
	json_t *inverse;
	struct handle *next;

	/* The request that waits for this handle; at most one. */
	json_t *request_id;
	double deadline; /* of the state, or of a run; 0: none */
	/* Called when the guard has undone it for us; makes the answer. The handle is freed
	 * after. */
	void (*undone)(struct agent *a, struct handle *h, const struct guard_message *m);

	/* Processes. */
	pid_t pid;
	bool ended;
	int exit;       /* code or 128+signal, once ended */
	bool timed_out; /* a run */
	bool killed;    /* what is traced did not end in its grace */
	struct process_account *account;
	bool traced;     /* under our own tracer */
	char *log;       /* of a tracer; absolute path */
	char *error_log; /* where it complains; absolute path, or NULL */
	int read_fd;     /* output of a run, ready line of a tracer; -1: none */
	int write_fd;    /* input of a run; -1: none */
	char *input;
	size_t input_size, input_done;
	char *output;
	size_t output_size;
	bool truncated;
	json_t *summary;    /* what its log says of itself */
	struct err failure; /* why the request that waits will be refused, if 'failed' < 0 */
	int failed;
};

struct agent {
	struct guard *guard;
	char session[33];
	const char *state; /* /var/lib/culprit */
	const char *dir;   /* the session's folder */
	double lease_s;
	const char *packets_backend; /* forced, or NULL */
	struct handle *handles;
	unsigned next_number;
	char *in, *out; /* what was read and not yet a line; what waits to be written */
	size_t in_size, in_room, out_size, out_room;
	const char *end; /* why the session is to end; NULL: it goes on */
	json_t *bye_id;
	int exit_code;
};

/* serve.c: answers. 'result' is stolen; NULL answers with -ENOMEM. */
void agent_answer(struct agent *a, json_t *id, json_t *result);
void agent_refuse(struct agent *a, json_t *id, int code, const struct err *e);
void agent_event(struct agent *a, json_t *event);
/* The session ends; the first reason counts. */
void agent_end(struct agent *a, int exit_code, const char *why);

/* dispatch.c: one line of input. */
void agent_line(struct agent *a, const char *line, size_t size);

/* handles.c */
struct handle *handle_new(struct agent *a, enum handle_kind kind);
struct handle *handle_find(struct agent *a, const char *name);
/* -ENOENT: none of this name and kind (any kind if 'kind' < 0); -EBUSY: something waits for it. */
int handle_get(struct agent *a, const char *name, int kind, struct handle **out, struct err *e);
void handle_free(struct agent *a, struct handle *h);
/* Records 'h->inverse' with the guard; the act may follow. */
int handle_record(
	struct agent *a, struct handle *h, const char *primitive, double max_s, struct err *e);
/* Asks the guard to undo it, then calls 'undone', which answers 'h->request_id'. */
void handle_undo(struct agent *a, struct handle *h,
	void (*undone)(struct agent *, struct handle *, const struct guard_message *));
void handle_undone_message(struct agent *a, const struct guard_message *m);

/* children.c: started programs. */
struct start {
	const char **argv;
	const json_t *env;
	const char *cwd;
	int in, out, err, pass;
	double max_s, grace_s;
};
/* Forks, records, releases. On failure nothing runs and the guard was asked to strike it off; the
 * handle stays the caller's to free. */
int child_start(struct agent *a, struct handle *h, const struct start *s, struct err *e);
void children_reap(struct agent *a);
void child_readable(struct agent *a, struct handle *h);
void child_writable(struct agent *a, struct handle *h);
/* The state's deadline has passed, or its process has ended. */
void child_step(struct agent *a, struct handle *h);
/* To the program that was asked for: the started process, or the child of its tracer. */
void child_signal(struct handle *h, int signo);
/* As process.status answers. */
json_t *child_status(struct handle *h, struct err *e);

/* Arguments have been checked against the op's table by then: those required are there, all have
 * the right type. On failure fill 'e' and return the code; on success answer now or later. */
typedef int (*op_fn)(struct agent *a, json_t *id, json_t *args, struct err *e);

int op_ping(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_processes(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_fingerprint(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_load(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_check(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_run(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_process_start(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_process_status(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_process_stop(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_command(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_service_kill(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_service_limit(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_service_restart(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_fs_readonly(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_fs_info(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_quarantine(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_packets_drop(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_packets_counters(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_limits_get(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_limits_set(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_signal_stop(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_trace_start(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_trace_stop(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_undo(struct agent *a, json_t *id, json_t *args, struct err *e);
int op_bye(struct agent *a, json_t *id, json_t *args, struct err *e);

/* clean.c: undoes what earlier sessions left. 'quarantined' gets sentences about what takes
 * longer. */
void clean_left(struct agent *a, json_t *cleaned, json_t *unclean, json_t *quarantined);

/* ops_service.c: the child that acts on a server has said something. */
void service_readable(struct agent *a, struct handle *h);

/* log_summary.c: {records, lost, bytes, whole} of the log at 'path' from its own text; 'whole' is
 * false if it was cut short. What strace and sysstat write is no log of ours: there, records and
 * lost are null, and the file is whole if its tracer ended in order. */
json_t *log_summary(const char *path, bool ended_in_order);

/* text.c: a JSON string of 'size' bytes; what is not UTF-8 becomes '?'. */
json_t *text_json(const char *text, size_t size);

/* The number argument 'name' within (0, max]; '*out' stays as it is when there is none. */
int agent_seconds(const json_t *args, const char *name, double max, double *out, struct err *e);

/* 'path' if absolute, else below the session's folder; the caller frees. */
char *agent_path(const struct agent *a, const char *path);

/* self.c: how this very program was started (through its loader, if so): 1 to 4 words, then NULL.
 * self_init keeps 'argv0'. */
int self_init(const char *argv0, struct err *e);
const char *const *self_argv(void);

/* The subcommands. */
int serve_main(int argc, char **argv);
int loop_main(int argc, char **argv);
int sink_main(int argc, char **argv); /* net.c */
int send_main(int argc, char **argv);
int cpu_main(int argc, char **argv); /* hogs.c */
int memory_main(int argc, char **argv);
int read_main(int argc, char **argv);

#endif
