/*
 * How the lab starts a file system: the table 'lab' of the file system's Lua file
 * (culprit.FileSystemLab in harness/lua/culprit.meta.lua). The lab's C knows no file system.
 */
#ifndef CULPRIT_HARNESS_LAB_RECIPE_H
#define CULPRIT_HARNESS_LAB_RECIPE_H

#include <lua.h>
#include <stdbool.h>

#include "harness/lab/lab_impl.h"

struct recipe;

/* Loads the file that o->fs names and checks it; o->layout and o->settings (both may be empty) must
 * be some that it knows. -ENOENT, -EINVAL. */
int recipe_open(const struct lab_options *o, struct recipe **out, struct err *e);
void recipe_free(struct recipe *r);

/* The adapter itself, for fs_pids. */
struct fs *recipe_fs(const struct recipe *r);

/* Completes the options: o->fs becomes absolute if it is a path, an empty layout becomes the first
 * one, o->settings what differs from the defaults, o->managers what the file system needs. -EINVAL
 * if the layout needs more servers. */
int recipe_complete(const struct recipe *r, struct lab_options *o, struct err *e);

/* Do the servers keep their data on the raw device? */
bool recipe_raw_storage(const struct recipe *r);
/* 'service_port' of the servers; 0: none. */
unsigned recipe_port(const struct recipe *r);
/* Has it a function of this name ("start_server")? */
bool recipe_has(const struct recipe *r, const char *step);

/* Adds the recipe's folders to PATH, and looks for its programs there. -ENOENT names the package.
 */
int recipe_programs(const struct recipe *r, struct err *e);

/* Of a node, in its pid 1: calls the function 'step'; nothing if there is none. */
int recipe_step(struct recipe *r, const char *step, const struct lab_options *o,
	const struct lab_node *n, const char *storage, struct err *e);

/* Calls 'ready' until it is true: at most 60 s, then -ETIMEDOUT with what is missing. */
int recipe_await(
	struct recipe *r, const struct lab_options *o, const struct lab_node *n, struct err *e);

/* recipe_node.c: the table 'node' that the functions get, onto the stack. */
void recipe_push_node(lua_State *L, const struct lab_node *n, const char *storage);

#endif
