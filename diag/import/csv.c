/*
 * CSV: RFC 4180 (quotes, CRLF or LF, a byte order mark), with ',', ';' or tabs between the fields,
 * whichever is the most frequent in the head, or with '|'. The head is the first line; lines before
 * it that begin with '#' are comments, of which "# metric DECLARATION" goes to the sink. If the
 * first line is a row of samples, the comment before it is the head (collectl -P). Three forms:
 *
 *     long                     time,member,metric,value     with a column of metric names
 *     one column for a metric  time,member,read_ms,write_ms with a column of members
 *     wide                     time,sda,sdb,sdc             with neither
 *
 * Columns are found by their names (csv_head.c). More columns become part of the key if rows repeat
 * times of their series, or take turns (csv_repeats.c). If several could be the member, the
 * narrowest thing is (a disk before its host). The remaining columns region, datacenter, zone,
 * cluster, rack, enclosure, group, node, server, host, vm, pod, instance ... are groups, in this
 * order; a column 'model' is the widest of them. In the wide form the part of a member's name
 * before the last '/' is its group, if all names have one. said->form describes the result.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/csv_impl.h"
#include "diag/import/formats.h"
#include "diag/import/number.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/text.h"

/* Keys times columns of values. */
enum { SLOTS_MAX = 20000000 };
static const uint32_t no_series = UINT32_MAX, no_column = UINT32_MAX;

