/* Findings as text: tables whose columns are as wide as their cells. */
#include "harness/table/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/text.h"
#include "harness/base/text_columns.h"

enum { NAMES_SHOWN = 10 };

/* --- the findings --- */

static const char *metric_name(const struct fleet_view *v, uint32_t metric)
{
	return v->whole->metrics[metric].model->name;
}

/* Show seconds if the judged period is short. */
static size_t time_length(const struct fleet_view *v)
{
	return v->whole->to_s - v->whole->from_s < 6 * 3600.0 ? sizeof("2026-11-02 14:00:07") - 1
							      : sizeof("2026-11-02 14:00") - 1;
}

static const char *cut_time(const struct fleet_view *v, char text[FLEET_WORD])
{
	if (v->unix_times)
		text[time_length(v)] = '\0';
	return text;
}

/* The part of the second time that differs from the first: "11-08 03:12", "14:20". */
static const char *until(const struct fleet_view *v, const struct fleet_finding *f, char *text)
{
	char since[FLEET_WORD];

	if (f->open)
		return "still";
	fleet_say_time(f->since_s, v->unix_times, since);
	cut_time(v, fleet_say_time(f->until_s, v->unix_times, text));
	if (!v->unix_times)
		return text;
	return !strncmp(since, text, 10) ? text + 11 : !strncmp(since, text, 4) ? text + 5 : text;
}

static const char *kind(const struct fleet_finding *f, char text[FLEET_WORD])
{
	switch (f->kind) {
	case FINDING_BURSTS: return "in bursts";
	case FINDING_GROUP: return "whole group";
	case FINDING_CLASS: snprintf(text, FLEET_WORD, "class of %u", f->count); return text;
	default: return "lasting";
	}
}

static void add_entry(
	struct text_columns *g, const struct fleet_view *v, const struct fleet_entry *e)
{
	const struct fleet_finding *f = &e->f;
	char text[FLEET_WORD];
	size_t at = 0;

	text_columns_cell(g, at++, fleet_say_number(f->severity, text));
	text_columns_cell(g, at++, fleet_whom(v->whole, f));
	text_columns_cell(g, at++, metric_name(v, f->metric));
	text_columns_cell(g, at++, fleet_say_number(f->effect, text));
	text_columns_cell(g, at++, fleet_say_stretch(f, text));
	text_columns_cell(g, at++, fleet_say_share(f->share, text));
	text_columns_cell(g, at++, cut_time(v, fleet_say_time(f->since_s, v->unix_times, text)));
	text_columns_cell(g, at++, until(v, f, text));
	text_columns_cell(g, at++, kind(f, text));
	if (v->n_windows && !v->all_windows) {
		snprintf(text, sizeof(text), "%u of %zu", e->windows, v->n_judged);
		text_columns_cell(g, at++, text);
	}
	if (fleet_partial(v))
		text_columns_cell(g, at, "partial");
}

/* "2026-11-02 14:00 to 2026-11-08 03:12" */
static void put_times(const struct fleet_view *v, double from_s, double to_s, FILE *out)
{
	char from[FLEET_WORD], to[FLEET_WORD];

	fprintf(out, "%s to %s", cut_time(v, fleet_say_time(from_s, v->unix_times, from)),
		cut_time(v, fleet_say_time(to_s, v->unix_times, to)));
}

/* Prints the entries in [from, to); the range is not empty. */
static void put_entries(const struct fleet_view *v, size_t from, size_t to, int width, FILE *out)
{
	struct text_columns g = {0};

	text_columns_add(&g, "severity", true, false);
	text_columns_add(&g, "who", false, true);
	text_columns_add(&g, "metric", false, true);
	text_columns_add(&g, "x peers", true, false);
	text_columns_add(&g, "over", true, false);
	text_columns_add(&g, "of time", true, false);
	text_columns_add(&g, "since", false, false);
	text_columns_add(&g, "until", false, false);
	text_columns_add(&g, "kind", false, false);
	if (v->n_windows && !v->all_windows)
		text_columns_add(&g, "windows", false, false);
	if (fleet_partial(v))
		text_columns_add(&g, "data", false, false);
	for (size_t i = from; i < to; i++)
		add_entry(&g, v, &v->entries[i]);
	text_columns_put(&g, width, out);
}

