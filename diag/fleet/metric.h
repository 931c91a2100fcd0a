/*
 * What a metric is: its unit, which direction is worse, and how values become a level that members
 * can be compared by. Declared by the user, or guessed from name and first values; a guess is said.
 *
 * A declaration is one line, in a file (--metrics), on the command line (--metric), or in the head
 * of a CSV file behind "# metric":
 *
 *     read_time unit=ms worse=more kind=amount per=reads
 *
 *     unit=TEXT      only shown
 *     worse=more     a larger value is worse: latency, errors
 *     worse=less     a smaller value is worse: the throughput of a benchmark
 *     worse=load     neither: it is the work that was asked of the member. It accuses nobody, and
 *                    excuses (diag/fleet/excuse.c)
 *     worse=none     not examined
 *     kind=gauge     a value is a level by itself
 *     kind=counter   a value grows by what happened; its growth per second is the level. A value
 *                    below the last one is a restart
 *     kind=amount    with per=METRIC, both growing per sample (or both counters): the level is
 *                    amount / exposure, so that more work is no fault
 *     kind=bucket    cumulative counts of a histogram whose metrics are called NAME{le="BOUND"}:
 *                    the level is the quantile=P (default 0.99) of what came since the last sample
 *     counter=yes    of an amount: it and its exposure are counters
 *     zero=missing   a zero says that nothing was measured (a latency without requests)
 *     zero=value     a zero is a level
 */
#ifndef CULPRIT_DIAG_FLEET_METRIC_H
#define CULPRIT_DIAG_FLEET_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/base/err.h"

enum metric_worse { WORSE_GUESS, WORSE_MORE, WORSE_LESS, WORSE_LOAD, WORSE_NONE };
enum metric_kind { KIND_GUESS, KIND_GAUGE, KIND_COUNTER, KIND_AMOUNT, KIND_BUCKET };
enum metric_zero { ZERO_GUESS, ZERO_MISSING, ZERO_VALUE };

struct metric_model {
	char *name, *unit, *per; /* 'unit' and 'per' may be NULL */
	enum metric_worse worse;
	enum metric_kind kind;
	enum metric_zero zero;
	bool counter;
	double quantile;
	bool guessed;      /* 'worse' was not declared */
	bool kind_guessed; /* 'kind' was not */
};

/* Zero at first. */
struct metric_models {
	struct metric_model *v;
	size_t n;
};
void metric_models_clear(struct metric_models *m);

/* Adds one declaration; -EINVAL with a sentence (a near match where a word is unknown). */
int metric_declare(struct metric_models *m, const char *declaration, struct err *e);
/* Reads a file of declarations, one a line; '#' begins a comment. -EINVAL with FILE:LINE. */
int metric_declare_file(struct metric_models *m, const char *path, struct err *e);
/* The declaration of a metric, or NULL. */
const struct metric_model *metric_find(const struct metric_models *m, const char *name);

/* Fills what 'm' leaves to guess, by the words of its name ("latency", "iops", "_total" ...). */
void metric_guess(struct metric_model *m);
/* "latency_ms: more is worse, gauge, ms (guessed)"; the caller frees. */
char *metric_describe(const struct metric_model *m);

/* Whether it measures waiting, by its name: for another member, or for what the member shares. */
bool metric_waits(const char *name);

#endif
