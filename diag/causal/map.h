/* A table of 64-bit keys and values. */
#ifndef CULPRIT_DIAG_CAUSAL_MAP_H
#define CULPRIT_DIAG_CAUSAL_MAP_H

#include <stdint.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/hash.h"

struct map_slot {
	uint64_t key, value; /* value 0: free */
};

struct map {
	struct map_slot *slot;
	size_t n, room;
};

static inline size_t map_place(const struct map *m, uint64_t key)
{
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15 >> 20) & (m->room - 1);

	while (m->slot[i].value && m->slot[i].key != key)
		i = (i + 1) & (m->room - 1);
	return i;
}

/* 0: there is none. */
static inline uint64_t map_get(const struct map *m, uint64_t key)
{
	return m->room ? m->slot[map_place(m, key)].value : 0;
}

/* 'value' is not 0; a key that is there has it from now on. */
static inline void map_put(struct map *m, uint64_t key, uint64_t value)
{
	struct map old = *m;
	size_t at;

	if (m->n * 2 >= m->room) {
		m->room = m->room ? m->room * 2 : 64;
		m->slot = alloc_zero(m->room, sizeof(*m->slot));
		for (size_t i = 0; i < old.room; i++)
			if (old.slot[i].value)
				m->slot[map_place(m, old.slot[i].key)] = old.slot[i];
		free(old.slot);
	}
	at = map_place(m, key);
	m->n += !m->slot[at].value;
	m->slot[at] = (struct map_slot){key, value};
}

static inline void map_clear(struct map *m)
{
	free(m->slot);
	*m = (struct map){0};
}

static inline uint64_t map_hash(const void *data, size_t n, uint64_t seed)
{
	const uint64_t h = hash_bytes(data, n, seed ^ HASH_START);

	return h ^ h >> 29;
}

#endif
