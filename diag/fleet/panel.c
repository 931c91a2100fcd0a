/* Stores levels compactly: 16 bits a cell, in blocks that exist only where samples do. */
#include "diag/fleet/panel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

enum { BLOCK_BYTES = PANEL_BLOCK * sizeof(uint16_t), SLAB_BLOCKS = 4096 };

union block {
	union block *next;
	uint16_t cells[PANEL_BLOCK];
};

struct panel_pool {
	union block **slabs, *free;
	size_t n_slabs, fresh; /* blocks of the last slab that were never used */
	size_t used;
};

double panel_level(double code)
{
	return exp2(code / PANEL_STEPS_PER_OCTAVE + PANEL_LOWEST_OCTAVE);
}

double panel_log2_rare(double x)
{
	return log2(x);
}

struct panel_pool *panel_pool_new(void)
{
	return alloc_zero(1, sizeof(struct panel_pool));
}

void panel_pool_free(struct panel_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_slabs; i++)
		free(p->slabs[i]);
	free(p->slabs);
	free(p);
}

size_t panel_pool_bytes(const struct panel_pool *p)
{
	return p->used * BLOCK_BYTES;
}

static uint16_t *block_new(struct panel_pool *p)
{
	union block *b = p->free;

	if (b) {
		p->free = b->next;
	} else {
		if (!p->n_slabs || p->fresh == SLAB_BLOCKS) {
			p->slabs = alloc_room(p->slabs, p->n_slabs, sizeof(*p->slabs));
			p->slabs[p->n_slabs++] = alloc_resize(
				NULL, SLAB_BLOCKS, sizeof(**p->slabs));
			p->fresh = 0;
		}
		b = &p->slabs[p->n_slabs - 1][p->fresh++];
	}
	p->used++;
	memset(b, 0, sizeof(*b));
	return b->cells;
}

static void block_free(struct panel_pool *p, uint16_t *cells)
{
	union block *b = (union block *)(void *)cells;

	if (!b)
		return;
	b->next = p->free;
	p->free = b;
	p->used--;
}

void panel_init(struct panel *p, struct panel_pool *pool, double step_s)
{
	*p = (struct panel){.pool = pool, .step_s = step_s};
}

static void row_clear(struct panel *p, struct panel_row *r)
{
	for (uint32_t i = 0; i < r->room; i++)
		block_free(p->pool, r->block[i]);
	free(r->block);
	*r = (struct panel_row){0};
}

void panel_clear(struct panel *p)
{
	for (size_t i = 0; i < p->n_rows; i++)
		row_clear(p, &p->rows[i]);
	free(p->rows);
	free(p->when);
	free(p->slot);
	free(p->free_slots);
	*p = (struct panel){0};
}

uint32_t panel_add_row(struct panel *p)
{
	if (p->n_rows == p->rows_room) {
		p->rows_room = p->rows_room ? p->rows_room * 2 : 16;
		p->rows = alloc_resize(p->rows, p->rows_room, sizeof(*p->rows));
	}
	p->rows[p->n_rows] = (struct panel_row){0};
	return (uint32_t)p->n_rows++;
}

