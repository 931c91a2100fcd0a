/* Prints what 'run', 'rescore' and 'table' end with. */
#include "harness/cli/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "diag/judge/baseline.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/outfile.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/judging/scoring.h"

/* Tests go to standard output, to a file, or to both. */
struct tests {
	FILE *tap, *junit;
	unsigned number, failed;
	bool cells_decide; /* no baseline does */
	const char *run, *scenario;
};

/* Text for XML. Control characters, which XML cannot hold, are shown as \xNN; so are U+FFFE and
 * U+FFFF. */
static void put_xml(const char *text, FILE *f)
{
	char clean[2048];

	text_clean(text, clean, sizeof(clean));
	for (const char *p = clean; *p; p++)
		switch (*p) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default:
			if (strncmp(p, "\xef\xbf\xbe", 3) && strncmp(p, "\xef\xbf\xbf", 3)) {
				fputc(*p, f);
				break;
			}
			fprintf(f, "\\xef\\xbf\\x%02x", (unsigned char)p[2]);
			p += 2;
		}
}

/* Text for a line of TAP, where a number sign would begin a directive. */
static void put_tap(const char *text, FILE *f)
{
	char clean[2048];

	text_clean(text, clean, sizeof(clean));
	for (const char *p = clean; *p; p++) {
		if (*p == '#')
			fputc('\\', f);
		fputc(*p, f);
	}
}

/* 'decides': a failure is one; else it is only reported. The name is the same in every run of the
 * scenario; 'why' is what this run has to say. */
static void put_test(struct tests *t, const char *group, const char *name, bool good, bool decides,
	const char *why)
{
	t->number++;
	t->failed += !good && decides;
	if (t->tap) {
		fprintf(t->tap, "%sok %u - ", good ? "" : "not ", t->number);
		put_tap(group, t->tap);
		fputs(": ", t->tap);
		put_tap(name, t->tap);
		fputs(good || decides ? "\n# "
				      : " # TODO one cell decides nothing, the baseline does\n# ",
			t->tap);
		put_tap(why, t->tap);
		fputc('\n', t->tap);
	}
	if (!t->junit)
		return;
	fputs("    <testcase classname=\"culprit.", t->junit);
	put_xml(group, t->junit);
	fputs("\" name=\"", t->junit);
	put_xml(name, t->junit);
	fputs(good                ? "\"><system-out>"
			: decides ? "\"><failure message=\""
				  : "\"><skipped message=\"",
		t->junit);
	put_xml(why, t->junit);
	fputs(good ? "</system-out></testcase>\n" : "\"/></testcase>\n", t->junit);
}

/* "s1+s2", or 'none'. */
static void outcome_join(const json_t *names, const char *none, char *text, size_t size)
{
	json_t *name;
	size_t i, n = 0;

	snprintf(text, size, "%s", none);
	json_array_foreach((json_t *)names, i, name)
		if (n < size)
			n += (size_t)snprintf(
				text + n, size - n, "%s%s", i ? "+" : "", json_string_value(name));
}

static void outcome_put_cell(struct tests *t, const json_t *cell)
{
	const json_t *verdict = jget(cell, "verdict"), *error = jget(verdict, "error");
	const char *resource = jget_text(verdict, "resource");
	char name[512], victims[256], said[256], why[640];

	outcome_join(jget(cell, "victims"), "nobody", victims, sizeof(victims));
	outcome_join(jget(verdict, "indicted"),
		jget_true(verdict, "abstain") ? "abstains" : "nobody", said, sizeof(said));
	snprintf(name, sizeof(name), "%s under %s, repeat %lld", jget_text(cell, "fault"),
		jget_text(cell, "workload"), (long long)jget_int(cell, "repeat"));
	/* Controls may be several in a repeat. */
	if (jget_int(cell, "again"))
		snprintf(name + strlen(name), sizeof(name) - strlen(name), " (%lld)",
			(long long)jget_int(cell, "again") + 1);
	snprintf(why, sizeof(why), "cell %lld, guilty %s: %s%s%s%s",
		(long long)jget_int(cell, "cell"), victims, error ? "failed: " : "said ",
		error ? json_string_value(error) : said, resource ? ", " : "",
		resource ? resource : "");
	put_test(t, jget_text(cell, "detector"), name, jget_true(cell, "right"), t->cells_decide,
		why);
}

