/* Numbers the texts of a CSV column, with a fast path for repeating tables. */
#include <stdlib.h>
#include <string.h>

#include "diag/import/csv_impl.h"
#include "harness/base/alloc.h"

enum { BLOCK = 256 * 1024 };

uint64_t csv_hash(const char *p, size_t n)
{
	uint64_t h = 0x9e3779b97f4a7c15 ^ n, w;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0xff51afd7ed558ccd;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, p, n);
	h = (h ^ w) * 0xc4ceb9fe1a85ec53;
	return h ^ h >> 29;
}

static void grow_slots(struct csv_keys *k)
{
	free(k->slots);
	k->n_slots = k->n_slots ? k->n_slots * 4 : 256;
	k->slots = alloc_zero(k->n_slots, sizeof(*k->slots));
	for (uint32_t i = 0; i < k->n; i++) {
		size_t s = k->v[i].hash & (k->n_slots - 1);

		while (k->slots[s])
			s = (s + 1) & (k->n_slots - 1);
		k->slots[s] = i + 1;
	}
}

static const char *keep(struct csv_keys *k, const char *text, size_t n)
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
	uint64_t hash = csv_hash(text, n);
	size_t s;

	if ((size_t)k->n * 2 >= k->n_slots)
		grow_slots(k);
	for (s = hash & (k->n_slots - 1); k->slots[s]; s = (s + 1) & (k->n_slots - 1)) {
		const struct csv_key *v = &k->v[k->slots[s] - 1];

		if (v->hash == hash && v->n == n && !memcmp(v->text, text, n))
			return k->slots[s] - 1;
	}
	k->v = alloc_room(k->v, k->n, sizeof(*k->v));
	k->v[k->n] = (struct csv_key){
		.text = keep(k, text, n), .n = (uint32_t)n, .next = k->n, .hash = hash};
	k->slots[s] = k->n + 1;
	return k->n++;
}

/* Tables repeat: rows of all series at each time, or all times of a series. So the key that
 * followed the last one before is tried first; comparing it costs less than finding it. Where rows
 * come in no order this only costs, and is left off for a while. */
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
	free(k->slots);
	free(k->v);
	*k = (struct csv_keys){0};
}
