/* Describes each cell and its verdicts in sentences. */
#include "harness/cli/tables.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/application.h"
#include "harness/table/grid.h"

/* Seconds of the cell as "1:05". */
static void clock_text(double s, char *out, size_t size)
{
	long whole = s > 0 ? (long)(s + 0.5) : 0;

	snprintf(out, size, "%ld:%02ld", whole / 60, whole % 60);
}

static char *table_words_join(const json_t *names)
{
	char *text;
	size_t size, i;
	FILE *f = alloc_text(&text, &size);
	json_t *name;

	json_array_foreach((json_t *)names, i, name)
		fprintf(f, "%s%s", i ? " and " : "", json_string_value(name));
	fclose(f);
	return text;
}

static double since_start_s(const json_t *cell, const char *key)
{
	return (double)(jget_int(cell, key) - jget_int(cell, "start_ns")) / 1e9;
}

/* "; throughput 0.34 [0.20,0.46] of the controls", for each measure that is known of some cell. */
static char *how_it_suffered(const struct impacts *impacts, long cell)
{
	char *text, buf[IMPACT_TEXT];
	size_t size;
	FILE *f = alloc_text(&text, &size);

	for (int m = 0; m < IMPACT_MEASURES; m++) {
		struct impact i = impacts_of_cell(impacts, m, cell);

		if (!impacts_unknown(impacts, m))
			fprintf(f, "; %s %s%s", impact_name(m), impact_text(i, buf),
				i.n ? " of the controls" : "");
	}
	fclose(f);
	return text;
}

/* "cell 5: s4 was under disk-hog from 0:08 to 0:28 (ddw; throughput 0.34 [0.20,0.46] of the
 * controls)" */
static char *what_happened(const json_t *row, const json_t *cell, const struct impacts *impacts)
{
	auto_free char *suffered = how_it_suffered(impacts, (long)jget_int(row, "cell"));
	auto_free char *victims = table_words_join(jget(row, "victims"));
	char from[32], to[32];

	if (!*victims)
		return alloc_format("cell %lld: nothing was wrong (%s)",
			(long long)jget_int(row, "cell"), jget_text(row, "workload"));
	clock_text(since_start_s(cell, "onset_ns"), from, sizeof(from));
	clock_text(since_start_s(cell, "offset_ns"), to, sizeof(to));
	return alloc_format("cell %lld: %s %s under %s from %s to %s (%s%s)",
		(long long)jget_int(row, "cell"), victims,
		json_array_size(jget(row, "victims")) > 1 ? "were" : "was", jget_text(row, "fault"),
		from, to, jget_text(row, "workload"), suffered);
}

/* ", 6.0 s after the onset", by the server that was indicted last; "" if the verdict does not
 * say. */
static char *when_text(const json_t *row, const json_t *cell)
{
	const json_t *times = jget(jget(row, "verdict"), "time_s");
	double last = -1, delay;
	json_t *name;
	size_t i;

	json_array_foreach(jget(row, "victims"), i, name) {
		double at = jget_real(times, json_string_value(name));

		if (!jget(times, json_string_value(name)))
			return alloc_copy("");
		last = at > last ? at : last;
	}
	delay = last - since_start_s(cell, "onset_ns");
	return delay < 0 ? alloc_format(", %.1f s before the onset", -delay)
			 : alloc_format(", %.1f s after the onset", delay);
}

/* "peer-robust named s4, disk, 6.0 s after the onset" */
static char *what_was_said(const json_t *row, const json_t *cell)
{
	const json_t *verdict = jget(row, "verdict"), *error = jget(verdict, "error");
	const char *detector = jget_text(row, "detector"),
		   *resource = jget_text(verdict, "resource"),
		   *reason = jget_text(verdict, "reason");
	auto_free char *names = table_words_join(jget(verdict, "indicted")), *when = NULL;
	const bool control = !json_array_size(jget(row, "victims"));

	if (error)
		return alloc_format("%s failed: %s", detector, json_string_value(error));
	if (jget_true(verdict, "abstain"))
		return alloc_format(
			"%s abstained%s%s", detector, reason ? ": " : "", reason ? reason : "");
	if (!*names)
		return alloc_format(
			"%s named nobody%s", detector, control ? ", which is right" : ": a miss");
	when = jget_true(row, "right") ? when_text(row, cell) : alloc_copy("");
	return alloc_format("%s named %s%s%s%s%s", detector, names, resource ? ", " : "",
		resource ? resource : "", when,
		!jget_true(row, "wrong") ? ""
			: control        ? ": a false alarm"
					 : ": a healthy server is among them");
}

static const json_t *table_words_cell_of(const json_t *confirmed, const json_t *row)
{
	json_t *cell;
	size_t i;

	json_array_foreach((json_t *)confirmed, i, cell) {
		if (jget_int(cell, "cell") == jget_int(row, "cell"))
			return cell;
	}
	return NULL;
}

int table_words(struct store *s, const struct scoring *c, FILE *out, struct err *e)
{
	json_auto_t *confirmed = NULL;
	struct impacts *impacts = NULL;
	struct sheet sheet = {.f = out};
	json_int_t before = 0;
	auto_free char *line = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(s, ROWS_CONFIRMED, 0, &confirmed, e)
		?: application_impacts(s, scoring_range(c), &impacts, e);

	if (rc)
		return rc;
	sheet_fit(&sheet);
	json_array_foreach((json_t *)scoring_cells(c), i, row) {
		const json_t *cell = table_words_cell_of(confirmed, row);
		auto_free char *said = what_was_said(row, cell);
		auto_free char *so_far = line;
		const bool same = line && jget_int(row, "cell") == before;

		before = jget_int(row, "cell");
		if (line && !same)
			sheet_words(&sheet, "%s", line);
		line = same ? alloc_format("%s; %s", so_far, said) : NULL;
		if (!same) {
			auto_free char *happened = what_happened(row, cell, impacts);

			line = alloc_format("%s: %s", happened, said);
		}
	}
	if (line)
		sheet_words(&sheet, "%s", line);
	impacts_free(impacts);
	return sheet_end(&sheet);
}
