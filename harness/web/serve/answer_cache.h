/* Answers that are kept, so that what was asked a moment ago is answered at once: the oldest go
 * when there are too many. Threads may use one. */
#ifndef CULPRIT_HARNESS_WEB_SERVE_ANSWER_CACHE_H
#define CULPRIT_HARNESS_WEB_SERVE_ANSWER_CACHE_H

#include <stdbool.h>
#include <stddef.h>

struct answer_cache;

/* 'bytes_max': of keys and texts together. */
struct answer_cache *answer_cache_new(size_t bytes_max);
void answer_cache_free(struct answer_cache *k); /* NULL is fine */

/* A copy of the text that was kept under the key, which the caller frees; NULL: there is none. */
char *answer_cache_get(struct answer_cache *k, const char *key, size_t *size);
/* Keeps copies. A text that would be most of what there is room for is not kept. */
void answer_cache_put(struct answer_cache *k, const char *key, const char *text, size_t size);

#endif