/* The first place whose block is not before 'block'. */
static size_t panel_place_of(const struct panel *p, int64_t block)
{
	size_t low = 0, high = p->n_blocks;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (p->when[middle] < block)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t slot_of(struct panel *p, int64_t block)
{
	size_t at;

	if (p->hit < p->n_blocks && p->when[p->hit] == block)
		return p->slot[p->hit];
	p->hit = at = panel_place_of(p, block);
	if (at < p->n_blocks && p->when[at] == block)
		return p->slot[at];
	if (p->n_blocks == p->blocks_room) {
		p->blocks_room = p->blocks_room ? p->blocks_room * 2 : 64;
		p->when = alloc_resize(p->when, p->blocks_room, sizeof(*p->when));
		p->slot = alloc_resize(p->slot, p->blocks_room, sizeof(*p->slot));
		p->free_slots = alloc_resize(p->free_slots, p->blocks_room, sizeof(*p->free_slots));
	}
	memmove(p->when + at + 1, p->when + at, (p->n_blocks - at) * sizeof(*p->when));
	memmove(p->slot + at + 1, p->slot + at, (p->n_blocks - at) * sizeof(*p->slot));
	p->n_blocks++;
	p->when[at] = block;
	p->slot[at] = p->n_free_slots ? p->free_slots[--p->n_free_slots] : p->n_slots++;
	return p->slot[at];
}

void panel_open(struct panel *p, uint32_t row, int64_t block)
{
	struct panel_row *r = &p->rows[row];
	uint32_t slot = slot_of(p, block);

	if (slot >= r->room) {
		uint32_t room = r->room + r->room / 2 + 4;

		if (room <= slot)
			room = slot + 1;
		r->block = alloc_resize(r->block, room, sizeof(*r->block));
		memset(r->block + r->room, 0, (room - r->room) * sizeof(*r->block));
		r->room = room;
	}
	if (!r->block[slot])
		r->block[slot] = block_new(p->pool);
	r->last = block;
	r->last_cells = r->block[slot];
}

uint16_t panel_get(const struct panel *p, uint32_t row, int64_t cell)
{
	size_t at = panel_place_of(p, cell >> 6);
	const uint16_t *cells;

	if (row >= p->n_rows || at == p->n_blocks || p->when[at] != cell >> 6)
		return PANEL_MISSING;
	cells = panel_cells(p, row, at);
	return cells ? cells[cell & (PANEL_BLOCK - 1)] : PANEL_MISSING;
}

/* Row by row, so that the old blocks of a row are free before the next one's are made. */
void panel_halve(struct panel *p)
{
	struct panel fresh = *p;

	fresh.rows = alloc_zero(p->n_rows, sizeof(*fresh.rows));
	fresh.rows_room = p->n_rows;
	fresh.when = NULL;
	fresh.slot = fresh.free_slots = NULL;
	fresh.n_blocks = fresh.blocks_room = fresh.n_free_slots = fresh.hit = 0;
	fresh.n_slots = 0;
	fresh.shift++;
	for (uint32_t row = 0; row < p->n_rows; row++) {
		for (size_t i = 0; i < p->n_blocks; i++) {
			const uint16_t *old = panel_cells(p, row, i);

			for (unsigned k = 0; old && k < PANEL_BLOCK; k += 2)
				if (panel_merged(old[k], old[k + 1]))
					panel_put(&fresh, row, (p->when[i] * PANEL_BLOCK + k) >> 1,
						panel_merged(old[k], old[k + 1]));
		}
		row_clear(p, &p->rows[row]);
	}
	free(p->rows);
	free(p->when);
	free(p->slot);
	free(p->free_slots);
	*p = fresh;
}

void panel_forget(struct panel *p, int64_t cell)
{
	size_t n = panel_place_of(p, cell >> 6);

	if (!n)
		return;
	for (size_t row = 0; row < p->n_rows; row++)
		for (size_t i = 0; i < n; i++) {
			struct panel_row *r = &p->rows[row];

			r->last_cells = NULL;
			if (p->slot[i] < r->room) {
				block_free(p->pool, r->block[p->slot[i]]);
				r->block[p->slot[i]] = NULL;
			}
		}
	for (size_t i = 0; i < n; i++)
		p->free_slots[p->n_free_slots++] = p->slot[i];
	p->n_blocks -= n;
	memmove(p->when, p->when + n, p->n_blocks * sizeof(*p->when));
	memmove(p->slot, p->slot + n, p->n_blocks * sizeof(*p->slot));
	p->hit = 0;
}

void panel_range(const struct panel *p, int64_t from, int64_t to, size_t *first, size_t *end)
{
	*first = panel_place_of(p, from >> 6);
	*end = panel_place_of(p, (to + PANEL_BLOCK - 1) >> 6);
}
