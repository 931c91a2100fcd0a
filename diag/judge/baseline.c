#include "diag/judge/baseline.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <stdlib.h>
#include <string.h>

/* What is compared of one fault, or of all. */
struct counts {
	unsigned n, right, wrong, n_faulty;
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

static size_t metric_any(const struct score_table *t)
{
	const char *const *names;
	size_t n = score_names(t, SCORE_METRIC, &names), m = 0;

	while (m + 1 < n && strcmp(names[m], "any"))
		m++;
	return m;
}

/* All workloads together. */
static struct counts counts_at(const struct score_table *t, size_t detector, size_t fault)
{
	const char *const *names;
	size_t workloads = score_names(t, SCORE_WORKLOAD, &names), any = metric_any(t);
	struct counts c = {0};

	for (size_t w = 0; w < workloads; w++) {
		const struct score *s = score_at(t, detector, fault, w, any);

		if (!s)
			continue;
		c.n += s->n;
		c.n_faulty += s->control ? 0 : s->n;
		c.right += s->hits;
		c.wrong += s->alarms;
	}
	return c;
}

static bool is_among(const char *name, const char *const *list)
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
		if (is_among(detectors[d], except))
			continue;
		of = json_object();
		for (size_t f = 0; f < n_faults; f++) {
			struct counts c = counts_at(t, d, f);
			json_t *row;

			if (!c.n)
				continue;
			row = json_pack("{s:i, s:i}", "n", (int)c.n, "wrong", (int)c.wrong);
			if (c.n_faulty)
				json_object_set_new(row, "right", json_integer(c.right));
			json_object_set_new(of, faults[f], row);
		}
		json_object_set_new(all, detectors[d], of);
	}
	return json_pack("{s:i, s:s, s:o}", "culprit_baseline", 1, "run", run, "detectors", all);
}

static int bad(const char *source, const char *detector, const char *fault, struct err *e)
{
	return err_set(e, -EINVAL,
		"%s: the counts of '%s' under '%s' must be whole numbers, none above n", source,
		detector, fault);
}

static int read_counts(const json_t *row, const char *source, const char *detector,
	const char *fault, struct counts *c, struct err *e)
{
	const json_t *n = json_object_get(row, "n"), *right = json_object_get(row, "right"),
		     *wrong = json_object_get(row, "wrong");
	json_int_t most = json_integer_value(n);

	if (!json_is_integer(n) || !json_is_integer(wrong) || (right && !json_is_integer(right)) ||
		most < 1 || most > 1000000)
		return bad(source, detector, fault, e);
	if (json_integer_value(wrong) < 0 || json_integer_value(wrong) > most ||
		json_integer_value(right) < 0 || json_integer_value(right) > most)
		return bad(source, detector, fault, e);
	*c = (struct counts){.n = (unsigned)most,
		.n_faulty = right ? (unsigned)most : 0,
		.right = (unsigned)json_integer_value(right),
		.wrong = (unsigned)json_integer_value(wrong)};
	return 0;
}

static int add(struct comparisons *out, const char *detector, const char *fault, bool wrong,
	const struct counts *before, const struct counts *now, struct err *e)
{
	struct comparison c = {.wrong = wrong,
		.before = wrong ? before->wrong : before->right,
		.n_before = wrong ? before->n : before->n_faulty,
		.now = wrong ? now->wrong : now->right,
		.n_now = wrong ? now->n : now->n_faulty};
	struct comparison *more;

	if (!c.n_before || !c.n_now)
		return 0;
	c.p = fisher_p(c.before, c.n_before, c.now, c.n_now, wrong);
	c.regression = c.p < BASELINE_LEVEL;
	c.improvement = fisher_p(c.before, c.n_before, c.now, c.n_now, !wrong) < BASELINE_LEVEL;
	more = realloc(out->list, (out->n + 1) * sizeof(*more));
	if (more)
		out->list = more;
	c.detector = strdup(detector);
	c.fault = fault ? strdup(fault) : NULL;
	if (!more || !c.detector || (fault && !c.fault)) {
		free(c.detector);
		free(c.fault);
		return err_errno(e, -ENOMEM, "cannot compare with a baseline");
	}
	out->list[out->n++] = c;
	out->regressions += c.regression;
	return 0;
}

/* A detector's faults that both have, and their sums. */
static int compare_detector(const struct score_table *t, size_t d, const char *name,
	const json_t *faults, const char *source, struct comparisons *out, struct err *e)
{
	struct counts all_before = {0}, all_now = {0};
	const char *const *ours;
	size_t n = score_names(t, SCORE_FAULT, &ours), shared = 0;
	const char *fault;
	json_t *row;
	int rc = 0;

	json_object_foreach((json_t *)faults, fault, row)
	{
		struct counts before, now;
		size_t f = 0;

		if (!rc)
			rc = read_counts(row, source, name, fault, &before, e);
		while (f < n && strcmp(ours[f], fault))
			f++;
		if (rc || f == n || !(now = counts_at(t, d, f)).n)
			continue;
		shared++;
		all_before.n += before.n;
		all_before.n_faulty += before.n_faulty;
		all_before.right += before.right;
		all_before.wrong += before.wrong;
		all_now.n += now.n;
		all_now.n_faulty += now.n_faulty;
		all_now.right += now.right;
		all_now.wrong += now.wrong;
		rc = add(out, name, fault, false, &before, &now, e);
		if (!rc)
			rc = add(out, name, fault, true, &before, &now, e);
	}
	if (!rc && shared > 1)
		rc = add(out, name, NULL, false, &all_before, &all_now, e);
	if (!rc && shared > 1)
		rc = add(out, name, NULL, true, &all_before, &all_now, e);
	return rc;
}

int baseline_compare(const struct score_table *t, const json_t *baseline, const char *source,
	struct comparisons *out, struct err *e)
{
	const json_t *detectors = json_object_get(baseline, "detectors");
	const char *const *ours, *name;
	size_t n = score_names(t, SCORE_DETECTOR, &ours);
	struct comparisons c = {0};
	json_t *faults;
	int rc = 0;

	if (json_integer_value(json_object_get(baseline, "culprit_baseline")) != 1 ||
		!json_is_object(detectors))
		return err_set(e, -EINVAL,
			"'%s' is no baseline of version 1 ('--write-baseline' writes one)", source);
	json_object_foreach((json_t *)detectors, name, faults)
	{
		size_t d = 0;

		while (d < n && strcmp(ours[d], name))
			d++;
		if (!rc && d < n)
			rc = compare_detector(t, d, name, faults, source, &c, e);
	}
	if (!rc && !c.n)
		rc = err_set(e, -EINVAL,
			"'%s' has no detector and fault in common with what was scored", source);
	if (rc) {
		comparisons_clear(&c);
		return rc;
	}
	name = json_string_value(json_object_get(baseline, "run"));
	c.run = strdup(name ? name : "-");
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