static void comparison_text(
	const struct comparison *c, char *name, size_t name_size, char *why, size_t why_size)
{
	snprintf(name, name_size, "%s, %s", c->wrong ? "wrong server" : "right server",
		c->fault ? c->fault : "all faults");
	snprintf(why, why_size, "%u of %u, before %u of %u (p = %.2g)", c->now, c->n_now, c->before,
		c->n_before, c->p);
}

/* All tests, to where they are wanted; how many failed. */
static unsigned put_tests(struct tests *t, const json_t *cells, const struct comparisons *c)
{
	unsigned n = (unsigned)(json_array_size(cells) + (c ? c->n : 0));
	json_t *cell;
	size_t i;

	if (t->tap)
		fprintf(t->tap, "1..%u\n", n);
	if (t->junit) {
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
		      "name=\"",
			t->junit);
		put_xml(t->scenario, t->junit);
		fprintf(t->junit, "\" tests=\"%u\">\n", n);
		fputs("    <properties><property name=\"run\" value=\"", t->junit);
		put_xml(t->run, t->junit);
		fputs("\"/></properties>\n", t->junit);
	}
	json_array_foreach((json_t *)cells, i, cell)
		outcome_put_cell(t, cell);
	for (i = 0; c && i < c->n; i++) {
		char name[256], why[256];

		comparison_text(&c->list[i], name, sizeof(name), why, sizeof(why));
		put_test(t, c->list[i].detector, name, !c->list[i].regression, true, why);
	}
	if (t->junit)
		fputs("  </testsuite>\n</testsuites>\n", t->junit);
	return t->failed;
}

/* What the baseline says, for people. */
static void put_comparisons(const struct comparisons *c, const char *path, FILE *out)
{
	char name[256], why[256];

	struct sheet sheet = {.f = out};

	for (size_t i = 0; i < c->n; i++) {
		if (!c->list[i].regression && !c->list[i].improvement)
			continue;
		comparison_text(&c->list[i], name, sizeof(name), why, sizeof(why));
		sheet_line(&sheet, "%s: %s: %s: %s",
			c->list[i].regression ? "regression" : "better", c->list[i].detector, name,
			why);
	}
	sheet_line(&sheet, "baseline %s (run %s): %zu regression%s in %zu comparisons", path,
		c->run, c->regressions, c->regressions == 1 ? "" : "s", c->n);
}

static int read_baseline(
	const char *path, const struct score_table *t, struct comparisons *c, struct err *e)
{
	json_error_t why;
	json_t *baseline;
	char *text = NULL;
	int rc = file_read(path, &text, NULL, e);

	if (rc)
		return rc;
	baseline = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (baseline)
		rc = baseline_compare(t, baseline, path, c, e);
	else
		rc = err_set(e, -EINVAL, "%s:%d: %s", path, why.line, why.text);
	json_decref(baseline);
	free(text);
	return rc;
}

static int write_baseline(
	const char *path, const struct score_table *t, const char *run, struct err *e)
{
	json_t *baseline = baseline_make(t, run, detector_nulls());
	struct file_text f;
	int rc = baseline ? file_text_open(&f, e) /* NULL: the run's name is not UTF-8 */
			  : err_errno(e, -ENOMEM, "cannot write '%s'", path);

	if (!rc) {
		json_dumpf(baseline, f.f, JSON_INDENT(1));
		fputc('\n', f.f);
		rc = file_text_save(&f, path, 0644, e);
	}
	json_decref(baseline);
	return rc;
}

