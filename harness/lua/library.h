/*
 * The Lua files that a user names: faults, workloads, detectors, file systems, findings,
 * scenarios. A kind is a row in a table (library.c): its name and the folder of culprit's own
 * files.
 *
 * A name that contains a slash or ends in ".lua" is a path relative to the file that names it.
 */
#ifndef CULPRIT_HARNESS_LUA_LIBRARY_H
#define CULPRIT_HARNESS_LUA_LIBRARY_H

#include <jansson.h>

#include "harness/lua/luax.h"

enum library_kind {
	LIBRARY_FAULT,
	LIBRARY_WORKLOAD,
	LIBRARY_DETECTOR,
	LIBRARY_FILE_SYSTEM,
	LIBRARY_FINDING,
	LIBRARY_SCENARIO
};

const char *library_kind_name(enum library_kind kind); /* "fault" */

/* Names of culprit's own files of a kind, sorted, NULL-terminated; for alloc_free_list. */
char **library_names(enum library_kind kind);

/* Is 'name' a path, rather than the name of one of culprit's own files? */
bool library_is_path(const char *name);

/* Path of the file called 'name'; the caller frees. 'src' is the file that contains the name
 * (NULL: the command line; paths are then relative to the working directory). -ENOENT with the
 * closest name. */
int library_find(enum library_kind kind, const char *name, const struct luax_source *src,
	char **path, struct err *e);

/* The name of a file: without its folder and the part after the first dot (programs) or ".lua".
 * -EINVAL if the result is not a valid name. The caller frees. */
int library_name(enum library_kind kind, const char *path, char **name, struct err *e);

/* Loads the file that library_find finds, checks it against 'fields' and leaves its table on the
 * stack. 'own' receives its path and text; the caller clears it on success only. */
int library_open(lua_State *L, enum library_kind kind, const char *name,
	const struct luax_source *src, const struct luax_field *fields, struct luax_source *own,
	struct err *e);

/* Reads parameters: the declarations in 'params' of the table at 'definition',
 *     name = { default = , unit = , min = , max = , integer = , help = }
 * overridden by the table at 'given' (0: none; it may have numbered elements). A parameter has its
 * default's type (number, boolean, string; a string with a unit is a number).
 * '*params' becomes an object of name -> value in the base unit. '*changes' (may be NULL) becomes
 * a list of the values that differ from the defaults: "loss=1 %,size=4 KiB"; the caller frees both.
 * 'own' is the declaring file, 'src' the file with the values, 'what' is for complaints ("fault
 * 'kill'"). 'reserved' (may be NULL) are further keys of 'given'; they are read like luax_read. */
int library_params(lua_State *L, int definition, const struct luax_source *own, int given,
	const struct luax_source *src, const char *what, const struct luax_field *reserved,
	json_t **params, char **changes, struct err *e);

#endif
