/* Stores each distinct text of a timeline once. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/hash.h"
#include "harness/base/text.h"
#include "harness/web/timeline/timeline_impl.h"

enum { TEXT_MAX = 1000 };

static size_t hash_of(const char *text)
{
	const uint64_t h = hash_text(text);

	return (size_t)(h ^ h >> 32);
}

void words_clear(struct words *w)
{
	free(w->text);
	free(w->starts);
	free(w->table);
	*w = (struct words){0};
}

static size_t slot_of(const struct words *w, const char *text)
{
	size_t slot = hash_of(text) & (w->slots - 1);

	while (w->table[slot] && strcmp(words_text(w, w->table[slot] - 1), text) != 0)
		slot = (slot + 1) & (w->slots - 1);
	return slot;
}

static void words_grow(struct words *w)
{
	w->slots = w->slots ? 2 * w->slots : 1024;
	free(w->table);
	w->table = alloc_zero(w->slots, sizeof(*w->table));
	for (uint32_t i = 0; i < w->n; i++)
		w->table[slot_of(w, words_text(w, i))] = i + 1;
}

uint32_t words_number(struct words *w, const char *text)
{
	char clean[TEXT_MAX + 1];
	size_t slot, length;

	text_clean(text, clean, sizeof(clean));
	if (2 * (size_t)w->n >= w->slots)
		words_grow(w);
	slot = slot_of(w, clean);
	if (w->table[slot])
		return w->table[slot] - 1;
	if (w->n >= TIMELINE_WORDS_MAX)
		return UINT32_MAX;
	length = strlen(clean) + 1;
	if (w->size + length > w->room) {
		w->room = 2 * w->room + sizeof(clean);
		w->text = alloc_resize(w->text, w->room, 1);
	}
	if (!(w->n & (w->n - 1)))
		w->starts = alloc_resize(
			w->starts, w->n ? 2 * (size_t)w->n : 1, sizeof(*w->starts));
	memcpy(w->text + w->size, clean, length);
	w->starts[w->n] = w->size;
	w->size += length;
	w->table[slot] = ++w->n;
	return w->n - 1;
}
