#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ci/bench/fleet_families.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

bool family_row_read(const char *line, struct family_row *row)
{
	struct tally *t = &row->t;
	char family[32];
	double ratio, share;
	int index;

	if (sscanf(line,
		    "%31[^,],%lf,%lf,%31[^,],%u,%u,%u,%u,%u,%u,%u,%lf,%lf,%u,%u,%u,%u,%u,%u,"
		    "%lf,%lf,%lf,%lf",
		    family, &ratio, &share, row->detector, &row->fleets, &t->ill, &t->tp,
		    &t->ill_one, &t->tp_one, &t->fp, &t->alarmed, &t->fp_squares, &t->weeks,
		    &t->off, &t->off_found, &t->off_wrong, &t->class_ill, &t->class_healthy,
		    &t->curves, &t->auc, &t->ap, &t->samples, &t->seconds) != 23 ||
		(index = maker_family_find(family)) < 0)
		return false;
	row->family = (unsigned)index;
	row->cell = 0;
	for (unsigned r = 0; r < FAMILY_RATIOS; r++)
		for (unsigned s = 0; s < FAMILY_SHARES; s++)
			if (fabs(ratio - family_ratios[r]) < 1e-9 &&
				fabs(share - family_shares[s]) < 1e-9)
				row->cell = r * FAMILY_SHARES + s + 1;
	return row->cell || share == 0;
}

static const struct family_choice all = {-1, -1, -1, -1, -1, -1};

static bool chosen(
	const struct family_rows *rows, const struct family_row *r, const struct family_choice *c)
{
	int ratio = r->cell ? (int)(r->cell - 1) / FAMILY_SHARES : -2;
	int share = r->cell ? (int)(r->cell - 1) % FAMILY_SHARES : -2;

	return (c->detector < 0 || !strcmp(rows->detectors[c->detector], r->detector)) &&
		(c->family < 0 || c->family == (int)r->family) &&
		(c->held < 0 || c->held == maker_families[r->family].held_out) &&
		(c->ratio < 0 || c->ratio == ratio) && (c->share < 0 || c->share == share) &&
		(c->faulty < 0 || c->faulty == (r->cell > 0));
}

struct tally family_sum(const struct family_rows *rows, struct family_choice c)
{
	struct tally s = {0};

	for (size_t i = 0; i < rows->n; i++) {
		const struct tally *t = &rows->v[i].t;

		if (!chosen(rows, &rows->v[i], &c))
			continue;
		s.ill += t->ill, s.tp += t->tp, s.ill_one += t->ill_one, s.tp_one += t->tp_one;
		s.fp += t->fp, s.weeks += t->weeks, s.off += t->off, s.off_found += t->off_found;
		s.alarmed += t->alarmed, s.fp_squares += t->fp_squares;
		s.class_ill += t->class_ill, s.class_healthy += t->class_healthy;
		s.off_wrong += t->off_wrong;
		s.curves += t->curves, s.auc += t->auc, s.ap += t->ap;
		s.samples += t->samples, s.seconds += t->seconds;
	}
	return s;
}

/* The mean of which a count of 'shape' or more (of a gamma variable, so that 'shape' need not be
 * whole) has probability 'p'; by bisection, because GSL's
 * inverse ends the program for some large counts. */
static double poisson_mean(double p, double shape)
{
	double low = 0, high = shape + 10 * sqrt(shape + 1) + 20;

	for (int i = 0; i < 60; i++) {
		double x = (low + high) / 2;

		if (gsl_cdf_gamma_P(x, shape, 1) < p)
			low = x;
		else
			high = x;
	}
	return (low + high) / 2;
}

/* False alarms per 10,000 series-weeks, with a 95 % interval over fleets, then how many there are
 * and in how many fleets. Alarms come in clusters, some of one fleet: fleets give a compound
 * Poisson variable, whose variance is the sum of the squares; the interval is that of a Poisson
 * count with the same ratio of mean and variance. */
