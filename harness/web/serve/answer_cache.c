/* Caches answers. */
#include "harness/web/serve/answer_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

struct entry {
	char *key, *text;
	size_t size;
};

struct answer_cache {
	pthread_mutex_t lock; /* protects the members below */
	size_t bytes, bytes_max;
	struct entry *entries; /* the most recently used is last */
	size_t n;
};

struct answer_cache *answer_cache_new(size_t bytes_max)
{
	struct answer_cache *k = alloc_zero(1, sizeof(*k));

	pthread_mutex_init(&k->lock, NULL);
	k->bytes_max = bytes_max;
	return k;
}

static size_t weight(const struct entry *e)
{
	return sizeof(*e) + strlen(e->key) + e->size + 2;
}

static void answer_cache_forget(struct answer_cache *k, size_t i)
{
	struct entry *e = &k->entries[i];

	k->bytes -= weight(e);
	free(e->key);
	free(e->text);
	memmove(e, e + 1, (k->n - i - 1) * sizeof(*e));
	k->n--;
}

void answer_cache_free(struct answer_cache *k)
{
	if (!k)
		return;
	while (k->n)
		answer_cache_forget(k, k->n - 1);
	free(k->entries);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static size_t answer_cache_find(const struct answer_cache *k, const char *key)
{
	size_t i = 0;

	while (i < k->n && strcmp(k->entries[i].key, key) != 0)
		i++;
	return i;
}

static char *answer_cache_copy(const char *text, size_t size)
{
	char *out = alloc_zero(size + 1, 1);

	memcpy(out, text, size);
	return out;
}

char *answer_cache_get(struct answer_cache *k, const char *key, size_t *size)
{
	char *out = NULL;
	struct entry e;
	size_t i;

	pthread_mutex_lock(&k->lock);
	i = answer_cache_find(k, key);
	if (i < k->n) {
		e = k->entries[i];
		memmove(&k->entries[i], &k->entries[i + 1], (k->n - i - 1) * sizeof(e));
		k->entries[k->n - 1] = e;
		out = answer_cache_copy(e.text, e.size);
		*size = e.size;
	}
	pthread_mutex_unlock(&k->lock);
	return out;
}

void answer_cache_put(struct answer_cache *k, const char *key, const char *text, size_t size)
{
	const struct entry e = {alloc_copy(key), answer_cache_copy(text, size), size};
	size_t i;

	pthread_mutex_lock(&k->lock);
	i = answer_cache_find(k, key);
	if (i < k->n)
		answer_cache_forget(k, i);
	k->entries = alloc_room(k->entries, k->n, sizeof(*k->entries));
	k->entries[k->n++] = e;
	k->bytes += weight(&e);
	if (weight(&e) > k->bytes_max / 2)
		answer_cache_forget(k, k->n - 1);
	while (k->bytes > k->bytes_max)
		answer_cache_forget(k, 0);
	pthread_mutex_unlock(&k->lock);
}
