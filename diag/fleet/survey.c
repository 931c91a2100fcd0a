/* One metric of one kind of rows, judged in rounds: who is suspected is no longer a peer of
 * others. */
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/stat.h"

/* A row is a suspect from this excess on, if it is off for this share of the time: the median
 * of the peers looks after shorter ones. */
enum { ROUNDS = 4 };
#define SUSPECT_EXCESS 0.7
#define SUSPECT_SHARE 0.1
#define SPARSE 0.1 /* of the cells of a typical row */

struct suspicion {
	uint32_t row;
	double excess;
};

static int by_excess(const void *a, const void *b)
{
	double x = ((const struct suspicion *)a)->excess, y = ((const struct suspicion *)b)->excess;

	return x > y ? -1 : x < y;
}

static double suspicion_of(const struct survey *s, uint32_t row)
{
	double most = 0;

	for (unsigned k = 0; k < s->n_stats; k++) {
		double x = (double)s->excess[(size_t)row * s->n_stats + k];

		if (s->stats[k].share >= SUSPECT_SHARE && x > most)
			most = x;
	}
	return most;
}

/* Chooses the suspects of a set anew: the worst ones, and fewer than half of it. */
static void suspect(struct survey *s, struct set *set, struct suspicion *list)
{
	size_t n = 0, most = survey_with(s, FLEET_ROUNDS) ? (set->n - 1) / 2 : 0;
	uint8_t *now = alloc_zero(set->n_judged, 1);

	for (size_t i = 0; i < set->n_judged; i++) {
		double x = suspicion_of(s, set->judged[i]);

		if (x >= SUSPECT_EXCESS)
			list[n++] = (struct suspicion){(uint32_t)i, x};
	}
	qsort(list, n, sizeof(*list), by_excess);
	for (size_t i = 0; i < n && i < most; i++)
		now[list[i].row] = 1;
	for (size_t i = 0; i < set->n_judged; i++) {
		set->stale = set->stale || s->suspect[set->judged[i]] != now[i];
		s->suspect[set->judged[i]] = now[i];
	}
	free(now);
}

/* Cells in which a typical set has a location. */
static double typical_cells(const struct survey *s)
{
	double *n = alloc_zero(s->n_sets, sizeof(*n)), median;

	for (size_t i = 0; i < s->n_sets; i++)
		for (size_t c = 0; c < (s->end - s->first) * PANEL_BLOCK; c++)
			n[i] += s->sets[i].location[c] != PANEL_MISSING;
	median = stat_median(n, s->n_sets);
	free(n);
	return median;
}

/* A row with far fewer cells than its peers is not judged: its statistics are less certain than
 * theirs. */
static void leave_sparse(struct survey *s, const struct set *set)
{
	double *seen = alloc_zero(set->n_judged, sizeof(*seen)), typical;

	for (size_t i = 0; i < set->n_judged; i++)
		seen[i] = s->seen[set->judged[i]];
	typical = stat_median(seen, set->n_judged);
	free(seen);
	for (size_t i = 0; i < set->n_judged; i++)
		for (unsigned k = 0; k < s->n_stats; k++)
			if (s->seen[set->judged[i]] < SPARSE * typical)
				s->values[(size_t)set->judged[i] * s->n_stats + k] = NAN;
}

static void first_look(struct survey *s, struct excuse *excuse)
{
	size_t n;

	for (size_t i = 0; i < s->n_sets; i++)
		peers_locate(s, &s->sets[i]);
	stats_choose(s, typical_cells(s));
	n = s->n_rows * s->n_stats;
	s->values = alloc_zero(n, sizeof(*s->values));
	s->base = alloc_zero(n, sizeof(*s->base));
	s->excess = alloc_zero(n, sizeof(*s->excess));
	for (size_t i = 0; i < n; i++)
		s->values[i] = s->excess[i] = NAN;
	s->plain = s->values;
	if (excuse) {
		excuse_learn(s, excuse);
		s->plain = alloc_zero(n, sizeof(*s->plain));
	}
	s->excuse = excuse;
}

void survey_run(struct survey *s, struct excuse *excuse)
{
	struct suspicion *list = alloc_zero(s->n_rows, sizeof(*list));
	bool again = true;

	for (size_t i = 0; i < s->n_sets; i++)
		s->sets[i].stale = true;
	if (s->n_sets)
		first_look(s, excuse);
	for (int round = 0; round < ROUNDS && again && s->n_sets; round++) {
		for (struct set *set = s->sets; set < s->sets + s->n_sets; set++) {
			if (!set->stale)
				continue;
			peers_locate(s, set);
			set->stale = false;
			for (size_t i = 0; i < set->n_judged; i++)
				stats_of_row(s, set->judged[i]);
			leave_sparse(s, set);
		}
		dispersion_apply(s);
		again = false;
		for (size_t i = 0; i < s->n_sets; i++) {
			suspect(s, &s->sets[i], list);
			again = again || s->sets[i].stale;
		}
	}
	/* What was examined last counts. */
	s->located = NULL;
	free(list);
}

size_t survey_sets(struct survey *s, const uint32_t *group_of)
{
	const struct fleet_group *groups = s->fleet->groups;
	size_t n_groups = s->fleet->n_groups, alone = 0;
	uint32_t *below = alloc_zero(n_groups, sizeof(*below));
	uint32_t *set_of_group = alloc_zero(n_groups, sizeof(*set_of_group));

	memset(set_of_group, 0xff, n_groups * sizeof(*set_of_group));
	for (size_t i = 0; i < s->n_rows; i++)
		for (uint32_t g = group_of[i]; g != NOBODY; g = groups[g].parent)
			below[g]++;
	for (size_t i = 0; i < s->n_rows; i++) {
		uint32_t g = group_of[i];

		while (g != NOBODY && below[g] < SET_PEERS_MIN)
			g = groups[g].parent;
		s->set_of[i] = NOBODY;
		if (g == NOBODY) {
			alone++;
			continue;
		}
		if (set_of_group[g] == NOBODY) {
			set_of_group[g] = (uint32_t)s->n_sets;
			s->sets = alloc_room(s->sets, s->n_sets, sizeof(*s->sets));
			s->sets[s->n_sets++] = (struct set){.group = g,
				.rows = alloc_zero(below[g], sizeof(uint32_t)),
				.judged = alloc_zero(below[g], sizeof(uint32_t))};
		}
		s->set_of[i] = set_of_group[g];
		s->sets[s->set_of[i]].judged[s->sets[s->set_of[i]].n_judged++] = (uint32_t)i;
	}
	for (size_t i = 0; i < s->n_rows; i++)
		for (uint32_t g = group_of[i]; g != NOBODY; g = groups[g].parent)
			if (set_of_group[g] != NOBODY) {
				struct set *set = &s->sets[set_of_group[g]];

				set->rows[set->n++] = (uint32_t)i;
			}
	free(below);
	free(set_of_group);
	return alone;
}

void survey_clear(struct survey *s)
{
	for (size_t i = 0; i < s->n_sets; i++) {
		free(s->sets[i].rows);
		free(s->sets[i].judged);
		free(s->sets[i].location);
		free(s->sets[i].load);
	}
	free(s->sets);
	for (int i = 0; i < 3; i++)
		free(s->without[i]);
	free(s->set_of);
	if (s->plain != s->values)
		free(s->plain);
	free(s->values);
	free(s->base);
	free(s->excess);
	free(s->suspect);
	free(s->seen);
	free(s->severity);
	free(s->worst);
	*s = (struct survey){0};
}
