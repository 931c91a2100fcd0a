/*
 * A ranking of members by severity, with a verdict on each, scored by the members' true state.
 *
 * Members of equal severity are one step of both curves: their mutual order is chance, so half of
 * the pairs of an ill and a healthy one count as right (the area is the Mann-Whitney statistic with
 * midranks), and no threshold lies between them.
 */
#ifndef CULPRIT_DIAG_JUDGE_RANKING_H
#define CULPRIT_DIAG_JUDGE_RANKING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum truth { TRUTH_UNKNOWN, TRUTH_HEALTHY, TRUTH_ILL }; /* unknown: not scored */

struct ranked {
	const char *path; /* "rack1/host7/sda"; borrowed */
	double severity;  /* finite; larger is worse; 0 if it could not be judged */
	bool indicted;
	enum truth truth;
};

/* Exact interval (Clopper-Pearson, 95 %); value NAN and [0, 1] if n is 0. */
struct ranking_rate {
	unsigned hits, n;
	double value, low, high;
};

/* All members of at least this severity are accused. */
struct ranking_point {
	double severity; /* INFINITY: no member is accused */
	unsigned tp, fp;
	double recall, false_alarms; /* shares of the ill and of the healthy: the axes of ROC */
	double precision;            /* 1 if no member is accused */
};

/* Value and bounds are NAN without ill or without healthy members. */
struct ranking_area {
	double value, low, high;
};

struct ranking_score {
	unsigned ill, healthy, unknown;
	unsigned tp, fp, fn, tn;          /* of the verdicts */
	struct ranking_rate precision;    /* tp of tp + fp */
	struct ranking_rate recall;       /* tp of ill */
	struct ranking_rate false_alarms; /* fp of healthy */
	/* The curves, from no accused member to all: the corners of the ROC curve, which are also
	 * those of the precision-recall curve. Points between two corners are left out. */
	struct ranking_point *points;
	size_t n_points;
	/* Area under the ROC curve. 95 % interval: Newcombe 2006, method 5 (a score interval on the
	 * variance of Hanley and McNeil 1982). It holds for few ill members and at an area of 1,
	 * where DeLong's interval has no width. */
	struct ranking_area auc;
	/* Average precision: the mean over the ill members of the precision at their severity. 95 %
	 * interval: percentiles of a bootstrap that draws ill and healthy members separately, from
	 * 'seed'. For a perfect ranking every sample is perfect; then the lower bound is that of
	 * the recall reached without a false alarm, from its exact interval. */
	struct ranking_area average_precision;
};

enum { RANKING_SEED = 20090615 };

/* 'seed' as RANKING_SEED; 0: without the interval of the average precision (NAN), which takes most
 * of the time. ranking_score_clear frees. */
struct ranking_score ranking_score(const struct ranked *members, size_t n, uint64_t seed);
void ranking_score_clear(struct ranking_score *s);

/* The score as JSON:
 *     {"ill": 3, "healthy": 97, "unknown": 0, "tp": 2, "fp": 1, "fn": 1, "tn": 96,
 *      "precision": {"value": 0.667, "low": 0.09, "high": 0.99}, "recall": {...},
 *      "false_alarms": {...}, "auc": {...}, "average_precision": {...},
 *      "intervals": {"rates": "Clopper-Pearson", "auc": "Newcombe 2006, method 5",
 *                    "average_precision": "stratified bootstrap"},
 *      "points": [{"severity": 4.2, "tp": 1, "fp": 0, "recall": 0.333, "false_alarms": 0,
 *                  "precision": 1}, ...],
 *      "missed": ["rack1/host7/sda"], "accused": ["rack2/host1/sdb"]}
 * A number that is NAN or infinite is null. 'missed' are the ill members that are not indicted,
 * 'accused' the healthy ones that are; 'members' are those scored. New reference. */
json_t *ranking_score_json(const struct ranking_score *s, const struct ranked *members, size_t n);

/* Prints some lines: counts, rates and areas with their intervals, and the names missed and accused
 * (the first 'names' of each). */
void ranking_score_print(FILE *f, const struct ranking_score *s, const struct ranked *members,
	size_t n, size_t names);

#endif
