/*
 * Lua files as input: loads a file, calls its functions, and reads its tables strictly.
 *
 * Complaints read "FILE:LINE: sentence". Lua keeps no line numbers for table keys, so the line is
 * found by a search in the source text.
 *
 * Files see string, table, math (without random), utf8 and require "culprit" (prelude.lua). They
 * see no io, os, load, debug, coroutine or metatables: a scenario's meaning depends on its text
 * only, and none of its code runs outside luax_call.
 *
 * Each call is limited to LUAX_MEMORY_MIB of memory and 10 s of processor time
 * ($CULPRIT_LUA_SECONDS overrides; waiting for nodes does not count). A call that exceeds a limit
 * fails with file and line. If it is inside a C function that does not return, the process prints
 * file and line and exits with 2.
 */
#ifndef CULPRIT_HARNESS_LUA_LUAX_H
#define CULPRIT_HARNESS_LUA_LUAX_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"
#include "harness/base/units.h"

/* Also the limit of a detector that is a program (diag/judge/confine.c). */
enum { LUAX_MEMORY_MIB = 512 };

#define LUAX_PRELUDE "harness/lua/prelude.lua"

/* A source text, for the line numbers of complaints. */
struct luax_source {
	char *path, *text;
};

/* A state with the safe libraries. The caller calls lua_close. */
lua_State *luax_new(void);

/* Sets entries of a global table ("_G", "math") to nil; 'names' is NULL-terminated. */
void luax_remove(lua_State *L, const char *table, const char *const names[]);

/* The limit on a call's processor time. */
double luax_seconds(void);
/* Raises the processor-time limit of later calls on this state by 'seconds'. */
void luax_allow(lua_State *L, double seconds);

/* Sets the function to call if a C function called by Lua does not return, instead of printing
 * 'text' (file, line, function) to stderr. It runs in a signal handler; then the process exits. */
typedef void luax_stop_fn(const char *text);
void luax_on_stop(luax_stop_fn *fn);

/* Sets a hint for the user that is appended to that text. A string literal. */
void luax_advise(const char *advice);

/* Runs a file and leaves the table that it returns on the stack. -EINVAL, or file_read's error;
 * -E2BIG and -ETIMEDOUT as for luax_call. 'src' (may be NULL) receives the text on success; the
 * caller clears it. */
int luax_load_file(lua_State *L, const char *path, struct luax_source *src, struct err *e);
/* The same for a text already in memory. */
int luax_load_text(lua_State *L, const struct luax_source *src, struct err *e);
void luax_source_clear(struct luax_source *src);

/* 'path' relative to the folder of 'file'; the caller frees. */
char *luax_beside(const char *file, const char *path);

/* lua_pcall with limits. A failure becomes a sentence and -EINVAL (-E2BIG: out of memory,
 * -ETIMEDOUT: out of time). A C error raised by luax_raise keeps its code and class. Always pops
 * the function and its arguments. */
int luax_call(lua_State *L, int nargs, int nresults, struct err *e);

/* Raises 'code' and the sentence in 'e' as a Lua error, with the Lua caller's file and line. */
int luax_raise(lua_State *L, int code, const struct err *e);

enum luax_type {
	LUAX_STRING,   /* char **, malloced */
	LUAX_INTEGER,  /* long */
	LUAX_NUMBER,   /* double; 'unit' UNIT_NONE */
	LUAX_QUANTITY, /* double, in the base unit of 'unit'; a string with unit, or 0 */
	LUAX_BOOLEAN,  /* bool */
	LUAX_TABLE,    /* the type is checked; the caller reads it */
	LUAX_FUNCTION, /* likewise */
	LUAX_ANY,      /* any type */
};

struct luax_field {
	const char *name;
	enum luax_type type;
	bool required;
	enum unit unit;
	double min, max; /* for numbers; both 0: no limits */
	void *out;       /* written if the key is present; NULL: only checked */
};

/* Reads the table at 'index' according to 'fields' (ended by a NULL name). Unknown keys are
 * refused with the closest known key, and so are wrong types. 'what' names the table in
 * complaints ("scenario", "node 's1'"). 'array': numbered elements are also allowed. */
int luax_read(lua_State *L, int index, const struct luax_source *src, const char *what,
	const struct luax_field *fields, bool array, struct err *e);

/* Returns -EINVAL, ERR_SCENARIO and "FILE:LINE: ...". LINE is the first line where 'word' is a
 * key or a quoted string; if none matches, only FILE is given. 'src' and 'word' may be NULL. */
int luax_complain(const struct luax_source *src, const char *word, struct err *e, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

#endif
