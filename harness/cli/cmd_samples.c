#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/show.h"

struct options {
	const char *run, *metric;
	long cell;
};

static void usage(FILE *f)
{
	fputs("usage: culprit samples RUN [--cell N] [--metric NAME]\n\n"
	      "Prints what was measured in the confirmed cells of a run, or a corpus, as CSV with the columns\n"
	      "cell, attempt, metric, server, second, count, sum, max and bytes; 'culprit list metrics' says\n"
	      "what they are. A second without a row was not measured.\n\n"
	      "  --cell N       only this cell\n"
	      "  --metric NAME  only this metric\n\n"
	      "Exit codes: 0 printed; 2 usage or input; 3 standard output is gone.\n",
		f);
}

struct printing {
	const struct options *o;
	long long cell, attempt;
};

/* A name that has what CSV is made of is put in quotes (RFC 4180). */
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
	json_t *rows = NULL, *row;
	bool found = false;
	size_t i;
	int rc = store_confirmed(s, &rows, e);

	json_array_foreach(rows, i, row) found = found || !o->cell ||
		o->cell == json_integer_value(json_object_get(row, "cell"));
	if (!rc && o->cell && !found)
		rc = err_set(e, -ENOENT, "the run has no confirmed cell %ld", o->cell);
	if (!rc)
		puts("cell,attempt,metric,server,second,count,sum,max,bytes");
	json_array_foreach(rows, i, row)
	{
		struct printing p = {.o = o,
			.cell = json_integer_value(json_object_get(row, "cell")),
			.attempt = json_integer_value(json_object_get(row, "attempt"))};

		if (rc || (o->cell && o->cell != p.cell))
			continue;
		rc = store_samples(s, p.attempt, print_series, &p, e);
	}
	json_decref(rows);
	return rc;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"cell", required_argument, NULL, 'c'},
		{"metric", required_argument, NULL, 'm'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	enum metric m;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			if (show_parse_whole("samples", "--cell", optarg, 1, 1000000, &o->cell))
				return -EINVAL;
			break;
		case 'm':
			if (metric_from_name(optarg, &m)) {
				cmd_fail("samples", 0,
					"there is no metric '%s'; 'culprit list metrics' has all",
					optarg);
				return -EINVAL;
			}
			o->metric = optarg;
			break;
		case 'h': usage(stdout); return 1;
		default:
			fputs("culprit samples: 'culprit samples --help' lists the options\n",
				stderr);
			return -EINVAL;
		}
	}
	if (argc - optind != 1) {
		cmd_fail("samples", 0, "which run? 'culprit samples runs/NAME'");
		return -EINVAL;
	}
	o->run = argv[optind];
	return 0;
}

int cmd_samples(int argc, char **argv)
{
	struct options o = {0};
	struct store *s = NULL;
	struct err e;
	int rc = parse(argc, argv, &o), code = CULPRIT_EXIT_OK;

	if (rc)
		return rc > 0 ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
	if (store_open(o.run, &s, &e) || print_all(s, &o, &e))
		code = cmd_fail("samples", CULPRIT_EXIT_USAGE, "%s", e.text);
	else if (fflush(stdout) || ferror(stdout))
		code = cmd_fail(
			"samples", CULPRIT_EXIT_INVALID, "cannot print: %s", strerror(errno));
	store_close(s);
	return code;
}
