/* Grids as CSV and as JSON. */
#include <string.h>

#include "diag/judge/score.h"
#include "harness/base/text.h"
#include "harness/table/grid_impl.h"

static void csv_cell(const struct grid_column *look, const struct grid_cell *c, FILE *f)
{
	bool bounds = look->flags & GRID_BOUNDS;
	double low, high;
	char buf[160];

	if (!(look->flags & (GRID_RATES | GRID_BOUNDS))) {
		if (c->kind != GRID_ABSENT)
			text_print_csv(
				f, grid_cell_text(look, c, TABLE_CSV, buf, sizeof(buf)), false);
	} else if (c->kind != GRID_RATE) {
		fputs(bounds ? ",," : ",,,", f);
	} else {
		score_interval((unsigned)c->count, c->n, 0.95, &low, &high);
		fprintf(f, "%lld,", c->count);
		if (!bounds)
			fprintf(f, "%.6f,", (double)c->count / c->n);
		fprintf(f, "%.6f,%.6f", low, high);
	}
}

void grid_print_csv(const struct grid *g)
{
	const struct grid_cell *row = NULL;
	const char *comma = "";
	FILE *f = g->out->f;

	for (size_t i = 0; i < g->n_columns; i++) {
		const char *key = g->columns[i].look.key;
		unsigned flags = g->columns[i].look.flags;

		if (!grid_is_for(&g->columns[i], TABLE_CSV))
			continue;
		if (flags & GRID_BOUNDS)
			fprintf(f, "%s%s_count,%s_low,%s_high", comma, key, key, key);
		else if (flags & GRID_RATES)
			fprintf(f, "%s%s_count,%s,%s_low,%s_high", comma, key, key, key, key);
		else
			fprintf(f, "%s%s", comma, key);
		comma = ",";
	}
	fputc('\n', f);
	while ((row = grid_next_row(g, row, TABLE_CSV))) {
		comma = "";
		for (size_t i = 0; i < g->n_columns; i++)
			if (grid_is_for(&g->columns[i], TABLE_CSV)) {
				fputs(comma, f);
				csv_cell(&g->columns[i].look, &row[i], f);
				comma = ",";
			}
		fputc('\n', f);
	}
}

/* JSON */

json_t *grid_rate_json(unsigned hits, unsigned n)
{
	double low, high;

	score_interval(hits, n, 0.95, &low, &high);
	return json_pack("{s:i, s:o, s:f, s:f}", "count", (int)hits, "rate",
		n ? json_real((double)hits / n) : json_null(), "low", low, "high", high);
}

static json_t *json_cell(const struct grid_cell *c)
{
	switch (c->kind) {
	case GRID_WORDS: return json_string(c->words);
	case GRID_COUNT: return json_integer(c->count);
	case GRID_FLAG: return json_boolean(c->count);
	case GRID_NUMBER:
	case GRID_SHARE: return json_real(c->number);
	case GRID_RATE: return grid_rate_json((unsigned)c->count, c->n);
	case GRID_VALUE: return json_incref(c->value);
	case GRID_DELAY:
		return c->n
			? json_pack("{s:i, s:i, s:f, s:f, s:f}", "n", (int)c->n, "early",
				  (int)c->count, "median", c->number, "min", c->low, "max", c->high)
			: json_pack("{s:i, s:i}", "n", 0, "early", (int)c->count);
	case GRID_NONE:
	case GRID_ABSENT: break;
	}
	return json_null();
}

json_t *grid_json(struct grid *g)
{
	const struct grid_cell *row = NULL;
	json_t *list = json_array();

	while ((row = grid_next_row(g, row, TABLE_JSON))) {
		json_t *top = json_object(), *object;

		for (size_t i = 0; i < g->n_columns; i++) {
			const char *key = g->columns[i].look.key, *dot;
			char outer[32];

			if (!grid_is_for(&g->columns[i], TABLE_JSON))
				continue;
			object = top;
			if ((dot = strchr(key, '.'))) {
				snprintf(outer, sizeof(outer), "%.*s", (int)(dot - key), key);
				if (!json_object_get(top, outer))
					json_object_set_new(top, outer, json_object());
				object = json_object_get(top, outer);
				key = dot + 1;
			}
			json_object_set_new(object, key, json_cell(&row[i]));
		}
		json_array_append_new(list, top);
	}
	grid_clear(g);
	return list;
}
