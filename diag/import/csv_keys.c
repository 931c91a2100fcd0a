/* Numbers the distinct texts of a CSV column, with a fast path for repeating tables. */
#include <stdlib.h>
#include <string.h>

#include "diag/import/csv_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"

enum { BLOCK = 256 * 1024 };

static const char *csv_keys_keep(struct csv_keys *k, const char *text, size_t n)
{
	char *to;

	if (!k->n_blocks || k->block_used + n > BLOCK) {
		k->blocks = alloc_room(k->blocks, k->n_blocks, sizeof(*k->blocks));
		k->blocks[k->n_blocks++] = alloc_zero(n > BLOCK ? n : BLOCK, 1);
		k->block_used = 0;
	}
	to = k->blocks[k->n_blocks - 1] + k->block_used;
	memcpy(to, text, n);
	k->block_used += n;
	return to;
}

static uint32_t look_up(struct csv_keys *k, const char *text, size_t n)
{
	uint64_t hash = hash_words(text, n), i;
	size_t at = 0;

	while ((i = map_next(&k->index, hash, &at)))
		if (k->v[i - 1].n == n && !memcmp(k->v[i - 1].text, text, n))
			return (uint32_t)i - 1;
	k->v = alloc_room(k->v, k->n, sizeof(*k->v));
	k->v[k->n] = (struct csv_key){
		.text = csv_keys_keep(k, text, n), .n = (uint32_t)n, .next = k->n, .hash = hash};
	map_keep(&k->index, hash, k->n + 1);
	return k->n++;
}

/* Tables repeat: rows of all series at each time, or all times of a series. So the key that
 * followed the previous one before is tried first; comparing it is cheaper than a search. For rows
 * in random order this only costs time, so it pauses after many wrong guesses. */
uint32_t csv_keys_find(struct csv_keys *k, const char *text, size_t n)
{
	enum { PATIENCE = 32, REST = 4096 };
	uint32_t found;

	if (k->n && k->misses < PATIENCE) {
		const struct csv_key *guess = &k->v[k->v[k->last].next];

		if (guess->n == n && !memcmp(guess->text, text, n)) {
			k->misses = 0;
			return k->last = k->v[k->last].next;
		}
	}
	if (++k->misses == PATIENCE + REST)
		k->misses = PATIENCE / 2;
	found = look_up(k, text, n);
	k->v[k->last].next = found;
	return k->last = found;
}

void csv_keys_clear(struct csv_keys *k)
{
	for (size_t i = 0; i < k->n_blocks; i++)
		free(k->blocks[i]);
	free(k->blocks);
	map_clear(&k->index);
	free(k->v);
	*k = (struct csv_keys){0};
}
