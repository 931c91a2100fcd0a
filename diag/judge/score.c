#include "diag/judge/score.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <stdlib.h>
#include <string.h>

#include "diag/derive/metrics.h"

struct axis {
	char **names;
	size_t n;
};

struct score_table {
	struct axis axes[SCORE_AXES];
	struct score *scores;
	size_t n;
};

void score_interval(unsigned hits, unsigned n, double confidence, double *low, double *high)
{
	double tail = (1 - confidence) / 2;

	/* At the ends one parameter of the beta distribution would be 0. */
	*low = hits ? gsl_cdf_beta_Pinv(tail, hits, n - hits + 1) : 0;
	*high = hits < n ? gsl_cdf_beta_Pinv(1 - tail, hits + 1, n - hits) : 1;
}

struct score_table *score_table_new(void)
{
	struct score_table *t = calloc(1, sizeof(*t));

	/* Others have their place once a detector gives a verdict on them. */
	for (int m = 0; t && m <= METRIC_SERVICE_TIMES; m++)
		if (score_declare(t, SCORE_METRIC,
			    m < METRIC_SERVICE_TIMES ? metric_name((enum metric)m) : "any", NULL)) {
			score_table_free(t);
			t = NULL;
		}
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
	free(t);
}

static int place(
	struct score_table *t, enum score_axis axis, const char *name, size_t *index, struct err *e)
{
	struct axis *a = &t->axes[axis];
	char **more;

	for (size_t i = 0; i < a->n; i++)
		if (!strcmp(a->names[i], name)) {
			*index = i;
			return 0;
		}
	more = realloc(a->names, (a->n + 1) * sizeof(*more));
	if (more)
		a->names = more;
	if (!more || !(more[a->n] = strdup(name)))
		return err_errno(e, -ENOMEM, "cannot score '%s'", name);
	*index = a->n++;
	return 0;
}

int score_declare(struct score_table *t, enum score_axis axis, const char *name, struct err *e)
{
	size_t index;

	return place(t, axis, name, &index, e);
}

size_t score_names(const struct score_table *t, enum score_axis axis, const char *const **names)
{
	*names = (const char *const *)t->axes[axis].names;
	return t->axes[axis].n;
}

static struct score *find(const struct score_table *t, const size_t at[SCORE_AXES])
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

	return find(t, at);
}

static bool holds(const json_t *list, const char *name)
{
	json_t *item;
	size_t i;

	if (json_is_string(list))
		return !strcmp(json_string_value(list), name);
	json_array_foreach((json_t *)list, i, item) if (json_is_string(item) &&
		!strcmp(json_string_value(item), name)) return true;
	return false;
}

static int check_names(const json_t *list, const char *what, struct err *e)
{
	json_t *item;
	size_t i;

	if (!list || json_is_null(list) || json_is_string(list))
		return 0;
	if (!json_is_array(list))
		return err_set(e, -EINVAL, "'%s' must be a list of servers", what);
	json_array_foreach((json_t *)list, i, item) if (!json_is_string(item)) return err_set(
		e, -EINVAL, "'%s' must hold names of servers", what);
	return 0;
}

void score_compare(const json_t *victims, const json_t *verdict, bool *right, bool *wrong)
{
	const json_t *indicted = json_object_get(verdict, "indicted");
	json_t *item;
	size_t i;

	*right = json_is_string(victims) ? holds(indicted, json_string_value(victims))
					 : json_array_size(victims) > 0;
	*wrong = false;
	json_array_foreach((json_t *)victims, i, item) *right = *right &&
		holds(indicted, json_string_value(item));
	json_array_foreach((json_t *)indicted, i, item) *wrong = *wrong ||
		!holds(victims, json_string_value(item));
}

