/* Tables of scores by the strength of a fault. */
#include "harness/table/dose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/units.h"
#include "harness/table/table_impl.h"

enum { TEXT = 32, COLUMNS_A_BLOCK = 3, LABEL = 14, RATE = 16 };

struct strength {
	size_t fault; /* its index on the axis of faults */
	double value;
	char text[TEXT]; /* "25%" */
};

struct sweep {
	char name[64], param[64];
	struct strength *list; /* weakest first */
	size_t n;
};

/* TP of the workloads [first, last), or FP of them ("wrong server"). */
struct dose_column {
	const char *name;
	char head[64]; /* on pages: without parameters, if the name is unique */
	size_t first, last;
	bool wrong;
};

struct doses {
	struct tables v;
	double level;
	const json_t *params;
	const struct impacts *impacts; /* or NULL */
	struct sweep *sweeps;
	struct dose_column *columns; /* one per workload, then all, then wrong server */
	size_t n, n_columns;
};

static size_t name_length(const char *label)
{
	return strcspn(label, "(");
}

static bool same_name(const char *a, const char *b)
{
	return name_length(a) == name_length(b) && !strncmp(a, b, name_length(a));
}

static const json_t *dose_value_of(const struct doses *d, size_t fault, const char *param)
{
	return jget(jget(d->params, d->v.names[SCORE_FAULT][fault]), param);
}

/* The one parameter in which the labels of a fault differ; NULL if there is none or several. */
static const char *varying(const struct doses *d, size_t fault)
{
	const char *const *labels = d->v.names[SCORE_FAULT], *found = NULL, *key;
	json_t *value;

	json_object_foreach(jget(d->params, labels[fault]), key, value) {
		bool differs = false;

		for (size_t f = 0; f < d->v.n[SCORE_FAULT]; f++)
			differs = differs ||
				(same_name(labels[f], labels[fault]) &&
					!json_equal(value, dose_value_of(d, f, key)));
		if (differs && found)
			return NULL;
		if (differs)
			found = key;
	}
	return found;
}

/* "25%" of "disk-hog(share=25%)"; "" if the label does not have the parameter. */
static void label_text(const char *label, const char *param, char out[TEXT])
{
	size_t len = strlen(param);

	for (const char *at = strchr(label, '('); at; at = strpbrk(at + 1, ",)"))
		if (!strncmp(at + 1, param, len) && at[1 + len] == '=')
			snprintf(out, TEXT, "%.*s", (int)strcspn(at + len + 2, ",)"), at + len + 2);
}

/* The label of a default lacks the parameter; its value is written in the others' unit. */
static void texts(const struct doses *d, struct sweep *s)
{
	enum unit unit = UNIT_NONE;
	double value;

	for (struct strength *i = s->list; i < s->list + s->n; i++) {
		label_text(d->v.names[SCORE_FAULT][i->fault], s->param, i->text);
		for (int u = UNIT_NONE; *i->text && u <= UNIT_BYTE_RATE; u++)
			if (!unit_parse((enum unit)u, i->text, &value, NULL) &&
				fabs(value - i->value) <= 1e-5 * fabs(value))
				unit = (enum unit)u;
	}
	for (struct strength *i = s->list; i < s->list + s->n; i++)
		if (!*i->text)
			unit_format(unit, i->value, i->text, TEXT);
}

static int by_value(const void *a, const void *b)
{
	double x = ((const struct strength *)a)->value, y = ((const struct strength *)b)->value;

	return (x > y) - (x < y);
}

static void find_sweeps(struct doses *d)
{
	const char *const *labels = d->v.names[SCORE_FAULT];
	size_t n = d->v.n[SCORE_FAULT];

	d->sweeps = alloc_zero(n, sizeof(*d->sweeps));
	for (size_t f = 0; f < n; f++) {
		const char *param = varying(d, f);
		struct sweep *s = &d->sweeps[d->n];
		bool seen = false;

		for (size_t i = 0; i < f; i++)
			seen = seen || same_name(labels[i], labels[f]);
		if (!param || seen)
			continue;
		snprintf(s->name, sizeof(s->name), "%.*s", (int)name_length(labels[f]), labels[f]);
		snprintf(s->param, sizeof(s->param), "%s", param);
		s->list = alloc_zero(n, sizeof(*s->list));
		d->n++;
		for (size_t i = f; i < n; i++)
			if (same_name(labels[i], labels[f]))
				s->list[s->n++] = (struct strength){.fault = i,
					.value = json_number_value(dose_value_of(d, i, param))};
		qsort(s->list, s->n, sizeof(*s->list), by_value);
		texts(d, s);
	}
}

