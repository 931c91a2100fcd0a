/* Inside diag/fleet: one judgement of one metric. */
#ifndef CULPRIT_DIAG_FLEET_JUDGE_IMPL_H
#define CULPRIT_DIAG_FLEET_JUDGE_IMPL_H

#include "diag/fleet/fleet_impl.h"

/* Members are judged by how they stand to their peers, and groups by how they stand to theirs. Both
 * are rows of a panel; a set is rows that are compared with one another. */
enum { SET_PEERS_MIN = 3, LEVELS_MAX = 12, SHARES = 10, STATS_MAX = LEVELS_MAX * (SHARES + 1) };

struct set {
	uint32_t *rows; /* all that the location is taken from */
	size_t n;
	uint32_t *judged; /* those of them that are judged by this set */
	size_t n_judged;
	uint32_t group;
	uint16_t *location; /* median of all, by cell of the survey; 0: too few peers */
	uint16_t *load;     /* the same of the load's panel; NULL: there is none */
	double load_center; /* median over time, as a code */
	bool stale;         /* its suspects have changed */
};

/* How load excuses (excuse.c): 'usual' is the logarithm of the level that goes with a load, from
 * 2^-4 to 2^4 times the typical one of the set or, as they are, of the fleet. It never falls. */
enum { EXCUSE_OCTAVES_MAX = 4, EXCUSE_POINTS = 33 };
#define EXCUSE_OCTAVES 0.25 /* from one point to the next */
enum { LOADS_MAX = 4 };
struct excuse {
	const struct metric *loads[LOADS_MAX]; /* to be tried */
	size_t n_loads;
	const struct metric *load; /* the one that explains most */
	bool as_they_are;
	double center; /* of all loads, as a code */
	double usual[EXCUSE_POINTS];
};

/* Deviations are counted up to this logarithm of a ratio, 167 times the peers: a limit above it is
 * exceeded by nobody. */
#define DEVIATION_MOST 5.12

/* A statistic of a row: the level that its windows of 4^level cells exceed for this share of them.
 * The first is another one: the mean of the middle half of all cells, for a lasting shift. */
struct stat {
	unsigned level;
	bool from_low; /* compared with the row's lower quartile, not with its middle */
	double share;
	double exceeding; /* windows of a typical row above it */
	double p;         /* probability at which a healthy row may exceed the limit */
	double least;     /* smallest logarithm of a ratio that counts */
};

struct survey {
	const struct fleet *fleet;
	const struct panel *panel;
	bool rare;         /* most samples are 0 */
	double sign;       /* 1: more is worse; -1 */
	size_t first, end; /* blocks: places in panel->when */
	int64_t from, to;  /* cells */
	struct set *sets;
	size_t n_sets;
	uint32_t *set_of;        /* by row; NOBODY: without peers */
	const uint32_t *members; /* by row: the member; of a survey of groups NULL */
	size_t n_rows;
	double alarms; /* allowed, a row */
	struct stat stats[STATS_MAX];
	unsigned n_stats;
	float *values;            /* [row * n_stats + stat]; NAN: none */
	float *base;              /* the same: of the row itself, what it is compared with */
	float *plain;             /* the same without excuses; as values where there are none */
	float *excess;            /* the same: over the limit, 1 at it */
	uint8_t *suspect;         /* by row: no part of its peers' location */
	uint32_t *seen;           /* by row: cells compared */
	double *severity;         /* by row: the largest excess; NAN: not judged */
	uint8_t *worst;           /* by row: its statistic */
	double dispersion, limit; /* lasting: typical between healthy rows, and limit; logarithms */
	const struct excuse *excuse;
	/* For the rows of one set, the median of the others: for a row below the median of all,
	 * above it, at it. By cell. */
	uint16_t *without[3];
	const struct set *located; /* that set */
};

static inline bool survey_with(const struct survey *s, enum fleet_part part)
{
	return !(s->fleet->options.without & part);
}

/* Cells of a row as logarithms of the ratio to its peers, above 0: worse. NAN: none. 64 of them. */
void peers_deviations(const struct survey *s, const struct set *set, uint32_t row, size_t place,
	float d[PANEL_BLOCK]);
/* Computes the location of a set from those of its rows that are not suspects. Deviations are
 * of rows of the set that was located last. */
void peers_locate(struct survey *s, struct set *set);
/* The medians of some rows' cells; 0 where there are fewer than SET_PEERS_MIN. */
void peers_medians(const uint16_t *const *rows, size_t n, uint16_t out[PANEL_BLOCK]);

/* Learns the curve from the survey's members, and which load it is of. */
void excuse_learn(struct survey *s, struct excuse *x);
/* Subtracts what the load of a row excuses. */
void excuse_apply(const struct survey *s, const struct set *set, uint32_t row, size_t place,
	float d[PANEL_BLOCK]);

/* Windows of a row in order: of each level, [index, index + 1) * 4^level cells from the zero of
 * time, and its trimmed mean. Several, at most PANEL_BLOCK, in a row; NAN: there is none. */
struct ladder {
	void (*emit)(void *ctx, unsigned level, int64_t index, const float *v, size_t n);
	void *ctx;
	unsigned levels; /* 1: cells alone */
	struct rung {
		int64_t index;
		float v[4];
		unsigned char n, possible;
		bool begun;
	} rungs[LEVELS_MAX + 1];
};
/* All windows of a row; locates its set if need be. */
void ladder_run(struct survey *s, uint32_t row, struct ladder *l);

/* One judgement of everything. */
struct verdicts {
	struct fleet *f;
	struct fleet_result *r;
	bool whole;   /* all of the samples, not a window */
	double weeks; /* at least 1 */
	unsigned n_judged;
};

/* Begins a survey of a panel's rows in the part of time that is judged. */
struct survey survey_begin(const struct verdicts *v, const struct metric *m, const struct panel *p);

/* The groups of one layer, as rows that have the sets' locations; compared within the groups around
 * them. */
struct layer {
	struct panel panel;
	struct survey s;
	uint32_t *own; /* by row: the group */
};

void layer_begin(
	struct verdicts *v, const struct metric *m, const struct survey *below, struct layer *l);
void layer_clear(struct layer *l);

/* Chooses the statistics for a length of 'cells'. */
void stats_choose(struct survey *s, double cells);
/* Computes all statistics of a row. */
void stats_of_row(struct survey *s, uint32_t row);

/* Fills excess, severity and worst of all rows from their statistics. */
void dispersion_apply(struct survey *s);

/* Makes sets of rows by the group that each belongs to: a row is judged in the narrowest group
 * that has enough rows. Returns how many rows have none. */
size_t survey_sets(struct survey *s, const uint32_t *group_of);
/* Judges in rounds: who is suspected is no longer a peer. 'excuse' may be NULL; it is learnt. */
void survey_run(struct survey *s, struct excuse *excuse);
void survey_clear(struct survey *s);

/* When a row was off, and how much: fills kind, effect, times, open and shares. */
void shape_find(
	struct survey *s, uint32_t row, const struct metric *m, struct fleet_finding *finding);

#endif
