/* Shared by the renderers of grids. */
#ifndef CULPRIT_HARNESS_TABLE_GRID_IMPL_H
#define CULPRIT_HARNESS_TABLE_GRID_IMPL_H

#include "harness/table/grid.h"

bool grid_is_for(const struct grid_place *p, enum table_format format);
/* The next row after 'row' (NULL: from the start) that 'format' shows, or NULL. */
const struct grid_cell *grid_next_row(
	const struct grid *g, const struct grid_cell *row, enum table_format format);

void grid_print_text(const struct grid *g);
void grid_print_markdown(const struct grid *g);
void grid_print_csv(const struct grid *g);

#endif
