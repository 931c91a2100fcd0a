/* Names to numbers. All texts are in one piece of memory, because there are as many names as
 * series. */
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"

enum { KEY_HEAD = 1 + sizeof(uint32_t) };

/* Where the copy of a key begins. */
static uint32_t names_keep(struct names *n, const char *head, const char *text)
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

/* A key is what precedes the text (its kind and 'parent') and the text. */
uint32_t names_find(struct fleet *f, char kind, uint32_t parent, const char *text, uint32_t fresh)
{
	struct names *n = &f->names;
	char head[KEY_HEAD] = {kind};
	uint64_t hash, i;
	size_t at = 0;

	memcpy(head + 1, &parent, sizeof(parent));
	hash = hash_bytes(text, strlen(text), hash_bytes(head, KEY_HEAD, HASH_START));
	while ((i = map_next(&n->index, hash, &at))) {
		const char *key = n->texts + n->v[i - 1].at;

		if (!memcmp(key, head, KEY_HEAD) && !strcmp(key + KEY_HEAD, text))
			return n->v[i - 1].number;
	}
	n->v = alloc_room(n->v, n->n, sizeof(*n->v));
	n->v[n->n++] = (struct fleet_name){fresh, names_keep(n, head, text)};
	map_keep(&n->index, hash, n->n);
	return fresh;
}

void names_free(struct fleet *f)
{
	free(f->names.v);
	map_clear(&f->names.index);
	free(f->names.texts);
	f->names = (struct names){0};
}

static char *names_path_of(const struct fleet *f, uint32_t group, const char *name)
{
	return alloc_format("%s%s%s", f->groups[group].path, group ? "/" : "", name);
}

uint32_t names_group(struct fleet *f, const struct series_key *key)
{
	uint32_t group = 0;

	for (size_t i = 0; i < key->n_groups; i++) {
		uint32_t own = names_find(f, 'g', group, key->group[i], (uint32_t)f->n_groups);

		if (own == f->n_groups) {
			char *path = names_path_of(f, group, key->group[i]);

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
		.path = names_path_of(f, group, key->member),
		.group = group,
		.layer = layers_of(key->member),
		.finding = -1};
	for (uint32_t g = group; g != NOBODY; g = f->groups[g].parent)
		f->groups[g].members++;
	return own;
}