int csv_wrong(struct csv *c, const char *fmt, ...)
{
	char sentence[900], clean[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	text_clean(sentence, clean, sizeof(clean));
	err_set(c->e, -EINVAL, "%s:%lu: %s", c->source, c->rows.line, clean);
	return err_blame(c->e, ERR_SCENARIO, -EINVAL);
}

int csv_refused(struct csv *c, int rc)
{
	err_prefix(c->e, rc, "%s:%lu", c->source, c->rows.line);
	return err_blame(c->e, ERR_SCENARIO, rc);
}

/* A field without quotes, for names and messages: at most CSV_NAME_ROOM - 1 bytes of it. */
static const char *csv_text_of(
	const struct csv *c, size_t field, char room[static CSV_NAME_ROOM + 1])
{
	csv_unquote(&c->rows, field, room, CSV_NAME_ROOM + 1);
	return room;
}

/* Guesses the unit of a number without one. Seconds since 1970 have 10 digits from 2001 to 2286,
 * and milliseconds 13. */
static double guess_unit(struct csv *c, double x)
{
	double unit_s = fabs(x) > 1e17 ? 1e-9 : fabs(x) > 1e14 ? 1e-6 : fabs(x) > 1e11 ? 1e-3 : 1;

	if (unit_s < 1)
		import_note(c->said,
			"%s: the times in '%.60s' are read as %s because of their size; to set the "
			"unit, end the name with _s, _ms, _us or _ns",
			c->source, c->table.names[c->table.time],
			unit_s == 1e-3           ? "milliseconds"
				: unit_s == 1e-6 ? "microseconds"
						 : "nanoseconds");
	return unit_s;
}

/* Applies the column of zones, if there is one, to a time without a zone. */
static int apply_zone(struct csv *c, double *time_s)
{
	char zone[CSV_NAME_ROOM + 1];
	int offset_s = 0;

	if (c->table.zone != no_column && *csv_text_of(c, c->table.zone, zone)) {
		if (!import_zone(zone, &offset_s))
			return csv_wrong(c,
				"zone '%.60s' is unknown or ambiguous; write times in UTC, "
				"or with their offset (2026-11-22T14:00:00+01:00)",
				zone);
		*time_s -= offset_s;
		return 0;
	}
	c->local = true;
	return 0;
}

/* Reads a time that differs from the previous row's. */
static int new_time(struct csv *c)
{
	const char *text = csv_text(&c->rows, c->table.time);
	size_t n = c->rows.fields[c->table.time].n;
	char room[CSV_NAME_ROOM + 1];
	bool local = false;
	double x;
	int rc = 0;

	/* With a column of zones, the same text may be another time. */
	c->time_n = n <= CSV_TIME_MAX && c->table.zone == no_column ? n : 0;
	memcpy(c->time_text, text, c->time_n);
	if (n && *text == '"') {
		text = csv_text_of(c, c->table.time, room);
		n = strlen(text);
	}
	if (number_read(text, n, &x) == NUMBER_OK) {
		if (c->table.unit_s <= 0)
			c->table.unit_s = guess_unit(c, x);
		x = number_scale(x, c->table.unit_s);
	} else if (!iso_time_read(text, n, &x, &local)) {
		return csv_wrong(c,
			"time '%.60s' is neither a number nor of ISO 8601 (2026-11-22T14:00:00Z)%s",
			csv_text_of(c, c->table.time, room),
			n >= 4 && n <= 12 && text[2] == ':' ? "; write date and time in one column"
							    : "");
	}
	if (local && (rc = apply_zone(c, &x)))
		return rc;
	if (!isfinite(x))
		return csv_wrong(
			c, "time '%.60s' is too large", csv_text_of(c, c->table.time, room));
	c->time_s = x;
	return 0;
}

static uint32_t find_key(struct csv *c)
{
	const struct csv_table *t = &c->table;
	const struct csv_field *f = c->rows.fields;
	size_t n = 0;

	if (!t->n_keys)
		return csv_keys_find(&c->keys, "", 0);
	if (t->keys_adjacent) {
		const struct csv_field *first = &f[t->keys[0]], *last = &f[t->keys[t->n_keys - 1]];

		return csv_keys_find(
			&c->keys, c->rows.row + first->at, last->at + last->n - first->at);
	}
	for (size_t i = 0; i < t->n_keys; i++)
		n += f[t->keys[i]].n + 1;
	if (n > c->scratch_room) {
		c->scratch_room = n * 2;
		c->scratch = alloc_resize(c->scratch, c->scratch_room, 1);
	}
	n = 0;
	for (size_t i = 0; i < t->n_keys; i++) {
		memcpy(c->scratch + n, csv_text(&c->rows, t->keys[i]), f[t->keys[i]].n);
		n += f[t->keys[i]].n;
		c->scratch[n++] = c->rows.separator;
	}
	return csv_keys_find(&c->keys, c->scratch, n);
}

static bool chosen(const struct import_options *o, const char *metric)
{
	for (size_t i = 0; i < o->n_metrics; i++)
		if (!strcmp(o->metrics[i], metric))
			return true;
	return !o->n_metrics;
}

/* Makes room for the series of a new key. */
static int add_key(struct csv *c)
{
	const struct csv_table *t = &c->table;
	struct csv_key *k = &c->keys.v[c->keys.n - 1];
	size_t all = c->keys.n * t->n_values;
	char metric[CSV_NAME_ROOM + 1];

	if (all > SLOTS_MAX)
		return csv_wrong(c, "there are too many series: %u members times %zu columns",
			c->keys.n, t->n_values);
	if (all > c->ids_room) {
		c->ids_room = all * 2;
		c->ids = alloc_resize(c->ids, c->ids_room, sizeof(*c->ids));
	}
	for (size_t i = all - t->n_values; i < all; i++)
		c->ids[i] = no_series;
	k->skip = t->form == CSV_LONG && !chosen(c->o, csv_text_of(c, t->metric, metric));
	if (k->skip)
		memcpy(c->skipped, metric, sizeof(metric));
	return 0;
}

/* Splits a member's name in the wide form into groups and member. */
static void split_name(char *name, struct series_key *key)
{
	char *slash = strrchr(name, '/');

	*slash = '\0';
	key->group[key->n_groups++] = name;
	key->member = slash + 1;
}

static int check_names(struct csv *c, const struct series_key *k)
{
	const char *bad = !import_name(k->member) ? k->member : NULL, *what = "member";

	if (!import_name(k->metric)) {
		bad = k->metric;
		what = "metric";
	}
	for (size_t g = 0; g < k->n_groups; g++)
		if (!import_name(k->group[g])) {
			bad = k->group[g];
			what = "group";
		}
	if (!bad)
		return 0;
	return *bad
		? csv_wrong(c,
			  "'%.60s' cannot name a %s: names are printable UTF-8 of at most %d bytes",
			  bad, what, IMPORT_NAME_MAX)
		: csv_wrong(c, "the name of the %s is empty", what);
}

/* Asks the sink for the series of the row's value number 'v'. */
static int new_series(struct csv *c, size_t v, uint32_t *id)
{
	const struct csv_table *t = &c->table;
	char names[2 + IMPORT_GROUPS_MAX][CSV_NAME_ROOM + 1], path[2 * CSV_NAME_ROOM + 1];
	const char *column = t->names[t->values[v].column];
	struct series_key key = {.metric = *t->only_metric ? t->only_metric : column};
	int rc;

	for (; key.n_groups < t->n_groups; key.n_groups++)
		key.group[key.n_groups] = csv_text_of(
			c, t->group[key.n_groups], names[key.n_groups]);
	if (t->form == CSV_LONG)
		key.metric = csv_text_of(c, t->metric, names[IMPORT_GROUPS_MAX]);
	if (t->form == CSV_WIDE) {
		key.member = column;
		if (t->collectl && csv_collectl_name(column, path, &key.metric))
			key.member = path;
		else if (t->slashes && strlen(column) < sizeof(path))
			split_name(strcpy(path, column), &key);
	} else {
		key.member = csv_text_of(c, t->member, names[IMPORT_GROUPS_MAX + 1]);
	}
	rc = check_names(c, &key);
	if (!rc && (rc = c->sink->series(c->sink->ctx, &key, id, c->e)))
		rc = csv_refused(c, rc);
	return rc;
}

/* Advice about a value that is not a number: a text may name members, a number may have a unit. */
static const char *advice(
	const struct csv *c, const struct csv_value *v, const char *text, char *room, size_t size)
{
	const char *column = c->table.names[v->column];
	size_t digits = strspn(text, "0123456789+-.");

	if (strcspn(text, "0123456789") < digits && !strchr("xX", text[digits]) &&
		text[strspn(text, "0123456789+-.eE")])
		snprintf(room, size,
			" (a number with a unit? Write only the number; the column's name ends "
			"with its unit: _s, _ms, _us, _ns, _bytes, _pct)");
	else if (c->table.form == CSV_WIDE)
		snprintf(room, size,
			"; if it names members (disks, hosts ...), give --member '%.60s', or "
			"--group if it groups them",
			column);
	else if (c->table.form == CSV_COLUMNS)
		snprintf(room, size,
			" (leave it empty if there is no sample; if the column names members, "
			"give --member '%.60s', or --group if it groups them)",
			column);
	else
		snprintf(room, size, " (leave it empty if there is no sample)");
	return room;
}

/* Are all other columns of values texts? */
static bool is_last(const struct csv_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_values; i++)
		n += t->values[i].state != CSV_TEXT;
	return n == 1;
}

