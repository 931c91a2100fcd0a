/*
 * Parts: the faults and workloads that a scenario names, each a Lua file that returns a table
 * (typed in harness/lua/culprit.meta.lua), with the parameters that the scenario gives it.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_PART_H
#define CULPRIT_HARNESS_SCENARIO_PART_H

#include <jansson.h>

#include "harness/lua/library.h"
#include "harness/lua/luajson.h"

enum part_kind { PART_FAULT = LIBRARY_FAULT, PART_WORKLOAD = LIBRARY_WORKLOAD };

/* What a fault needs of a server's storage: a folder, or one that the server can start on when it
 * is empty. */
enum part_storage { PART_STORAGE_ANY, PART_STORAGE_FOLDER, PART_STORAGE_EMPTY };

struct part {
	enum part_kind kind;
	char *name;      /* "disk-hog" */
	char *label;     /* name and changed parameters: "receive-pktloss(loss=1 %)" */
	char *path;      /* its file; NULL for the built-in fault "none" */
	char *summary;   /* one line */
	char *needs;     /* faults: prerequisites in a few words; or NULL */
	char *resource;  /* faults: "disk", "network/hog", ... */
	double verify_s; /* faults: time within which verify must succeed */
	bool from_start; /* faults: active from before the tracers start until after they stop */
	enum part_storage storage; /* faults */
	bool lookalike; /* faults: everybody is healthy under it, and it scores as a control */
	bool may_fail;  /* faults: the workload and the server may fail; the attempt still counts */
	double after_s; /* faults: own time before the fault; negative: the scenario's phases */
	long victims;   /* faults: servers hit at once */
	char **under;   /* faults: names or labels of workloads, ended by NULL; NULL: all */
	json_t *params; /* name -> value in base units */
	json_t *files;  /* workloads: key -> {path: of this machine, name: on clients}; or NULL */
	int def_ref;    /* Lua registry: the file's table */
	int params_ref; /* Lua registry: the parameters as a table */
};

/* Loads the part that the value on top of the stack names: "NAME", or { "NAME", param = value,
 * ... }; pops the value. NAME is as library_find takes it. Complaints point into 'src', the
 * scenario, or into the part's own file. The caller calls part_clear. */
int part_load(lua_State *L, enum part_kind kind, const struct luax_source *src, struct part *out,
	struct err *e);
void part_clear(lua_State *L, struct part *p);

/* Asks a loaded workload which files of this machine it takes along (its 'files'), for part.files.
 * A path is relative to the scenario's folder, a bare name is a trace of culprit's own. On each
 * client they lie in the session's folder. -EINVAL: one cannot be read. */
int part_files_read(lua_State *L, const struct luax_source *src, struct part *p, struct err *e);

/* The key 'workloads' of the table at 'given': names or labels, ended by NULL; '*under' is not
 * written if there is no such key. 'whose' ("fault 'kill'") is for complaints; the caller frees
 * with alloc_free_list. */
int part_under_read(lua_State *L, int given, const struct luax_source *src, const char *whose,
	char ***under, struct err *e);
bool part_under_has(char *const *under, const struct part *workload); /* a NULL list has all */

/* Calls 'fn' for each built-in part of a kind, in the order of names, with its table 'params' on
 * top of the Lua stack; stops at the first result that is not 0. */
typedef int (*part_fn)(void *ctx, lua_State *L, const struct part *p);
int part_each(enum part_kind kind, part_fn fn, void *ctx, struct err *e);

#endif
