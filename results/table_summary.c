/*
 * The summary: every detector over all cells, and which of them can be told apart. Rates whose
 * exact intervals overlap are not ranked, and nothing is sorted by rate.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "results/table_impl.h"

/* One detector's verdicts on 'any', over all faults and workloads. */
struct line {
	const char *name;
	bool null;
	struct score faulty, controls;
};

static size_t any_metric(const struct names *n)
{
	size_t m = 0;

	while (m + 1 < n->n[SCORE_METRIC] && strcmp(n->of[SCORE_METRIC][m], "any"))
		m++;
	return m;
}

/* Null detectors last, else in their order; malloced, '*count' of them. */
static struct line *lines_of(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, size_t *count)
{
	struct line *lines = calloc(n->n[SCORE_DETECTOR] + 1, sizeof(*lines));
	size_t any = any_metric(n), k = 0;

	for (int null = 0; lines && null < 2; null++)
		for (size_t d = 0; d < n->n[SCORE_DETECTOR]; d++) {
			const char *name = n->of[SCORE_DETECTOR][d];

			if (table_is_null(notes, name) != null)
				continue;
			lines[k++] = (struct line){name, null, score_sum(t, d, any, false),
				score_sum(t, d, any, true)};
		}
	*count = k;
	return lines;
}

static void lines_free(struct line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(lines[i].faulty.delays_s);
		free(lines[i].controls.delays_s);
	}
	free(lines);
}

enum { NAME = 20 };

/* A longer name has a line of its own. */
static void row(FILE *out, const char *name, const char *const cells[4])
{
	char line[256];
	int len;

	if (strlen(name) > NAME)
		fprintf(out, "%.*s\n", TABLE_WIDTH, name);
	len = snprintf(line, sizeof(line), "%-*s", NAME, strlen(name) > NAME ? "" : name);
	for (int i = 0; i < 4; i++)
		len += snprintf(
			line + len, sizeof(line) - (size_t)len, " %-*s", TABLE_RATE, cells[i]);
	table_line(line, out);
}

static void rates(const struct line *l, char text[4][32], const char *cells[4])
{
	table_rate_text(l->faulty.detected, l->faulty.n, text[0], 32);
	table_rate_text(l->faulty.hits, l->faulty.n, text[1], 32);
	table_rate_text(l->faulty.alarms, l->faulty.n, text[2], 32);
	table_rate_text(l->controls.alarms, l->controls.n, text[3], 32);
	for (int i = 0; i < 4; i++)
		cells[i] = text[i];
}

void table_summary_text(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out)
{
	static const char *const head[4] = {
		"detected", "right server", "wrong server", "false alarm"};
	char text[4][32], name[TABLE_WIDTH + 1];
	const char *cells[4] = {text[0], "", "", text[3]};
	size_t count;
	struct line *lines = lines_of(t, n, notes, &count);

	row(out, "all cells", head);
	snprintf(text[0], 32, "%u faulty", count ? lines[0].faulty.n : 0);
	snprintf(text[3], 32, "%u controls", count ? lines[0].controls.n : 0);
	row(out, "", cells);
	for (size_t i = 0; i < count; i++) {
		if (lines[i].null && (!i || !lines[i - 1].null))
			fputs("null detectors\n", out);
		snprintf(name, sizeof(name), "%s%s", lines[i].null ? "  " : "", lines[i].name);
		rates(&lines[i], text, cells);
		row(out, name, cells);
		cells[0] = text[0];
	}
	lines_free(lines, count);
	table_comparisons(t, n, notes, out);
	fputc('\n', out);
}

void table_summary_markdown(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out)
{
	bool causes = score_causes(t);
	size_t count;
	struct line *lines = lines_of(t, n, notes, &count);

	fprintf(out,
		"| all cells | faulty n | detected | right server | wrong server | resource |%s delay (s) | controls n | "
		"false alarm | abstained |\n|---|--:|---|---|---|---|%s---|--:|---|--:|\n",
		causes ? " cause |" : "", causes ? "---|" : "");
	for (size_t i = 0; i < count; i++) {
		const struct line *l = &lines[i];
		char text[4][32], resource[32] = "-", cause[32] = "-", delay[64];
		const char *cells[4];

		rates(l, text, cells);
		if (l->faulty.named)
			table_rate_text(
				l->faulty.classified, l->faulty.n, resource, sizeof(resource));
		if (l->faulty.named)
			table_rate_text(l->faulty.explained, l->faulty.n, cause, sizeof(cause));
		table_delay_text(&l->faulty, delay, sizeof(delay));
		fprintf(out, "| %s%s | %u | %s | %s | %s | %s |%s%s%s %s | %u | %s | %u |\n",
			l->name, l->null ? " (null)" : "", l->faulty.n, cells[0], cells[1],
			cells[2], resource, causes ? " " : "", causes ? cause : "",
			causes ? " |" : "", delay, l->controls.n, cells[3],
			l->faulty.abstained + l->controls.abstained);
	}
	lines_free(lines, count);
	fputc('\n', out);
	table_comparisons(t, n, notes, out);
	fputc('\n', out);
}

