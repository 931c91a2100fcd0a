#include <errno.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/show.h"

struct options {
	const char *metric;
	long cell;
};

struct printing {
	const struct options *o;
	long long cell, attempt;
};

/* Quotes a name with a separator, quote or line break (RFC 4180). */
static void put_name(const char *name)
{
	if (!strpbrk(name, ",\"\r\n")) {
		fputs(name, stdout);
		return;
	}
	putchar('"');
	for (; *name; name++)
		printf(*name == '"' ? "\"\"" : "%c", *name);
	putchar('"');
}

static int print_series(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	const struct printing *p = ctx;

	(void)e;
	if (p->o->metric && strcmp(p->o->metric, metric))
		return 0;
	for (size_t i = 0; i < n; i++) {
		printf("%lld,%lld,", p->cell, p->attempt);
		put_name(metric);
		putchar(',');
		put_name(server);
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
			.o = o, .cell = jget_int(row, "cell"), .attempt = jget_int(row, "attempt")};

		if (rc || (o->cell && o->cell != p.cell))
			continue;
		rc = store_samples(s, p.attempt, print_series, &p, e);
	}
	return rc;
}

static int set_metric(void *field, const char *text, struct err *e)
{
	enum metric m;

	*(const char **)field = text;
	return metric_from_name(text, &m)
		? err_set(e, -EINVAL, "takes a metric, not '%s'; 'culprit list metrics' lists them",
			  text)
		: 0;
}

static int run(const struct call *c)
{
	struct store *s = NULL;
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (store_open(c->args[0], &s, &e) || print_all(s, c->options, &e))
		code = cmd_error("samples", &e, ERR_USAGE);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"cell", 0, OPTION_WHOLE, offsetof(struct options, cell), "N", "only this cell", 1, 1e6},
	{"metric", 0, OPTION_CALL, offsetof(struct options, metric), "NAME", "only this metric",
		.set = set_metric},
	{0},
};

const struct command samples_command = {.name = "samples",
	.summary = "print what was measured in a run, as CSV",
	.arguments = "RUN",
	.about = "Prints what was measured in the confirmed cells of a run, or a corpus, as CSV "
		 "with the columns cell, attempt, metric, server, second, count, sum, max and "
		 "bytes; 'culprit list metrics' defines the metrics. A second without a row was "
		 "not measured.",
	.examples = "culprit samples runs/NAME --metric dread\nculprit samples runs/NAME --cell 5",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.run = run};
