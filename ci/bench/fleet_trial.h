/* One made-up fleet, judged by the fleet detector and its rivals, and compared with the truth. */
#ifndef CULPRIT_CI_BENCH_FLEET_TRIAL_H
#define CULPRIT_CI_BENCH_FLEET_TRIAL_H

#include <stdio.h>

#include "ci/bench/fleet_maker.h"

enum { TRIAL_DETECTORS_MAX = 20 };

/* Sums over fleets, of one detector. */
struct tally {
	unsigned ill, tp;         /* ill members, and those accused of them */
	unsigned ill_one, tp_one; /* the same in fleets with one ill member */
	unsigned fp;              /* healthy members accused */
	/* Alarms of one fleet are not independent: fleets with a healthy member accused, and the
	 * sum over fleets of the squares of their 'fp'. */
	unsigned alarmed;
	double fp_squares;
	unsigned class_ill, class_healthy; /* members of class findings, who are not accused */
	/* Healthy members times the length of the recording in weeks; a shorter one counts as a
	 * week, as in the false alarms that the detector is asked for. */
	double weeks;
	unsigned off, off_found, off_wrong; /* groups that are off; of them found; others named */
	unsigned curves;                    /* fleets with ill members */
	double auc, ap;                     /* sums over these */
	double samples, seconds;            /* processor time */
};

/* Names of the detectors: "fleet", its rivals, then the fleet detector with one part left out
 * ("without groups"); NULL ends. */
const char *const *trial_detectors(void);
/* Of trial_detectors: how many come before those with a part left out. */
unsigned trial_whole(void);
/* Leaves parts (enum fleet_part) out of "fleet". */
void trial_leave_out(unsigned parts);
/* Adds to tallies[TRIAL_DETECTORS_MAX]; only detectors whose bit is set in 'which'. */
void trial_run(const struct maker_spec *spec, unsigned which, struct tally *tallies);
/* Prints what the fleet detector finds in a fleet, and which ill members it misses. */
void trial_look(FILE *f, const struct maker_spec *spec);

#endif