/* Reads a value that is not a plain number: quoted, text, or wrong. */
static int odd_value(struct csv *c, struct csv_value *v, double *x, enum number *is)
{
	char text[CSV_NAME_ROOM + 1], room[300];
	size_t n = csv_unquote(&c->rows, v->column, text, sizeof(text));

	*is = n < sizeof(text) ? number_read(text, n, x) : NUMBER_BAD;
	if (*is != NUMBER_BAD)
		return 0;
	if (v->state == CSV_UNDECIDED && !is_last(&c->table)) {
		v->state = CSV_TEXT;
		import_note(c->said,
			"column '%.60s' is not read: '%.60s' is not a number. If it groups "
			"members, name it by --group",
			c->table.names[v->column], text);
		return 0;
	}
	return csv_wrong(c,
		c->table.form == CSV_LONG
			? "value '%.60s' is not a decimal number, in column '%.60s'%s"
			: "value '%.60s' of column '%.60s' is not a decimal number%s",
		text, c->table.names[v->column], advice(c, v, text, room, sizeof(room)));
}

/* The values of columns that are not known to hold numbers, or whose series is not known. False
 * with '*rc' 0: there is no sample. */
static bool take_odd(struct csv *c, size_t v, enum number is, double *x, uint32_t *id, int *rc)
{
	struct csv_value *value = &c->table.values[v];

	*rc = 0;
	if (value->state == CSV_TEXT)
		return false;
	if (is == NUMBER_BAD)
		*rc = odd_value(c, value, x, &is);
	if (*rc || is == NUMBER_BAD)
		return false;
	/* A metric that a member never has is no series. */
	if (*id == no_series && is == NUMBER_MISSING && c->table.form == CSV_COLUMNS)
		return false;
	if (is == NUMBER_OK)
		value->state = CSV_NUMBERS;
	if (*id == no_series)
		*rc = new_series(c, v, id);
	return !*rc;
}

