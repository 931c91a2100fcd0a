/* culprit query: logs and runs, asked in SQL where they lie; a run's measurements. */
#include <errno.h>
#include <string.h>

#include "diag/ship/remote.h"
#include "harness/base/jget.h"
#include "harness/base/outfile.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/table/rows.h"
#include "harness/cli/subject.h"
#include "harness/run/signals.h"
#include "harness/store/samples_wide.h"

struct taken {
	bool of[METRIC_COUNT], some; /* 'some': not all */
};

struct options {
	bool csv, json, schema, no_index, stats, samples, wide;
	struct taken metrics;
	long cell, recording, limit;
	double timeout_s, slot_s;
	const char *on;
	struct clickhouse_given clickhouse;
};

static void print_columns(const struct query_table *t)
{
	static const char *const types[] = {"integer", "real", "text"};
	char head[64];

	for (const struct column *c = t->columns; c->name; c++) {
		snprintf(head, sizeof(head), "  %-12s %-8s ", c->name, types[c->type]);
		fputs(head, stdout);
		print_wrapped(stdout, (int)strlen(head), c->about);
	}
}

static void print_own(const char *name, const char *about, const char *const columns[])
{
	size_t n, at = 80;

	printf("\n%s: ", name);
	print_wrapped(stdout, (int)strlen(name) + 2, about);
	for (int i = 0; columns[i]; i++, at += n) {
		n = strlen(columns[i]) + 2;
		if (at + n > 78) {
			fputs(i ? ",\n  " : "  ", stdout);
			at = 2;
		} else {
			fputs(", ", stdout);
		}
		fputs(columns[i], stdout);
	}
	putchar('\n');
}

static int print_schema(const struct options *o)
{
	for (const struct query_table *t = query_tables; t->name && !o->json && !o->csv; t++) {
		printf("%s%s: ", t == query_tables ? "" : "\n", t->name);
		print_wrapped(stdout, (int)strlen(t->name) + 2, t->about);
		print_columns(t);
	}
	for (const struct query_table *t = query_tables; t->name && (o->json || o->csv); t++)
		for (const struct column *c = t->columns; c->name; c++)
			printf(o->csv ? "%s,%s,%s\n"
				      : "{\"table\":\"%s\",\"column\":\"%s\",\"type\":\"%s\"}\n",
				t->name, c->name,
				c->type == COLUMN_INT            ? "integer"
					: c->type == COLUMN_REAL ? "real"
								 : "text");
	if (o->json || o->csv)
		return CULPRIT_EXIT_OK;
	fputs("\nfiles: view of descriptors: each file of each log once\n"
	      "  cell, attempt, node, log, file, path, kind, device, inode, opened, first_ns, "
	      "last_ns\n"
	      "\nthreads: view of processes: each name that a thread had\n"
	      "  cell, attempt, node, log, pid, tid, name, first_ns\n"
	      "\nOf runs:\n",
		stdout);
	for (const struct run_logs_table *t = run_logs_tables; t->name; t++)
		print_own(t->name, t->about, t->columns);
	print_own(run_tables_scores.name, run_tables_scores.about, run_tables_scores.columns);
	return CULPRIT_EXIT_OK;
}

/* Prints the rows, then says what could not be read; the exit code. */
static int cli_query_ask(struct query *q, const struct call *c)
{
	const struct options *o = c->options;
	struct rows *rows = rows_new(o->csv ? ROWS_CSV : o->json ? ROWS_JSON : ROWS_TEXT, o->limit);
	const struct query_sink sink = rows_sink(rows);
	int code = CULPRIT_EXIT_OK, rc;
	uint64_t read, passed;
	struct err e;

	rc = query_run(q, c->args[c->n - 1], &sink, &e);
	rows_end(rows);
	if (rc >= 0 && outfile_flush(stdout, &e))
		rc = -EIO;
	if (rc < 0)
		code = cmd_error(
			"query", &e, rc == -EINVAL || rc == -ENODATA ? ERR_USAGE : ERR_HARNESS);
	else if (rc > 0)
		fprintf(stderr, "culprit query: there are more rows than --limit %ld\n", o->limit);
	code = subject_problems(q, "query", code);
	query_counts(q, &read, &passed);
	if (o->stats)
		fprintf(stderr, "culprit query: %llu blocks read, %llu passed over by the index\n",
			(unsigned long long)read, (unsigned long long)passed);
	rows_free(rows);
	return code;
}

