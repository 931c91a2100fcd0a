#include "results/table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "results/table_impl.h"

enum { WIDTH = TABLE_WIDTH, WORKLOADS_A_BLOCK = 2, RATE = TABLE_RATE };

static const char *const format_names[] = {
	[TABLE_TEXT] = "text",
	[TABLE_MARKDOWN] = "markdown",
	[TABLE_CSV] = "csv",
	[TABLE_JSON] = "json",
};

int table_format_parse(const char *name, enum table_format *format, struct err *e)
{
	for (size_t i = 0; i < sizeof(format_names) / sizeof(*format_names); i++)
		if (!strcmp(name, format_names[i])) {
			*format = (enum table_format)i;
			return 0;
		}
	return err_set(
		e, -EINVAL, "there is no format '%s'; there are text, markdown, csv, json", name);
}

struct names table_names(const struct score_table *t)
{
	struct names n;

	for (int a = 0; a < SCORE_AXES; a++)
		n.n[a] = score_names(t, (enum score_axis)a, &n.of[a]);
	return n;
}

/* ".48", "0", "1": rounded outwards, so that the interval never looks narrower than it is. */
static void bound_text(double x, bool up, char *out, size_t size)
{
	double hundredths = up ? ceil(x * 100 - 1e-9) : floor(x * 100 + 1e-9);

	if (hundredths <= 0 || hundredths >= 100)
		snprintf(out, size, "%d", hundredths > 0);
	else
		snprintf(out, size, ".%02d", (int)hundredths);
}

void table_rate_text(unsigned hits, unsigned n, char *out, size_t size)
{
	char low[8], high[8];
	double l, h;

	if (!n) {
		snprintf(out, size, "-");
		return;
	}
	score_interval(hits, n, 0.95, &l, &h);
	bound_text(l, false, low, sizeof(low));
	bound_text(h, true, high, sizeof(high));
	snprintf(out, size, "%.2f [%s,%s]", (double)hits / n, low, high);
}

void table_delay_text(const struct score *s, char *out, size_t size)
{
	if (!s->n_delays)
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%.1f (%.1f-%.1f; n=%zu)",
			score_median(s->delays_s, s->n_delays), s->delays_s[0],
			s->delays_s[s->n_delays - 1], s->n_delays);
}

bool table_is_null(const struct table_notes *notes, const char *detector)
{
	for (size_t i = 0; notes && notes->nulls && notes->nulls[i]; i++)
		if (!strcmp(notes->nulls[i], detector))
			return true;
	return false;
}

/* TP and FP of a place as text; "-" where there is nothing to say: no cell, a control's TP, or a
 * metric that the detector always abstained from. */
static void rates_text(const struct score *s, bool any, char tp[32], char fp[32])
{
	strcpy(tp, "-");
	strcpy(fp, "-");
	if (!s || (!any && s->abstained == s->n))
		return;
	if (!s->control)
		table_rate_text(s->hits, s->n, tp, 32);
	table_rate_text(s->alarms, s->n, fp, 32);
}

bool table_is_any(const struct names *n, size_t metric)
{
	return !strcmp(n->of[SCORE_METRIC][metric], "any");
}

/* A detector's row of a fault and metric is shown if something happened in it; 'any' always is. */
static bool shown(const struct score_table *t, const struct names *n, size_t d, size_t f, size_t m)
{
	if (table_is_any(n, m))
		return true;
	for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++) {
		const struct score *s = score_at(t, d, f, w, m);

		if (s && (s->hits || s->alarms))
			return true;
	}
	return false;
}

static bool fault_is_control(const struct score_table *t, const struct names *n, size_t f)
{
	for (size_t d = 0; d < n->n[SCORE_DETECTOR]; d++)
		for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++)
			for (size_t m = 0; m < n->n[SCORE_METRIC]; m++) {
				const struct score *s = score_at(t, d, f, w, m);

				if (s)
					return s->control;
			}
	return !strcmp(n->of[SCORE_FAULT][f], "none");
}