static int take_values(struct csv *c, uint32_t *ids)
{
	int (*const sample)(void *, uint32_t, double, double, struct err *) = c->sink->sample;
	void *const ctx = c->sink->ctx;
	const struct csv_value *values = c->table.values;
	const size_t n = c->table.n_values;
	const double time_s = c->time_s;
	uint64_t missing = 0;
	int rc;

	for (size_t v = 0; v < n; v++) {
		const struct csv_field *f = &c->rows.fields[values[v].column];
		double x = NAN;
		enum number is = f->n ? number_read(c->rows.row + f->at, f->n, &x) : NUMBER_MISSING;

		if (__builtin_expect(is == NUMBER_BAD || ids[v] == no_series ||
				    values[v].state != CSV_NUMBERS,
			    0) &&
			!take_odd(c, v, is, &x, &ids[v], &rc)) {
			if (rc)
				return rc;
			continue;
		}
		missing += isnan(x);
		c->samples++;
		rc = sample(ctx, ids[v], time_s, x, c->e);
		if (rc)
			return csv_refused(c, rc);
	}
	c->missing += missing;
	return 0;
}

static void watch_time(struct csv *c, struct csv_key *k, bool first)
{
	if (!first && c->time_s < k->last_s && !c->back++)
		c->first_back = c->rows.line;
	if (!first && c->time_s > k->last_s + 86400 && !c->gaps++)
		c->first_gap = c->rows.line;
	k->last_s = c->time_s;
}

static int take_row(struct csv *c)
{
	const struct csv_rows *r = &c->rows;
	const struct csv_field *time;
	uint32_t key, known = c->keys.n;
	int rc = 0;

	if (r->n_fields < c->table.n_columns && csv_rows_cut_off(r, c->said))
		return 0;
	/* Tables may follow one another, as in 'cat *.csv' and answers of InfluxDB. */
	if ((r->n_fields != c->table.n_columns || !csv_may_be_time(&c->table, r)) &&
		(rc = csv_between(c)))
		return rc < 0 ? rc : 0;
	if (r->n_fields != c->table.n_columns)
		return csv_wrong(c, "%s fields than the head has: %zu, not %zu",
			r->n_fields < c->table.n_columns ? "fewer" : "more", r->n_fields,
			c->table.n_columns);
	time = &r->fields[c->table.time];
	if (!c->time_n || time->n != c->time_n || memcmp(r->row + time->at, c->time_text, time->n))
		rc = new_time(c);
	if (rc)
		return rc;
	if ((c->o->from_s < 0 || c->o->from_s > 0 || c->o->to_s < 0 || c->o->to_s > 0) &&
		(c->time_s < c->o->from_s || c->time_s >= c->o->to_s))
		return 0;
	key = find_key(c);
	if (key == known)
		rc = add_key(c);
	if (rc || c->keys.v[key].skip)
		return rc;
	watch_time(c, &c->keys.v[key], key == known);
	if (c->part)
		csv_repeats_row(c, key);
	return take_values(c, c->ids + (size_t)key * c->table.n_values);
}

