/*
 * The life of findings. A finding begins when a look at any horizon finds a member off at the
 * present time; it ends when no horizon holds it any longer. A horizon holds it for a quarter of
 * its length after the last look that found it. It releases it sooner if two looks in a row give
 * a severity below 0.7, or if one look says that a shift has ended.
 *
 * A member has one life at a time, whichever of its metrics and kinds are found; the most severe
 * view is shown. Groups have separate lives; members of a class that are off in the same way have
 * one per metric.
 *
 * All times are the samples' times.
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

/* One horizon's view of a life. */
struct life_view {
	double held_until_s; /* 0: not held */
	enum finding_kind kind;
	char *metric;
	double severity, effect, share, until_s;
	unsigned low; /* looks in a row with a severity below LIFE_LETS_GO */
};

struct life {
	char *key;            /* unique among current lives */
	char *member, *group; /* name, path of its group; member "" for a group or a class */
	char *of_class;       /* a class: the path of one of its members; otherwise NULL */
	uint32_t count;       /* a class: number of members */
	uint32_t id;          /* in the last result; UINT32_MAX: restored, not yet looked up */
	double began_s, since_s;
	unsigned shown; /* the most severe view */
	bool seen;      /* found in the current look */
	bool absent;    /* the last look did not judge the member: it has no samples, or no peers */
	struct life_view view[HORIZONS_MAX];
};

/* Sorted by key. Initialise with zeros. */
struct lives {
	struct life **v;
	size_t n;
	uint64_t begun, ended;
};
void lives_clear(struct lives *l);

enum life_event { LIFE_BEGIN, LIFE_END };
typedef void life_told(void *ctx, enum life_event event, const struct life *life, double now_s);

/* Processes the findings of a horizon's look at 'now_s'; reports lives that begin. */
void lives_look(struct lives *l, size_t horizon, const struct fleet_result *r, double now_s,
	life_told *told, void *ctx);
/* Ends lives that no horizon holds; call it after all due horizons have been judged. */
void lives_end(struct lives *l, double now_s, life_told *told, void *ctx);

/* Saves as {"version":1, "lives":[...]}, and restores into empty lives. -EINVAL: not a valid
 * state. */
json_t *lives_json(const struct lives *l);
int lives_restore(struct lives *l, const json_t *state, struct err *e);

#endif
