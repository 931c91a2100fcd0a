/* The command 'samples': prints a run's measurements as CSV. */
#include <errno.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/store/samples_wide.h"

struct options {
	bool taken[METRIC_COUNT], some; /* 'some': not all */
	long cell;
	bool wide;
};

struct printing {
	const struct options *o;
	long long cell, number;
};

static int print_series(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	const struct printing *p = ctx;
	enum metric m;

	(void)e;
	if (p->o->some && (metric_from_name(metric, &m) || !p->o->taken[m]))
		return 0;
	for (size_t i = 0; i < n; i++) {
		printf("%lld,%lld,", p->cell, p->number);
		text_print_csv(stdout, metric, false);
		putchar(',');
		text_print_csv(stdout, server, false);
		printf(",%d,%llu,%.17g,%.17g,%llu\n", samples[i].second,
			(unsigned long long)samples[i].count, samples[i].sum_s, samples[i].max_s,
			(unsigned long long)samples[i].bytes);
	}
	return 0;
}

static int print_all(struct store *s, const struct options *o, struct err *e)
{
	json_auto_t *rows = NULL;
	json_t *row;
	bool found = false;
	size_t i;
	int rc = store_rows(s, ROWS_CONFIRMED, 0, &rows, e);

	json_array_foreach(rows, i, row)
		found = found || !o->cell || o->cell == jget_int(row, "cell");
	if (!rc && o->cell && !found)
		rc = err_set(e, -ENOENT, "the run has no confirmed cell %ld", o->cell);
	if (!rc)
		puts("cell,attempt,metric,server,second,count,sum,max,bytes");
	json_array_foreach(rows, i, row) {
		struct printing p = {
			.o = o, .cell = jget_int(row, "cell"), .number = jget_int(row, "number")};

		if (rc || (o->cell && o->cell != p.cell))
			continue;
		rc = store_samples(s, jget_int(row, "attempt"), print_series, &p, e);
	}
	return rc;
}

static int set_metric(void *field, const char *text, struct err *e)
{
	struct options *o = field;
	enum metric m;

	if (metric_from_name(text, &m))
		return err_set(e, -EINVAL,
			"takes a metric, not '%s'; 'culprit list metrics' lists them", text);
	o->taken[m] = o->some = true;
	return 0;
}

static int print_wide(struct store *s, const struct options *o, struct err *e)
{
	bool taken[METRIC_COUNT];

	for (int m = 0; m < METRIC_COUNT; m++)
		taken[m] = !o->some || o->taken[m];
	return samples_wide(s, taken, o->cell, e);
}

static int samples_run(const struct call *c)
{
	const struct options *o = c->options;
	struct store *s = NULL;
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (store_open(c->args[0], &s, &e) ||
		(o->wide ? print_wide(s, o, &e) : print_all(s, o, &e)))
		code = cmd_error("samples", &e, ERR_USAGE);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"cell", 0, OPTION_WHOLE, offsetof(struct options, cell), "N", "only this cell", 1, 1e6},
	{"metric", 0, OPTION_CALL, 0, "NAME", "only this metric; may be repeated",
		.set = set_metric},
	{"wide", 0, OPTION_FLAG, offsetof(struct options, wide), NULL,
		"as 'culprit diagnose --csv' reads it: time, server, and a column for each metric"},
	{0},
};

const struct command samples_command = {.name = "samples",
	.summary = "print what was measured in a run, as CSV",
	.arguments = "RUN",
	.about = "Prints what was measured in the confirmed cells of a run, or a corpus, as CSV "
		 "with the columns cell, attempt, metric, server, second, count, sum, max and "
		 "bytes; 'culprit list metrics' defines the metrics. Cell and attempt are those in "
		 "the name of the cell's folder: cells/0012.2 is the second attempt at cell 12. A "
		 "second without a row was not measured.",
	.examples = "culprit samples runs/NAME --metric dread\n"
		    "culprit samples runs/NAME --wide --cell 5 | culprit diagnose --csv -",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.run = samples_run};
