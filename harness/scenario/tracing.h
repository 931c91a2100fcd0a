/*
 * Tracing: the tracer that a scenario chooses, and how.
 *
 *   tracer  = "ebpf"                                          one for all cells
 *   tracer  = { "ebpf", mode = "events", memory = "16MiB" }
 *   tracer  = { "ebpf", mode = "flow", heads = true }
 *   tracers = { "none", "ebpf", { "ebpf", nodes = "one-server", workloads = { "postmark" } } }
 *
 * 'tracers' is a dimension of the plan, for scenarios that measure run times (measure = "runtime").
 */
#ifndef CULPRIT_HARNESS_SCENARIO_TRACING_H
#define CULPRIT_HARNESS_SCENARIO_TRACING_H

#include <jansson.h>

#include "harness/lua/luax.h"

struct tracing {
	char *name;          /* "none", "ebpf", "ptrace", "strace", "sysstat" */
	char *label;         /* "ebpf", "ebpf(mode=events)", "ebpf(mode=flow,heads)" ... */
	char *mode;          /* "sums", "events" or "flow"; NULL for tracers that have no modes */
	bool heads;          /* "flow": also the first 32 bytes, at most, that a call moved */
	double memory_bytes; /* 0: the tracer's default */
	bool one_server;     /* only the first server is traced, nothing else */
	char **under;        /* names or labels of workloads, ended by NULL; NULL: all */
};

/* Reads the value on top of the stack and pops it. -EINVAL with FILE:LINE. */
int tracing_load(lua_State *L, const struct luax_source *src, struct tracing *out, struct err *e);
/* "ptrace" and the like, in the mode that gives events or, where there is one, sums. */
int tracing_named(const char *name, bool events, struct tracing *out, struct err *e);
void tracing_clear(struct tracing *t);

bool tracing_none(const struct tracing *t);
/* Does it write culprit's log format, from which metrics and events are derived? */
bool tracing_has_log(const struct tracing *t);

/* Arguments of trace.start, or of process.start's member 'trace', without pids; 'storage' (may be
 * NULL) is the folder with the server's data. New reference. */
json_t *tracing_args(const struct tracing *t, const char *out, const char *storage);

/* Adds the file system's rule for bulk data (harness/fs/bulk.h) to arguments of trace.start, if
 * they ask for sums and there is one. */
void tracing_add_bulk(json_t *args, const json_t *bulk);

#endif
