/*
 * What the Lua functions of a fault or workload can do to the cluster: the context they are given,
 * nodes, and handles of acts on a node. culprit.meta.lua documents them for authors.
 *
 * Every act is remembered in C, so that the executor undoes all of them, newest first, whatever the
 * script did or failed to do. If the orchestrator cannot, the node's guard does.
 */
#ifndef CULPRIT_HARNESS_RUN_BIND_NODE_H
#define CULPRIT_HARNESS_RUN_BIND_NODE_H

#include <lua.h>

#include "harness/run/cluster.h"
#include "harness/scenario/part.h"

struct acts;

/* Makes the metatables in 'L' (once a state) and an empty list of acts. */
struct acts *bind_open(lua_State *L);
void bind_close(struct acts *a);

/* Pushes a context for 'p': victim (NULL: none), servers, clients, outsiders, file_system, params,
 * state (empty), shared (one table for the whole run). 'run_id' names the folder below the mount
 * that workloads use. */
void bind_push_context(lua_State *L, struct acts *a, struct cluster *c, struct member *victim,
	const struct part *p, const char *run_id);

/* Pushes the part's function 'name' and returns true; without one it pushes nothing. */
bool bind_push_function(lua_State *L, const struct part *p, const char *name);

/* Pushes a node, for callbacks that are given one. */
void bind_push_node(lua_State *L, struct acts *a, struct member *m);

/* Pushes a handle of a running job, for asking only: it is not remembered as an act. */
void bind_push_handle(lua_State *L, struct acts *a, struct member *m, const char *handle);

/* No call of a node from Lua waits longer than until then (CLOCK_MONOTONIC); 0: as long as its
 * operation may take. */
void acts_limit(struct acts *a, double until_s);

/* From now on, what 'can' finds to be possible is appended: {node, what (operation), how (by which
 * means, where there are several; or null)}. NULL: no more. */
void acts_note_able(struct acts *a, json_t *list);

size_t acts_count(const struct acts *a);

/* Undoes every act, newest first, each verified by its node. Goes on after a failure and returns
 * the first. The list is empty afterwards. */
int acts_undo(struct acts *a, struct err *e);

/* Empties the list without calling the nodes: their guards have undone the acts. */
void acts_forget(struct acts *a);

#endif
