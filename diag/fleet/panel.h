/*
 * A table of levels: one row a series, one column a stretch of time (a cell), 16 bits a cell.
 *
 * A cell holds the logarithm of a level in steps of a thousandth, so that a difference of two
 * codes is the logarithm of a ratio. Levels are compared as ratios, and their range is wide:
 * from 6e-11 to 7e19, with an error of 0.05 %.
 *
 * Time is kept in blocks of PANEL_BLOCK cells, and only blocks in which any series has a sample
 * exist: a recording of three hours a day costs an eighth of the whole day's. All panels of a
 * fleet share one zero of time; when the memory is used up, panel_halve merges pairs of cells.
 */
#ifndef CULPRIT_FLEET_PANEL_H
#define CULPRIT_FLEET_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PANEL_BLOCK = 64, PANEL_MISSING = 0 };

#define PANEL_STEPS_PER_OCTAVE 655
#define PANEL_LOG_STEP (0.69314718055994530942 / PANEL_STEPS_PER_OCTAVE) /* natural logarithm */

/* The code of a level above 0 from its logarithm to base 2, and back. Levels out of range become
 * the nearest one. */
uint16_t panel_code(double log2_level);
double panel_level(double code);
/* log2 of a positive, finite number, exact to 1e-6; about a nanosecond. */
double panel_log2(double x);

struct panel_row {
	uint16_t **block; /* by slot; NULL: no sample in it */
	uint32_t room;
};

struct panel {
	double step_s;  /* width of a cell as given */
	unsigned shift; /* a cell is 2^shift steps wide by now */
	struct panel_row *rows;
	size_t n_rows, rows_room;
	/* Blocks of time that exist, in order of time, and the slot of each in every row. */
	int64_t *when;
	uint32_t *slot;
	size_t n_blocks, blocks_room;
	uint32_t n_slots;
	uint32_t *free_slots;
	size_t n_free_slots;
	size_t hit; /* the place in 'when' that was asked for last */
	struct panel_pool *pool;
};

/* Memory of blocks, shared by the panels of a fleet. */
struct panel_pool *panel_pool_new(void);
void panel_pool_free(struct panel_pool *p);
size_t panel_pool_bytes(const struct panel_pool *p); /* in blocks that are in use */

void panel_init(struct panel *p, struct panel_pool *pool, double step_s);
void panel_clear(struct panel *p);
/* A further row; its number. */
uint32_t panel_add_row(struct panel *p);
/* Puts a code in a cell; 'cell' counts cells of the present width from the zero of time. A cell
 * that has one becomes the mean of both. */
void panel_put(struct panel *p, uint32_t row, int64_t cell, uint16_t code);
/* Makes cells twice as wide: each is the mean of its halves, or the one that is there. */
void panel_halve(struct panel *p);
/* Drops whole blocks that end before 'cell'. */
void panel_forget(struct panel *p, int64_t cell);

/* The blocks of [from, to) in order of time: places in 'when' and 'slot'. */
void panel_range(const struct panel *p, int64_t from, int64_t to, size_t *first, size_t *end);
/* The cells of a row in the block at this place; NULL: none. */
static inline const uint16_t *panel_cells(const struct panel *p, uint32_t row, size_t place)
{
	const struct panel_row *r = &p->rows[row];
	uint32_t slot = p->slot[place];

	return slot < r->room ? r->block[slot] : NULL;
}

#endif