static void print_alarms(FILE *f, const struct tally *t)
{
	double cluster = t->fp ? t->fp_squares / t->fp : 1, count = t->fp / cluster;
	double unit = t->weeks / 1e4 / cluster, low, high;

	low = t->fp ? poisson_mean(0.025, count) : 0;
	high = poisson_mean(0.975, count + 1);
	if (t->weeks > 0)
		fprintf(f, " %.3g (%.2g to %.2g) | %u in %u |", count / unit, low / unit,
			high / unit, t->fp, t->alarmed);
	else
		fprintf(f, " - | - |");
}

void family_print_share(FILE *f, unsigned hits, unsigned n)
{
	if (n)
		fprintf(f, " %.0f |", 100.0 * hits / n);
	else
		fprintf(f, " - |");
}

static void recall_table(FILE *f, const struct family_rows *rows, int detector, int held)
{
	fprintf(f, "\n%s, %s families: ill members found, %%, by ratio and share of the time\n\n",
		rows->detectors[detector], held ? "held-out" : "development");
	fprintf(f, "| ratio |");
	for (int s = 0; s < FAMILY_SHARES; s++)
		fprintf(f, " %g %% |", 100 * family_shares[s]);
	fprintf(f, "\n|--:|--:|--:|--:|--:|--:|\n");
	for (int r = 0; r < FAMILY_RATIOS; r++) {
		fprintf(f, "| %g |", family_ratios[r]);
		for (int s = 0; s < FAMILY_SHARES; s++) {
			struct family_choice c = {detector, -1, held, r, s, 1};
			struct tally t = family_sum(rows, c);

			family_print_share(f, t.tp, t.ill);
		}
		fputc('\n', f);
	}
}

/* All detectors side by side, at one share of the time. */
static void share_table(FILE *f, const struct family_rows *rows, int held, int share)
{
	fprintf(f, "\n%s families: ill members found, %%, by ratio, ill for %g %% of the time\n\n",
		held ? "Held-out" : "Development", 100 * family_shares[share]);
	fprintf(f, "| detector |");
	for (int r = 0; r < FAMILY_RATIOS; r++)
		fprintf(f, " %g |", family_ratios[r]);
	fprintf(f, "\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (int d = 0; d < (int)rows->n_detectors; d++) {
		fprintf(f, "| %s |", rows->detectors[d]);
		for (int r = 0; r < FAMILY_RATIOS; r++) {
			struct family_choice c = {d, -1, held, r, share, 1};
			struct tally t = family_sum(rows, c);

			family_print_share(f, t.tp, t.ill);
		}
		fputc('\n', f);
	}
}

void family_print_mean(FILE *f, double total, unsigned n)
{
	if (n)
		fprintf(f, " %.3f |", total / n);
	else
		fprintf(f, " - |");
}

static void summary_table(FILE *f, const struct family_rows *rows, int held)
{
	fprintf(f,
		"\n%s families\n\n| detector | found, %% | of single ones, %% | FP per 10,000 "
		"series-weeks, clean | alarms, in fleets | in faulty fleets | alarms, in fleets | "
		"ROC area | average precision | groups found, %% | groups wrong |\n"
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
		held ? "Held-out" : "Development");
	for (int d = 0; d < (int)rows->n_detectors; d++) {
		struct family_choice c = all;
		struct tally faulty, clean, both;

		c.detector = d;
		c.held = held;
		both = family_sum(rows, c);
		c.faulty = 1;
		faulty = family_sum(rows, c);
		c.faulty = 0;
		clean = family_sum(rows, c);
		fprintf(f, "| %s |", rows->detectors[d]);
		family_print_share(f, faulty.tp, faulty.ill);
		family_print_share(f, faulty.tp_one, faulty.ill_one);
		print_alarms(f, &clean);
		print_alarms(f, &faulty);
		family_print_mean(f, faulty.auc, faulty.curves);
		family_print_mean(f, faulty.ap, faulty.curves);
		family_print_share(f, both.off_found, both.off);
		if (both.off_found + both.off_wrong)
			fprintf(f, " %u |\n", both.off_wrong);
		else
			fprintf(f, " - |\n");
	}
}

