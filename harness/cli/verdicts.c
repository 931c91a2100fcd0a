/* Prints verdicts with their evidence. */
#include "harness/cli/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/base/outfile.h"
#include "harness/base/text.h"

/* "s2 (since 31 s), s3" */
static void print_indicted(const json_t *verdict, FILE *out)
{
	const json_t *times = jget(verdict, "time_s");
	json_t *name;
	size_t i;

	json_array_foreach(jget(verdict, "indicted"), i, name) {
		const json_t *since = json_object_get(times, json_string_value(name));

		fputs(i ? ", " : "", out);
		text_print_clean(out, json_string_value(name));
		if (since)
			fprintf(out, " (since %.12g s)", json_number_value(since));
	}
}

static bool is_branch(const json_t *v)
{
	return json_is_object(v) || json_is_array(v);
}

/* Evidence is a detector's own; it is shown as it is, a branch a line. */
static void print_branch(const json_t *v, const char *name, int depth, FILE *out)
{
	const char *key;
	json_t *item;
	size_t i;
	bool deep = false;

	json_object_foreach((json_t *)v, key, item)
		deep = deep || is_branch(item);
	json_array_foreach((json_t *)v, i, item)
		deep = deep || is_branch(item);
	fprintf(out, "%*s", depth * 2, "");
	text_print_clean(out, name);
	if (!deep || depth > 8) {
		char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

		fputs(": ", out);
		text_print_clean(out, text ? text : "");
		fputc('\n', out);
		free(text);
		return;
	}
	fputs(":\n", out);
	json_object_foreach((json_t *)v, key, item)
		print_branch(item, key, depth + 1, out);
	json_array_foreach((json_t *)v, i, item)
		print_branch(item, "-", depth + 1, out);
}

/* Sorted, because tables from Lua have no order, and the same verdict is to look the same. */
static void print_evidence(const json_t *v, FILE *out)
{
	char *dump = json_dumps(v, JSON_SORT_KEYS | JSON_ENCODE_ANY);
	json_t *sorted = dump ? json_loads(dump, JSON_DECODE_ANY, NULL) : NULL;

	print_branch(sorted ? sorted : v, "evidence", 4, out);
	json_decref(sorted);
	free(dump);
}

/* 'before', and the member of the verdict if it has it. */
static bool print_member(const json_t *verdict, const char *before, const char *key, FILE *out)
{
	const char *value = jget_text(verdict, key);

	if (value) {
		fputs(before, out);
		text_print_clean(out, value);
	}
	return value;
}

static void print_verdict(const char *detector, const json_t *verdict, bool evidence, FILE *out)
{
	const char *metric = jget_text(verdict, "metric");
	bool any = !strcmp(metric, "any"), guilty = json_array_size(jget(verdict, "indicted")) > 0;

	if (!any && !guilty && !evidence)
		return;
	fputs(any ? "  " : "    by ", out);
	text_print_clean(out, any ? detector : metric);
	fputs(": ", out);
	if (!print_member(verdict, "failed: ", "error", out)) {
		if (jget_true(verdict, "abstain")) {
			fputs("abstains", out);
			print_member(verdict, ": ", "reason", out);
		} else if (!guilty) {
			fputs("healthy", out);
		}
	}
	print_indicted(verdict, out);
	print_member(verdict, ", resource ", "resource", out);
	fputc('\n', out);
	if (evidence && jget(verdict, "evidence"))
		print_evidence(jget(verdict, "evidence"), out);
}

int verdicts_print(const json_t *verdicts, bool json, bool evidence, FILE *out, struct err *e)
{
	const char *before = "", *detector;
	json_t *row, *other;
	size_t i, k;

	if (json) {
		json_dumpf(verdicts, out, JSON_INDENT(2) | JSON_SORT_KEYS);
		fputc('\n', out);
		return outfile_flush(out, e);
	}
	json_array_foreach((json_t *)verdicts, i, row) {
		const json_t *verdict = jget(row, "verdict");

		if (strcmp(jget_text(verdict, "metric"), "any"))
			continue;
		detector = jget_text(row, "detector");
		if (strcmp(before, jget_text(row, "what"))) {
			text_print_clean(out, jget_text(row, "what"));
			fputc('\n', out);
		}
		before = jget_text(row, "what");
		print_verdict(detector, verdict, evidence, out);
		json_array_foreach((json_t *)verdicts, k, other) {
			verdict = jget(other, "verdict");
			if (!strcmp(jget_text(other, "what"), before) &&
				!strcmp(jget_text(other, "detector"), detector) &&
				strcmp(jget_text(verdict, "metric"), "any"))
				print_verdict(detector, verdict, evidence, out);
		}
	}
	return outfile_flush(out, e);
}
