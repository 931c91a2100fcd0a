/* Tables of what parts of the fleet detector are worth, and of the families. */
#include <math.h>
#include <string.h>

#include "ci/bench/fleet_families.h"

/* How leaving out a part changes a mean over fleets, and its standard error over pairs of the same
 * family, ratio and share. */
struct change {
	double mean, error;
};

static struct change change_of(const struct family_rows *rows, int detector, int held)
{
	double n = 0, sum = 0, squares = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct family_row *x = &rows->v[i];

		if (strcmp(x->detector, rows->detectors[detector]) || !x->t.curves ||
			maker_families[x->family].held_out != held)
			continue;
		for (size_t k = 0; k < rows->n; k++) {
			const struct family_row *y = &rows->v[k];
			double d;

			if (strcmp(y->detector, rows->detectors[0]) || y->family != x->family ||
				y->cell != x->cell)
				continue;
			d = x->t.ap / x->t.curves - y->t.ap / y->t.curves;
			n++, sum += d, squares += d * d;
		}
	}
	return (struct change){sum / n, sqrt(fmax(0, squares - sum * sum / n) / (n - 1) / n)};
}

static void print_alarms(FILE *f, const struct tally *t)
{
	if (t->weeks > 0)
		fprintf(f, " %.2g (%u in %u) |", t->fp / t->weeks * 1e4, t->fp, t->alarmed);
	else
		fprintf(f, " - |");
}

static void part_row(FILE *f, const struct family_rows *rows, int detector)
{
	struct tally faulty[2], clean[2];

	for (int held = 0; held < 2; held++) {
		faulty[held] = family_sum(
			rows, (struct family_choice){detector, -1, held, -1, -1, 1});
		clean[held] = family_sum(
			rows, (struct family_choice){detector, -1, held, -1, -1, 0});
	}
	fprintf(f, "| %s |", detector ? strrchr(rows->detectors[detector], ' ') + 1 : "nothing");
	for (int held = 0; held < 2; held++)
		family_print_share(f, faulty[held].tp, faulty[held].ill);
	for (int held = 0; held < 2; held++)
		print_alarms(f, &clean[held]);
	for (int held = 0; held < 2; held++)
		print_alarms(f, &faulty[held]);
	for (int held = 0; held < 2; held++)
		family_print_mean(f, faulty[held].auc, faulty[held].curves);
	for (int held = 0; held < 2; held++)
		family_print_mean(f, faulty[held].ap, faulty[held].curves);
	for (int held = 0; held < 2; held++) {
		struct change c = change_of(rows, detector, held);

		if (!detector || !faulty[held].curves)
			fprintf(f, " - |");
		else
			fprintf(f, " %+.3f ± %.3f |", c.mean, c.error);
	}
	fputc('\n', f);
}

void family_parts_table(FILE *f, const struct family_rows *rows)
{
	if (rows->n_detectors < 2 || strncmp(rows->detectors[1], "without ", 8))
		return;
	fprintf(f,
		"\n| left out | found, %%: development | held out | FP per 10,000 series-weeks, "
		"clean: development | held out | in faulty fleets: development | held out | ROC "
		"area: development | held out | average precision: development | held out | its "
		"change: development | held out |\n"
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (int d = 0; d < (int)rows->n_detectors; d++)
		part_row(f, rows, d);
}

void family_list(FILE *f)
{
	fprintf(f, "| family | half | what is made up | as in |\n|---|---|---|---|\n");
	for (int k = 0; k < MAKER_FAMILIES; k++)
		fprintf(f, "| %s | %s | %s | %s |\n", maker_families[k].name,
			maker_families[k].held_out ? "held out" : "development",
			maker_families[k].summary, maker_families[k].reason);
}
