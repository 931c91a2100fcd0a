/*
 * Impact: how much faults slow an application, from ratios of cells and of controls.
 *
 *     impacts_add(impacts, &cell) ...
 *     impacts_of(impacts, IMPACT_THROUGHPUT, "disk-slow(factor=4)", NULL)    all its cells
 *     impacts_of_cell(impacts, IMPACT_LATENCY, 12)                           one cell
 *
 * The ratio of a cell is its throughput, or the latency of its requests, during the fault over that
 * before it (harness/judging/application.h). Its impact is the ratio over the geometric mean of the
 * ratios of the controls of the same workload, which takes out what the workload does by itself.
 * 0.4 of throughput: the application moves four tenths of what it would without the fault. Over
 * several cells it is the geometric mean of theirs, so that half and double speed average to 1.
 *
 * Interval: 95 %, Student's t of the difference of mean logarithms. A fault is taken to shift them
 * and not to change their spread, which is pooled over the n cells and m controls of a workload,
 * with n + m - 2 degrees of freedom: so even one cell has an interval. Workloads are combined by
 * Satterthwaite's approximation; the interval is for these workloads, not for others.
 *
 * Unknown, and never a number: where no cell is known that has a control of its workload. With
 * fewer than two controls of a workload there is no interval.
 */
#ifndef CULPRIT_DIAG_JUDGE_IMPACT_H
#define CULPRIT_DIAG_JUDGE_IMPACT_H

#include <jansson.h>
#include <stdbool.h>

enum impact_measure { IMPACT_THROUGHPUT, IMPACT_LATENCY, IMPACT_MEASURES };

const char *impact_name(enum impact_measure m); /* "throughput" */

struct impacts;

struct impacts *impacts_new(void);
void impacts_free(struct impacts *i); /* NULL is fine */

struct impact_cell {
	long number;
	const char *fault;              /* its label; NULL: a control */
	const char *workload;           /* its label */
	double ratios[IMPACT_MEASURES]; /* NAN: unknown */
};

/* Names are copied. */
void impacts_add(struct impacts *i, const struct impact_cell *cell);

struct impact {
	unsigned n, controls; /* cells of the fault that are known; controls of their workloads */
	double ratio, low, high; /* 1: as in controls; NAN: unknown */
};

/* 'workload' NULL: all. */
struct impact impacts_of(
	const struct impacts *i, enum impact_measure m, const char *fault, const char *workload);
/* Unknown for a control as well. */
struct impact impacts_of_cell(const struct impacts *i, enum impact_measure m, long cell);

/* Why no impact of this measure is known, as a sentence; NULL: some are. */
const char *impacts_unknown(const struct impacts *i, enum impact_measure m);

/* Does the interval lie on the side of a slower application? */
bool impact_suffers(enum impact_measure m, struct impact i);

/* "0.34 [0.20,0.46]", in 'buf', or "unknown". */
enum { IMPACT_TEXT = 64 };
const char *impact_text(struct impact i, char buf[IMPACT_TEXT]);
/* {n, controls, ratio, low, high}; null where it is not known. New reference. */
json_t *impact_json(struct impact i);

#endif
