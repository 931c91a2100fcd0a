/* Writes scores to a baseline file and compares later scores with it. */
#include "diag/judge/baseline.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"

/* The counts of one fault or of all: all cells with wrong servers, and faulty cells with right
 * ones. */
struct counts {
	unsigned n[2], hits[2]; /* [wrong] */
};

double fisher_p(unsigned before, unsigned n_before, unsigned now, unsigned n_now, bool more)
{
	unsigned hits = before + now, misses = n_before + n_now - hits;

	if (!n_now || !n_before)
		return 1;
	if (!more)
		return gsl_cdf_hypergeometric_P(now, hits, misses, n_now);
	return now ? gsl_cdf_hypergeometric_Q(now - 1, hits, misses, n_now) : 1;
}

/* Index of a name on an axis, or the number of names. */
static size_t index_of(const struct score_table *t, enum score_axis axis, const char *name)
{
	const char *const *names;
	size_t n = score_names(t, axis, &names), i = 0;

	while (i < n && strcmp(names[i], name))
		i++;
	return i;
}

/* Adds up all workloads. */
static struct counts counts_at(const struct score_table *t, size_t detector, size_t fault)
{
	const char *const *names;
	size_t workloads = score_names(t, SCORE_WORKLOAD, &names),
	       any = index_of(t, SCORE_METRIC, "any");
	struct counts c = {0};

	for (size_t w = 0; w < workloads; w++) {
		const struct score *s = score_at(t, detector, fault, w, any);

		if (!s)
			continue;
		c.n[true] += s->n;
		c.hits[true] += s->alarms;
		c.n[false] += s->control ? 0 : s->n;
		c.hits[false] += s->hits;
	}
	return c;
}

static bool baseline_is_among(const char *name, const char *const *list)
{
	for (; list && *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

json_t *baseline_make(const struct score_table *t, const char *run, const char *const *except)
{
	json_t *all = json_object(), *of;
	const char *const *detectors, *const *faults;
	size_t n = score_names(t, SCORE_DETECTOR, &detectors),
	       n_faults = score_names(t, SCORE_FAULT, &faults);

	for (size_t d = 0; d < n; d++) {
		if (baseline_is_among(detectors[d], except))
			continue;
		of = json_object();
		for (size_t f = 0; f < n_faults; f++) {
			struct counts c = counts_at(t, d, f);
			json_t *row;

			if (!c.n[true])
				continue;
			row = json_pack(
				"{s:i, s:i}", "n", (int)c.n[true], "wrong", (int)c.hits[true]);
			if (c.n[false])
				json_object_set_new(row, "right", json_integer(c.hits[false]));
			json_object_set_new(of, faults[f], row);
		}
		json_object_set_new(all, detectors[d], of);
	}
	return json_pack("{s:i, s:s, s:o}", "culprit_baseline", 1, "run", run, "detectors", all);
}

/* Reads the member 'key', a whole number from 'least' to 'most'. */
static bool read_count(
	const json_t *row, const char *key, json_int_t least, json_int_t most, unsigned *out)
{
	json_int_t n = jget_int(row, key);

	*out = (unsigned)n;
	return json_is_integer(jget(row, key)) && n >= least && n <= most;
}

static int read_counts(const json_t *row, const char *source, const char *detector,
	const char *fault, struct counts *c, struct err *e)
{
	*c = (struct counts){0};
	if (!read_count(row, "n", 1, 1000000, &c->n[true]) ||
		!read_count(row, "wrong", 0, c->n[true], &c->hits[true]) ||
		(jget(row, "right") && !read_count(row, "right", 0, c->n[true], &c->hits[false])))
		return err_set(e, -EINVAL,
			"%s: the counts of '%s' under '%s' must be whole numbers, none above n",
			source, detector, fault);
	c->n[false] = jget(row, "right") ? c->n[true] : 0;
	return 0;
}

/* Compares right servers, then wrong ones. */
static void judge_baseline_compare(struct comparisons *out, const char *detector, const char *fault,
	const struct counts *before, const struct counts *now)
{
	for (int w = 0; w < 2; w++) {
		struct comparison c = {.wrong = w,
			.before = before->hits[w],
			.n_before = before->n[w],
			.now = now->hits[w],
			.n_now = now->n[w]};

		if (!c.n_before || !c.n_now)
			continue;
		c.p = fisher_p(c.before, c.n_before, c.now, c.n_now, w);
		c.regression = c.p < BASELINE_LEVEL;
		c.improvement = fisher_p(c.before, c.n_before, c.now, c.n_now, !w) < BASELINE_LEVEL;
		c.detector = alloc_copy(detector);
		c.fault = fault ? alloc_copy(fault) : NULL;
		out->list = alloc_room(out->list, out->n, sizeof(c));
		out->list[out->n++] = c;
		out->regressions += c.regression;
	}
}

static void baseline_add(struct counts *sum, const struct counts *c)
{
	for (int w = 0; w < 2; w++) {
		sum->n[w] += c->n[w];
		sum->hits[w] += c->hits[w];
	}
}

/* Compares a detector's common faults, and their sums. */
static int compare_detector(const struct score_table *t, const char *name, const json_t *faults,
	const char *source, struct comparisons *out, struct err *e)
{
	struct counts all_before = {0}, all_now = {0}, before, now;
	const char *const *names;
	size_t d = index_of(t, SCORE_DETECTOR, name), f, shared = 0;
	const char *fault;
	json_t *row;
	int rc;

	if (d == score_names(t, SCORE_DETECTOR, &names))
		return 0;
	json_object_foreach((json_t *)faults, fault, row) {
		if ((rc = read_counts(row, source, name, fault, &before, e)))
			return rc;
		f = index_of(t, SCORE_FAULT, fault);
		if (f == score_names(t, SCORE_FAULT, &names) || !(now = counts_at(t, d, f)).n[true])
			continue;
		shared++;
		baseline_add(&all_before, &before);
		baseline_add(&all_now, &now);
		judge_baseline_compare(out, name, fault, &before, &now);
	}
	if (shared > 1)
		judge_baseline_compare(out, name, NULL, &all_before, &all_now);
	return 0;
}

int baseline_compare(const struct score_table *t, const json_t *baseline, const char *source,
	struct comparisons *out, struct err *e)
{
	const json_t *detectors = jget(baseline, "detectors");
	const char *name, *run = jget_text(baseline, "run");
	struct comparisons c = {0};
	json_t *faults;
	int rc = 0;

	if (jget_int(baseline, "culprit_baseline") != 1 || !json_is_object(detectors))
		return err_set(e, -EINVAL,
			"'%s' is not a baseline of version 1: write one with --write-baseline",
			source);
	json_object_foreach((json_t *)detectors, name, faults) {
		if (!rc)
			rc = compare_detector(t, name, faults, source, &c, e);
	}
	if (!rc && !c.n)
		rc = err_set(e, -EINVAL,
			"'%s' has no detector and fault in common with these scores", source);
	if (rc) {
		comparisons_clear(&c);
		return rc;
	}
	c.run = alloc_copy(run ? run : "-");
	*out = c;
	return 0;
}

void comparisons_clear(struct comparisons *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->list[i].detector);
		free(c->list[i].fault);
	}
	free(c->list);
	free(c->run);
	*c = (struct comparisons){0};
}
