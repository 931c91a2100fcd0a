/* The internals of a table of scores. */
#ifndef CULPRIT_DIAG_JUDGE_SCORE_IMPL_H
#define CULPRIT_DIAG_JUDGE_SCORE_IMPL_H

#include "diag/judge/score.h"

struct axis {
	char **names;
	size_t n;
};

/* A verdict on "any" in a faulty cell. */
struct judged_cell {
	size_t detector;
	int64_t id;
	bool right;
};

struct score_table {
	struct axis axes[SCORE_AXES];
	struct score *scores;
	size_t n;
	struct judged_cell *cells; /* unordered; capacity doubles */
	size_t n_cells;
};

#endif