static void text_row(const struct score_table *t, const struct names *n, size_t d, size_t f,
	size_t m, size_t first, size_t last, bool *stars, FILE *out)
{
	const char *metric = n->of[SCORE_METRIC][m];
	char line[160], tp[32], fp[32];
	int len;

	/* Readings have long names: a line of their own, so that the columns stay where they
	 * are. */
	if (strlen(metric) > 7)
		fprintf(out, "  %s\n", metric);
	len = snprintf(line, sizeof(line), "  %-7s", strlen(metric) > 7 ? "" : metric);

	for (size_t w = first; w < last; w++) {
		const struct score *s = score_at(t, d, f, w, m);
		bool some = s && s->abstained && (s->abstained < s->n || table_is_any(n, m));

		*stars = *stars || some;
		rates_text(s, table_is_any(n, m), tp, fp);
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %3u%c%-*s %-*s",
			s ? s->n : 0, some ? '*' : ' ', RATE, tp, RATE, fp);
	}
	table_line(line, out);
}

static void text_block(const struct score_table *t, const struct names *n, size_t d, size_t first,
	size_t last, bool *stars, FILE *out)
{
	char line[160];
	int len = snprintf(line, sizeof(line), "%-9s", "");

	for (size_t w = first; w < last; w++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "   n %-*s %-*s", RATE,
			"TP", RATE, "FP");
	fprintf(out, "%-9s", "");
	for (size_t w = first; w < last; w++)
		fprintf(out, w + 1 < last ? " %-33.33s" : " %.33s", n->of[SCORE_WORKLOAD][w]);
	fputc('\n', out);
	table_line(line, out);
	for (size_t f = 0; f < n->n[SCORE_FAULT]; f++) {
		fprintf(out, "%.60s%s\n", n->of[SCORE_FAULT][f],
			fault_is_control(t, n, f) ? " (control)" : "");
		for (size_t m = 0; m < n->n[SCORE_METRIC]; m++)
			if (shown(t, n, d, f, m))
				text_row(t, n, d, f, m, first, last, stars, out);
	}
}

/* Lines; a run that is half done misses hundreds. */
enum { MISSING_SHOWN = 12 };

void table_line(const char *text, FILE *out)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == ' ')
		len--;
	fprintf(out, "%.*s\n", (int)len, text);
}

void table_wrap(const char *text, FILE *out)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && column + 1 + len > WIDTH) {
			fputs("\n ", out);
			column = 1;
		}
		if (column) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void table_footer(const struct table_notes *notes, FILE *out)
{
	char line[512];

	if (!notes)
		return;
	if (notes->run_id) {
		snprintf(line, sizeof(line),
			"run %s: %u of %u cells confirmed; not scored: %u attempts invalid, %u in error",
			notes->run_id, notes->confirmed, notes->planned, notes->invalid,
			notes->error);
		table_wrap(line, out);
	}
	for (size_t i = 0; i < notes->n_missing && i < MISSING_SHOWN; i++) {
		snprintf(line, sizeof(line), "missing: cell %s", notes->missing[i]);
		table_wrap(line, out);
	}
	if (notes->n_missing > MISSING_SHOWN)
		fprintf(out, "missing: %zu more cells (--json names them)\n",
			notes->n_missing - MISSING_SHOWN);
	for (size_t i = 0; i < notes->n_remarks; i++)
		table_wrap(notes->remarks[i], out);
}

static void print_notes(
	const struct score_table *t, const struct table_notes *notes, bool stars, FILE *out)
{
	table_wrap(
		"TP: share of cells in which every faulty server was indicted (right server). FP: share of cells in which "
		"some healthy server was (wrong server; in controls: false alarm). In brackets: exact 95 % intervals; "
		"rates whose intervals overlap are not ranked.",
		out);
	if (notes && notes->details)
		table_wrap(
			"detected: anybody was indicted. resource: the right server, and the fault's resource named. delay: "
			"seconds from verified onset to the indictment of the right server, median and range, where the "
			"verdict says when; early: indicted before the onset.",
			out);
	if (score_causes(t))
		table_wrap(
			"resource: what is wrong (\"network\"); cause: that, and what is wrong with it (\"network/hog\").",
			out);
	if (stars)
		table_wrap(
			"* the detector abstained in some of these cells; they count as nobody indicted",
			out);
	table_footer(notes, out);
}

