/*
 * The hash table: maps 64-bit keys to values, which are pointers or numbers, but never 0.
 *
 * A key is a number, or the hash of something that the caller stores. Several values may share a
 * key. If keys are hashes, the caller compares the stored objects:
 *
 *	size_t at = 0;
 *	uint64_t v;
 *
 *	while ((v = map_next(&m, key, &at)))
 *		if (is_same(v))
 *			return v;
 *
 * Open addressing, at most two thirds full; initialise with zeros. If memory runs out, map_add
 * returns false and leaves the table unchanged: code on a node uses it. map_keep and map_put end
 * the program.
 */
#ifndef CULPRIT_HARNESS_BASE_MAP_H
#define CULPRIT_HARNESS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "harness/base/alloc.h"

struct map_slot {
	uint64_t key, value; /* value 0: empty slot */
};

struct map {
	struct map_slot *slot;
	size_t n;      /* values */
	unsigned bits; /* log2 of the number of slots */
};

/* The number of slots, for a walk over all values: those of m->slot[i] that are not 0. */
static inline size_t map_room(const struct map *m)
{
	return m->slot ? (size_t)1 << m->bits : 0;
}

static inline size_t map_home(const struct map *m, uint64_t key)
{
	return (size_t)(key * 0x9e3779b97f4a7c15u >> (64 - m->bits));
}

/* The next value with this key, starting at *at = 0; 0 if there are no more. */
static inline uint64_t map_next(const struct map *m, uint64_t key, size_t *at)
{
	const size_t last = map_room(m) - 1;

	if (!m->slot)
		return 0;
	for (size_t i = map_home(m, key) + *at;; i++) {
		const struct map_slot *s = &m->slot[i & last];

		++*at;
		if (!s->value || s->key == key)
			return s->value;
	}
}

/* The value of a key with at most one value; 0 if it has none. */
static inline uint64_t map_get(const struct map *m, uint64_t key)
{
	size_t at = 0;

	return map_next(m, key, &at);
}

static inline void map_seat(struct map *m, struct map_slot s)
{
	const size_t last = map_room(m) - 1;
	size_t i = map_home(m, s.key);

	while (m->slot[i].value)
		i = (i + 1) & last;
	m->slot[i] = s;
}

static inline bool map_grow(struct map *m)
{
	struct map bigger = {.n = m->n, .bits = m->slot ? m->bits + 1 : 6};

	bigger.slot = calloc((size_t)1 << bigger.bits, sizeof(*bigger.slot));
	if (!bigger.slot)
		return false;
	for (size_t i = 0; i < map_room(m); i++)
		if (m->slot[i].value)
			map_seat(&bigger, m->slot[i]);
	free(m->slot);
	*m = bigger;
	return true;
}

/* Adds a value for a key. Returns false if memory runs out. */
static inline bool map_add(struct map *m, uint64_t key, uint64_t value)
{
	if (3 * (m->n + 1) > 2 * map_room(m) && !map_grow(m) && m->n + 1 >= map_room(m))
		return false;
	map_seat(m, (struct map_slot){key, value});
	m->n++;
	return true;
}

static inline void map_keep(struct map *m, uint64_t key, uint64_t value)
{
	if (!map_add(m, key, value))
		alloc_end();
}

/* Sets the value of a key that has at most one value. */
static inline void map_put(struct map *m, uint64_t key, uint64_t value)
{
	const size_t last = map_room(m) - 1;

	for (size_t i = m->slot ? map_home(m, key) : 0; m->slot && m->slot[i].value;
		i = (i + 1) & last)
		if (m->slot[i].key == key) {
			m->slot[i].value = value;
			return;
		}
	map_keep(m, key, value);
}

/* Removes a value if it is present; closes the gap by moving later entries up. */
static inline void map_remove(struct map *m, uint64_t key, uint64_t value)
{
	const size_t last = map_room(m) - 1;
	size_t hole = m->slot ? map_home(m, key) : 0;

	if (!m->slot)
		return;
	while (m->slot[hole].value && (m->slot[hole].key != key || m->slot[hole].value != value))
		hole = (hole + 1) & last;
	if (!m->slot[hole].value)
		return;
	for (size_t i = (hole + 1) & last; m->slot[i].value; i = (i + 1) & last) {
		size_t home = map_home(m, m->slot[i].key);

		if (((i - home) & last) < ((i - hole) & last))
			continue; /* it belongs behind the hole */
		m->slot[hole] = m->slot[i];
		hole = i;
	}
	m->slot[hole] = (struct map_slot){0};
	m->n--;
}

static inline void map_clear(struct map *m)
{
	free(m->slot);
	*m = (struct map){0};
}

#endif