static void put_windows(const struct fleet_view *v, int width, FILE *out)
{
	size_t from = 0, to;

	for (size_t i = 0; i < v->n_windows; i++, from = to) {
		for (to = from; to < v->n_entries && v->entries[to].first == i; to++)
			;
		put_times(v, v->windows[i].from_s, v->windows[i].to_s, out);
		fputs(v->windows[i].why_not  ? ": not judged: "
				: from == to ? ": nothing found"
					     : "",
			out);
		if (!v->windows[i].why_not && from == to && fleet_partial(v))
			fputs(" in partial data", out);
		if (v->windows[i].why_not)
			text_print_clean(out, v->windows[i].why_not);
		fputc('\n', out);
		if (from < to)
			put_entries(v, from, to, width, out);
		if (from < to || i + 1 == v->n_windows)
			fputc('\n', out);
	}
}

static void put_ranking(const struct fleet_view *v, int width, FILE *out)
{
	size_t n = v->rank < v->n_ranking ? v->rank : v->n_ranking;
	struct text_columns g = {0};
	char text[FLEET_WORD];

	fprintf(out, "worst %zu of %zu members, findings or not (severity 1 is the limit)\n", n,
		v->n_ranking);
	text_columns_add(&g, "rank", true, false);
	text_columns_add(&g, "severity", true, false);
	text_columns_add(&g, "who", false, true);
	text_columns_add(&g, "metric", false, true);
	text_columns_add(&g, "x peers", true, false);
	for (size_t i = 0; i < n; i++) {
		const struct fleet_rank *r = &v->ranking[i];

		snprintf(text, sizeof(text), "%zu", i + 1);
		text_columns_cell(&g, 0, text);
		text_columns_cell(&g, 1, fleet_say_number(r->severity, text));
		text_columns_cell(&g, 2, v->whole->members[r->member].path);
		text_columns_cell(&g, 3, metric_name(v, r->metric));
		text_columns_cell(&g, 4, fleet_say_number(r->effect, text));
	}
	text_columns_put(&g, width, out);
	fputc('\n', out);
}

/* --- before and after --- */

static void put_note(const char *note, FILE *out)
{
	fputs("  ", out);
	text_print_clean(out, note);
	fputc('\n', out);
}

static bool noted(const struct fleet_result *r, const char *text)
{
	for (size_t i = 0; i < r->n_notes; i++)
		if (!strcmp(r->notes[i], text))
			return true;
	return false;
}

static void put_understood(const struct fleet_view *v, FILE *out)
{
	const struct import_said *said = v->said;

	text_print_clean(out, v->source);
	if (said && said->form) {
		fputs(": ", out);
		text_print_clean(out, said->form);
	}
	fputc('\n', out);
	if (said)
		fprintf(out, "  %llu sample%s, %llu without a value; ",
			(unsigned long long)said->samples, said->samples == 1 ? "" : "s",
			(unsigned long long)said->missing);
	else
		fputs("  ", out);
	put_times(v, v->whole->from_s, v->whole->to_s, out);
	fputs(v->unix_times ? " UTC\n" : "\n", out);
	for (size_t i = 0; said && i < said->n_notes; i++)
		put_note(said->notes[i], out);
	for (size_t i = 0; i < v->whole->n_notes; i++)
		put_note(v->whole->notes[i], out);
	for (size_t i = 0; i < v->whole->n_metrics; i++) {
		char *text = metric_describe(v->whole->metrics[i].model);

		/* A guess already has a note. */
		if (!noted(v->whole, text))
			put_note(text, out);
		free(text);
	}
	fputc('\n', out);
}

