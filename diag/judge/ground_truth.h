/*
 * Which members of a fleet are known to be ill: a file of labels, and the truth that it gives for
 * the members of one recording. A ranking is scored by it in ranking.h.
 *
 * Two forms are read:
 *
 *   a list    one member a line; blank lines and what follows a '#' are skipped. Those named are
 *             ill, all others are healthy.
 *   CSV       the first line is a head with a column 'member' (or 'name', 'path', 'series',
 *             'disk', 'device', 'server', 'host', 'osd'). 'from' and 'to' bound the time in which
 *             the label holds (Unix seconds or ISO 8601; empty: without bound). 'ill' is 1 or 0
 *             (yes, no, true, false). Any other column in front of the member's is a group, from
 *             the widest to the narrowest; further columns are skipped. Without a column 'ill'
 *             those named are ill and all others healthy; with one, members that the file does not
 *             name are not scored.
 *
 * A member is named by its path from the widest group ("rack1/host7/sda"), by the end of it
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
	double from_s, to_s; /* in which it holds; -INFINITY, INFINITY: without bound */
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

/* -EINVAL: "FILE:LINE: sentence"; -ENOENT ... where it cannot be read. */
int ground_truth_read(const char *path, struct ground_truth *l, struct err *e);

/* Writes the truth of each member. A label holds if its time and [from_s, to_s) have a moment in
 * common (both 0: always); a member with an ill label that holds is ill. Names that fit no member
 * (with the nearest one), or several, are -EINVAL with file and line. */
int ground_truth_apply(const struct ground_truth *l, double from_s, double to_s,
	struct ranked *members, size_t n, struct err *e);

#endif
