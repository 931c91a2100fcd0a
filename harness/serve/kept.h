/* Answers that are kept, so that what was asked a moment ago is answered at once: the oldest go
 * when there are too many. Threads may use one. */
#ifndef CULPRIT_HARNESS_SERVE_KEPT_H
#define CULPRIT_HARNESS_SERVE_KEPT_H

#include <stdbool.h>
#include <stddef.h>

struct kept;

/* 'bytes_max': of keys and texts together. */
struct kept *kept_new(size_t bytes_max);
void kept_free(struct kept *k); /* NULL is fine */

/* A copy of the text that was kept under the key, which the caller frees; NULL: there is none. */
char *kept_get(struct kept *k, const char *key, size_t *size);
/* Keeps copies. A text that would be most of what there is room for is not kept. */
void kept_put(struct kept *k, const char *key, const char *text, size_t size);

#endif
