/* Draws the plan of cells from a scenario and a seed. */
#include "harness/scenario/plan.h"

#include <errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"

void plan_free(struct plan *p)
{
	if (!p)
		return;
	free(p->cells);
	free(p);
}

const char *cell_fault(const struct scenario *s, const struct cell *c)
{
	return c->fault == SIZE_MAX ? "none" : s->faults[c->fault].label;
}

bool cell_is_faulty(const struct scenario *s, const struct cell *c)
{
	return c->n_victims && !s->faults[c->fault].lookalike;
}

const char *cell_treatment(const struct scenario *s, const struct cell *c)
{
	return s->measure == MEASURE_RUNTIME ? s->tracers[c->tracer].label : cell_fault(s, c);
}

static void draw_victims(
	struct cell *c, const struct part *fault, size_t n_servers, size_t *servers, gsl_rng *rng)
{
	size_t n = (size_t)fault->victims;

	for (size_t i = 0; i < n_servers; i++)
		servers[i] = i;
	/* Drawn for controls too, so that adding one shifts no other victim. */
	gsl_ran_choose(rng, c->victims, n, servers, n_servers, sizeof(*servers));
	c->n_victims = strcmp(fault->name, "none") ? n : 0;
}

static void plan_fill(
	struct plan *p, const struct scenario *s, size_t n_servers, size_t *servers, gsl_rng *rng)
{
	const bool runtime = s->measure == MEASURE_RUNTIME;
	size_t n = runtime ? s->n_tracers : s->n_faults;

	for (long r = 1; r <= s->training_repeats; r++)
		for (size_t i = 0; i < s->n_training; i++)
			p->cells[p->n++] = (struct cell){.training = true,
				.workload = s->training[i],
				.fault = SIZE_MAX,
				.repeat = r};
	for (long r = 1; r <= s->repeats; r++) {
		size_t first = p->n;

		for (size_t i = 0; i < s->n_matrix * n; i++) {
			const size_t w = i / n, k = i % n;
			const struct part *fault = runtime ? NULL : &s->faults[k];
			struct cell *c = &p->cells[p->n];

			if (!part_under_has(
				    fault ? fault->under : s->tracers[k].under, &s->workloads[w]))
				continue;
			*c = (struct cell){.workload = w,
				.fault = fault ? k : SIZE_MAX,
				.tracer = fault ? 0 : k,
				.repeat = r};
			p->n++;
			if (fault)
				draw_victims(c, fault, n_servers, servers, rng);
			for (long more = 1;
				fault && more < s->controls && !strcmp(fault->name, "none"); more++)
				p->cells[p->n++] = *c;
		}
		gsl_ran_shuffle(rng, &p->cells[first], p->n - first, sizeof(*p->cells));
	}
	for (size_t i = 0; i < p->n; i++)
		p->cells[i].number = i + 1;
}

static bool matches(
	const struct scenario *s, const struct cell *c, const char *key, const char *value)
{
	char number[32];

	if (!strcmp(key, "workload"))
		return !strcmp(value, s->workloads[c->workload].label) ||
			!strcmp(value, s->workloads[c->workload].name);
	if (!strcmp(key, "fault"))
		return !strcmp(value, cell_fault(s, c)) ||
			(c->fault != SIZE_MAX && !strcmp(value, s->faults[c->fault].name));
	if (!strcmp(key, "tracer"))
		return !strcmp(value, s->tracers[c->tracer].label);
	if (!strcmp(key, "repeat"))
		snprintf(number, sizeof(number), "%ld", c->repeat);
	else
		snprintf(number, sizeof(number), "%zu", c->number);
	return !strcmp(value, number);
}

