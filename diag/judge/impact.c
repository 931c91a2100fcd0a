/* Compares cells with controls: geometric means of ratios, with intervals. */
#include "diag/judge/impact.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

struct compared_cell {
	char *fault; /* NULL: a control */
	size_t workload;
	long number;
	double logs[IMPACT_MEASURES]; /* of the ratios; NAN: unknown */
};

struct impacts {
	struct compared_cell *cells;
	char **workloads;
	size_t n, n_workloads;
};

const char *impact_name(enum impact_measure m)
{
	return m == IMPACT_LATENCY ? "latency" : "throughput";
}

bool impact_suffers(enum impact_measure m, struct impact i)
{
	return m == IMPACT_LATENCY ? i.low > 1 : i.high < 1;
}

static int decimals(double x)
{
	return x < 9.995 ? 2 : 0;
}

const char *impact_text(struct impact i, char buf[IMPACT_TEXT])
{
	if (isnan(i.ratio))
		return "unknown";
	if (isnan(i.low))
		snprintf(buf, IMPACT_TEXT, "%.*f", decimals(i.ratio), i.ratio);
	else
		snprintf(buf, IMPACT_TEXT, "%.*f [%.*f,%.*f]", decimals(i.ratio), i.ratio,
			decimals(i.low), i.low, decimals(i.high), i.high);
	return buf;
}

json_t *impact_json(struct impact i)
{
	const double values[] = {i.ratio, i.low, i.high};
	static const char *const keys[] = {"ratio", "low", "high"};
	json_t *v = json_pack("{s:i, s:i}", "n", (int)i.n, "controls", (int)i.controls);

	for (int k = 0; k < 3; k++)
		json_object_set_new(
			v, keys[k], isfinite(values[k]) ? json_real(values[k]) : json_null());
	return v;
}

/* ---- cells ---- */

static size_t workload_index(struct impacts *i, const char *name)
{
	size_t w = 0;

	while (w < i->n_workloads && strcmp(i->workloads[w], name) != 0)
		w++;
	if (w == i->n_workloads) {
		i->workloads = alloc_room(i->workloads, i->n_workloads, sizeof(*i->workloads));
		i->workloads[i->n_workloads++] = alloc_copy(name);
	}
	return w;
}

struct impacts *impacts_new(void)
{
	return alloc_zero(1, sizeof(struct impacts));
}

void impacts_add(struct impacts *i, const struct impact_cell *cell)
{
	struct compared_cell *c;

	i->cells = alloc_room(i->cells, i->n, sizeof(*i->cells));
	c = &i->cells[i->n++];
	*c = (struct compared_cell){.fault = cell->fault ? alloc_copy(cell->fault) : NULL,
		.workload = workload_index(i, cell->workload),
		.number = cell->number};
	for (int m = 0; m < IMPACT_MEASURES; m++)
		c->logs[m] = cell->ratios[m] > 0 ? log(cell->ratios[m]) : NAN;
}

void impacts_free(struct impacts *i)
{
	if (!i)
		return;
	for (size_t k = 0; k < i->n; k++)
		free(i->cells[k].fault);
	for (size_t w = 0; w < i->n_workloads; w++)
		free(i->workloads[w]);
	free(i->cells);
	free(i->workloads);
	free(i);
}

/* ---- statistics ---- */

/* Logarithms of some cells of one workload. */
struct spread {
	unsigned n;
	double mean, squares; /* squares: sum of squared deviations */
};

/* Of the cells of a fault, only of one cell, or (both not given) of controls. */
static struct spread spread_of(const struct impacts *i, enum impact_measure m, size_t workload,
	const char *fault, long cell)
{
	struct spread s = {0};

	for (const struct compared_cell *c = i->cells; c < i->cells + i->n; c++) {
		double x = c->logs[m], delta;

		if (isnan(x) || c->workload != workload || (cell && c->number != cell) ||
			(fault || cell ? !c->fault : c->fault != NULL) ||
			(fault && strcmp(c->fault, fault) != 0))
			continue;
		delta = x - s.mean;
		s.mean += delta / ++s.n;
		s.squares += delta * (x - s.mean);
	}
	return s;
}

/* The cells' mean less their controls', over workloads: sum and variance of the sum. */
static struct impact compare(const struct impacts *i, enum impact_measure m, const char *fault,
	long cell, const char *workload)
{
	struct impact out = {.ratio = NAN, .low = NAN, .high = NAN};
	double sum = 0, variance = 0, squares = 0, half;
	bool bounded = true;

	for (size_t w = 0; w < i->n_workloads; w++) {
		struct spread f = spread_of(i, m, w, fault, cell), c = spread_of(i, m, w, NULL, 0);
		double freedom = (double)f.n + c.n - 2, part;

		if (!f.n || !c.n || (workload && strcmp(workload, i->workloads[w]) != 0))
			continue;
		out.n += f.n;
		out.controls += c.n;
		sum += f.n * (f.mean - c.mean);
		bounded = bounded && c.n >= 2;
		if (!bounded)
			continue;
		part = (f.squares + c.squares) / freedom * (f.n + (double)f.n * f.n / c.n);
		variance += part;
		squares += part * part / freedom;
	}
	if (!out.n)
		return out;
	out.ratio = exp(sum / out.n);
	if (!bounded)
		return out;
	half = variance > 0
		? gsl_cdf_tdist_Pinv(0.975, variance * variance / squares) * sqrt(variance) / out.n
		: 0;
	out.low = out.ratio * exp(-half);
	out.high = out.ratio * exp(half);
	return out;
}

struct impact impacts_of(
	const struct impacts *i, enum impact_measure m, const char *fault, const char *workload)
{
	return compare(i, m, fault, 0, workload);
}

struct impact impacts_of_cell(const struct impacts *i, enum impact_measure m, long cell)
{
	return compare(i, m, NULL, cell, NULL);
}

const char *impacts_unknown(const struct impacts *i, enum impact_measure m)
{
	size_t faulty = 0, controls = 0, known = 0, compared = 0;

	for (const struct compared_cell *c = i->cells; c < i->cells + i->n; c++) {
		faulty += c->fault != NULL;
		controls += !c->fault;
		known += !isnan(c->logs[m]);
		compared += c->fault && impacts_of_cell(i, m, c->number).n;
	}
	if (compared)
		return NULL;
	if (!faulty || !controls)
		return faulty ? "the run has no controls" : "the run has no faults";
	if (known)
		return "no cell has a control of its workload with which it can be compared";
	return m == IMPACT_LATENCY
		? "no requests were recorded (tracers: mode = \"flow\")"
		: "no cell has readings of what arrived both before the fault and during it";
}
