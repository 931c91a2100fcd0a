/* Computes the increase of run times due to tracing. */
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/table/overhead_impl.h"
#include "harness/table/paper.h"

#define SHOWN_PART 0.01 /* the increase that overhead_pairs must detect */

struct overhead *overhead_new(void)
{
	return alloc_zero(1, sizeof(struct overhead));
}

static void names_clear(struct name_list *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
}

void overhead_free(struct overhead *o)
{
	if (!o)
		return;
	names_clear(&o->workloads);
	names_clear(&o->tracers);
	names_clear(&o->instruments);
	free(o->source);
	free(o->published);
	free(o->runs);
	free(o);
}

static size_t overhead_find(const struct name_list *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n && strcmp(s->list[i], name); i++)
		;
	return i;
}

/* Index of 'name', which is added if new. */
static size_t intern(struct name_list *s, const char *name)
{
	size_t i = overhead_find(s, name);

	if (i == s->n) {
		s->list = alloc_resize(s->list, ++s->n, sizeof(*s->list));
		s->list[i] = alloc_copy(name);
	}
	return i;
}

void overhead_declare(struct overhead *o, const char *workload, const char *tracer)
{
	if (workload)
		intern(&o->workloads, workload);
	if (tracer)
		intern(&o->tracers, tracer);
}

/* Index of the first workload named 'name', with or without parameters in brackets. */
static size_t find_workload(const struct overhead *o, const char *name)
{
	size_t i, len = strlen(name);

	for (i = 0; i < o->workloads.n; i++)
		if (!strncmp(o->workloads.list[i], name, len) &&
			(!o->workloads.list[i][len] || o->workloads.list[i][len] == '('))
			break;
	return i;
}

int overhead_add(struct overhead *o, const struct overhead_run *r, struct err *e)
{
	if (!(r->seconds > 0 && isfinite(r->seconds)))
		return err_set(e, -EINVAL, "%s under %s: a run of %g s", r->workload, r->tracer,
			r->seconds);
	o->runs = alloc_room(o->runs, o->n_runs, sizeof(*o->runs));
	o->runs[o->n_runs++] = (struct timed_run){
		intern(&o->workloads, r->workload), intern(&o->tracers, r->tracer), *r};
	return 0;
}

void overhead_publish(struct overhead *o, const char *source, const char *workload,
	const char *tracer, double pct)
{
	size_t w = find_workload(o, workload);

	if (w == o->workloads.n)
		return;
	if (!o->source)
		o->source = alloc_copy(source);
	o->published = alloc_room(o->published, o->n_published, sizeof(*o->published));
	o->published[o->n_published++] = (struct published_overhead){
		w, intern(&o->instruments, tracer), pct};
}

int overhead_read_published(struct overhead *o, const char *name, struct err *e)
{
	static const char head[] = "\ninstrumentation,workload,overhead_pct\n";
	char *text = NULL, *save = NULL, tracer[64], workload[64];
	const char *source = name;
	double pct;
	int rc = paper_text(name, &text, e);

	if (rc || !strstr(text, head))
		rc = err_set(e, -EINVAL,
			"'%s' has no run times, but this run measures them; use hotdep09-table2",
			name);
	for (char *line = rc ? NULL : strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#' && source == name)
			source = line + 1 + strspn(line + 1, " ");
		else if (sscanf(line, "%63[^,#],%63[^,],%lf", tracer, workload, &pct) == 3)
			overhead_publish(o, source, workload, tracer, pct);
	}
	free(text);
	return rc;
}

bool overhead_is_untraced(const struct overhead *o, size_t tracer)
{
	return !strcmp(o->tracers.list[tracer], "none");
}

/* The untraced run of the same workload and block, or NULL. */
static const struct overhead_run *untraced(const struct overhead *o, const struct timed_run *r)
{
	for (size_t i = 0; i < o->n_runs; i++)
		if (o->runs[i].workload == r->workload && o->runs[i].run.block == r->run.block &&
			overhead_is_untraced(o, o->runs[i].tracer))
			return &o->runs[i].run;
	return NULL;
}

/* ---- figures ---- */

/* Pairs (y, x) for a ratio of means. */
struct pairs {
	double *y, *x;
	size_t n;
};

static void pairs_add(struct pairs *p, double y, double x)
{
	p->y = alloc_room(p->y, p->n, sizeof(*p->y));
	p->x = alloc_room(p->x, p->n, sizeof(*p->x));
	p->y[p->n] = y;
	p->x[p->n++] = x;
}

static double mean(const double *list, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list[i];
	return n ? sum / (double)n : NAN;
}

/* The ratio of means with its interval, scaled by 'scale' and reduced by 'base'; frees the
 * pairs. */
static struct overhead_ratio ratio(struct pairs *p, double base, double scale)
{
	struct overhead_ratio r = {NAN, NAN, NAN};
	double n = (double)p->n, x = mean(p->x, p->n), q = mean(p->y, p->n) / x, squares = 0, half;

	if (p->n && x > 0)
		r.value = scale * (q - base);
	if (p->n >= 3 && x > 0) {
		for (size_t i = 0; i < p->n; i++)
			squares += pow(p->y[i] - q * p->x[i], 2);
		half = gsl_cdf_tdist_Pinv(0.975, n - 1) * sqrt(squares / (n - 1)) / (sqrt(n) * x);
		r.low = r.value - scale * half;
		r.high = r.value + scale * half;
	}
	free(p->y);
	free(p->x);
	return r;
}

