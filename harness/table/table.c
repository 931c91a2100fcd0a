/* Tables of scores in all formats. */
#include "harness/table/table_impl.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/base/stat.h"

enum { RATE_WIDTH = 14, WORKLOADS_A_BLOCK = 2, MISSING_SHOWN = 12, TITLE = 512 };

void tables_init(struct tables *v, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	static const struct table_notes nothing;

	*v = (struct tables){.t = t, .notes = notes ? notes : &nothing, .out = {f, format}};
	sheet_fit(&v->out);
	for (int a = 0; a < SCORE_AXES; a++)
		v->n[a] = score_names(t, (enum score_axis)a, &v->names[a]);
	while (v->any + 1 < v->n[SCORE_METRIC] && strcmp(v->names[SCORE_METRIC][v->any], "any"))
		v->any++;
}

const struct score *tables_next(const struct tables *v, size_t *place)
{
	size_t metrics = v->n[SCORE_METRIC], workloads = v->n[SCORE_WORKLOAD] * metrics,
	       faults = v->n[SCORE_FAULT] * workloads;
	const struct score *s = NULL;

	while (!s && *place < v->n[SCORE_DETECTOR] * faults) {
		size_t i = (*place)++;

		s = score_at(v->t, i / faults, i % faults / workloads, i % workloads / metrics,
			i % metrics);
	}
	return s;
}

bool tables_is_null(const struct tables *v, size_t detector)
{
	const char *const *nulls = v->notes->nulls;

	for (; nulls && *nulls; nulls++)
		if (!strcmp(*nulls, v->names[SCORE_DETECTOR][detector]))
			return true;
	return false;
}

bool tables_is_page(const struct tables *v)
{
	return v->out.format == TABLE_TEXT || v->out.format == TABLE_MARKDOWN;
}

void tables_score(struct grid *g, const struct score *s, size_t n)
{
	static const struct score nothing;
	bool some = s;
	size_t k;

	for (s = s ? s : &nothing, k = s->n_delays; n--;) {
		switch ((enum score_field)g->columns[g->n_cells % g->n_columns].look.of) {
		case OF_CONTROL: grid_flag(g, s->control); break;
		case OF_N: grid_count(g, s->n); break;
		case OF_N_STARRED:
			grid_cell(g,
				(struct grid_cell){
					GRID_COUNT, .count = s->n, .star = s->abstained});
			break;
		case OF_ABSTAINED: grid_count(g, s->abstained); break;
		case OF_ABSTAINED_OF: grid_words(g, "%u of %u", s->abstained, s->n); break;
		case OF_FAILED: grid_count(g, s->failed); break;
		case OF_EARLY: grid_count(g, s->early); break;
		case OF_RIGHT: grid_rate(g, some && !s->control, s->hits, s->n); break;
		case OF_WRONG: grid_rate(g, some, s->alarms, s->n); break;
		case OF_DETECTED: grid_rate(g, some && !s->control, s->detected, s->n); break;
		case OF_RESOURCE: grid_rate(g, s->named, s->classified, s->n); break;
		case OF_CAUSE: grid_rate(g, s->named && s->causes, s->explained, s->n); break;
		case OF_EXPLAINED: grid_rate(g, s->named, s->explained, s->n); break;
		case OF_DELAYS: grid_count(g, (long long)k); break;
		case OF_MEDIAN: grid_number(g, k ? stat_median_sorted(s->delays_s, k) : NAN); break;
		case OF_MIN: grid_number(g, k ? s->delays_s[0] : NAN); break;
		case OF_MAX: grid_number(g, k ? s->delays_s[k - 1] : NAN); break;
		case OF_DELAY: grid_delay(g, s->delays_s, s->n_delays, s->early); break;
		}
	}
}

/* Fills a row: the names of the score's axes from 'first' on, and the other columns by their
 * field. */
static void tables_row(
	const struct tables *v, struct grid *g, const struct score *s, enum score_axis first)
{
	for (int a = first; a < SCORE_AXES; a++)
		grid_names(g, 1, &v->names[a][s->at[a]]);
	tables_score(g, s, g->n_columns - (SCORE_AXES - first));
}

/* Is the row of a fault and metric shown? Yes for 'any', and if it has any event. */
static bool row_is_shown(const struct tables *v, size_t d, size_t f, size_t m)
{
	bool shown = m == v->any;

	for (size_t w = 0; w < v->n[SCORE_WORKLOAD] && !shown; w++) {
		const struct score *s = score_at(v->t, d, f, w, m);

		shown = s && (s->hits || s->alarms);
	}
	return shown;
}

static bool fault_is_control(const struct tables *v, size_t f)
{
	const struct score *s;
	size_t place = 0;

	while ((s = tables_next(v, &place)))
		if (s->at[SCORE_FAULT] == f)
			return s->control;
	return !strcmp(v->names[SCORE_FAULT][f], "none");
}

