/*
 * Lua files as input: load one, call into it, and read tables strictly.
 *
 * Every complaint reads "FILE:LINE: sentence". Lua keeps no line for a key of a
 * table, so the line is looked up in the source text (comments and strings apart).
 *
 * Files see string, table, math and utf8; no io, os, require, load or debug: what a
 * scenario says depends on its text alone.
 */
#ifndef CULPRIT_BASE_LUA_LUAX_H
#define CULPRIT_BASE_LUA_LUAX_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"
#include "harness/base/units.h"

/* A source text, for the lines in complaints. */
struct luax_source {
	char *path, *text;
};

/* A state with the safe libraries; NULL when out of memory. The caller lua_close()s it. */
lua_State *luax_new(void);

/* Runs the file and leaves the one table that it must return on the stack.
 * -EINVAL, or -ENOENT where there is no such file. 'src' (may be NULL) gets the text; the
 * caller clears it, in case of success only. */
int luax_load_file(lua_State *L, const char *path, struct luax_source *src, struct err *e);
void luax_source_clear(struct luax_source *src);

/* lua_pcall whose failure becomes a sentence: -EINVAL of the class ERR_SCENARIO. A C error raised
 * by luax_raise comes back with its own code and class. Pops the function and its arguments either
 * way. */
int luax_call(lua_State *L, int nargs, int nresults, struct err *e);

/* Raises 'code' and the sentence in 'e' as a Lua error, with the Lua caller's file and line. */
int luax_raise(lua_State *L, int code, const struct err *e);

enum luax_type {
	LUAX_STRING,   /* char **, malloced */
	LUAX_INTEGER,  /* long */
	LUAX_NUMBER,   /* double; 'unit' UNIT_NONE */
	LUAX_QUANTITY, /* double, in the base unit of 'unit'; a string with unit, or 0 */
	LUAX_BOOLEAN,  /* bool */
	LUAX_TABLE,    /* only checked to be one; read it with lua_getfield */
	LUAX_FUNCTION, /* likewise */
	LUAX_ANY,      /* present or not */
};

struct luax_field {
	const char *name;
	enum luax_type type;
	bool required;
	enum unit unit;
	double min, max; /* of numbers; both 0: any */
	void *out;       /* written if the key is present; NULL: only checked */
};

/* Reads the table at 'index' by 'fields' (ended by a NULL name). An unknown key is
 * refused with its nearest match, so is a wrong type. 'what' names the table in
 * complaints ("scenario", "node 's1'"). 'array': numbered elements are allowed beside. */
int luax_read(lua_State *L, int index, const struct luax_source *src, const char *what,
	const struct luax_field *fields, bool array, struct err *e);

/* -EINVAL with "FILE:LINE: ..." where LINE is the first at which 'word' stands in the source as a
 * key or as a quoted string (0 lines known: just FILE). */
int luax_complain(const struct luax_source *src, const char *word, struct err *e, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* The entry of 'names' (ended by NULL) nearest to 'word', or NULL if none is near. */
const char *luax_nearest(const char *word, const char *const names[]);

#endif