static void put_kinds(const struct fleet_view *v, FILE *out)
{
	static const char *const one[] = {
		[FINDING_SHIFT] = "%zu lasting",
		[FINDING_BURSTS] = "%zu in bursts",
		[FINDING_GROUP] = "%zu of whole groups",
		[FINDING_CLASS] = "%zu of a class",
	};
	size_t n[FINDING_KINDS] = {0};
	const char *before = ": ";

	for (size_t i = 0; i < v->n_entries; i++)
		n[v->entries[i].f.kind]++;
	fprintf(out, "%zu finding%s%s", v->n_entries, v->n_entries == 1 ? "" : "s",
		fleet_partial(v) ? " in partial data" : "");
	for (size_t k = 0; k < FINDING_KINDS; k++)
		if (n[k]) {
			fputs(before, out);
			fprintf(out, one[k], n[k]);
			before = ", ";
		}
	fputc('\n', out);
	if (fleet_partial(v)) {
		fputs("partial data: ", out);
		text_print_clean(out, fleet_partial(v));
		fputs("; this list may lack members\n", out);
	}
	if (n[FINDING_GROUP])
		fputs("whole group: the group differs from the other groups; no member is "
		      "accused\n",
			out);
	if (n[FINDING_CLASS])
		fputs("class: members of many groups differ alike, as another model or role does\n",
			out);
}

static void put_limits(const struct fleet_view *v, FILE *out)
{
	char spread[FLEET_WORD], limit[FLEET_WORD], median[FLEET_WORD];

	for (size_t i = 0; i < v->whole->n_metrics; i++) {
		const struct fleet_metric *m = &v->whole->metrics[i];

		if (m->model->worse != WORSE_MORE && m->model->worse != WORSE_LESS)
			continue;
		text_print_clean(out, m->model->name);
		if (m->unlike) {
			fprintf(out,
				": lasting differences cannot be judged; healthy peers differ by a "
				"factor of %s and more\n",
				fleet_say_number(m->dispersion, spread));
			continue;
		}
		if (!m->judged || !(m->limit > 1) || !isfinite(m->median)) {
			fputs(": too few samples for a limit\n", out);
			continue;
		}
		fprintf(out, ": median %s", fleet_say_number(m->median, median));
		if (m->model->unit) {
			fputc(' ', out);
			text_print_clean(out, m->model->unit);
		}
		fprintf(out, "; healthy peers differ by a factor of %s, the limit is %s",
			fleet_say_number(m->dispersion, spread), fleet_say_number(m->limit, limit));
		if (v->paid && v->paid[i] > 1)
			fprintf(out,
				"; in the worst of all windows they usually differ: "
				"a window's limit is %s times as far",
				fleet_say_number(v->paid[i], limit));
		fputc('\n', out);
	}
}

static void put_summary(const struct fleet_view *v, FILE *out)
{
	char alarms[FLEET_WORD], least[FLEET_WORD], shortest[FLEET_WORD];
	size_t judged = 0, left_out = 0;

	put_kinds(v, out);
	for (size_t i = 0; i < v->whole->n_members; i++) {
		judged += v->whole->members[i].judged;
		left_out += v->whole->members[i].left_out;
	}
	fprintf(out, "%zu of %zu members judged", judged, v->whole->n_members);
	if (left_out)
		fprintf(out, "; %zu left out", left_out);
	if (judged + left_out < v->whole->n_members)
		fputs("; the others have too few peers or samples", out);
	if (v->n_windows)
		fprintf(out, "; %zu of %zu windows judged", v->n_judged, v->n_windows);
	fputc('\n', out);
	put_limits(v, out);
	fprintf(out,
		"false alarms asked for: %s series and weeks; least ratio %s; least share of time "
		"%s\n",
		fleet_say_alarms(v->options->alarms, alarms),
		fleet_say_number(v->options->least, least),
		fleet_say_share(v->options->shortest, shortest));
}

void fleet_text(const struct fleet_view *v, int width, FILE *out)
{
	put_understood(v, out);
	if (v->n_windows && v->all_windows) {
		put_windows(v, width, out);
	} else if (v->n_entries) {
		put_entries(v, 0, v->n_entries, width, out);
		fputc('\n', out);
	}
	if (v->rank)
		put_ranking(v, width, out);
	put_summary(v, out);
	if (v->score) {
		fputs("\nagainst the labels\n", out);
		ranking_score_print(out, v->score, v->ranked, v->whole->n_members, NAMES_SHOWN);
	}
}