/* TP and FP are "-" without data: no cell, TP of a control, or a metric from which the detector
 * always abstained. */
bool table_detector(struct tables *v, size_t d)
{
	static const struct grid_column lead[] = {{.head = "fault", .flags = GRID_GROUP},
		{.title = "metric", .flags = GRID_LABEL, .width = 9, .indent = 2}};
	struct grid g = {.out = &v->out, .a_block = WORKLOADS_A_BLOCK};
	bool stars = false;
	char title[TITLE];

	GRID_COLUMNS(&g, lead);
	for (size_t w = 0; w < v->n[SCORE_WORKLOAD]; w++) {
		const struct grid_column rates[] = {{.head = "n ",
							    .title = title,
							    GRID_RIGHT | GRID_STARS,
							    1,
							    4,
							    .of = OF_N_STARRED},
			{.head = "TP", .flags = GRID_GOOD, .width = RATE_WIDTH, .of = OF_RIGHT},
			{.head = "FP",
				.flags = GRID_BAD,
				.gap = 1,
				.width = RATE_WIDTH,
				.of = OF_WRONG}};

		snprintf(title, sizeof(title), "%s n", v->names[SCORE_WORKLOAD][w]);
		grid_group(&g, v->names[SCORE_WORKLOAD][w]);
		GRID_COLUMNS(&g, rates);
	}
	for (size_t f = 0; f < v->n[SCORE_FAULT]; f++)
		for (size_t m = 0; m < v->n[SCORE_METRIC]; m++) {
			if (!row_is_shown(v, d, f, m))
				continue;
			grid_words(&g, "%s%s", v->names[SCORE_FAULT][f],
				!fault_is_control(v, f) ? ""
					: !strcmp(v->names[SCORE_FAULT][f], "none")
					? " (control)"
					: " (look-alike)");
			grid_names(&g, 1, &v->names[SCORE_METRIC][m]);
			for (size_t w = 0; w < v->n[SCORE_WORKLOAD]; w++) {
				const struct score *s = score_at(v->t, d, f, w, m);

				if (s && m != v->any && s->abstained == s->n) {
					grid_count(&g, s->n);
					grid_rate(&g, false, 0, 0);
					grid_rate(&g, false, 0, 0);
				} else {
					tables_score(&g, s, 3);
					stars = stars || (s && s->abstained);
				}
			}
		}
	grid_print(&g);
	return stars;
}

/* Detection, resource, cause, delay and abstentions for each fault, workload and metric. */
static void detector_details(struct tables *v, size_t d)
{
	unsigned cause = score_causes(v->t) ? 0 : GRID_JSON;
	const struct grid_column columns[] = {{.head = "fault", .flags = GRID_LABEL},
		{.head = "workload", .flags = GRID_LABEL}, {.head = "metric", .flags = GRID_LABEL},
		{.head = "n", .flags = GRID_RIGHT | GRID_MARKDOWN, .of = OF_N},
		{.head = "detected", .of = OF_DETECTED}, {.head = "resource", .of = OF_RESOURCE},
		{.head = "cause", .flags = cause, .of = OF_CAUSE},
		{.head = "delay", .title = "delay (s)", .of = OF_DELAY},
		{.head = "early", .flags = GRID_RIGHT, .of = OF_EARLY},
		{.head = "abstained", .flags = GRID_RIGHT | GRID_MARKDOWN, .of = OF_ABSTAINED},
		{.head = "abstained", .flags = GRID_TEXT, .of = OF_ABSTAINED_OF}};
	struct grid g = {.out = &v->out, .sentences = true};
	const struct score *s;
	size_t place = 0;

	GRID_COLUMNS(&g, columns);
	while ((s = tables_next(v, &place)))
		if (s->at[SCORE_DETECTOR] == d && !s->control &&
			(s->at[SCORE_METRIC] == v->any || s->detected))
			tables_row(v, &g, s, SCORE_FAULT);
	grid_print(&g);
	sheet_blank(&v->out, GRID_MARKDOWN);
}

void table_footer(struct tables *v)
{
	const struct table_notes *notes = v->notes;
	char aborted[32] = "";

	if (notes->aborted)
		snprintf(aborted, sizeof(aborted), ", %u aborted", notes->aborted);
	if (notes->run_id)
		sheet_words(&v->out,
			"run %s: %u of %u cells confirmed; not scored: %u attempts invalid, %u "
			"in error%s",
			notes->run_id, notes->confirmed, notes->planned, notes->invalid,
			notes->error, aborted);
	for (size_t i = 0; i < notes->n_missing && i < MISSING_SHOWN; i++)
		sheet_words(&v->out, "missing: cell %s", notes->missing[i]);
	if (notes->n_missing > MISSING_SHOWN)
		sheet_words(&v->out, "missing: %zu more cells (--json names them)",
			notes->n_missing - MISSING_SHOWN);
	for (size_t i = 0; i < notes->n_remarks; i++)
		sheet_words(&v->out, "%s", notes->remarks[i]);
}

