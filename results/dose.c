#include "results/dose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/units.h"
#include "results/table_impl.h"

enum { TEXT = 32, COLUMNS_A_BLOCK = 3, LABEL = 14 };

struct strength {
	size_t fault; /* its place on the axis of faults */
	double value;
	char text[TEXT]; /* "25%" */
};

struct sweep {
	char name[64], param[64];
	struct strength *list; /* weakest first */
	size_t n;
};

struct doses {
	const struct score_table *t;
	struct names names;
	const struct table_notes *notes;
	double level;
	size_t any; /* place on the axis of metrics */
	struct sweep *sweeps;
	size_t n;
};

/* What the lines of a table end with: a workload's scores; those of all; or who was indicted
 * wrongly in all. */
struct column {
	size_t workload;
	bool all, wrong;
};

static size_t name_length(const char *label)
{
	return strcspn(label, "(");
}

static bool same_name(const char *a, const char *b)
{
	return name_length(a) == name_length(b) && !strncmp(a, b, name_length(a));
}

static const json_t *value_of(const json_t *params, const char *label, const char *param)
{
	return json_object_get(json_object_get(params, label), param);
}

/* The one parameter in which the labels of a fault differ; NULL if there is none, or more than
 * one. */
static const char *varying(const struct doses *d, const json_t *params, size_t fault)
{
	const char *const *labels = d->names.of[SCORE_FAULT], *found = NULL, *key;
	json_t *value;

	json_object_foreach(json_object_get(params, labels[fault]), key, value)
	{
		bool differs = false;

		for (size_t f = 0; f < d->names.n[SCORE_FAULT]; f++)
			differs = differs ||
				(same_name(labels[f], labels[fault]) &&
					!json_equal(value, value_of(params, labels[f], key)));
		if (differs && found)
			return NULL;
		if (differs)
			found = key;
	}
	return found;
}

/* "25%" of "disk-hog(share=25%)"; false where the label does not say. */
static bool label_text(const char *label, const char *param, char out[TEXT])
{
	const char *at = label + name_length(label);
	size_t len = strlen(param);

	while (*at && *at != ')') {
		at++;
		if (!strncmp(at, param, len) && at[len] == '=') {
			snprintf(out, TEXT, "%.*s", (int)strcspn(at + len + 1, ",)"), at + len + 1);
			return true;
		}
		at += strcspn(at, ",)");
	}
	return false;
}

/* The label of a default does not say it: it is written in the unit in which another strength
 * is. */
static void texts(const struct doses *d, struct sweep *s)
{
	enum unit unit = UNIT_NONE;
	double value;

	for (size_t i = 0; i < s->n; i++) {
		bool said = label_text(
			d->names.of[SCORE_FAULT][s->list[i].fault], s->param, s->list[i].text);

		for (int u = UNIT_NONE; said && u <= UNIT_BYTE_RATE; u++)
			if (!unit_parse((enum unit)u, s->list[i].text, &value, NULL) &&
				fabs(value - s->list[i].value) <= 1e-5 * fabs(value))
				unit = (enum unit)u;
	}
	for (size_t i = 0; i < s->n; i++)
		if (!label_text(
			    d->names.of[SCORE_FAULT][s->list[i].fault], s->param, s->list[i].text))
			unit_format(unit, s->list[i].value, s->list[i].text, TEXT);
}

static int by_value(const void *a, const void *b)
{
	double x = ((const struct strength *)a)->value, y = ((const struct strength *)b)->value;

	return (x > y) - (x < y);
}

static int collect(struct doses *d, const json_t *params)
{
	const char *const *labels = d->names.of[SCORE_FAULT];
	size_t n = d->names.n[SCORE_FAULT];

	d->sweeps = calloc(n + 1, sizeof(*d->sweeps));
	if (!d->sweeps)
		return -ENOMEM;
	for (size_t f = 0; f < n; f++) {
		const char *param = varying(d, params, f);
		struct sweep *s = &d->sweeps[d->n];
		bool seen = false;

		for (size_t i = 0; i < f; i++)
			seen = seen || same_name(labels[i], labels[f]);
		if (!param || seen)
			continue;
		snprintf(s->name, sizeof(s->name), "%.*s", (int)name_length(labels[f]), labels[f]);
		snprintf(s->param, sizeof(s->param), "%s", param);
		s->list = calloc(n, sizeof(*s->list));
		d->n++;
		if (!s->list)
			return -ENOMEM;
		for (size_t i = f; i < n; i++)
			if (same_name(labels[i], labels[f]))
				s->list[s->n++] = (struct strength){.fault = i,
					.value = json_number_value(
						value_of(params, labels[i], param))};
		qsort(s->list, s->n, sizeof(*s->list), by_value);
		texts(d, s);
	}
	return 0;
}

