/* Inside diag/fleet: what a fleet consists of. */
#ifndef CULPRIT_DIAG_FLEET_FLEET_IMPL_H
#define CULPRIT_DIAG_FLEET_FLEET_IMPL_H

#include "diag/fleet/fleet.h"
#include "diag/fleet/panel.h"
#include "harness/base/map.h"

enum { NOBODY = UINT32_MAX, BUCKETS_MAX = 64 };

/* What a series is to a metric. */
enum feed_role { FEED_LEVEL, FEED_AMOUNT, FEED_EXPOSURE, FEED_BUCKET };

struct feed {
	uint32_t metric, row;
	enum feed_role role;
	uint32_t bucket; /* of FEED_BUCKET: its place in the metric's bounds */
	uint32_t next;   /* of the same series, or NOBODY */
};

/* A series as it comes. */
struct raw {
	uint32_t feeds; /* the first, or NOBODY: not examined */
	bool any;       /* it had a value */
	/* It is the gauge of one settled metric: 'metric' and 'row' are its feed's. */
	bool quick;
	uint32_t metric, row;
	double last_s, last_value;
};

/* The cell of a row that samples are being added to. */
struct open_cell {
	int64_t cell; /* of the panel's present width */
	double sum, exposure;
	uint32_t n, n_exposures; /* of n */
	float *buckets;          /* what came into each; NULL unless the kind is KIND_BUCKET */
};

/* A sample that waits until the step of its metric is known. */
struct pending {
	uint32_t raw, feed;
	double time_s, value;
};

struct metric {
	struct metric_model model; /* its texts are the metric's own */
	struct panel panel;
	struct open_cell *open;  /* by row, as many as panel.n_rows */
	uint32_t *member_of_row; /* the same */
	size_t rows_room;
	uint32_t *row_of; /* by member; NOBODY */
	size_t members_room;
	bool settled;  /* step and floor are known */
	bool was_load; /* guessed as work, judged because there is nothing else */
	/* The time that was asked for last, and its cell: many series have samples of one time. */
	double asked_s;
	int64_t asked_cell;
	bool rare;    /* most samples are 0: of retransmissions, errors */
	double floor; /* of KIND_GAUGE and others with ZERO_VALUE: added to every level */
	struct pending *pending;
	size_t n_pending;
	float *steps; /* distances of samples, until it is settled */
	size_t n_steps;
	double *bounds; /* of KIND_BUCKET, in order of arrival */
	size_t n_bounds;
	uint64_t samples, zeros, negatives, late, repeated, restarts;
	/* Of KIND_AMOUNT: amounts and exposures whose counterpart has not come, as it is with input
	 * that is sorted by series. A row is made when it is needed. */
	struct panel parts[2];
	uint64_t unmatched; /* cells with amounts but no exposures, or a bucket alone */
};

/* Numbers by name (names.c). */
struct names {
	struct fleet_name {
		uint32_t number, at; /* 'at': its key, in 'texts' */
	} * v;
	size_t n;
	struct map index; /* by hash of the key: place in v, plus 1 */
	char *texts;
	size_t size, texts_room;
};

struct fleet {
	struct fleet_options options;
	struct metric_models declared;
	struct panel_pool *pool;
	struct metric *metrics;
	size_t n_metrics;
	struct fleet_member *members;
	size_t n_members;
	struct fleet_group *groups; /* 0: the whole fleet */
	size_t n_groups;
	struct raw *raws;
	size_t n_raws;
	struct feed *feeds;
	size_t n_feeds;
	struct names names;
	unsigned shift;
	bool begun;
	double zero_s, from_s, to_s; /* of all samples */
	uint64_t since_check;        /* samples since memory was examined */
	struct excuse *excuse;       /* private to judge.c */
};

/* names.c: the number of a text among those of its kind and parent; if it has none, 'fresh'
 * becomes its number. */
uint32_t names_find(struct fleet *f, char kind, uint32_t parent, const char *text, uint32_t fresh);
void names_free(struct fleet *f);
/* The narrowest group of a key, made with all groups around it. */
uint32_t names_group(struct fleet *f, const struct series_key *key);
uint32_t names_member(struct fleet *f, const struct series_key *key);

/* layers.c: the layer of a block device, by its name; 0: it is none. */
uint8_t layers_of(const char *name);
/* Where members are of several layers, leaves out all but one of these. What is to be said of it,
 * which the caller frees; NULL: nothing was left out. */
char *layers_choose(struct fleet *f);

/* levels.c: a sample on its way to a cell. */
void level_take(struct fleet *f, uint32_t raw, uint32_t feed, double time_s, double value);
/* Settles every metric and puts open cells into the panels. */
void level_finish(struct fleet *f);
/* The row of a member in a metric, made if there is none. */
uint32_t level_row(struct metric *m, uint32_t member);

/* The cell of a time, in cells of the panel's present width. */
int64_t level_cell(const struct fleet *f, const struct metric *m, double time_s);
/* The begin of a cell. */
double level_time(const struct fleet *f, const struct metric *m, int64_t cell);

#endif
