/* Compares verdicts with the truth and adds them up by detector, fault and workload. */
#include "diag/judge/score_impl.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/metrics.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"

/* The quantile of the beta distribution, by bisection: gsl_cdf_beta_Pinv ends the program for some
 * large parameters (3 of 20,000). */
static double beta_quantile(double p, double a, double b)
{
	double low = 0, high = 1;

	for (int i = 0; i < 70 && low < high; i++) {
		double x = (low + high) / 2;

		if (gsl_cdf_beta_P(x, a, b) < p)
			low = x;
		else
			high = x;
	}
	return (low + high) / 2;
}

void score_interval(unsigned hits, unsigned n, double confidence, double *low, double *high)
{
	double tail = (1 - confidence) / 2;

	/* At the ends one parameter of the beta distribution would be 0. */
	*low = hits ? beta_quantile(tail, hits, n - hits + 1) : 0;
	*high = hits < n ? beta_quantile(1 - tail, hits + 1, n - hits) : 1;
}

struct score_table *score_table_new(void)
{
	struct score_table *t = alloc_zero(1, sizeof(*t));

	/* Shown even if no detector gives a verdict on them. */
	for (int m = 0; m < METRIC_COMPARED; m++)
		score_declare(t, SCORE_METRIC, metric_name((enum metric)m));
	score_declare(t, SCORE_METRIC, "any");
	return t;
}

void score_table_free(struct score_table *t)
{
	if (!t)
		return;
	for (int a = 0; a < SCORE_AXES; a++) {
		for (size_t i = 0; i < t->axes[a].n; i++)
			free(t->axes[a].names[i]);
		free(t->axes[a].names);
	}
	for (size_t i = 0; i < t->n; i++)
		free(t->scores[i].delays_s);
	free(t->scores);
	free(t->cells);
	free(t);
}

size_t score_declare(struct score_table *t, enum score_axis axis, const char *name)
{
	struct axis *a = &t->axes[axis];

	for (size_t i = 0; i < a->n; i++)
		if (!strcmp(a->names[i], name))
			return i;
	a->names = alloc_room(a->names, a->n, sizeof(*a->names));
	a->names[a->n] = alloc_copy(name);
	return a->n++;
}

size_t score_names(const struct score_table *t, enum score_axis axis, const char *const **names)
{
	*names = (const char *const *)t->axes[axis].names;
	return t->axes[axis].n;
}

static struct score *score_find(const struct score_table *t, const size_t at[SCORE_AXES])
{
	for (size_t i = 0; i < t->n; i++)
		if (!memcmp(t->scores[i].at, at, sizeof(t->scores[i].at)))
			return &t->scores[i];
	return NULL;
}

const struct score *score_at(
	const struct score_table *t, size_t detector, size_t fault, size_t workload, size_t metric)
{
	const size_t at[SCORE_AXES] = {detector, fault, workload, metric};

	return score_find(t, at);
}

/* The 'i'th of a list of names, which may also be one name or NULL; NULL at the end. */
static const char *name_at(const json_t *list, size_t i)
{
	return json_string_value(json_is_string(list) && !i ? list : json_array_get(list, i));
}

static bool score_holds(const json_t *list, const char *name)
{
	const char *one;

	for (size_t i = 0; (one = name_at(list, i)); i++)
		if (!strcmp(one, name))
			return true;
	return false;
}

static int check_names(const json_t *list, const char *what, struct err *e)
{
	json_t *item;
	size_t i;

	if (list && !json_is_null(list) && !json_is_string(list) && !json_is_array(list))
		return err_set(e, -EINVAL, "'%s' must be a list of servers", what);
	json_array_foreach((json_t *)list, i, item) {
		if (!json_is_string(item))
			return err_set(e, -EINVAL, "'%s' must hold names of servers", what);
	}
	return 0;
}

void score_compare(const json_t *victims, const json_t *verdict, bool *right, bool *wrong)
{
	const json_t *indicted = jget(verdict, "indicted");
	const char *name;

	*right = name_at(victims, 0) != NULL;
	*wrong = false;
	for (size_t i = 0; (name = name_at(victims, i)); i++)
		*right = *right && score_holds(indicted, name);
	for (size_t i = 0; (name = name_at(indicted, i)); i++)
		*wrong = *wrong || !score_holds(victims, name);
}

/* When the last of the victims was indicted; below 0 if the verdict has no times. */
static double indicted_s(const json_t *victims, const json_t *times)
{
	double latest = -1;
	const char *name;

	for (size_t i = 0; (name = name_at(victims, i)); i++) {
		if (!jget(times, name))
			return -1;
		latest = fmax(latest, jget_real(times, name));
	}
	return latest;
}