static void describe_values(const struct csv_table *t, FILE *f)
{
	size_t shown = 0, n = 0;

	for (size_t i = 0; i < t->n_values; i++)
		n += t->values[i].state != CSV_TEXT;
	fprintf(f, ", metric%s in column%s ", n == 1 ? "" : "s", n == 1 ? "" : "s");
	for (size_t i = 0; i < t->n_values && shown < 4; i++)
		if (t->values[i].state != CSV_TEXT)
			fprintf(f, "%s'%.60s'", shown++ ? ", " : "", t->names[t->values[i].column]);
	if (n > shown)
		fprintf(f, " and %zu more", n - shown);
	if (*t->only_metric)
		fprintf(f, ", called '%s'", t->only_metric);
}

/* Describes how the table was read; the caller frees. */
static char *describe(const struct csv_table *t)
{
	static const char *const forms[] = {
		"long CSV", "CSV with one column a metric", "wide CSV (one column a member)"};
	const char *unit = t->unit_s == 1e-3 ? "ms"
		: t->unit_s == 1e-6          ? "us"
		: t->unit_s == 1e-9          ? "ns"
					     : "s";
	size_t size;
	char *text;
	FILE *f = alloc_text(&text, &size);

	fprintf(f, "%s: time in column '%.60s' (numbers are %s)", forms[t->form], t->names[t->time],
		unit);
	if (t->member != no_column)
		fprintf(f, ", member in '%.60s'", t->names[t->member]);
	for (size_t g = 0; g < t->n_groups; g++)
		fprintf(f, "%s'%.60s'", g ? ", " : ", groups in ", t->names[t->group[g]]);
	if (t->form == CSV_LONG)
		fprintf(f, ", metric in '%.60s', value in '%.60s'", t->names[t->metric],
			t->names[t->values[0].column]);
	else if (t->form == CSV_COLUMNS)
		describe_values(t, f);
	else if (t->collectl)
		fprintf(f, ", %zu columns '[KIND:MEMBER]METRIC' of collectl", t->n_values);
	else
		fprintf(f, ", %zu members, metric '%s'%s", t->n_values, t->only_metric,
			t->slashes ? ", group before the last '/' of their names" : "");
	fclose(f);
	return text;
}

static void note_times(const struct csv *c)
{
	if (c->local)
		import_note(c->said, "times without a zone are taken as UTC");
	if (c->back)
		import_note(c->said,
			"rows whose time is before that of their series' last row: %" PRIu64
			", the first at line %lu",
			c->back, c->first_back);
	if (c->gaps)
		import_note(c->said,
			"gaps of more than a day in a series: %" PRIu64 ", the first at line %lu",
			c->gaps, c->first_gap);
}

static void csv_conclude(struct csv *c)
{
	if (!c->said)
		return;
	for (uint32_t i = 0; i < c->table.n_columns && c->table.form == CSV_COLUMNS; i++)
		if (!c->o->n_metrics && csv_member_name(c->table.names[i]) &&
			!csv_has_role(&c->table, i))
			import_note(c->said,
				"column '%.60s' is not read: its name is one of members; it can be "
				"the --member or a --group",
				c->table.names[i]);
	note_times(c);
	c->said->samples += c->samples;
	c->said->missing += c->missing;
	if (*c->skipped && !c->samples)
		import_note(c->said, "%s: it has '%.60s', but none of the requested metrics",
			c->source, c->skipped);
	if (c->table.n_values && !c->said->form)
		c->said->form = describe(&c->table);
}

int csv_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct csv c = {.source = source, .o = o, .sink = sink, .said = said, .e = e};
	int rc;

	csv_rows_init(&c.rows, f);
	rc = csv_begin(&c);
	while (!rc && !c.ended && csv_rows_next(&c.rows))
		rc = take_row(&c);
	if (!rc && c.rows.failed) {
		err_set(e, -EIO, "cannot read '%s'", source);
		rc = -EIO;
	} else if (!rc && c.rows.wrong) {
		rc = csv_wrong(&c, "%s", c.rows.wrong);
	}
	if (!rc)
		rc = csv_repeats_judge(&c);
	csv_conclude(&c);
	csv_rows_clear(&c.rows);
	csv_table_clear(&c.table);
	csv_keys_clear(&c.keys);
	csv_keys_clear(&c.times);
	csv_keys_clear(&c.whole);
	free(c.ids);
	free(c.scratch);
	return rc;
}
