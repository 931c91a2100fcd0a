#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"
#include "harness/base/alloc.h"

struct named {
	char *text;
	uint32_t number;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

uint32_t names_find(struct fleet *f, char kind, const char *text, uint32_t fresh)
{
	struct named *n = alloc_zero(1, sizeof(*n)), **found;

	n->text = alloc_format("%c%s", kind, text);
	n->number = fresh;
	found = fresh == NOBODY ? tfind(n, &f->names, by_text) : tsearch(n, &f->names, by_text);
	if (fresh != NOBODY && !found)
		alloc_end();
	fresh = found ? (*found)->number : NOBODY;
	if (!found || *found != n) {
		free(n->text);
		free(n);
	}
	return fresh;
}

static void free_named(void *node)
{
	free(((struct named *)node)->text);
	free(node);
}

void names_free(struct fleet *f)
{
	if (f->names)
		tdestroy(f->names, free_named);
	f->names = NULL;
}

uint32_t names_group(struct fleet *f, const struct series_key *key)
{
	uint32_t group = 0;

	for (size_t i = 0; i < key->n_groups; i++) {
		char *path = alloc_format(
			"%s%s%s", f->groups[group].path, group ? "/" : "", key->group[i]);
		char *name = alloc_format("%u/%s", group, key->group[i]);
		uint32_t own = names_find(f, 'g', name, (uint32_t)f->n_groups);

		free(name);
		if (own == f->n_groups) {
			f->groups = alloc_resize(f->groups, f->n_groups + 1, sizeof(*f->groups));
			f->groups[f->n_groups++] = (struct fleet_group){
				.path = path, .parent = group};
		} else {
			free(path);
		}
		group = own;
	}
	return group;
}

uint32_t names_member(struct fleet *f, const struct series_key *key)
{
	uint32_t group = names_group(f, key), own;
	char *name = alloc_format("%u/%s", group, key->member);

	own = names_find(f, 'm', name, (uint32_t)f->n_members);
	free(name);
	if (own < f->n_members)
		return own;
	if (f->n_members == f->members_room) {
		f->members_room = f->members_room ? f->members_room * 2 : 64;
		f->members = alloc_resize(f->members, f->members_room, sizeof(*f->members));
	}
	f->members[f->n_members++] = (struct fleet_member){.name = alloc_copy(key->member),
		.path = alloc_format(
			"%s%s%s", f->groups[group].path, group ? "/" : "", key->member),
		.group = group,
		.finding = -1};
	for (uint32_t g = group; g != NOBODY; g = f->groups[g].parent)
		f->groups[g].members++;
	return own;
}
