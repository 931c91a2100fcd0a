/* Names to numbers: a hash table with open addressing, and all texts in one piece of memory,
 * because there are as many names as series. */
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"

enum { ROOM_FIRST = 256, KEY_HEAD = 1 + sizeof(uint32_t) };

/* Of what precedes the text (its kind and 'parent') and the text. */
static uint32_t hash_of(const char *head, const char *text)
{
	const uint64_t h = hash_bytes(text, strlen(text), hash_bytes(head, KEY_HEAD, HASH_START));

	return (uint32_t)(h ^ h >> 32);
}

/* The slot of a key, or the empty one where it belongs. */
static struct name_slot *slot_of(
	const struct names *n, uint32_t hash, const char *head, const char *text)
{
	for (size_t i = hash;; i++) {
		struct name_slot *slot = &n->slots[i & (n->room - 1)];

		if (!slot->above)
			return slot;
		if (slot->hash == hash && !memcmp(n->texts + slot->at, head, KEY_HEAD) &&
			!strcmp(n->texts + slot->at + KEY_HEAD, text))
			return slot;
	}
}

static void grow(struct names *n)
{
	struct name_slot *old = n->slots;
	size_t old_room = n->room;

	n->room = old_room ? old_room * 2 : ROOM_FIRST;
	n->slots = alloc_zero(n->room, sizeof(*n->slots));
	for (size_t i = 0; i < old_room; i++) {
		size_t k = old[i].hash;

		while (old[i].above && n->slots[k & (n->room - 1)].above)
			k++;
		if (old[i].above)
			n->slots[k & (n->room - 1)] = old[i];
	}
	free(old);
}

/* Where the copy of a key begins. */
static uint32_t keep(struct names *n, const char *head, const char *text)
{
	size_t length = strlen(text) + 1, at = n->size;

	if (at + KEY_HEAD + length > UINT32_MAX)
		alloc_end();
	if (at + KEY_HEAD + length > n->texts_room) {
		n->texts_room = n->texts_room + n->texts_room / 2 + KEY_HEAD + length + 4096;
		n->texts = alloc_resize(n->texts, n->texts_room, 1);
	}
	memcpy(n->texts + at, head, KEY_HEAD);
	memcpy(n->texts + at + KEY_HEAD, text, length);
	n->size += KEY_HEAD + length;
	return (uint32_t)at;
}

uint32_t names_find(struct fleet *f, char kind, uint32_t parent, const char *text, uint32_t fresh)
{
	struct names *n = &f->names;
	struct name_slot *slot;
	char head[KEY_HEAD] = {kind};
	uint32_t hash;

	memcpy(head + 1, &parent, sizeof(parent));
	hash = hash_of(head, text);
	if (4 * (n->n + 1) > 3 * n->room)
		grow(n);
	slot = slot_of(n, hash, head, text);
	if (!slot->above) {
		*slot = (struct name_slot){hash, fresh + 1, keep(n, head, text)};
		n->n++;
	}
	return slot->above - 1;
}

void names_free(struct fleet *f)
{
	free(f->names.slots);
	free(f->names.texts);
	f->names = (struct names){0};
}

static char *path_of(const struct fleet *f, uint32_t group, const char *name)
{
	return alloc_format("%s%s%s", f->groups[group].path, group ? "/" : "", name);
}

uint32_t names_group(struct fleet *f, const struct series_key *key)
{
	uint32_t group = 0;

	for (size_t i = 0; i < key->n_groups; i++) {
		uint32_t own = names_find(f, 'g', group, key->group[i], (uint32_t)f->n_groups);

		if (own == f->n_groups) {
			char *path = path_of(f, group, key->group[i]);

			f->groups = alloc_room(f->groups, f->n_groups, sizeof(*f->groups));
			f->groups[f->n_groups++] = (struct fleet_group){
				.path = path, .parent = group};
		}
		group = own;
	}
	return group;
}

uint32_t names_member(struct fleet *f, const struct series_key *key)
{
	uint32_t group = names_group(f, key);
	uint32_t own = names_find(f, 'm', group, key->member, (uint32_t)f->n_members);

	if (own < f->n_members)
		return own;
	f->members = alloc_room(f->members, f->n_members, sizeof(*f->members));
	f->members[f->n_members++] = (struct fleet_member){.name = alloc_copy(key->member),
		.path = path_of(f, group, key->member),
		.group = group,
		.layer = layers_of(key->member),
		.finding = -1};
	for (uint32_t g = group; g != NOBODY; g = f->groups[g].parent)
		f->groups[g].members++;
	return own;
}