static void make_columns(struct doses *d)
{
	const char *const *names = d->v.names[SCORE_WORKLOAD];
	size_t n = d->v.n[SCORE_WORKLOAD];

	d->n_columns = n + 2;
	d->columns = alloc_zero(n + 2, sizeof(*d->columns));
	for (size_t i = 0; i < n + 2; i++) {
		struct dose_column *c = &d->columns[i];
		size_t same = 0;

		*c = i < n ? (struct dose_column){names[i], .first = i, .last = i + 1}
			   : (struct dose_column){
				     i > n ? "wrong server" : "all", .last = n, .wrong = i > n};
		for (size_t w = 0; i < n && w < n; w++)
			same += same_name(names[w], c->name);
		snprintf(c->head, sizeof(c->head), "%.*s",
			same == 1 ? (int)name_length(c->name) : 63, c->name);
	}
}

/* All workloads. */
static const struct dose_column *all_of(const struct doses *d)
{
	return &d->columns[d->n_columns - 2];
}

/* The cells of a column at a strength: the successes and the total. */
struct share {
	unsigned hits, n;
};

static struct share dose_count(
	const struct doses *d, size_t detector, size_t fault, const struct dose_column *c)
{
	struct share sum = {0};

	for (size_t w = c->first; w < c->last; w++) {
		const struct score *s = score_at(d->v.t, detector, fault, w, d->v.any);

		sum.n += s ? s->n : 0;
		sum.hits += s ? c->wrong ? s->alarms : s->hits : 0;
	}
	return sum;
}

/* The weakest strength from which on the rate, or the lower end of its interval, is at least the
 * level; NULL: none. */
static const struct strength *smallest(const struct doses *d, size_t detector,
	const struct sweep *s, const struct dose_column *c, bool surely)
{
	const struct strength *found = NULL;

	for (size_t i = s->n; i-- > 0; found = &s->list[i]) {
		struct share sum = dose_count(d, detector, s->list[i].fault, c);
		double low, high;

		score_interval(sum.hits, sum.n, 0.95, &low, &high);
		if (!sum.n || (surely ? low : (double)sum.hits / sum.n) < d->level - 1e-9)
			break;
	}
	return found;
}

/* "25% (50%)": based on TP, and in brackets on its lower end. */
static void put_smallest(const struct doses *d, struct grid *g, size_t detector,
	const struct sweep *s, const struct dose_column *c)
{
	const struct strength *by_rate = smallest(d, detector, s, c, false),
			      *surely = smallest(d, detector, s, c, true);

	if (c->wrong && d->v.out.format == TABLE_TEXT)
		grid_none(g, 1); /* leaves the row out of a block with only this column */
	else if (c->wrong)
		grid_words(g, "%s", "");
	else
		grid_words(
			g, "%s (%s)", by_rate ? by_rate->text : "-", surely ? surely->text : "-");
}

/* ---- the application ---- */

static bool is_known(const struct doses *d, enum impact_measure m)
{
	return d->impacts && !impacts_unknown(d->impacts, m);
}

static struct impact impact_at(
	const struct doses *d, enum impact_measure m, size_t fault, const struct dose_column *c)
{
	return d->impacts ? impacts_of(d->impacts, m, d->v.names[SCORE_FAULT][fault],
				    c == all_of(d) ? NULL : c->name)
			  : (struct impact){.ratio = NAN, .low = NAN, .high = NAN};
}

/* The weakest strength from which on the application surely suffers; NULL: none. */
static const struct strength *suffers_from(const struct doses *d, enum impact_measure m,
	const struct sweep *s, const struct dose_column *c)
{
	const struct strength *found = NULL;

	for (size_t i = s->n; i-- > 0 && impact_suffers(m, impact_at(d, m, s->list[i].fault, c));)
		found = &s->list[i];
	return found;
}