/* The run's own tables, as they were shipped. */
static int add_tables(struct query *q, const struct catalog *of, struct err *e)
{
	int rc = 0;

	for (const struct run_logs_table *t = run_logs_tables; !rc && of->run && t->name; t++)
		rc = query_add_table(q, t->name, t->columns, json_object_get(of->run, t->name), e);
	return rc;
}

static int run_on(const struct call *c)
{
	const struct options *o = c->options;
	struct query_spec spec = {.timeout_s = o->timeout_s, .interrupted = signals_catch()};
	struct clickhouse *store = NULL;
	struct remote *remote = NULL;
	struct query *q = NULL;
	struct err e;
	int code, rc;

	if (c->n != 1 || o->cell)
		return cmd_fail("query", CULPRIT_EXIT_USAGE,
			"--on takes the query alone, without logs and --cell: the database has "
			"them");
	rc = clickhouse_given_open(&o->clickhouse, o->on, o->timeout_s, &store, &e)
		?: remote_new(store, &remote, &e);
	if (!rc) {
		spec.store = remote_source(remote);
		rc = query_new(&spec, &q, &e) ?: add_tables(q, remote_catalog(remote), &e);
	}
	code = rc ? cmd_error("query", &e, ERR_HARNESS) : cli_query_ask(q, c);
	query_free(q);
	remote_free(remote);
	clickhouse_close(store);
	return code;
}

/* ---- --samples ---- */

struct printing {
	const struct taken *metrics;
	long long cell, number;
};

static int print_series(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	const struct printing *p = ctx;
	enum metric m;

	(void)e;
	if (p->metrics->some && (metric_from_name(metric, &m) || !p->metrics->of[m]))
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

static int print_long(struct store *s, const struct options *o, struct err *e)
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
		struct printing p = {.metrics = &o->metrics,
			.cell = jget_int(row, "cell"),
			.number = jget_int(row, "number")};

		if (rc || (o->cell && o->cell != p.cell))
			continue;
		rc = store_samples(s, jget_int(row, "attempt"), print_series, &p, e);
	}
	return rc;
}

static int print_wide(struct store *s, const struct options *o, struct err *e)
{
	bool taken[METRIC_COUNT];

	for (int m = 0; m < METRIC_COUNT; m++)
		taken[m] = !o->metrics.some || o->metrics.of[m];
	return samples_wide(s, taken, o->cell, e);
}

static int set_metric(void *field, const char *text, struct err *e)
{
	struct taken *metrics = field;
	enum metric m;

	if (metric_from_name(text, &m))
		return err_set(e, -EINVAL,
			"takes a metric, not '%s'; 'culprit list metrics' lists them", text);
	metrics->of[m] = metrics->some = true;
	return 0;
}

static int print_samples(const struct call *c)
{
	const struct options *o = c->options;
	struct store *s = NULL;
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (c->n != 1)
		return cmd_fail("query", CULPRIT_EXIT_USAGE,
			"--samples takes one run, and no SQL: culprit query --samples RUN");
	if (store_open(c->args[0], &s, &e) ||
		(o->wide ? print_wide(s, o, &e) : print_long(s, o, &e)))
		code = cmd_error("query", &e, ERR_USAGE);
	store_close(s);
	return code;
}