static void render_text(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out)
{
	bool stars = false;

	table_summary_text(t, n, notes, out);
	for (size_t d = 0; d < n->n[SCORE_DETECTOR]; d++) {
		bool null = table_is_null(notes, n->of[SCORE_DETECTOR][d]);

		if (null && !notes->details)
			continue;
		fprintf(out, "%.70s%s\n", n->of[SCORE_DETECTOR][d], null ? " (null)" : "");
		for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w += WORKLOADS_A_BLOCK) {
			size_t last = w + WORKLOADS_A_BLOCK;

			text_block(t, n, d, w,
				last < n->n[SCORE_WORKLOAD] ? last : n->n[SCORE_WORKLOAD], &stars,
				out);
		}
		if (notes && notes->details)
			table_details_text(t, n, d, out);
		fputc('\n', out);
	}
	print_notes(t, notes, stars, out);
}

static void render_markdown(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out)
{
	char tp[32], fp[32];
	bool stars = false;

	table_summary_markdown(t, n, notes, out);
	for (size_t d = 0; d < n->n[SCORE_DETECTOR]; d++) {
		fprintf(out, "**%s**%s\n\n| fault | metric |", n->of[SCORE_DETECTOR][d],
			table_is_null(notes, n->of[SCORE_DETECTOR][d]) ? " (null)" : "");
		for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++)
			fprintf(out, " %s n | TP | FP |", n->of[SCORE_WORKLOAD][w]);
		fputs("\n|---|---|", out);
		for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++)
			fputs("--:|---|---|", out);
		fputc('\n', out);
		for (size_t f = 0; f < n->n[SCORE_FAULT]; f++)
			for (size_t m = 0; m < n->n[SCORE_METRIC]; m++) {
				if (!shown(t, n, d, f, m))
					continue;
				fprintf(out, "| %s%s | %s |", n->of[SCORE_FAULT][f],
					fault_is_control(t, n, f) ? " (control)" : "",
					n->of[SCORE_METRIC][m]);
				for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++) {
					const struct score *s = score_at(t, d, f, w, m);
					bool some = s && s->abstained &&
						(s->abstained < s->n || table_is_any(n, m));

					stars = stars || some;
					rates_text(s, table_is_any(n, m), tp, fp);
					fprintf(out, " %u%s | %s | %s |", s ? s->n : 0,
						some ? "\\*" : "", tp, fp);
				}
				fputc('\n', out);
			}
		fputc('\n', out);
		if (notes && notes->details)
			table_details_markdown(t, n, d, out);
	}
	print_notes(t, notes, stars, out);
}

void table_csv_text(const char *s, FILE *out)
{
	if (!strpbrk(s, ",\"\r\n")) {
		fputs(s, out);
		return;
	}
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', out);
		fputc(*s, out);
	}
	fputc('"', out);
}

static void csv_rate(unsigned hits, unsigned n, bool applies, FILE *out)
{
	double low, high;

	if (!applies) {
		fputs(",,,,", out);
		return;
	}
	score_interval(hits, n, 0.95, &low, &high);
	fprintf(out, ",%u,%.6f,%.6f,%.6f", hits, (double)hits / n, low, high);
}

typedef void (*score_fn)(const struct names *n, const struct score *s, void *ctx);

static void each(const struct score_table *t, const struct names *n, score_fn fn, void *ctx)
{
	for (size_t d = 0; d < n->n[SCORE_DETECTOR]; d++)
		for (size_t f = 0; f < n->n[SCORE_FAULT]; f++)
			for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++)
				for (size_t m = 0; m < n->n[SCORE_METRIC]; m++) {
					const struct score *s = score_at(t, d, f, w, m);

					if (s)
						fn(n, s, ctx);
				}
}

static void csv_row(const struct names *n, const struct score *s, void *ctx)
{
	FILE *out = ctx;

	for (int a = 0; a < SCORE_AXES; a++) {
		table_csv_text(n->of[a][s->at[a]], out);
		fputc(',', out);
	}
	fprintf(out, "%d,%u,%u", s->control, s->n, s->abstained);
	csv_rate(s->hits, s->n, !s->control, out);
	csv_rate(s->alarms, s->n, true, out);
	csv_rate(s->detected, s->n, !s->control, out);
	csv_rate(s->classified, s->n, s->named, out);
	fprintf(out, ",%u,%u,%zu", s->failed, s->early, s->n_delays);
	if (s->n_delays)
		fprintf(out, ",%.3f,%.3f,%.3f", score_median(s->delays_s, s->n_delays),
			s->delays_s[0], s->delays_s[s->n_delays - 1]);
	else
		fputs(",,,", out);
	csv_rate(s->explained, s->n, s->named && s->causes, out);
	fputc('\n', out);
}

