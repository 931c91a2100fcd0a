/*
 * Findings have a life. One begins when a look at any horizon finds a member off, now; it ends
 * when no horizon holds it any longer. A horizon holds it for a quarter of its length beyond the
 * last look that found it. It lets go sooner when two looks in a row give the member a severity
 * below 0.7, or when one says that a shift has ended.
 *
 * A member has one life at a time, whichever of its metrics and kinds are found; its most severe
 * view is shown. Groups have their own; members that are off alike as a class have one a metric.
 *
 * All times are those of the samples.
 */
#ifndef CULPRIT_HARNESS_LIVE_LIFE_H
#define CULPRIT_HARNESS_LIVE_LIFE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/fleet/fleet.h"
#include "harness/base/err.h"
#include "harness/live/horizons.h"

#define LIFE_LETS_GO 0.7

/* What one horizon says of it. */
struct life_view {
	double held_until_s; /* 0: it does not hold it */
	enum finding_kind kind;
	char *metric;
	double severity, effect, share, until_s;
	unsigned low; /* looks in a row with a severity below LIFE_LETS_GO */
};

struct life {
	char *key;            /* unique among the living */
	char *member, *group; /* name, path of its group; member "" for a group or a class */
	char *of_class;       /* a class: the path of one of its members; else NULL */
	uint32_t count;       /* a class: how many members */
	uint32_t id;          /* in the last result; UINT32_MAX: restored, not yet looked up */
	double began_s, since_s;
	unsigned shown; /* the most severe view */
	bool seen;      /* in the look that is being taken in */
	bool absent;    /* the last look did not judge the member: it has no samples, or no peers */
	struct life_view view[HORIZONS_MAX];
};

/* By key. Zero at first. */
struct lives {
	struct life **v;
	size_t n;
	uint64_t begun, ended;
};
void lives_clear(struct lives *l);

enum life_event { LIFE_BEGIN, LIFE_END };
typedef void life_told(void *ctx, enum life_event event, const struct life *life, double now_s);

/* Takes in what the look of a horizon at 'now_s' found; tells of what begins. */
void lives_look(struct lives *l, size_t horizon, const struct fleet_result *r, double now_s,
	life_told *told, void *ctx);
/* Ends what no horizon holds; to be called when all horizons that are due have been examined. */
void lives_end(struct lives *l, double now_s, life_told *told, void *ctx);

/* As {"version":1, "lives":[...]}, and back into empty lives. -EINVAL: that is no state. */
json_t *lives_json(const struct lives *l);
int lives_restore(struct lives *l, const json_t *state, struct err *e);

#endif