static struct column column_at(const struct doses *d, size_t i)
{
	size_t n = d->names.n[SCORE_WORKLOAD];

	return (struct column){.workload = i, .all = i >= n, .wrong = i > n};
}

static size_t n_columns(const struct doses *d)
{
	return d->names.n[SCORE_WORKLOAD] + 2;
}

static const char *column_name(const struct doses *d, struct column c)
{
	return c.wrong ? "wrong server" : c.all ? "all" : d->names.of[SCORE_WORKLOAD][c.workload];
}

/* For people: without parameters, where that still says which. */
static const char *column_text(const struct doses *d, struct column c, char out[64])
{
	const char *label = column_name(d, c);
	size_t same = 0;

	for (size_t w = 0; !c.all && w < d->names.n[SCORE_WORKLOAD]; w++)
		same += same_name(d->names.of[SCORE_WORKLOAD][w], label);
	snprintf(out, 64, "%.*s", same == 1 ? (int)name_length(label) : 63, label);
	return out;
}

/* Cells, and how many of them count, of a column at a strength. */
static void count(const struct doses *d, size_t detector, size_t fault, struct column c,
	unsigned *hits, unsigned *n)
{
	*hits = *n = 0;
	for (size_t w = 0; w < d->names.n[SCORE_WORKLOAD]; w++) {
		const struct score *s = c.all || w == c.workload
			? score_at(d->t, detector, fault, w, d->any)
			: NULL;

		*n += s ? s->n : 0;
		*hits += s ? c.wrong ? s->alarms : s->hits : 0;
	}
}

/* The weakest strength from which on the rate, or the lower end of its interval, is at least the
 * level; NULL: none. */
static const struct strength *smallest(
	const struct doses *d, size_t detector, const struct sweep *s, struct column c, bool surely)
{
	const struct strength *found = NULL;

	for (size_t i = s->n; i-- > 0; found = &s->list[i]) {
		double low, high;
		unsigned hits, n;

		count(d, detector, s->list[i].fault, c, &hits, &n);
		score_interval(hits, n, 0.95, &low, &high);
		if (!n || (surely ? low : (double)hits / n) < d->level - 1e-9)
			break;
	}
	return found;
}

/* "25% (50%)": by TP itself, and by its lower end. */
static void smallest_text(const struct doses *d, size_t detector, const struct sweep *s,
	struct column c, char out[2 * TEXT + 8])
{
	const struct strength *by_rate = smallest(d, detector, s, c, false),
			      *surely = smallest(d, detector, s, c, true);

	if (c.wrong)
		strcpy(out, "");
	else
		snprintf(out, 2 * TEXT + 8, "%s (%s)", by_rate ? by_rate->text : "-",
			surely ? surely->text : "-");
}

static bool left_out(const struct doses *d, size_t detector)
{
	return !(d->notes && d->notes->details) &&
		table_is_null(d->notes, d->names.of[SCORE_DETECTOR][detector]);
}