static int keep_only(struct plan *p, const struct scenario *s, const char *only, struct err *e)
{
	static const char *const keys[] = {"workload", "fault", "tracer", "repeat", "cell", NULL};
	auto_free char *copy = alloc_copy(only);
	char *save;

	for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *value = strchr(item, '=');
		size_t kept = 0, scored = 0, k;

		if (value)
			*value++ = '\0';
		for (k = 0; keys[k] && strcmp(keys[k], item); k++)
			;
		if (!value || !keys[k])
			return err_set(e, -EINVAL,
				"--only: '%s' is not one of workload=, fault=, tracer=, repeat=, "
				"cell=",
				item);
		for (size_t i = 0; i < p->n; i++) {
			bool keep = p->cells[i].training || matches(s, &p->cells[i], item, value);

			scored += keep && !p->cells[i].training;
			if (keep)
				p->cells[kept++] = p->cells[i];
		}
		p->n = kept;
		if (!scored)
			return err_set(e, -EINVAL, "--only: no cell has %s=%s", item, value);
	}
	return 0;
}

int plan_new(const struct scenario *s, size_t n_servers, uint64_t seed, const char *only,
	struct plan **out, struct err *e)
{
	size_t kinds = s->measure == MEASURE_RUNTIME ? s->n_tracers : s->n_faults;
	size_t most = s->n_training * (size_t)s->training_repeats +
		s->n_matrix * (kinds + (size_t)s->controls) * (size_t)s->repeats;
	auto_free size_t *servers = alloc_zero(n_servers, sizeof(*servers));
	struct plan *p;
	gsl_rng *rng;
	int rc;

	for (size_t f = 0; f < s->n_faults; f++)
		if ((size_t)s->faults[f].victims >= n_servers && strcmp(s->faults[f].name, "none"))
			return err_set(e, -EINVAL,
				"fault '%s' has %ld victims of %zu servers: no healthy one would "
				"be left",
				s->faults[f].label, s->faults[f].victims, n_servers);
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	if (!rng)
		alloc_end();
	p = alloc_zero(1, sizeof(*p));
	*p = (struct plan){.seed = seed, .cells = alloc_zero(most, sizeof(*p->cells))};
	gsl_rng_set(rng, (unsigned long)seed);
	plan_fill(p, s, n_servers, servers, rng);
	gsl_rng_free(rng);
	rc = only ? keep_only(p, s, only, e) : 0;
	if (rc)
		plan_free(p);
	else
		*out = p;
	return rc;
}

static int too_many(const struct scenario *s, const struct part *fault, long most, struct err *e)
{
	const struct luax_source src = {.path = s->path, .text = s->text};
	auto_free char *quoted = alloc_format("\"%s\"", fault->name);

	/* A fault in a file of the user has another name there. */
	return luax_complain(&src, strstr(s->text, quoted) ? fault->name : "victims", e,
		"fault '%s' has %ld victims at once, more than --max-victims %ld: lower its "
		"'victims', or leave it out with --only",
		fault->label, fault->victims, most);
}

static int not_allowed(
	const struct scenario *s, const struct cell *c, const char *name, struct err *e)
{
	return err_set(e, -EINVAL,
		"%s: cell %zu (%s x %s) would hit '%s', which --never excludes: draw another plan "
		"with --seed, or choose cells with --only; --dry-run prints the victims",
		s->path, c->number, s->workloads[c->workload].label, cell_fault(s, c), name);
}

int plan_check_faults(const struct scenario *s, const struct plan_limits *limits, struct err *e)
{
	for (size_t i = 0; i < s->n_faults; i++)
		if (limits->max_victims && s->faults[i].victims > limits->max_victims)
			return too_many(s, &s->faults[i], limits->max_victims, e);
	return 0;
}

int plan_check_limits(const struct plan *p, const struct scenario *s, char *const servers[],
	const struct plan_limits *limits, struct err *e)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct cell *c = &p->cells[i];

		if (limits->max_victims && c->n_victims > (size_t)limits->max_victims)
			return too_many(s, &s->faults[c->fault], limits->max_victims, e);
		for (size_t v = 0; v < c->n_victims; v++)
			for (size_t k = 0; k < limits->n_never; k++)
				if (!strcmp(limits->never[k], servers[c->victims[v]]))
					return not_allowed(s, c, limits->never[k], e);
	}
	return 0;
}
