/*
 * Memory allocation for the orchestrator. These functions never return NULL: if memory runs out,
 * they print one line and end the program with exit code 3, and the nodes' guards undo active
 * faults. This saves callers an error branch that no test could reach.
 *
 * The agent and other programs that run on a node must not use them: code on a node handles every
 * failure.
 */
#ifndef CULPRIT_HARNESS_BASE_ALLOC_H
#define CULPRIT_HARNESS_BASE_ALLOC_H

#include <stddef.h>
#include <stdio.h>

/* 'n' zeroed elements of 'size' bytes, at least one byte. The caller frees the result, as with
 * all functions here. */
void *alloc_zero(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* realloc of 'p' (may be NULL) to 'n' elements of 'size' bytes; added elements are not zeroed. */
void *alloc_resize(void *p, size_t n, size_t size) __attribute__((returns_nonnull));

/* Grows 'array', which has 'n' elements, to have room for one more. The array must start as NULL
 * or as one element and grow only through this function; removing elements is fine. */
static inline void *alloc_room(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : alloc_resize(array, n ? 2 * n : 1, size);
}

/* A copy of 's', which must not be NULL. */
char *alloc_copy(const char *s) __attribute__((malloc, returns_nonnull));

/* Like asprintf. */
char *alloc_format(const char *fmt, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* Like open_memstream: the caller owns the text after fclose. */
FILE *alloc_text(char **text, size_t *size) __attribute__((returns_nonnull));

/* The out-of-memory exit that the functions above use. */
void alloc_end(void) __attribute__((noreturn));

/* Frees a NULL-terminated list of strings (may be NULL) and the strings themselves. */
void alloc_free_list(char **list);

#endif
