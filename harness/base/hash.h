/* Hashes of bytes and texts (FNV-1a), for tables whose keys nobody chooses to make them collide. */
#ifndef CULPRIT_HARNESS_BASE_HASH_H
#define CULPRIT_HARNESS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* 'so_far': HASH_START, or the hash of what comes before these bytes. */
static inline uint64_t hash_bytes(const void *data, size_t n, uint64_t so_far)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		so_far = (so_far ^ p[i]) * 0x100000001b3u;
	return so_far;
}

static inline uint64_t hash_text(const char *text)
{
	return hash_bytes(text, strlen(text), HASH_START);
}

#endif