/* The tests of --tap and --junit. */
static int tests_show(const struct outcome_options *o, struct scoring *c, struct store *s,
	const struct comparisons *compared, FILE *out, unsigned *failed, struct err *e)
{
	auto_free char *scenario = NULL;
	const int known = store_get(s, "scenario", &scenario, e);
	struct tests t = {.tap = o->tap ? out : NULL,
		.cells_decide = !compared,
		.run = store_run_id(s),
		.scenario = scenario ? scenario : "culprit"};
	struct file_text junit = {0};
	int rc = known < 0 ? known : o->junit ? file_text_open(&junit, e) : 0;

	if (rc)
		return rc;
	t.junit = junit.f;
	*failed = put_tests(&t, scoring_cells(c), compared);
	return o->junit ? file_text_save(&junit, o->junit, 0644, e) : 0;
}

/* Prints the table, unless tests are printed in its place. */
static int print_table(struct store *s, struct scoring *c, const struct outcome_options *o,
	FILE *out, struct err *e)
{
	if (o->tap)
		return 0;
	if (o->by_strength)
		return show_doses(
			s, c, o->format, o->details, o->level ? o->level : SHOW_DOSE_LEVEL, out, e);
	return show_table(s, c, o->format, o->details, o->against, out, e);
}

/* What follows the table: baseline and tests; an exit code. */
static int outcome_conclude(const char *command, struct store *s, struct scoring *c,
	const struct outcome_options *o, FILE *out)
{
	struct comparisons compared = {0};
	unsigned failed = 0;
	struct err e;
	int rc = 0, code;

	if (o->write_baseline)
		rc = write_baseline(o->write_baseline, scoring_table(c), store_run_id(s), &e);
	if (!rc && o->baseline)
		rc = read_baseline(o->baseline, scoring_table(c), &compared, &e);
	if (!rc && (o->tap || o->junit))
		rc = tests_show(o, c, s, o->baseline ? &compared : NULL, out, &failed, &e);
	if (!rc && o->baseline && !o->tap)
		put_comparisons(&compared, o->baseline, o->format == TABLE_TEXT ? out : stderr);
	code = failed || compared.regressions ? CULPRIT_EXIT_SHORT : CULPRIT_EXIT_OK;
	if (rc)
		code = cmd_error(command, &e, ERR_USAGE);
	else if (outfile_flush(out, &e))
		code = cmd_error(command, &e, ERR_HARNESS);
	comparisons_clear(&compared);
	return code;
}

int outcome_check(const char *command, const struct outcome_options *o)
{
	const struct {
		bool bad;
		const char *why;
	} rules[] = {
		{o->tap && o->format == TABLE_JSON,
			"--tap and --json: both print to standard output; give one of them"},
		{o->tap && o->format != TABLE_TEXT,
			"--tap prints tests in place of the table: --format means nothing with it"},
		{o->tap && o->by_strength,
			"--tap prints tests in place of the table: --by means nothing with it"},
		{o->tap && o->against,
			"--tap prints tests in place of the table: --against means nothing with "
			"it"},
		{o->level > 0 && !o->by_strength, "--level needs --by strength"},
		{o->by_strength && o->against,
			"--by strength and --against are two different tables; give one of them"},
		{o->format == TABLE_SVG && !o->against,
			"--format svg needs --against hotdep09-table1"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].bad)
			return cmd_fail(command, CULPRIT_EXIT_USAGE, "%s", rules[i].why);
	return CULPRIT_EXIT_OK;
}

int outcome_show(const char *command, struct store *s, const json_t *rows,
	const struct outcome_options *o, FILE *out)
{
	struct scoring *c = NULL;
	struct err e;
	int code, rc = scoring_new(s, rows, o->cells, &c, &e);

	if (!rc)
		rc = print_table(s, c, o, out, &e);
	if (rc) {
		bool usage = (o->against || o->cells.to) && (rc == -ENOENT || rc == -EINVAL);

		code = cmd_fail(
			command, usage ? CULPRIT_EXIT_USAGE : err_exit_code(&e), "%s", e.text);
	} else {
		code = outcome_conclude(command, s, c, o, out);
	}
	scoring_free(c);
	return code;
}