static int cli_query_run(const struct call *c)
{
	const struct options *o = c->options;
	struct query_spec spec = {.no_index = o->no_index,
		.timeout_s = o->timeout_s,
		.slot_ns = (int64_t)(o->slot_s * 1e9)};
	struct subject s = {.recording = o->recording, .tables = true};
	struct query *q = NULL;
	struct err e;
	int code;

	if (o->schema)
		return print_schema(o);
	if (o->samples)
		return print_samples(c);
	if (o->csv && o->json)
		return cmd_fail("query", CULPRIT_EXIT_USAGE, "either --csv or --json");
	if (o->on)
		return run_on(c);
	if (c->n < 2)
		return cmd_fail("query", CULPRIT_EXIT_USAGE,
			"needs a run or logs, then the query: culprit query RUN \"select ...\"");
	code = subject_open(&s, c->n - 1, c->args, o->cell, &spec, &q, &e)
		? cmd_error("query", &e, ERR_USAGE)
		: cli_query_ask(q, c);
	query_free(q);
	subject_close(&s);
	return code;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"csv", 0, OPTION_FLAG, AT(csv), NULL, "print CSV, with a line of names"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print one JSON object per line"},
	{"cell", 0, OPTION_WHOLE, AT(cell), "N", "of a run: only this cell", 1, 1e9},
	{"recording", 0, OPTION_WHOLE, AT(recording), "N",
		"of a run: only what flight recorders wrote, the N-th time in each cell", 1, 1e3},
	{"limit", 0, OPTION_WHOLE, AT(limit), "N", "print at most so many rows", 1, 1e15},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"end a query that takes longer (default: 10min)", 0.001, 1e7, UNIT_SECONDS},
	{"slot", 0, OPTION_QUANTITY, AT(slot_s), "TIME",
		"length of the slots of totals (default: 1s)", 1e-6, 1e7, UNIT_SECONDS},
	{"schema", 0, OPTION_FLAG, AT(schema), NULL,
		"print the tables and their columns, and end (with --csv or --json: for programs)"},
	{"no-index", 0, OPTION_FLAG, AT(no_index), NULL,
		"read logs from their beginning; neither use nor make an index"},
	{"samples", 0, OPTION_FLAG, AT(samples), NULL,
		"without SQL: print as CSV what was measured in the run's confirmed cells",
		.allows = "cell|csv|metric|wide"},
	{"metric", 0, OPTION_CALL, AT(metrics), "NAME",
		"with --samples: only this metric; may be repeated", .set = set_metric,
		.needs = "samples"},
	{"wide", 0, OPTION_FLAG, AT(wide), NULL,
		"with --samples: as 'culprit diagnose --csv' reads it, a column for each metric",
		.needs = "samples"},
	{"stats", 0, OPTION_FLAG, AT(stats), NULL,
		"say how many blocks of logs were read, and how many an index spared"},
	{"on", 0, OPTION_TEXT, AT(on), "URL",
		"ask the logs that 'culprit ship' sent to clickhouse://HOST[:PORT]/DATABASE "
		"(clickhouses:// for TLS)"},
	{"", 0, OPTION_GROUP, AT(clickhouse), NULL, "", .group = clickhouse_rows},
	{0},
};

const struct command query_command = {.name = "query",
	.summary = "ask logs and runs in SQL",
	.arguments = "LOG ... SQL\nRUN|CORPUS SQL\n--on clickhouse://HOST:PORT/DATABASE SQL\n"
		     "--samples RUN|CORPUS",
	.about = "Runs one SELECT of SQLite over trace logs, or over all logs of a run's attempts. "
		 "They are read where they lie; nothing is copied or changed. 'culprit query "
		 "--schema' lists the tables: events (system calls), totals (so, summed up), "
		 "processes, readings and more; of a run or corpus also cells, attempts, verdicts "
		 "and scores.\n\n"
		 "Besides SQLite's functions there are percentile(value, p), p from 0 to 100, and "
		 "basename(path).\n\n"
		 "Conditions on time_ns, t, phase, cell, attempt, node, log, owner, pid, tid, "
		 "call, class, errno, result and service_ns spare work. Of logs of 1 MiB and more "
		 "an index is kept in ~/.cache/culprit/index; it can be removed at any time.\n\n"
		 "--samples prints the columns cell, attempt, metric, server, second, count, sum, "
		 "max and bytes; 'culprit list metrics' defines the metrics. cells/0012.2 is "
		 "attempt 2 at cell 12. A second without a row was not measured.",
	.examples = "culprit query LOG \"select call, sum(calls) from totals group by call\"\n"
		    "culprit query RUN \"select node, max(max_ns) from totals group by node\"\n"
		    "culprit query RUN \"select detector, sum(right) from scores group by 1\"\n"
		    "culprit query --csv RUN \"select * from events where errno is not null\"\n"
		    "culprit query --samples RUN --metric dread\n"
		    "culprit query --samples RUN --wide --cell 5 | culprit diagnose --csv -",
	.exits = "0 asked; 2 usage error, wrong SQL, calls are asked of logs without, or a log is "
		 "damaged or cut short (what could be read is printed); 3 the time limit, an "
		 "interrupt, or the output cannot be written.",
	ARGUMENTS(0, 1000),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.timeout_s = 600},
	.run = cli_query_run};
