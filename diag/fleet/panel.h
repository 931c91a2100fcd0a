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
#ifndef CULPRIT_DIAG_FLEET_PANEL_H
#define CULPRIT_DIAG_FLEET_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PANEL_BLOCK = 64, PANEL_MISSING = 0, PANEL_LOWEST_OCTAVE = -34 };

#define PANEL_STEPS_PER_OCTAVE 655
#define PANEL_LOG_STEP (0.69314718055994530942 / PANEL_STEPS_PER_OCTAVE) /* natural logarithm */

/* The code of a level above 0 from its logarithm to base 2, and back. Levels out of range become
 * the nearest one. */
static inline uint16_t panel_code(double log2_level)
{
	double code = (log2_level - PANEL_LOWEST_OCTAVE) * PANEL_STEPS_PER_OCTAVE + 0.5;

	return code < 1 ? 1 : code > UINT16_MAX ? UINT16_MAX : (uint16_t)(int)code;
}
double panel_level(double code);

/* log2 of a number that is not normal, and above 0. */
double panel_log2_rare(double x);

/* log2 of a positive number, exact to 2e-9; about a nanosecond. */
static inline double panel_log2(double x)
{
	/* The mantissa m in [sqrt(1/2), sqrt(2)): log(m) = 2 atanh((m - 1) / (m + 1)), whose series
	 * is cut behind the ninth power. Values on both sides of sqrt(2) come by turns, so that a
	 * branch would be mispredicted: the difference to its bits gives the exponent. */
	const uint64_t root_half = 0x3fe6a09e667f3bcd;
	uint64_t bits, above;
	double m, z, z2;

	memcpy(&bits, &x, sizeof(bits));
	if (bits - 0x0010000000000000 >= 0x7fe0000000000000) /* subnormal, negative, not finite */
		return panel_log2_rare(x);
	above = bits - root_half;
	bits -= above & 0xfff0000000000000;
	memcpy(&m, &bits, sizeof(m));
	z = (m - 1) / (m + 1);
	z2 = z * z;
	return (double)((int64_t)above >> 52) +
		z *
		(2.8853900817779268 +
			z2 *
				(0.9617966939259756 +
					z2 *
						(0.5770780163555854 +
							z2 *
								(0.4121985831111324 +
									z2 * 0.3205988979753252))));
}

struct panel_row {
	uint16_t **block; /* by slot; NULL: no sample in it */
	uint32_t room;
	/* The block that was put into last, so that the next sample needs no search. */
	int64_t last;
	uint16_t *last_cells; /* NULL: none */
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
static inline void panel_put(struct panel *p, uint32_t row, int64_t cell, uint16_t code);
/* The code in a cell; PANEL_MISSING also where there is no such row. */
uint16_t panel_get(const struct panel *p, uint32_t row, int64_t cell);
/* Makes cells twice as wide: each is the mean of its halves, or the one that is there. */
void panel_halve(struct panel *p);
/* Drops whole blocks that end before 'cell'. */
void panel_forget(struct panel *p, int64_t cell);

/* Makes the block of a row that a cell belongs to, and remembers it as the last. */
void panel_open(struct panel *p, uint32_t row, int64_t block);

/* What becomes of two codes in one cell. */
static inline uint16_t panel_merged(uint16_t a, uint16_t b)
{
	return !a ? b : !b ? a : (uint16_t)(((uint32_t)a + b + 1) / 2);
}

static inline void panel_put(struct panel *p, uint32_t row, int64_t cell, uint16_t code)
{
	struct panel_row *r = &p->rows[row];
	uint16_t *at;

	if (!r->last_cells || r->last != cell >> 6)
		panel_open(p, row, cell >> 6);
	at = &p->rows[row].last_cells[cell & (PANEL_BLOCK - 1)];
	*at = panel_merged(*at, code);
}

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