json_t *table_json_delay(const struct score *s)
{
	json_t *v = json_pack("{s:i, s:i}", "n", (int)s->n_delays, "early", (int)s->early);

	if (s->n_delays) {
		json_object_set_new(v, "median", json_real(score_median(s->delays_s, s->n_delays)));
		json_object_set_new(v, "min", json_real(s->delays_s[0]));
		json_object_set_new(v, "max", json_real(s->delays_s[s->n_delays - 1]));
	}
	return v;
}

json_t *table_json_rate(unsigned hits, unsigned n)
{
	double low, high;

	score_interval(hits, n, 0.95, &low, &high);
	return json_pack("{s:i, s:o, s:f, s:f}", "count", (int)hits, "rate",
		n ? json_real((double)hits / n) : json_null(), "low", low, "high", high);
}

static void json_row(const struct names *n, const struct score *s, void *ctx)
{
	json_t *row = json_object();

	json_object_set_new(
		row, "detector", json_string(n->of[SCORE_DETECTOR][s->at[SCORE_DETECTOR]]));
	json_object_set_new(row, "fault", json_string(n->of[SCORE_FAULT][s->at[SCORE_FAULT]]));
	json_object_set_new(
		row, "workload", json_string(n->of[SCORE_WORKLOAD][s->at[SCORE_WORKLOAD]]));
	json_object_set_new(row, "metric", json_string(n->of[SCORE_METRIC][s->at[SCORE_METRIC]]));
	json_object_set_new(row, "control", json_boolean(s->control));
	json_object_set_new(row, "n", json_integer(s->n));
	json_object_set_new(row, "abstained", json_integer(s->abstained));
	json_object_set_new(row, "tp", s->control ? json_null() : table_json_rate(s->hits, s->n));
	json_object_set_new(row, "fp", table_json_rate(s->alarms, s->n));
	json_object_set_new(
		row, "detected", s->control ? json_null() : table_json_rate(s->detected, s->n));
	json_object_set_new(
		row, "resource", s->named ? table_json_rate(s->classified, s->n) : json_null());
	json_object_set_new(row, "cause",
		s->named && s->causes ? table_json_rate(s->explained, s->n) : json_null());
	json_object_set_new(row, "failed", json_integer(s->failed));
	json_object_set_new(row, "delay_s", table_json_delay(s));
	json_array_append_new(ctx, row);
}

static json_t *json_lines(const char *const *lines, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(lines[i]));
	return list;
}

void table_json_notes(json_t *all, const struct table_notes *notes)
{
	if (!notes)
		return;
	json_object_set_new(all, "run", notes->run_id ? json_string(notes->run_id) : json_null());
	json_object_set_new(all, "cells",
		json_pack("{s:i, s:i}", "planned", (int)notes->planned, "confirmed",
			(int)notes->confirmed));
	json_object_set_new(all, "attempts_not_scored",
		json_pack(
			"{s:i, s:i}", "invalid", (int)notes->invalid, "error", (int)notes->error));
	json_object_set_new(all, "missing", json_lines(notes->missing, notes->n_missing));
	json_object_set_new(all, "remarks", json_lines(notes->remarks, notes->n_remarks));
}

static void render_json(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out)
{
	json_t *all = json_object(), *scores = json_array();

	table_json_notes(all, notes);
	json_object_set_new(all, "confidence", json_real(0.95));
	json_object_set_new(all, "summary", table_summary_json(t, n, notes));
	each(t, n, json_row, scores);
	json_object_set_new(all, "scores", scores);
	json_dumpf(all, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(all);
}

int table_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	struct names n = table_names(t);

	switch (format) {
	case TABLE_TEXT: render_text(t, &n, notes, f); break;
	case TABLE_MARKDOWN: render_markdown(t, &n, notes, f); break;
	case TABLE_CSV:
		fputs("detector,fault,workload,metric,control,n,abstained,"
		      "tp_count,tp,tp_low,tp_high,fp_count,fp,fp_low,fp_high,detected_count,detected,detected_low,detected_high,"
		      "resource_count,resource,resource_low,resource_high,failed,early,delay_n,delay_median_s,delay_min_s,"
		      "delay_max_s,cause_count,cause,cause_low,cause_high\n",
			f);
		each(t, &n, csv_row, f);
		break;
	case TABLE_JSON: render_json(t, &n, notes, f); break;
	}
	return fflush(f) || ferror(f) ? -EIO : 0;
}