static void add_delays(struct score *s, const double *delays, size_t n)
{
	if (!n)
		return;
	s->delays_s = alloc_resize(s->delays_s, s->n_delays + n, sizeof(*s->delays_s));
	memcpy(s->delays_s + s->n_delays, delays, n * sizeof(*delays));
	s->n_delays += n;
	gsl_sort(s->delays_s, 1, s->n_delays);
}

/* Are they equal up to a slash? */
static bool same_resource(const char *a, const char *b)
{
	size_t n = strcspn(a, "/");

	return n == strcspn(b, "/") && !strncmp(a, b, n);
}

static void score_count(struct score *s, const struct score_cell *cell, const json_t *verdict)
{
	const char *resource = jget_text(verdict, "resource"),
		   *cause = cell->resource ? strchr(cell->resource, '/') : NULL;
	double when = indicted_s(cell->victims, jget(verdict, "time_s")),
	       delay = when - cell->onset_s;
	bool right, wrong;

	score_compare(cell->victims, verdict, &right, &wrong);
	s->n++;
	s->causes = s->causes || cause;
	s->alarms += wrong;
	s->abstained += jget_true(verdict, "abstain");
	s->failed += jget(verdict, "error") != NULL;
	s->detected += json_array_size(jget(verdict, "indicted")) > 0;
	if (!right)
		return;
	s->hits++;
	s->named += resource != NULL;
	if (resource && cell->resource && same_resource(resource, cell->resource)) {
		s->classified++;
		/* A fault whose resource has one part cannot be named more precisely. */
		s->explained += !cause || !strcmp(resource, cell->resource);
	}
	if (when < 0 || cell->onset_s < 0)
		return;
	if (delay < 0)
		s->early++;
	else
		add_delays(s, &delay, 1);
}

static void add_judged(struct score_table *t, size_t detector, const struct score_cell *cell,
	const json_t *verdict)
{
	bool right, wrong;

	score_compare(cell->victims, verdict, &right, &wrong);
	t->cells = alloc_room(t->cells, t->n_cells, sizeof(*t->cells));
	t->cells[t->n_cells++] = (struct judged_cell){detector, cell->id, right};
}

int score_add(struct score_table *t, const char *detector, const struct score_cell *cell,
	const json_t *verdict, struct err *e)
{
	const json_t *indicted = jget(verdict, "indicted");
	const char *names[SCORE_AXES] = {
		detector, cell->fault, cell->workload, jget_text(verdict, "metric")};
	struct score fresh = {.control = !name_at(cell->victims, 0)}, *s;
	int rc;

	if (!names[SCORE_METRIC] || !json_is_array(indicted))
		return err_set(e, -EINVAL,
			"a verdict of '%s' has no metric, or no list of indicted servers",
			detector);
	if ((rc = check_names(cell->victims, "victims", e)) ||
		(rc = check_names(indicted, "indicted", e)))
		return rc;
	for (int a = 0; a < SCORE_AXES; a++)
		fresh.at[a] = score_declare(t, (enum score_axis)a, names[a]);
	s = score_find(t, fresh.at);
	if (s && s->control != fresh.control)
		return err_set(e, -EINVAL,
			"the cells of fault '%s' must all have a victim, or none", cell->fault);
	if (!s) {
		t->scores = alloc_room(t->scores, t->n, sizeof(*s));
		s = &t->scores[t->n++];
		*s = fresh;
	}
	score_count(s, cell, verdict);
	if (!s->control && !strcmp(names[SCORE_METRIC], "any"))
		add_judged(t, s->at[SCORE_DETECTOR], cell, verdict);
	return 0;
}

void score_join(struct score *sum, const struct score *s)
{
	sum->control = s->control;
	sum->causes = sum->causes || s->causes;
	for (size_t i = 0; i < sizeof(s->counts) / sizeof(*s->counts); i++)
		sum->counts[i] += s->counts[i];
	add_delays(sum, s->delays_s, s->n_delays);
}

struct score score_sum(const struct score_table *t, size_t detector, size_t metric, bool control)
{
	struct score sum = {.control = control};

	for (size_t i = 0; i < t->n; i++) {
		const struct score *s = &t->scores[i];

		if (s->at[SCORE_DETECTOR] == detector && s->at[SCORE_METRIC] == metric &&
			s->control == control)
			score_join(&sum, s);
	}
	return sum;
}

bool score_causes(const struct score_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->scores[i].causes)
			return true;
	return false;
}

int score_order(unsigned hits1, unsigned n1, unsigned hits2, unsigned n2)
{
	double low1, high1, low2, high2;

	score_interval(hits1, n1, 0.95, &low1, &high1);
	score_interval(hits2, n2, 0.95, &low2, &high2);
	return low1 > high2 ? 1 : low2 > high1 ? -1 : 0;
}