static void text_block(const struct doses *d, size_t detector, size_t first, size_t last, FILE *out)
{
	char line[256], cell[2 * TEXT + 8]; /* at least the 64 of column_text */
	int len = snprintf(line, sizeof(line), "%-*s", LABEL, "");
	unsigned hits, n;

	for (size_t i = first; i < last; i++)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "   n %-16.16s",
			column_text(d, column_at(d, i), cell));
	table_line(line, out);
	for (const struct sweep *s = d->sweeps; s < d->sweeps + d->n; s++) {
		fprintf(out, "%.50s, %.20s\n", s->name, s->param);
		for (size_t k = 0; k < s->n; k++) {
			len = snprintf(line, sizeof(line), "  %-*.*s", LABEL - 2, LABEL - 2,
				s->list[k].text);
			for (size_t i = first; i < last; i++) {
				count(d, detector, s->list[k].fault, column_at(d, i), &hits, &n);
				table_rate_text(hits, n, cell, sizeof(cell));
				len += snprintf(line + len, sizeof(line) - (size_t)len,
					" %3u %-16s", n, cell);
			}
			table_line(line, out);
		}
		if (column_at(d, first).wrong)
			continue;
		len = snprintf(line, sizeof(line), "  %-*s", LABEL - 2, "found from");
		for (size_t i = first; i < last; i++) {
			smallest_text(d, detector, s, column_at(d, i), cell);
			len += snprintf(
				line + len, sizeof(line) - (size_t)len, "     %-16.16s", cell);
		}
		table_line(line, out);
	}
}

static void put_notes(const struct doses *d, FILE *out)
{
	char text[512];

	snprintf(text, sizeof(text),
		"By strength: TP, the share of cells in which every faulty server was indicted (right server), with exact 95 %% "
		"intervals. found from: the smallest strength from which on TP is at least %g, and in brackets the smallest "
		"from which on the lower end of its interval is; - for none. wrong server: share of all cells in which some "
		"healthy server was indicted.",
		d->level);
	table_wrap(text, out);
	table_footer(d->notes, out);
}

static void render_text(const struct doses *d, FILE *out)
{
	for (size_t k = 0; k < d->names.n[SCORE_DETECTOR]; k++) {
		if (left_out(d, k))
			continue;
		fprintf(out, "%.70s\n", d->names.of[SCORE_DETECTOR][k]);
		for (size_t i = 0; i < n_columns(d); i += COLUMNS_A_BLOCK)
			text_block(d, k, i,
				i + COLUMNS_A_BLOCK < n_columns(d) ? i + COLUMNS_A_BLOCK
								   : n_columns(d),
				out);
		fputc('\n', out);
	}
	put_notes(d, out);
}

static void markdown_rows(const struct doses *d, size_t detector, const struct sweep *s, FILE *out)
{
	char cell[2 * TEXT + 8];
	unsigned hits, n;

	for (size_t k = 0; k <= s->n; k++) {
		fprintf(out, "| %s | %s |", s->name, s->param);
		fprintf(out, k < s->n ? " %s |" : " **found from** |",
			k < s->n ? s->list[k].text : "");
		for (size_t i = 0; i < n_columns(d); i++) {
			if (k < s->n) {
				count(d, detector, s->list[k].fault, column_at(d, i), &hits, &n);
				table_rate_text(hits, n, cell, sizeof(cell));
				fprintf(out, " %u | %s |", n, cell);
			} else {
				smallest_text(d, detector, s, column_at(d, i), cell);
				fprintf(out, " | %s |", cell);
			}
		}
		fputc('\n', out);
	}
}

static void render_markdown(const struct doses *d, FILE *out)
{
	char name[64];

	for (size_t k = 0; k < d->names.n[SCORE_DETECTOR]; k++) {
		if (left_out(d, k))
			continue;
		fprintf(out, "**%s**\n\n| fault | by | strength |", d->names.of[SCORE_DETECTOR][k]);
		for (size_t i = 0; i < n_columns(d); i++)
			fprintf(out, " n | %s |", column_text(d, column_at(d, i), name));
		fputs("\n|---|---|--:|", out);
		for (size_t i = 0; i < n_columns(d); i++)
			fputs("--:|---|", out);
		fputc('\n', out);
		for (size_t i = 0; i < d->n; i++)
			markdown_rows(d, k, &d->sweeps[i], out);
		fputc('\n', out);
	}
	put_notes(d, out);
}

