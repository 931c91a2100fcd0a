/*
 * When a stream of samples is judged, and over which period.
 *
 * Several horizons end now: 64, 512, 4096 and 32768 cells, or the user's lengths. Each is judged
 * like a recording, again after each sixteenth of its length. So a sample is judged 16 times per
 * horizon, whatever the horizon's length, and the cost per sample is bounded.
 *
 * Looks must be paid for from the alarm budget. The user allows A false alarms per series and
 * week. Each of K horizons gets A/K. A week holds (1 week / H) windows of a horizon of length H.
 * Windows overlap, so there are more chances than windows. But part of the difference between
 * healthy members is constant and the same at every look, so there are fewer chances than looks.
 * The budget pays for HORIZON_LOOKS_PAID looks per window. This number was measured on healthy
 * series with new noise in every window (ci/bench/watch.sh).
 */
#ifndef CULPRIT_HARNESS_LIVE_HORIZONS_H
#define CULPRIT_HARNESS_LIVE_HORIZONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HORIZONS_MAX = 8, HORIZON_LOOKS = 16, HORIZON_LOOKS_PAID = 2 };

/* The median interval between two samples of a series, from the first intervals. Initialise with
 * zeros. */
enum { PACE_DISTANCES = 1024, PACE_ENOUGH = 64 };
struct pace {
	double *last_s; /* last sample of each series */
	size_t room;
	unsigned n;
	double distance_s[PACE_DISTANCES];
};
void pace_sample(struct pace *p, uint32_t series, double time_s);
/* Returns 0 while fewer than 'least' intervals are known. */
double pace_step(const struct pace *p, unsigned least);
void pace_clear(struct pace *p);

struct horizon {
	double length_s;
	double next_s; /* time of the next judgement */
};

/* Sorted by length. Initialise with zeros. */
struct horizons {
	struct horizon v[HORIZONS_MAX];
	size_t n;
};

/* The default lengths, for cells of 'step_s' of which a series has at most 'cells' (0: no limit):
 * lengths that do not fit are omitted, except the shortest. */
void horizons_default(struct horizons *h, double step_s, double cells);
/* Adds one length; returns false if it exists or the set is full (HORIZONS_MAX). */
bool horizons_add(struct horizons *h, double length_s);

/* When horizon 'i' is due, for samples that begin at 'first_s': a sixteenth has passed since its
 * last judgement, and the samples reach back beyond the next shorter horizon (for the shortest: a
 * quarter of it). */
double horizons_due(const struct horizons *h, size_t i, double first_s);
/* The earliest due time of all horizons. */
double horizons_next(const struct horizons *h, double first_s);
/* Records that horizon 'i' was judged. */
void horizons_judged(struct horizons *h, size_t i, double now_s);

/* The false-alarm budget of one look of horizon 'i' for one series, in the unit of
 * fleet_options.alarms (per week, or per recording if that is shorter), if 'alarms' is the total
 * per series and week. */
double horizons_alarms(const struct horizons *h, size_t i, double alarms);

#endif
