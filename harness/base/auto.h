/*
 * Local variables that are released at the end of their scope, on every path (the cleanup
 * attribute of GCC and Clang). Each must be initialised. AUTO_TAKE transfers ownership to the
 * caller.
 *
 * In functions that use them, 'a() ?: b()' runs steps until one fails and yields its error.
 */
#ifndef CULPRIT_HARNESS_BASE_AUTO_H
#define CULPRIT_HARNESS_BASE_AUTO_H

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Defines the clean-up that auto_of(name) applies to a variable of 'type'. */
#define AUTO_DEFINE(name, type, release)                                                           \
	static inline void auto_##name##_(type *p)                                                 \
	{                                                                                          \
		if (*p)                                                                            \
			release(*p);                                                               \
	}

#define auto_of(name) __attribute__((cleanup(auto_##name##_)))

AUTO_DEFINE(json, json_t *, json_decref)
AUTO_DEFINE(dir, DIR *, closedir)
AUTO_DEFINE(file, FILE *, fclose)

static inline void auto_free_(void *p)
{
	free(*(void **)p);
}

static inline void auto_fd_(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define auto_free auto_of(free)
#define auto_fd auto_of(fd) /* negative: not open */
#define auto_json auto_of(json)
#define auto_dir auto_of(dir)
#define auto_file auto_of(file)

#define AUTO_TAKE(p)                                                                               \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#endif
