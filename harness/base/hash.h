/* Hashes of bytes and strings (FNV-1a), for tables whose keys no attacker chooses. */
#ifndef CULPRIT_HARNESS_BASE_HASH_H
#define CULPRIT_HARNESS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* 'so_far' is HASH_START or the hash of the preceding bytes. */
static inline uint64_t hash_bytes(const void *data, size_t n, uint64_t so_far)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		so_far = (so_far ^ p[i]) * 0x100000001b3u;
	return so_far;
}

/* Hashes eight bytes at a time: for many short strings. */
static inline uint64_t hash_words(const char *p, size_t n)
{
	uint64_t h = 0x9e3779b97f4a7c15u ^ n, w;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, p, n);
	h = (h ^ w) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 29;
}

/* Combines a hash with a number or another hash. Start a series of numbers with hash 0. */
static inline uint64_t hash_mix(uint64_t so_far, uint64_t v)
{
	so_far = (so_far ^ v) * 0x9e3779b97f4a7c15u;
	return so_far ^ so_far >> 32;
}

/* Also depends on 'seed': for keys of several kinds in one table. */
static inline uint64_t hash_seeded(const void *data, size_t n, uint64_t seed)
{
	const uint64_t h = hash_bytes(data, n, seed ^ HASH_START);

	return h ^ h >> 29;
}

static inline uint64_t hash_text(const char *text)
{
	return hash_bytes(text, strlen(text), HASH_START);
}

#endif