static json_t *faulty_json(const struct score *s)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o?, s:o?, s:i, s:i, s:o}", "n", (int)s->n,
		"detected", table_json_rate(s->detected, s->n), "right_server",
		table_json_rate(s->hits, s->n), "wrong_server", table_json_rate(s->alarms, s->n),
		"resource", s->named ? table_json_rate(s->classified, s->n) : NULL, "cause",
		s->named && s->causes ? table_json_rate(s->explained, s->n) : NULL, "abstained",
		(int)s->abstained, "failed", (int)s->failed, "delay_s", table_json_delay(s));
}

json_t *table_summary_json(
	const struct score_table *t, const struct names *n, const struct table_notes *notes)
{
	static const char *const words[] = {"below", "not distinguishable", "above"};
	json_t *list = json_array(), *pairs = json_array();
	size_t count;
	struct line *lines = lines_of(t, n, notes, &count);

	for (size_t i = 0; i < count; i++) {
		const struct score *c = &lines[i].controls;

		json_array_append_new(list,
			json_pack("{s:s, s:b, s:o, s:{s:i, s:o, s:i, s:i}}", "detector",
				lines[i].name, "null", lines[i].null, "faulty",
				faulty_json(&lines[i].faulty), "controls", "n", (int)c->n,
				"false_alarm", table_json_rate(c->alarms, c->n), "abstained",
				(int)c->abstained, "failed", (int)c->failed));
		for (size_t k = i + 1; k < count; k++)
			json_array_append_new(pairs,
				json_pack("{s:s, s:s, s:s}", "detector", lines[i].name, "other",
					lines[k].name, "right_server",
					words[1 +
						score_order(lines[i].faulty.hits, lines[i].faulty.n,
							lines[k].faulty.hits, lines[k].faulty.n)]));
	}
	lines_free(lines, count);
	return json_pack("{s:o, s:o}", "detectors", list, "comparisons", pairs);
}

static void add(char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add(char *text, size_t size, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, size - n, fmt, ap);
	va_end(ap);
}

/* "X is above A, B; not distinguishable from C" */
static void compare(const struct line *lines, size_t count, size_t i, FILE *out)
{
	static const char *const words[] = {"above", "below", "not distinguishable from"};
	static const int wanted[] = {1, -1, 0};
	char text[2048];
	bool said = false;

	snprintf(text, sizeof(text), "right server: %s is", lines[i].name);
	for (int w = 0; w < 3; w++) {
		bool first = true;

		for (size_t k = 0; k < count; k++) {
			const struct score *a = &lines[i].faulty, *b = &lines[k].faulty;

			if (k == i || score_order(a->hits, a->n, b->hits, b->n) != wanted[w])
				continue;
			add(text, sizeof(text), "%s%s %s",
				!first         ? ","
					: said ? "; "
					       : " ",
				first ? words[w] : "", lines[k].name);
			first = false;
			said = true;
		}
	}
	if (said && lines[i].faulty.n)
		table_wrap(text, out);
}

/* Of the right servers, which is what a cause is named for. */
static void tell_causes(const struct line *l, FILE *out)
{
	char resource[32], cause[32], text[512];

	table_rate_text(l->faulty.classified, l->faulty.hits, resource, sizeof(resource));
	table_rate_text(l->faulty.explained, l->faulty.hits, cause, sizeof(cause));
	snprintf(text, sizeof(text),
		"of the %u right servers of %s, the resource is right for %s, the cause for %s",
		l->faulty.hits, l->name, resource, cause);
	table_wrap(text, out);
}

void table_comparisons(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out)
{
	char text[512];
	size_t count;
	struct line *lines = lines_of(t, n, notes, &count);

	for (size_t i = 0; i < count; i++) {
		const struct score *f = &lines[i].faulty, *c = &lines[i].controls;

		if (lines[i].null)
			continue;
		compare(lines, count, i, out);
		if (score_causes(t) && f->named)
			tell_causes(&lines[i], out);
		if (f->abstained + c->abstained) {
			snprintf(text, sizeof(text), "%s abstained in %u of %u cells",
				lines[i].name, f->abstained + c->abstained, f->n + c->n);
			if (f->failed + c->failed)
				add(text, sizeof(text), "; in %u of them because it failed",
					f->failed + c->failed);
			table_wrap(text, out);
		}
	}
	lines_free(lines, count);
}