static void family_table(FILE *f, const struct family_rows *rows, int detector)
{
	fprintf(f,
		"\n%s, by family\n\n| family | half | found, %% | 1.5 and more for all the time, "
		"%% | FP per 10,000 series-weeks, clean | alarms, in fleets | in faulty fleets | "
		"alarms, in fleets | ROC area | average precision | groups wrong | ill in a class "
		"| healthy in a class |\n"
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
		rows->detectors[detector]);
	for (int k = 0; k < MAKER_FAMILIES; k++) {
		struct family_choice c = {detector, k, -1, -1, -1, 1};
		struct tally faulty = family_sum(rows, c), clean, lasting = {0};

		c.faulty = -1;
		if (!family_sum(rows, c).samples)
			continue;
		c.faulty = 1;
		for (c.ratio = 3, c.share = FAMILY_SHARES - 1; c.ratio < FAMILY_RATIOS; c.ratio++) {
			struct tally one = family_sum(rows, c);

			lasting.tp += one.tp;
			lasting.ill += one.ill;
		}
		c.ratio = c.share = -1;
		c.faulty = 0;
		clean = family_sum(rows, c);
		fprintf(f, "| %s | %s |", maker_families[k].name,
			maker_families[k].held_out ? "held out" : "development");
		family_print_share(f, faulty.tp, faulty.ill);
		family_print_share(f, lasting.tp, lasting.ill);
		print_alarms(f, &clean);
		print_alarms(f, &faulty);
		family_print_mean(f, faulty.auc, faulty.curves);
		family_print_mean(f, faulty.ap, faulty.curves);
		fprintf(f, " %u | %u | %u |\n", faulty.off_wrong + clean.off_wrong,
			faulty.class_ill, faulty.class_healthy + clean.class_healthy);
	}
}

static void add_row(struct family_rows *rows, const struct family_row *row)
{
	unsigned d = 0;

	while (d < rows->n_detectors && strcmp(rows->detectors[d], row->detector))
		d++;
	if (d == TRIAL_DETECTORS_MAX)
		return;
	if (d == rows->n_detectors)
		strcpy(rows->detectors[rows->n_detectors++], row->detector);
	rows->v = alloc_resize(rows->v, rows->n + 1, sizeof(*row));
	rows->v[rows->n++] = *row;
}

static bool named(const char *name, const char *table)
{
	return !name || !strcmp(name, table);
}

static void half_tables(FILE *f, const struct family_rows *rows, int held, const char *name)
{
	struct family_choice c = {-1, -1, held, -1, -1, -1};

	if (!family_sum(rows, c).samples)
		return;
	if (named(name, "summary"))
		summary_table(f, rows, held);
	if (named(name, "recall"))
		recall_table(f, rows, 0, held);
	for (int share = FAMILY_SHARES; share--;) {
		char table[32];

		snprintf(table, sizeof(table), "share=%g", family_shares[share]);
		if (named(name, table))
			share_table(f, rows, held, share);
	}
}

static int read_rows(const char *path, struct family_rows *rows, FILE *head)
{
	auto_file FILE *f = fopen(path, "r");
	auto_free char *line = NULL;
	struct family_row row;
	size_t size = 0;

	if (!f) {
		fprintf(stderr, "cannot open '%s'\n", path);
		return 2;
	}
	while (getline(&line, &size, f) > 0) {
		if (*line == '#' && head)
			fprintf(head, "%s", line + 2);
		else if (family_row_read(line, &row))
			add_row(rows, &row);
	}
	return 0;
}

int family_tables(const char *path, const char *name, const char *half, FILE *out)
{
	struct family_rows rows = {0};
	int rc = read_rows(path, &rows, named(name, "head") ? out : NULL);

	for (int held = 0; held < 2; held++)
		if (named(half, held ? "held" : "dev"))
			half_tables(out, &rows, held, name);
	for (int d = 0; d < (int)rows.n_detectors; d++)
		if (!name || (named(name, "family") && !d))
			family_table(out, &rows, d);
	if (named(name, "parts"))
		family_parts_table(out, &rows);
	free(rows.v);
	return rc;
}