/* Two cells: how many, and the ratio; after the last strength, from which on it suffers. */
static void put_impact(const struct doses *d, struct grid *g, enum impact_measure m,
	const struct sweep *s, size_t k, const struct dose_column *c)
{
	const struct strength *from = k < s->n ? NULL : suffers_from(d, m, s, c);
	char text[IMPACT_TEXT];
	struct impact i;

	if (k < s->n) {
		i = impact_at(d, m, s->list[k].fault, c);
		grid_count(g, i.n);
		grid_words(g, "%s", impact_text(i, text));
	} else {
		grid_none(g, 1);
		grid_words(g, "%s", from ? from->text : "-");
	}
}

/* The first cells of a row. */
static void put_lead(const struct doses *d, struct grid *g, const struct sweep *s, size_t k,
	const char *last, const char *last_bold)
{
	const char *names[] = {s->name, s->param,
		k < s->n                                    ? s->list[k].text
			: d->v.out.format == TABLE_MARKDOWN ? last_bold
							    : last};

	grid_words(g, "%.50s, %.20s", s->name, s->param);
	grid_names(g, 3, names);
}

static void put_sweep(const struct doses *d, struct grid *g, size_t detector, const struct sweep *s)
{
	for (size_t k = 0; k <= s->n; k++) {
		put_lead(d, g, s, k, "found from", "**found from**");
		for (const struct dose_column *c = d->columns; c < d->columns + d->n_columns; c++) {
			struct share sum;

			if (k == s->n) {
				grid_none(g, 1);
				put_smallest(d, g, detector, s, c);
				continue;
			}
			sum = dose_count(d, detector, s->list[k].fault, c);
			grid_count(g, sum.n);
			grid_rate(g, true, sum.hits, sum.n);
		}
		for (int m = 0; m < IMPACT_MEASURES; m++)
			if (is_known(d, m))
				put_impact(d, g, m, s, k, all_of(d));
	}
}

/* The first columns of a table by strength. */
static void add_lead(struct grid *g)
{
	static const struct grid_column lead[] = {{.flags = GRID_GROUP | GRID_TEXT},
		{.head = "fault", .flags = GRID_MARKDOWN}, {.head = "by", .flags = GRID_MARKDOWN},
		{.title = "strength",
			.flags = GRID_LABEL | GRID_CUT | GRID_RIGHT,
			.width = LABEL,
			.indent = 2}};

	GRID_COLUMNS(g, lead);
}

static void add_column(struct grid *g, const char *head)
{
	grid_group(g, "");
	GRID_COLUMN(g, .head = "n", .flags = GRID_RIGHT, .gap = 1, .width = 3);
	GRID_COLUMN(g, .head = head, .gap = 1, .width = RATE);
}

static void print_detector(struct doses *d, size_t detector)
{
	struct grid g = {.out = &d->v.out, .a_block = COLUMNS_A_BLOCK};

	add_lead(&g);
	for (size_t i = 0; i < d->n_columns; i++)
		add_column(&g, d->columns[i].head);
	for (int m = 0; m < IMPACT_MEASURES; m++)
		if (is_known(d, m))
			add_column(&g, impact_name(m));
	for (size_t i = 0; i < d->n; i++)
		put_sweep(d, &g, detector, &d->sweeps[i]);
	grid_print(&g);
	sheet_blank(&d->v.out, 0);
}

/* A measure of the application by workload. */
static void print_application(struct doses *d, enum impact_measure m)
{
	struct grid g = {.out = &d->v.out, .a_block = COLUMNS_A_BLOCK};

	sheet_heading(&d->v.out, "application: ", impact_name(m));
	add_lead(&g);
	for (const struct dose_column *c = d->columns; !c->wrong; c++)
		add_column(&g, c->head);
	for (const struct sweep *s = d->sweeps; s < d->sweeps + d->n; s++)
		for (size_t k = 0; k <= s->n; k++) {
			put_lead(d, &g, s, k, "suffers from", "**suffers from**");
			for (const struct dose_column *c = d->columns; !c->wrong; c++)
				put_impact(d, &g, m, s, k, c);
		}
	grid_print(&g);
	sheet_blank(&d->v.out, 0);
}

