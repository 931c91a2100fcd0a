/*
 * The ill members of a fleet: reads a file of labels, and applies it to the members of one
 * recording. ranking.h scores a ranking by it.
 *
 * Two forms are read:
 *
 *   a list    one member on each line; blank lines and comments after '#' are skipped. Named
 *   members
 *             are ill, all others are healthy.
 *   CSV       the first line is a head with a column 'member' (or 'name', 'path', 'series',
 *             'disk', 'device', 'server', 'host', 'osd'). 'from' and 'to' bound the time in which
 *             the label applies (Unix seconds or ISO 8601; empty: unbounded). 'ill' is 1 or 0
 *             (yes, no, true, false). Any other column before the member's is a group, from the
 *             widest to the narrowest; further columns are skipped. Without a column 'ill', named
 *             members are ill and all others healthy; with it, members that the file does not
 *             name are not scored.
 *
 * A member is named by its path from the widest group ("rack1/host7/sda"), by the end of that path
 * ("host7/sda"), or by its name ("sda"), as long as only one member fits.
 */
#ifndef CULPRIT_DIAG_JUDGE_GROUND_TRUTH_H
#define CULPRIT_DIAG_JUDGE_GROUND_TRUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "diag/judge/ranking.h"
#include "harness/base/err.h"

struct ground_truth_label {
	char *member;        /* as the file names it, with its groups: "host7/sda" */
	double from_s, to_s; /* when it applies; -INFINITY, INFINITY: unbounded */
	bool ill;
	unsigned line;
};

/* Zero at first. */
struct ground_truth {
	char *path;
	struct ground_truth_label *v;
	size_t n;
	bool complete; /* members that are not named are healthy */
};
void ground_truth_clear(struct ground_truth *l);

/* -EINVAL: "FILE:LINE: sentence"; -ENOENT ... if it cannot be read. */
int ground_truth_read(const char *path, struct ground_truth *l, struct err *e);

/* Writes the truth of each member. A label applies if its time overlaps [from_s, to_s) (both 0:
 * always); a member with an applicable ill label is ill. A name that fits no member (the error
 * gives the nearest one) or several members is -EINVAL with file and line. */
int ground_truth_apply(const struct ground_truth *l, double from_s, double to_s,
	struct ranked *members, size_t n, struct err *e);

#endif
