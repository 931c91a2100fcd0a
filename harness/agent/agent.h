/*
 * One session of 'culprit-agent serve', and its answers. serve.c tells the session's life.
 *
 * The agent's layers, each of which includes only those before it:
 *	journal, guard, operations   what outlives the agent, and what it may be asked
 *	agent (reply.c)              the session and its answers
 *	handle                       what an act left, and its way through the guard
 *	child                        programs that were started
 *	ops_*.c                      the operations
 *	dispatch, serve              requests, the loop, the end
 */
#ifndef CULPRIT_HARNESS_AGENT_AGENT_H
#define CULPRIT_HARNESS_AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "harness/agent/guard.h"
#include "harness/base/err.h"

#define LINE_MAX_BYTES (1u << 20)

struct handle;

struct bytes {
	char *data;
	size_t size, room;
};

/* Reads what is there now. The count, 0 at the end, or -errno. */
ssize_t bytes_read(struct bytes *b, int fd);
/* -ENOMEM: nothing was added. */
int bytes_add(struct bytes *b, const char *data, size_t size);

struct agent {
	struct guard *guard;
	char session[33];
	const char *state; /* /var/lib/culprit */
	const char *dir;   /* the session's folder */
	double lease_s;
	double act_s;                   /* limit of an act on a server */
	const char *packets_backend;    /* forced, or NULL */
	struct handle *handles, *begun; /* begun: by the operation that is being performed */
	unsigned next_number;
	struct bytes in, out; /* read and not yet a line; not yet written */
	const char *end;      /* why the session is to end; NULL: it continues */
	json_t *bye_id;
	int exit_code;
};

/* 'result' is stolen; NULL answers with -ENOMEM. */
void agent_answer(struct agent *a, json_t *id, json_t *result);
void agent_refuse(struct agent *a, json_t *id, int code, const struct err *e);
/* A message that answers no request; stolen. */
void agent_event(struct agent *a, json_t *event);
/* The session ends; the first reason counts. */
void agent_end(struct agent *a, int exit_code, const char *why);

/* Writes what the reader takes without waiting. */
void agent_write(struct agent *a);

/* A JSON string of 'size' bytes; those that are not UTF-8 become '?'. NULL: no memory. */
json_t *text_json(const char *text, size_t size);

/* 'path' if absolute, else below the session's folder; the caller frees. */
char *agent_path(const struct agent *a, const char *path);

/* clean.c: undoes what earlier sessions left, waiting for 5 s at most. The arrays get: names of
 * what was undone; sentences on journals that could not be undone; sentences on what is still being
 * undone. */
void clean_left(struct agent *a, json_t *cleaned, json_t *unclean, json_t *quarantined);

/* dispatch.c: one line of input. */
void agent_line(struct agent *a, const char *line, size_t size);

#endif