/* When the last of the victims was indicted; below 0 if the verdict does not say. */
static double indicted_s(const json_t *victims, const json_t *times)
{
	double latest = -1;
	json_t *item;
	size_t i;

	if (json_is_string(victims)) {
		const json_t *v = json_object_get(times, json_string_value(victims));

		return v ? json_number_value(v) : -1;
	}
	json_array_foreach((json_t *)victims, i, item)
	{
		const json_t *v = json_object_get(times, json_string_value(item));

		if (!v)
			return -1;
		if (json_number_value(v) > latest)
			latest = json_number_value(v);
	}
	return latest;
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int add_delays(struct score *s, const double *delays, size_t n)
{
	double *more;

	if (!n)
		return 0;
	more = realloc(s->delays_s, (s->n_delays + n) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + s->n_delays, delays, n * sizeof(*more));
	s->delays_s = more;
	s->n_delays += n;
	qsort(s->delays_s, s->n_delays, sizeof(*more), by_number);
	return 0;
}

/* The same up to a slash? */
static bool same_resource(const char *a, const char *b)
{
	size_t n = strcspn(a, "/");

	return n == strcspn(b, "/") && !strncmp(a, b, n);
}

static int count(struct score *s, const struct score_cell *cell, const json_t *verdict)
{
	const char *resource = json_string_value(json_object_get(verdict, "resource"));
	double when = indicted_s(cell->victims, json_object_get(verdict, "time_s")),
	       delay = when - cell->onset_s;
	bool right, wrong;

	score_compare(cell->victims, verdict, &right, &wrong);
	s->n++;
	s->causes = s->causes || (cell->resource && strchr(cell->resource, '/'));
	s->alarms += wrong;
	s->abstained += json_is_true(json_object_get(verdict, "abstain"));
	s->failed += json_object_get(verdict, "error") != NULL;
	s->detected += json_array_size(json_object_get(verdict, "indicted")) > 0;
	if (!right)
		return 0;
	s->hits++;
	s->named += resource != NULL;
	s->classified += resource && cell->resource && same_resource(resource, cell->resource);
	/* A fault whose resource has one part cannot be named closer. */
	s->explained += resource && cell->resource &&
		(strchr(cell->resource, '/') ? !strcmp(resource, cell->resource)
					     : same_resource(resource, cell->resource));
	if (when < 0 || cell->onset_s < 0)
		return 0;
	s->early += delay < 0;
	return delay < 0 ? 0 : add_delays(s, &delay, 1);
}

int score_add(struct score_table *t, const char *detector, const struct score_cell *cell,
	const json_t *verdict, struct err *e)
{
	const char *metric = json_string_value(json_object_get(verdict, "metric"));
	const json_t *indicted = json_object_get(verdict, "indicted");
	const char *names[SCORE_AXES] = {detector, cell->fault, cell->workload, metric};
	struct score fresh = {0}, *s;
	int rc = 0;

	if (!metric || !json_is_array(indicted))
		return err_set(e, -EINVAL,
			"a verdict of '%s' has no metric, or no list of indicted servers",
			detector);
	rc = check_names(cell->victims, "victims", e);
	if (!rc)
		rc = check_names(indicted, "indicted", e);
	fresh.control = !json_is_string(cell->victims) && !json_array_size(cell->victims);
	for (int a = 0; a < SCORE_AXES && !rc; a++)
		rc = place(t, (enum score_axis)a, names[a], &fresh.at[a], e);
	if (rc)
		return rc;
	s = find(t, fresh.at);
	if (s && s->control != fresh.control)
		return err_set(e, -EINVAL,
			"the cells of fault '%s' must all have a victim, or none", cell->fault);
	if (!s) {
		s = realloc(t->scores, (t->n + 1) * sizeof(*s));
		if (!s)
			return err_errno(e, -ENOMEM, "cannot score '%s'", detector);
		t->scores = s;
		s = &t->scores[t->n++];
		*s = fresh;
	}
	return count(s, cell, verdict) ? err_errno(e, -ENOMEM, "cannot score '%s'", detector) : 0;
}

void score_join(struct score *sum, const struct score *s)
{
	sum->control = s->control;
	sum->n += s->n;
	sum->hits += s->hits;
	sum->alarms += s->alarms;
	sum->detected += s->detected;
	sum->named += s->named;
	sum->classified += s->classified;
	sum->explained += s->explained;
	sum->causes = sum->causes || s->causes;
	sum->abstained += s->abstained;
	sum->failed += s->failed;
	sum->early += s->early;
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

double score_median(const double *sorted, size_t n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

int score_order(unsigned hits1, unsigned n1, unsigned hits2, unsigned n2)
{
	double low1, high1, low2, high2;

	score_interval(hits1, n1, 0.95, &low1, &high1);
	score_interval(hits2, n2, 0.95, &low2, &high2);
	return low1 > high2 ? 1 : low2 > high1 ? -1 : 0;
}