static void render_csv(const struct doses *d, FILE *out)
{
	fputs("detector,fault,parameter,strength,value,workload,n,"
	      "tp_count,tp_low,tp_high,wrong_count,wrong_low,wrong_high\n",
		out);
	for (size_t k = 0; k < d->names.n[SCORE_DETECTOR]; k++)
		for (const struct sweep *s = d->sweeps; s < d->sweeps + d->n; s++)
			for (size_t i = 0; i < s->n; i++)
				for (size_t w = 0; w < d->names.n[SCORE_WORKLOAD]; w++) {
					const struct score *at = score_at(
						d->t, k, s->list[i].fault, w, d->any);
					double low, high;

					if (!at)
						continue;
					table_csv_text(d->names.of[SCORE_DETECTOR][k], out);
					fprintf(out, ",%s,%s,%s,%.17g,", s->name, s->param,
						s->list[i].text, s->list[i].value);
					table_csv_text(d->names.of[SCORE_WORKLOAD][w], out);
					score_interval(at->hits, at->n, 0.95, &low, &high);
					fprintf(out, ",%u,%u,%.6f,%.6f", at->n, at->hits, low,
						high);
					score_interval(at->alarms, at->n, 0.95, &low, &high);
					fprintf(out, ",%u,%.6f,%.6f\n", at->alarms, low, high);
				}
}

static json_t *strength_json(const struct doses *d, size_t detector, const struct strength *s)
{
	json_t *columns = json_object();
	unsigned hits, n;

	for (size_t i = 0; i < n_columns(d); i++) {
		struct column c = column_at(d, i);

		count(d, detector, s->fault, c, &hits, &n);
		json_object_set_new(columns, column_name(d, c),
			json_pack("{s:i, s:o}", "n", (int)n, c.wrong ? "fp" : "tp",
				table_json_rate(hits, n)));
	}
	return json_pack("{s:s, s:f, s:s, s:o}", "strength", s->text, "value", s->value, "label",
		d->names.of[SCORE_FAULT][s->fault], "scores", columns);
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
	for (size_t i = 0; i < n_columns(d); i++) {
		struct column c = column_at(d, i);

		if (!c.wrong)
			json_object_set_new(found, column_name(d, c),
				json_pack("{s:o, s:o}", "tp",
					value_json(smallest(d, detector, s, c, false)), "tp_low",
					value_json(smallest(d, detector, s, c, true))));
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "detector",
		d->names.of[SCORE_DETECTOR][detector], "fault", s->name, "parameter", s->param,
		"strengths", strengths, "found_from", found);
}

static void render_json(const struct doses *d, FILE *out)
{
	json_t *list = json_array(), *all;

	for (size_t k = 0; k < d->names.n[SCORE_DETECTOR]; k++)
		for (size_t i = 0; i < d->n; i++)
			json_array_append_new(list, sweep_json(d, k, &d->sweeps[i]));
	all = json_pack("{s:s?, s:f, s:f, s:o}", "run", d->notes ? d->notes->run_id : NULL,
		"confidence", 0.95, "level", d->level, "sweeps", list);
	json_dumpf(all, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(all);
}

int dose_render(const struct score_table *t, const json_t *params, double level,
	enum table_format format, const struct table_notes *notes, FILE *f, struct err *e)
{
	static void (*const renderers[])(const struct doses *, FILE *) = {
		[TABLE_TEXT] = render_text,
		[TABLE_MARKDOWN] = render_markdown,
		[TABLE_CSV] = render_csv,
		[TABLE_JSON] = render_json};
	struct doses d = {.t = t, .notes = notes, .level = level};
	int rc;

	for (int a = 0; a < SCORE_AXES; a++)
		d.names.n[a] = score_names(t, (enum score_axis)a, &d.names.of[a]);
	while (d.any + 1 < d.names.n[SCORE_METRIC] &&
		strcmp(d.names.of[SCORE_METRIC][d.any], "any"))
		d.any++;
	rc = collect(&d, params);
	if (rc)
		err_errno(e, rc, "cannot make a table");
	else if (!d.n)
		rc = err_set(e, -ENOENT,
			"no fault of the run comes in several strengths: with one parameter changed");
	if (!rc) {
		renderers[format](&d, f);
		if (fflush(f) || ferror(f))
			rc = err_errno(e, -EIO, "cannot print the table");
	}
	for (size_t i = 0; i < d.n; i++)
		free(d.sweeps[i].list);
	free(d.sweeps);
	return rc;
}