/* Adds to a sum, which is negative until the first addition. */
static void add_counted(int64_t *sum, int64_t n)
{
	if (n >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + n;
}

/* Mean calls of a pass under the tracer; NAN: not counted. */
static double calls_of(const struct overhead *o, size_t w, size_t k)
{
	int64_t sum = -1;
	double n = 0;

	for (const struct timed_run *r = o->runs; r < o->runs + o->n_runs; r++)
		if (r->workload == w && r->tracer == k && r->run.calls > 0) {
			add_counted(&sum, r->run.calls);
			n++;
		}
	return n > 0 ? (double)sum / n : NAN;
}

static bool of_one_server(const struct overhead *o, size_t tracer)
{
	return strstr(o->tracers.list[tracer], "(one server)");
}

/* Like calls_of; for a tracer that does not count, the value of the first that does on the same
 * nodes. */
static double calls_assumed(const struct overhead *o, size_t w, size_t k)
{
	double calls = calls_of(o, w, k);

	for (size_t i = 0; i < o->tracers.n && isnan(calls); i++)
		if (of_one_server(o, i) == of_one_server(o, k))
			calls = calls_of(o, w, i);
	return calls;
}

struct overhead_cell overhead_measure(const struct overhead *o, size_t w, size_t k)
{
	struct overhead_cell c = {
		.records = -1, .lost = -1, .tracers_mean_s = NAN, .calls = calls_assumed(o, w, k)};
	struct pairs wall = {0}, cpu = {0}, call = {0};
	double tracers_s = 0;

	for (const struct timed_run *t = o->runs; t < o->runs + o->n_runs; t++) {
		const struct overhead_run *r = &t->run, *u = untraced(o, t);

		if (t->workload != w || t->tracer != k)
			continue;
		add_counted(&c.records, r->records);
		add_counted(&c.lost, r->lost);
		if (!u)
			continue;
		pairs_add(&wall, r->seconds, u->seconds);
		if (!(r->cpu_s > 0 && u->cpu_s > 0))
			continue;
		pairs_add(&cpu, r->cpu_s, u->cpu_s);
		tracers_s += r->tracers_s;
		if (!isnan(c.calls))
			pairs_add(&call, r->cpu_s - u->cpu_s,
				r->calls > 0 ? (double)r->calls : c.calls);
	}
	c.pairs = (unsigned)wall.n;
	c.cpu_pairs = (unsigned)cpu.n;
	c.mean_s = mean(wall.y, wall.n);
	c.untraced_mean_s = mean(wall.x, wall.n);
	c.cpu_mean_s = mean(cpu.y, cpu.n);
	c.untraced_cpu_mean_s = mean(cpu.x, cpu.n);
	if (cpu.n)
		c.tracers_mean_s = tracers_s / (double)cpu.n;
	c.wall_pct = ratio(&wall, 1, 100);
	c.cpu_pct = ratio(&cpu, 1, 100);
	c.call_us = ratio(&call, 0, 1e6);
	return c;
}

int overhead_cell(const struct overhead *o, const char *workload, const char *tracer,
	struct overhead_cell *out)
{
	size_t w = overhead_find(&o->workloads, workload), k = overhead_find(&o->tracers, tracer);

	if (w == o->workloads.n || k == o->tracers.n || !overhead_measure(o, w, k).pairs)
		return -ENOENT;
	*out = overhead_measure(o, w, k);
	return 0;
}

/* ---- power ---- */

static int by_block(const void *a, const void *b)
{
	const struct overhead_run *const *x = a, *const *y = b;

	return ((*x)->block > (*y)->block) - ((*x)->block < (*y)->block);
}

double overhead_pairs_needed(const struct overhead *o, size_t w, bool cpu)
{
	const struct overhead_run **list = alloc_zero(o->n_runs + 1, sizeof(const void *));
	double sum = 0, squares = 0, last = 0, need = NAN, spread;
	size_t n = 0;

	for (const struct timed_run *r = o->runs; r < o->runs + o->n_runs; r++)
		if (r->workload == w && overhead_is_untraced(o, r->tracer) &&
			(!cpu || r->run.cpu_s > 0))
			list[n++] = &r->run;
	qsort(list, n, sizeof(const void *), by_block);
	for (size_t i = 0; i < n; i++) {
		double x = cpu ? list[i]->cpu_s : list[i]->seconds;

		sum += x;
		squares += i ? pow(x - last, 2) : 0;
		last = x;
	}
	free(list);
	if (n < 3)
		return NAN;
	spread = sqrt(squares / (double)(n - 1)) / (sum / (double)n) / SHOWN_PART;
	/* Student's quantiles depend on the unknown number of pairs. The normal quantiles, their
	 * lower limit, give 7.85. */
	for (double pairs = 3; isnan(need); pairs = fmax(pairs + 1, ceil(7.84 * spread * spread))) {
		double t = gsl_cdf_tdist_Pinv(0.975, pairs - 1) +
			gsl_cdf_tdist_Pinv(0.8, pairs - 1);

		if (pairs >= t * t * spread * spread)
			need = pairs;
	}
	return need;
}

double overhead_pairs(const struct overhead *o, const char *workload, bool cpu)
{
	size_t w = overhead_find(&o->workloads, workload);

	return w < o->workloads.n ? overhead_pairs_needed(o, w, cpu) : NAN;
}
