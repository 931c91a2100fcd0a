/* A thread-safe cache of answers, which evicts the least recently used. */
#ifndef CULPRIT_HARNESS_WEB_SERVE_ANSWER_CACHE_H
#define CULPRIT_HARNESS_WEB_SERVE_ANSWER_CACHE_H

#include <stdbool.h>
#include <stddef.h>

struct answer_cache;

/* 'bytes_max': limit for keys and texts together. */
struct answer_cache *answer_cache_new(size_t bytes_max);
void answer_cache_free(struct answer_cache *k); /* NULL is fine */

/* A copy of the text stored under the key, which the caller frees; NULL: none. */
char *answer_cache_get(struct answer_cache *k, const char *key, size_t *size);
/* Stores copies. A text that would take most of the room is not stored. */
void answer_cache_put(struct answer_cache *k, const char *key, const char *text, size_t size);

#endif
