/* Remembers when a file was first seen (the file tag of Esteves et al. 2023). Device and inode
 * number are reused after a file is removed. The generation, which a file system sets anew for
 * every use of an inode, distinguishes the uses. */
#include <stdlib.h>
#include <string.h>

#include "diag/capture/ebpf/ebpf.h"

/* Restarts when full: bounded memory matters more than the tags of old files. */
enum { SLOTS = 1 << 17, MOST = SLOTS / 4 * 3 };

struct first_seen {
	unsigned used;
	struct slot {
		uint64_t ino;
		uint32_t dev, generation;
		int64_t ns; /* 0: free */
	} slot[SLOTS];
};

struct first_seen *first_seen_new(void)
{
	return calloc(1, sizeof(struct first_seen));
}

void first_seen_free(struct first_seen *s)
{
	free(s);
}

int64_t first_seen_ns(
	struct first_seen *s, uint32_t dev, uint64_t ino, uint32_t generation, int64_t now_ns)
{
	uint64_t hash = (ino ^ (uint64_t)dev << 40 ^ (uint64_t)generation << 20) *
		0x9E3779B97F4A7C15ull;
	struct slot *slot;

	for (size_t i = hash >> 47;; i = (i + 1) & (SLOTS - 1)) {
		slot = &s->slot[i];
		if (!slot->ns)
			break;
		if (slot->ino == ino && slot->dev == dev && slot->generation == generation)
			return slot->ns;
	}
	if (s->used == MOST) {
		memset(s, 0, sizeof(*s));
		return first_seen_ns(s, dev, ino, generation, now_ns);
	}
	s->used++;
	*slot = (struct slot){ino, dev, generation, now_ns};
	return now_ns;
}