static void print_applications(struct doses *d)
{
	for (int m = 0; m < IMPACT_MEASURES && d->impacts; m++)
		if (is_known(d, m))
			print_application(d, m);
	if (is_known(d, IMPACT_THROUGHPUT) || is_known(d, IMPACT_LATENCY)) {
		sheet_words(&d->v.out,
			"The application during the fault over before it, divided by the same of "
			"controls of its workload (1: no slower), with 95 %% intervals. suffers "
			"from: the smallest strength from which on the interval is below 1 "
			"(latency: above 1); in the detectors' tables, at the side of found from.");
		sheet_blank(&d->v.out, 0);
	}
	for (int m = 0; m < IMPACT_MEASURES && d->impacts; m++)
		if (!is_known(d, m)) {
			sheet_words(&d->v.out, "%s of the application: unknown: %s.",
				impact_name(m), impacts_unknown(d->impacts, m));
			sheet_blank(&d->v.out, 0);
		}
}

static void dose_print_page(struct doses *d)
{
	for (size_t k = 0; k < d->v.n[SCORE_DETECTOR]; k++) {
		if (!d->v.notes->details && tables_is_null(&d->v, k))
			continue;
		sheet_heading(&d->v.out, d->v.names[SCORE_DETECTOR][k], "");
		print_detector(d, k);
	}
	print_applications(d);
	sheet_words(&d->v.out,
		"By strength: TP, the share of cells in which every faulty server was indicted "
		"(right server), with exact 95 %% intervals. found from: the smallest strength "
		"from which on TP is at least %g, and in brackets the smallest from which on the "
		"lower end of its interval is; - for none. wrong server: share of all cells in "
		"which some healthy server was indicted.",
		d->level);
	table_footer(&d->v);
}

static void put_impact_numbers(
	const struct doses *d, struct grid *g, size_t fault, const struct dose_column *c)
{
	for (int m = 0; m < IMPACT_MEASURES; m++) {
		struct impact i = impact_at(d, m, fault, c);

		grid_count(g, i.n);
		grid_number(g, i.ratio);
		grid_number(g, i.low);
		grid_number(g, i.high);
	}
}

static void print_csv(struct doses *d)
{
	static const struct grid_column columns[] = {{"detector"}, {"fault"}, {"parameter"},
		{"strength"}, {"value", .number = "%.17g"}, {"workload"}, {"n"},
		{"tp", .flags = GRID_BOUNDS}, {"wrong", .flags = GRID_BOUNDS}, {"throughput_n"},
		{"throughput", .number = "%.4f"}, {"throughput_low", .number = "%.4f"},
		{"throughput_high", .number = "%.4f"}, {"latency_n"}, {"latency", .number = "%.4f"},
		{"latency_low", .number = "%.4f"}, {"latency_high", .number = "%.4f"}};
	struct grid g = {.out = &d->v.out};
	size_t workloads = d->v.n[SCORE_WORKLOAD];

	GRID_COLUMNS(&g, columns);
	for (size_t k = 0; k < d->v.n[SCORE_DETECTOR]; k++)
		for (const struct sweep *s = d->sweeps; s < d->sweeps + d->n; s++)
			for (size_t i = 0; i < s->n * workloads; i++) {
				const struct strength *dose = &s->list[i / workloads];
				size_t w = i % workloads;
				const struct score *at = score_at(
					d->v.t, k, dose->fault, w, d->v.any);
				const char *const names[] = {d->v.names[SCORE_DETECTOR][k], s->name,
					s->param, dose->text};

				if (!at)
					continue;
				grid_names(&g, 4, names);
				grid_number(&g, dose->value);
				grid_names(&g, 1, &d->v.names[SCORE_WORKLOAD][w]);
				grid_count(&g, at->n);
				grid_rate(&g, true, at->hits, at->n);
				grid_rate(&g, true, at->alarms, at->n);
				put_impact_numbers(d, &g, dose->fault, &d->columns[w]);
			}
	grid_print(&g);
}

static json_t *impact_json_at(
	const struct doses *d, const struct strength *s, const struct dose_column *c)
{
	json_t *measures = json_object();

	for (int m = 0; m < IMPACT_MEASURES; m++)
		json_object_set_new(
			measures, impact_name(m), impact_json(impact_at(d, m, s->fault, c)));
	return measures;
}

static json_t *application_strength_json(const struct doses *d, const struct strength *s)
{
	json_t *impact = json_object();

	for (const struct dose_column *c = d->columns; !c->wrong; c++)
		json_object_set_new(impact, c->name, impact_json_at(d, s, c));
	return json_pack("{s:s, s:f, s:s, s:o}", "strength", s->text, "value", s->value, "label",
		d->v.names[SCORE_FAULT][s->fault], "impact", impact);
}

