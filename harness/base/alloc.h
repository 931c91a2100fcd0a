/*
 * Memory of the orchestrator: these functions never return NULL. When there is none left they print
 * one line and end the program with exit code 3; the nodes' guards undo what acts. So that callers
 * need no branch that no test reaches.
 *
 * The agent and everything else that runs on a node must not use them: what acts on a node handles
 * every failure.
 */
#ifndef CULPRIT_HARNESS_BASE_ALLOC_H
#define CULPRIT_HARNESS_BASE_ALLOC_H

#include <stddef.h>
#include <stdio.h>

/* 'n' elements of 'size' bytes, all zero; one byte at least. The caller frees, as of all functions
 * here. */
void *alloc_zero(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* realloc of 'p' (may be NULL) to 'n' elements of 'size' bytes; what is new is not zero. */
void *alloc_resize(void *p, size_t n, size_t size) __attribute__((returns_nonnull));

/* 'array' of 'n' elements with room for one more behind them: how arrays grow. It must have been
 * NULL at first, or of one element, and have grown by this alone; elements may be taken away. */
static inline void *alloc_room(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : alloc_resize(array, n ? 2 * n : 1, size);
}

/* A copy of 's', which may not be NULL. */
char *alloc_copy(const char *s) __attribute__((malloc, returns_nonnull));

/* As asprintf. */
char *alloc_format(const char *fmt, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* As open_memstream: the text is the caller's after fclose. */
FILE *alloc_text(char **text, size_t *size) __attribute__((returns_nonnull));

/* What the others do when there is no memory left. */
void alloc_end(void) __attribute__((noreturn));

/* Frees a list of texts that ends with NULL (or is NULL), and its texts. */
void alloc_free_list(char **list);

#endif
