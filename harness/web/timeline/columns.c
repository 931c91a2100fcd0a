/* Packs columns of numbers for a page. */
#include "harness/web/timeline/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "harness/base/alloc.h"
#include "harness/base/bytes.h"
#include "harness/base/hash.h"

void column_clear(struct timeline_column *c)
{
	free(c->data);
	*c = (struct timeline_column){0};
}

static void columns_make_room(struct timeline_column *c, size_t size)
{
	if (c->size + size <= c->room)
		return;
	c->room = 2 * c->room + size;
	c->data = alloc_resize(c->data, c->room, 1);
}

void column_bytes(struct timeline_column *c, const void *data, size_t size)
{
	if (!size)
		return;
	columns_make_room(c, size);
	memcpy(c->data + c->size, data, size);
	c->size += size;
}

void column_number(struct timeline_column *c, uint64_t number)
{
	columns_make_room(c, BYTES_VARINT);
	c->size = (size_t)(bytes_put_varint(c->data + c->size, number) - c->data);
}

void column_delta(struct timeline_column *c, int64_t number)
{
	uint64_t delta = (uint64_t)number - (uint64_t)c->last;
	uint64_t magnitude = number < 0 ? -(uint64_t)number : (uint64_t)number;

	if (magnitude > c->most)
		c->most = magnitude;
	c->last = number;
	column_number(c, bytes_zigzag((int64_t)delta));
}

int column_deflate(const struct timeline_column *c, struct timeline_column *out, struct err *e)
{
	enum { CHUNK = 1 << 18, LEVEL = 6 };
	z_stream z = {.next_in = c->data};
	size_t left = c->size;
	int rc = deflateInit(&z, LEVEL);

	while (rc == Z_OK) {
		size_t some = left < CHUNK ? left : CHUNK;

		columns_make_room(out, CHUNK);
		if (!z.avail_in) {
			z.avail_in = (uInt)some;
			left -= some;
		}
		z.next_out = out->data + out->size;
		z.avail_out = CHUNK;
		rc = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
		out->size += CHUNK - z.avail_out;
	}
	deflateEnd(&z);
	return rc == Z_STREAM_END ? 0 : err_set(e, -EIO, "cannot deflate a timeline's columns");
}

uint32_t tuples_number(struct tuples *t, const uint32_t tuple[TUPLE])
{
	uint64_t hash = 0, known;
	size_t at = 0;

	for (size_t i = 0; i < TUPLE; i++)
		hash = hash_mix(hash, tuple[i]);
	while ((known = map_next(&t->index, hash, &at)))
		if (!memcmp(t->list[known - 1], tuple, sizeof(*t->list)))
			return (uint32_t)known - 1;
	t->list = alloc_room(t->list, t->n, sizeof(*t->list));
	memcpy(t->list[t->n], tuple, sizeof(*t->list));
	map_keep(&t->index, hash, t->n + 1);
	return t->n++;
}

void tuples_clear(struct tuples *t)
{
	free(t->list);
	map_clear(&t->index);
	*t = (struct tuples){0};
}