static void print_notes(struct tables *v, bool stars)
{
	sheet_words(&v->out,
		"TP: share of cells in which every faulty server was indicted (right server). "
		"FP: share of cells in which some healthy server was (wrong server; in controls: "
		"false alarm). In brackets: exact 95 %% intervals.");
	if (v->notes->details)
		sheet_words(&v->out,
			"detected: any server was indicted. resource: the right server, and the "
			"fault's resource named. delay: seconds from verified onset to the "
			"indictment of the right server, median and range, where the verdict "
			"says when; early: indicted before the onset.");
	if (score_causes(v->t))
		sheet_words(&v->out,
			"resource: what is wrong (\"network\"); cause: that, and what is wrong "
			"with it (\"network/hog\").");
	if (stars)
		sheet_words(&v->out,
			"* the detector abstained in some of these cells; they count as nobody "
			"indicted");
	table_footer(v);
}

static void table_print_page(struct tables *v)
{
	bool stars = false;

	table_summary(v);
	sheet_blank(&v->out, 0);
	for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++) {
		const char *name = v->names[SCORE_DETECTOR][d],
			   *null = tables_is_null(v, d) ? " (null)" : "";

		if (*null && v->out.format == TABLE_TEXT && !v->notes->details)
			continue;
		sheet_heading(&v->out, name, null);
		stars = table_detector(v, d) || stars;
		sheet_blank(&v->out, GRID_MARKDOWN);
		if (v->notes->details)
			detector_details(v, d);
		sheet_blank(&v->out, GRID_TEXT);
	}
	print_notes(v, stars);
}

/* For programs: every score. Fields added later come last in CSV. */
static void fill_scores(const struct tables *v, struct grid *g)
{
	static const struct grid_column columns[] = {{"detector"}, {"fault"}, {"workload"},
		{"metric"}, {"control", .of = OF_CONTROL}, {"n", .of = OF_N},
		{"abstained", .of = OF_ABSTAINED}, {"tp", .flags = GRID_RATES, .of = OF_RIGHT},
		{"fp", .flags = GRID_RATES, .of = OF_WRONG},
		{"detected", .flags = GRID_RATES, .of = OF_DETECTED},
		{"resource", .flags = GRID_RATES, .of = OF_RESOURCE},
		{"cause", .flags = GRID_JSON, .of = OF_CAUSE}, {"failed", .of = OF_FAILED},
		{"early", .flags = GRID_CSV, .of = OF_EARLY},
		{"delay_n", .flags = GRID_CSV, .of = OF_DELAYS},
		{"delay_median_s", .flags = GRID_CSV, .number = "%.3f", .of = OF_MEDIAN},
		{"delay_min_s", .flags = GRID_CSV, .number = "%.3f", .of = OF_MIN},
		{"delay_max_s", .flags = GRID_CSV, .number = "%.3f", .of = OF_MAX},
		{"delay_s", .flags = GRID_JSON, .of = OF_DELAY},
		{"cause", .flags = GRID_CSV | GRID_RATES, .of = OF_CAUSE}};
	const struct score *s;
	size_t place = 0;

	GRID_COLUMNS(g, columns);
	while ((s = tables_next(v, &place)))
		tables_row(v, g, s, SCORE_DETECTOR);
}

json_t *json_lines(const char *const *lines, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(lines[i]));
	return list;
}

json_t *table_json_notes(const struct tables *v)
{
	const struct table_notes *n = v->notes;

	return json_pack("{s:s?, s:{s:i, s:i}, s:{s:i, s:i, s:i}, s:o, s:o}", "run", n->run_id,
		"cells", "planned", (int)n->planned, "confirmed", (int)n->confirmed,
		"attempts_not_scored", "invalid", (int)n->invalid, "error", (int)n->error,
		"aborted", (int)n->aborted, "missing", json_lines(n->missing, n->n_missing),
		"remarks", json_lines(n->remarks, n->n_remarks));
}

int tables_data(struct tables *v, struct grid *g, json_t *all)
{
	if (v->out.format == TABLE_CSV) {
		grid_print(g);
		json_decref(all);
	} else {
		json_object_set_new(all, "confidence", json_real(0.95));
		json_object_set_new(all, "summary", table_summary_json(v));
		json_object_set_new(all, "scores", grid_json(g));
		sheet_json(&v->out, all);
	}
	return sheet_end(&v->out);
}

int table_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	struct tables v;
	struct grid g = {.out = &v.out};

	tables_init(&v, t, format, notes, f);
	if (format == TABLE_SVG)
		return -EINVAL;
	if (tables_is_page(&v)) {
		table_print_page(&v);
		return sheet_end(&v.out);
	}
	fill_scores(&v, &g);
	return tables_data(&v, &g, notes ? table_json_notes(&v) : json_object());
}
