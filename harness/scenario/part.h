/*
 * Parts: the faults and workloads that a scenario names, each a Lua file that returns
 * a table (its form is typed in harness/lua/culprit.meta.lua), with the parameters that the
 * scenario gives it.
 */
#ifndef CULPRIT_HARNESS_PART_H
#define CULPRIT_HARNESS_PART_H

#include <jansson.h>

#include "harness/lua/luax.h"

enum part_kind { PART_FAULT, PART_WORKLOAD };

struct part {
	enum part_kind kind;
	char *name; /* "disk-hog" */
	char *label; /* name, and the parameters that differ from their defaults: "receive-pktloss(loss=1 %)" */
	char *path; /* its file; NULL for the built-in fault "none" */
	char *summary;
	char *needs;     /* faults: what it takes, in a few words; or NULL */
	char *resource;  /* faults: "disk", "network", ... */
	double verify_s; /* faults: how long verify may take to come true */
	bool from_start; /* faults: acts before tracers and workload start, until they have stopped */
	bool may_fail; /* faults: workload and server may fail under it; the attempt is none the worse */
	double after_s; /* faults: the scenario's own time before the fault, or negative: as phases say */
	long victims; /* faults: servers hit at once */
	char **under; /* faults: labels or names of the workloads that it is run under, ended by NULL; NULL: all */
	json_t *params; /* name -> value in base units */
	int def_ref;    /* Lua registry: the file's table */
	int params_ref; /* Lua registry: the parameters as a table */
};

/* Loads the part that the value on top of the stack names: "NAME", or { "NAME", param = value, ...
 * }. NAME is one of culprit's own, or the path of a Lua file relative to the scenario's folder.
 * Pops the value. Complaints point into 'src', the scenario, or into the part's own file. */
int part_load(lua_State *L, enum part_kind kind, const struct luax_source *src, struct part *out,
	struct err *e);
/* The key 'workloads' of the table at 'given': names or labels of workloads, ended by NULL; NULL
 * where there is no such key. 'whose' ("fault 'kill'") is for complaints; the caller frees with
 * part_under_free. */
int part_under_read(lua_State *L, int given, const struct luax_source *src, const char *whose,
	char ***under, struct err *e);
bool part_under_has(char *const *under, const struct part *workload); /* NULL has all */
void part_under_free(char **under);

void part_clear(lua_State *L, struct part *p);

/* One line a built-in part of a kind, in the order of names, for 'culprit list'. 'fn' is called
 * with the loaded part and its declared parameters table on top of the Lua stack. */
typedef int (*part_fn)(void *ctx, lua_State *L, const struct part *p);
int part_each(enum part_kind kind, part_fn fn, void *ctx, struct err *e);

#endif
