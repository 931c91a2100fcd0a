/*
 * When a stream of samples is judged, and over which time.
 *
 * Several horizons end now: 64, 512, 4096 and 32768 cells, or what the user asks for. Each is
 * judged like a recording, anew when a sixteenth of it has passed. So a sample is
 * judged 16 times a horizon, whatever the length of the horizon, and the cost of a sample has a
 * bound.
 *
 * Looks are paid for. The user allows A false alarms per series and week. Each of K horizons gets
 * A/K. A week holds (1 week / H) windows of a horizon of length H. Windows overlap, so there are
 * more chances than windows; but what makes healthy members differ is partly lasting, and the same
 * at every look, so there are fewer than looks. HORIZON_LOOKS_PAID a window are paid for. The
 * figure is measured on healthy series whose noise is new in every window (ci/bench/watch.sh).
 */
#ifndef CULPRIT_HARNESS_LIVE_HORIZONS_H
#define CULPRIT_HARNESS_LIVE_HORIZONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HORIZONS_MAX = 8, HORIZON_LOOKS = 16, HORIZON_LOOKS_PAID = 2 };

/* The median distance of two samples of a series, from the first distances. Zero at first. */
enum { PACE_DISTANCES = 1024, PACE_ENOUGH = 64 };
struct pace {
	double *last_s; /* of each series */
	size_t room;
	unsigned n;
	double distance_s[PACE_DISTANCES];
};
void pace_sample(struct pace *p, uint32_t series, double time_s);
/* 0 while fewer than 'least' distances are known. */
double pace_step(const struct pace *p, unsigned least);
void pace_clear(struct pace *p);

struct horizon {
	double length_s;
	double next_s; /* it is judged again at this time */
};

/* By length. */
struct horizons {
	struct horizon v[HORIZONS_MAX];
	size_t n;
};

/* The default lengths, for cells of 'step_s' of which a series has at most 'cells' (0: no limit):
 * what does not fit is left out, but for the shortest. */
void horizons_default(struct horizons *h, double step_s, double cells);
/* Adds one length; false if there are HORIZONS_MAX or it is there. */
bool horizons_add(struct horizons *h, double length_s);

/* When horizon 'i' is due, for samples that begin at 'first_s': a sixteenth has passed since it
 * was judged, and the samples reach back to the next shorter horizon (of the shortest: to a
 * quarter). */
double horizons_due(const struct horizons *h, size_t i, double first_s);
/* The earliest of these. */
double horizons_next(const struct horizons *h, double first_s);
/* Notes that it was judged. */
void horizons_judged(struct horizons *h, size_t i, double now_s);

/* False alarms that one look of horizon 'i' may give to a series, in the unit of
 * fleet_options.alarms (per week or recording, if that is shorter), for 'alarms' a series and week
 * in all. */
double horizons_alarms(const struct horizons *h, size_t i, double alarms);

#endif