static json_t *strength_json(const struct doses *d, size_t detector, const struct strength *s)
{
	json_t *scores = json_object();

	for (const struct dose_column *c = d->columns; c < d->columns + d->n_columns; c++) {
		struct share sum = dose_count(d, detector, s->fault, c);

		json_object_set_new(scores, c->name,
			json_pack("{s:i, s:o}", "n", (int)sum.n, c->wrong ? "fp" : "tp",
				grid_rate_json(sum.hits, sum.n)));
	}
	return json_pack("{s:s, s:f, s:s, s:o}", "strength", s->text, "value", s->value, "label",
		d->v.names[SCORE_FAULT][s->fault], "scores", scores);
}

static json_t *value_json(const struct strength *s)
{
	return s ? json_real(s->value) : json_null();
}

static json_t *sweep_json(const struct doses *d, size_t detector, const struct sweep *s)
{
	json_t *strengths = json_array(), *found = json_object();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(strengths, strength_json(d, detector, &s->list[i]));
	for (const struct dose_column *c = d->columns; !c->wrong; c++)
		json_object_set_new(found, c->name,
			json_pack("{s:o, s:o}", "tp",
				value_json(smallest(d, detector, s, c, false)), "tp_low",
				value_json(smallest(d, detector, s, c, true))));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "detector",
		d->v.names[SCORE_DETECTOR][detector], "fault", s->name, "parameter", s->param,
		"strengths", strengths, "found_from", found);
}

static json_t *application_json(const struct doses *d, const struct sweep *s)
{
	json_t *strengths = json_array(), *from = json_object();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(strengths, application_strength_json(d, &s->list[i]));
	for (const struct dose_column *c = d->columns; !c->wrong; c++) {
		json_t *measures = json_object();

		for (int m = 0; m < IMPACT_MEASURES; m++)
			json_object_set_new(
				measures, impact_name(m), value_json(suffers_from(d, m, s, c)));
		json_object_set_new(from, c->name, measures);
	}
	return json_pack("{s:s, s:s, s:o, s:o}", "fault", s->name, "parameter", s->param,
		"strengths", strengths, "suffers_from", from);
}

static void print_json(struct doses *d)
{
	json_t *list = json_array(), *application = json_array(), *unknown = json_object();

	for (size_t i = 0; i < d->n && d->impacts; i++)
		json_array_append_new(application, application_json(d, &d->sweeps[i]));
	for (int m = 0; m < IMPACT_MEASURES && d->impacts; m++)
		if (!is_known(d, m))
			json_object_set_new(unknown, impact_name(m),
				json_string(impacts_unknown(d->impacts, m)));

	for (size_t k = 0; k < d->v.n[SCORE_DETECTOR]; k++)
		for (size_t i = 0; i < d->n; i++)
			json_array_append_new(list, sweep_json(d, k, &d->sweeps[i]));
	sheet_json(&d->v.out,
		json_pack("{s:s?, s:f, s:f, s:o, s:o, s:o}", "run", d->v.notes->run_id,
			"confidence", 0.95, "level", d->level, "sweeps", list, "application",
			application, "unknown", unknown));
}

int dose_render(const struct score_table *t, const struct impacts *impacts, const json_t *params,
	double level, enum table_format format, const struct table_notes *notes, FILE *f,
	struct err *e)
{
	static void (*const printers[])(struct doses *) = {
		dose_print_page, dose_print_page, print_csv, print_json};
	struct doses d = {.level = level, .params = params, .impacts = impacts};
	int rc;

	tables_init(&d.v, t, format, notes, f);
	find_sweeps(&d);
	make_columns(&d);
	if (!d.n) {
		rc = err_blame(e, ERR_USAGE,
			err_set(e, -ENOENT,
				"no fault of the run has several strengths: with one "
				"parameter changed"));
	} else if (format == TABLE_SVG) {
		rc = err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL, "scores by strength have no picture (--format svg)"));
	} else {
		printers[format](&d);
		rc = sheet_end(&d.v.out);
		if (rc)
			err_errno(e, rc, "cannot write to standard output");
	}
	for (size_t i = 0; i < d.n; i++)
		free(d.sweeps[i].list);
	free(d.sweeps);
	free(d.columns);
	return rc;
}
