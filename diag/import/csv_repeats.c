/* Looks ahead in a table for rows that repeat a time of their series, and finds the columns that
 * separate them.
 *
 * Rows repeat if they have the same key, time and first value column, but are not identical. A
 * column separates them if its values recur at other times: a text, or whole numbers that are the
 * same for a series at nearly all times. Among several, the column that separates most rows is
 * taken, texts before numbers, then the one with the fewest values; then the next column, until at
 * most 1 row in 100 repeats.
 *
 * In a text longer than the examined part, repeats are counted while it is read, for one time in
 * SAMPLED of each series. So the rows may come in any order, with little memory. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag/import/csv_impl.h"
#include "diag/import/number.h"
#include "diag/import/repeats.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"
#include "harness/base/map.h"

enum {
	CELLS_MAX = 3 << 20, /* hashes that are kept */
	FREE_SHARE = 100,    /* one repeated row in FREE_SHARE needs no column */
	WRONG_SHARE = 20,    /* one in WRONG_SHARE, and at least ..., is an error */
	WRONG_LEAST = 3,
	WRONG_LEAST_SETTLED = 8, /* in a followed file: a corrected sample is no error */
	FEW = 256,               /* most values of a column of numbers */
	SAMPLED = 16,            /* of a long text; a power of two */
	TURNS_LEAST = 8          /* rows of a value, to know its step */
};

static const double TURN_EVEN = 0.2; /* of a step */

static const uint32_t none = UINT32_MAX;

struct column {
	uint32_t at;
	bool text, whole, used;
	size_t distinct;
};

struct look {
	const struct csv_table *t;
	struct csv_rows *r;
	const struct import_options *o;
	struct column *columns; /* candidates for separating rows */
	size_t n_columns, width;
	uint64_t *cells; /* [row * width]: key, time, whole row, then the columns */
	double *times;   /* of the rows, in any unit; NULL: not needed */
	size_t n_rows, room;
};

enum { KEY, TIME, ROW, FIRST };

static uint64_t field_hash(const struct csv_rows *r, uint32_t column)
{
	return hash_words(csv_text(r, column), r->fields[column].n);
}

static bool wanted(const struct look *l)
{
	char metric[IMPORT_NAME_MAX + 2];

	if (l->t->form != CSV_LONG || !l->o->n_metrics)
		return true;
	csv_unquote(l->r, l->t->metric, metric, sizeof(metric));
	for (size_t i = 0; i < l->o->n_metrics; i++)
		if (!strcmp(l->o->metrics[i], metric))
			return true;
	return false;
}

static enum number read_field(const struct csv_rows *r, uint32_t column, double *x)
{
	char text[64];
	size_t n = csv_unquote(r, column, text, sizeof(text));

	return n < sizeof(text) ? number_read(text, n, x) : NUMBER_BAD;
}

/* The first column in which the row has a value. Two rows of a member and time may hold different
 * metrics. */
static uint32_t first_value(const struct look *l)
{
	double x;

	for (size_t v = 0; v < l->t->n_values; v++)
		if (read_field(l->r, l->t->values[v].column, &x) == NUMBER_OK)
			return l->t->values[v].column;
	return none;
}

static double read_time(const struct look *l)
{
	char text[64];
	size_t n = csv_unquote(l->r, l->t->time, text, sizeof(text));
	double x = NAN;

	if (n < sizeof(text) && number_read(text, n, &x) != NUMBER_OK)
		iso_time_read(text, n, &x, NULL);
	return x;
}

static void take_columns(struct look *l, uint64_t *cell)
{
	double x;

	for (size_t i = 0; i < l->n_columns; i++) {
		struct column *c = &l->columns[i];
		enum number is = read_field(l->r, c->at, &x);

		cell[i] = field_hash(l->r, c->at);
		c->text |= is == NUMBER_BAD;
		c->whole &= is == NUMBER_OK && x == trunc(x);
	}
}

/* Reads the rows ahead, with 'columns' also their values there. */
static void csv_repeats_scan(struct look *l)
{
	struct csv_rows *r = l->r;

	l->n_rows = 0;
	l->width = FIRST + l->n_columns;
	while (l->n_rows < CELLS_MAX / l->width && csv_rows_next(r) &&
		r->n_fields == l->t->n_columns) {
		uint32_t first = wanted(l) ? first_value(l) : none;
		uint64_t *cell, key = 1, row = 1;

		if (!csv_may_be_time(l->t, r) && csv_head_again(l->t, r) == CSV_OTHER_HEAD)
			break;
		if (first == none)
			continue;
		if (l->n_rows == l->room) {
			l->room = l->room ? 2 * l->room : 1024;
			l->cells = alloc_resize(l->cells, l->room * l->width, sizeof(*l->cells));
			if (l->times)
				l->times = alloc_resize(l->times, l->room, sizeof(*l->times));
		}
		if (l->times)
			l->times[l->n_rows] = read_time(l);
		cell = l->cells + l->n_rows++ * l->width;
		for (size_t k = 0; k < l->t->n_keys; k++)
			key = hash_mix(key, field_hash(r, l->t->keys[k]));
		for (uint32_t i = 0; i < r->n_fields; i++)
			row = hash_mix(row, field_hash(r, i));
		cell[KEY] = hash_mix(key, first);
		cell[TIME] = field_hash(r, l->t->time);
		cell[ROW] = row;
		take_columns(l, cell + FIRST);
	}
}

/* Counts the combinations of the 'n' cells 'which'. */
static size_t distinct(struct look *l, const size_t *which, size_t n)
{
	struct map seen = {0};
	size_t count;

	for (size_t i = 0; i < l->n_rows; i++) {
		const uint64_t *cell = l->cells + i * l->width;
		uint64_t h = 1;

		for (size_t k = 0; k < n; k++)
			h = hash_mix(h, cell[which[k]]);
		map_put(&seen, h, 1);
	}
	count = seen.n;
	map_clear(&seen);
	return count;
}

bool csv_has_role(const struct csv_table *t, uint32_t column)
{
	bool role = column == t->time || column == t->member || column == t->metric ||
		column == t->zone;

	for (size_t g = 0; g < t->n_groups; g++)
		role |= column == t->group[g];
	return role || (t->form == CSV_LONG && column == t->values[0].column);
}

static void list_columns(struct look *l)
{
	double unit_s;

	l->columns = alloc_zero(l->t->n_columns, sizeof(*l->columns));
	for (uint32_t i = 0; i < l->t->n_columns; i++)
		if (!csv_has_role(l->t, i) && *l->t->names[i] &&
			!csv_time_name(l->t->names[i], &unit_s))
			l->columns[l->n_columns++] = (struct column){.at = i, .whole = true};
}

/* Does any column without a role hold text in the last row? */
static bool any_text(const struct look *l)
{
	double x;
	bool text = false;

	for (size_t i = 0; i < l->n_columns; i++)
		text |= l->r->row && l->columns[i].at < l->r->n_fields &&
			read_field(l->r, l->columns[i].at, &x) == NUMBER_BAD;
	return text;
}

/* Do the values of the column recur, so that it makes series? 'with' are the cells of the key with
 * the column. */
static bool makes_series(
	struct look *l, const struct column *c, const size_t *with, size_t n, size_t rows)
{
	size_t series = distinct(l, with, n);

	if (c->text)
		return 2 * series <= rows;
	return c->whole && c->distinct <= FEW &&
		4 * series * distinct(l, &(size_t){TIME}, 1) <= 5 * rows;
}

/* Texts and whole numbers, except the table's only numbers: those are its samples. */
static bool may_separate(const struct look *l, const struct column *c)
{
	size_t numbers = 0;

	if (c->text || l->t->form == CSV_LONG)
		return c->text || c->whole;
	for (size_t i = 0; i < l->n_columns; i++)
		numbers += !l->columns[i].text && !l->columns[i].used;
	return c->whole && numbers > 1;
}

/* The column that separates most rows of the cells in 'by', preferably a text; or NULL. '*left'
 * rows still repeat. */
static struct column *best_column(struct look *l, size_t *by, size_t n, size_t rows, size_t *left)
{
	size_t before = distinct(l, by, n), most = before;
	struct column *best = NULL;

	for (size_t i = 0; i < l->n_columns; i++) {
		struct column *c = &l->columns[i];
		size_t now;

		if (c->used || (best && best->text && !c->text) || !may_separate(l, c))
			continue;
		by[n] = FIRST + i;
		now = distinct(l, by, n + 1);
		c->distinct = distinct(l, &by[n], 1);
		if (now == before ||
			(best && best->text == c->text &&
				(now < most || (now == most && c->distinct >= best->distinct))))
			continue;
		/* Without the time, which is the first. */
		if (!makes_series(l, c, by + 1, n, rows))
			continue;
		best = c;
		most = now;
	}
	*left = rows - most;
	return best;
}

static bool in_list(const char *name, const char *const list[])
{
	for (; *list; list++)
		if (!strcasecmp(name, *list))
			return true;
	return false;
}

/* Is the column a thing below the member, such as a host's disk? Otherwise it is an operation or a
 * place: reads and writes, a site. */
static bool is_below(struct look *l, const struct column *c, size_t cell)
{
	static const char *const kinds[] = {"op", "operation", "type", "mode", "direction", "dir",
		"kind", "rw", "io", "class", "method", "verb", "status", "state", "stat",
		"quantile", "percentile", "unit", "field", "protocol", "proto", "env",
		"environment", "site", "location", "tenant", NULL};
	const char *name = l->t->names[c->at];
	size_t keys;

	if (l->o->member || !csv_holds_others(l->t->names[l->t->member]))
		return false;
	if (csv_member_name(name))
		return true;
	if (in_list(name, kinds))
		return false;
	keys = distinct(l, &(size_t){KEY}, 1);
	/* Each value in one host only, or several values in each host. */
	return distinct(l, (const size_t[]){KEY, cell}, 2) == c->distinct ||
		distinct(l, (const size_t[]){KEY, cell}, 2) >= 3 * keys;
}

/* Adds the column to the roles; false if there is no room. */
static bool give_role(struct look *l, const struct column *c, struct csv_roles *roles)
{
	const char *name = l->t->names[c->at];
	bool below = !roles->below && is_below(l, c, (size_t)(c - l->columns) + FIRST);

	if (roles->n_groups == IMPORT_GROUPS_MAX)
		return false;
	if (below) {
		roles->group[roles->n_groups++] = roles->member;
		roles->member = name;
		roles->below = true;
	} else {
		memmove(roles->group + 1, roles->group, roles->n_groups * sizeof(*roles->group));
		roles->group[0] = name;
		roles->n_groups++;
	}
	return true;
}

/* "'op', 'name'" */
static void list_names(const struct look *l, bool used, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (size_t i = 0; i < l->n_columns && n < size; i++)
		if (used ? l->columns[i].used : may_separate(l, &l->columns[i]))
			n += (size_t)snprintf(out + n, size - n, "%s'%.40s'", n ? ", " : "",
				l->t->names[l->columns[i].at]);
}

static int csv_repeats_refuse(
	const struct look *l, size_t repeated, size_t rows, bool found, struct err *e)
{
	char names[300];

	list_names(l, found, names, sizeof(names));
	if (found && l->t->form == CSV_WIDE)
		return err_set(e, -EINVAL,
			"%zu of %zu rows repeat a time, separated by %s: give it by --member if it "
			"names members (disks, hosts ...), else by --group",
			repeated, rows, names);
	if (found)
		return err_set(e, -EINVAL,
			"%zu of %zu rows repeat a time of their series, separated by "
			"%s: add it by --group, or name it by --member",
			repeated, rows, names);
	return err_set(e, -EINVAL,
		"%zu of %zu rows repeat a time of their series, and no column separates them%s%s: "
		"keep one for each time, or give --member and --group",
		repeated, rows, *names ? "; tried " : "", names);
}

static void csv_repeats_tell(const struct look *l, const struct csv_roles *roles, size_t repeated,
	size_t rows, struct import_said *said)
{
	char names[300], groups[300] = "";
	size_t n = 0;

	list_names(l, true, names, sizeof(names));
	for (size_t g = 0; g < roles->n_groups && n < sizeof(groups); g++)
		n += (size_t)snprintf(groups + n, sizeof(groups) - n, "%s'%.40s'", g ? ", " : "",
			roles->group[g]);
	import_note(said,
		"%zu of %zu rows repeat a time of their series; %s separates them: member in "
		"'%.40s', groups in %s (--member and --group change this)",
		repeated, rows, names, roles->member, groups);
}

/* Adds columns until few rows repeat; returns the number of those that still do. */
static size_t add_columns(struct look *l, size_t rows, struct csv_roles *roles, bool *room)
{
	size_t by[2 + IMPORT_GROUPS_MAX + 1] = {TIME, KEY}, n = 2, left = rows - distinct(l, by, n);

	*room = true;
	while (n < 2 + IMPORT_GROUPS_MAX && left * FREE_SHARE > rows && *room) {
		struct column *c = best_column(l, by, n, rows, &left);

		if (!c)
			break;
		by[n++] = FIRST + (size_t)(c - l->columns);
		c->used = true;
		*room = l->t->form == CSV_WIDE || give_role(l, c, roles);
	}
	return left;
}

static int separate(struct look *l, size_t repeated, size_t rows, struct csv_roles *roles,
	struct import_said *said, struct err *e)
{
	const size_t least = l->o->settled ? WRONG_LEAST_SETTLED : WRONG_LEAST;
	bool room, found = false;
	size_t left = add_columns(l, rows, roles, &room);

	for (size_t i = 0; i < l->n_columns; i++)
		found |= l->columns[i].used;
	found = found && left * WRONG_SHARE <= rows;
	if (found && room && l->t->form != CSV_WIDE && !l->o->group[0] && !l->o->settled) {
		csv_repeats_tell(l, roles, repeated, rows, said);
		return 1;
	}
	if (repeats_wrong(repeated, rows, least))
		return csv_repeats_refuse(l, repeated, rows, found, e);
	import_note(said, "%zu of %zu rows repeat a time of their series; their mean is used",
		repeated, rows);
	return 0;
}

struct turn {
	uint64_t key, value;
	double time_s;
};

static int by_time(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->time_s < y->time_s ? -1 : x->time_s > y->time_s;
}

static int by_value(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->key == y->key && x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return by_time(a, b);
}

static int csv_repeats_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median step between 'n' rows in order, with 'steps' sorted; 0: no steps. */
static double usual_step(const struct turn *t, size_t n, double *steps)
{
	for (size_t i = 1; i < n; i++)
		steps[i - 1] = t[i].time_s - t[i - 1].time_s;
	if (n < 2)
		return 0;
	qsort(steps, n - 1, sizeof(*steps), csv_repeats_compare);
	return steps[(n - 1) / 2];
}

/* Counts a key's rows whose value of the column comes at its own step, longer than that of all
 * rows; '*values': number of such values. */
static size_t own_steps(struct turn *t, size_t n, double *steps, size_t *values)
{
	double all;
	size_t own = 0;

	qsort(t, n, sizeof(*t), by_time);
	all = usual_step(t, n, steps);
	qsort(t, n, sizeof(*t), by_value);
	*values = 0;
	for (size_t i = 0, end; i < n; i = end, ++*values) {
		size_t even = 0;
		double step;

		for (end = i + 1; end < n && t[end].value == t[i].value; end++)
			;
		step = usual_step(t + i, end - i, steps);
		for (size_t s = 0; s + 1 < end - i; s++)
			even += fabs(steps[s] - step) <= TURN_EVEN * step;
		if (end - i >= TURNS_LEAST && 5 * even >= 4 * (end - i - 1) && step > 0 &&
			step >= 1.5 * all)
			own += end - i;
	}
	return own;
}

/* Do the values of the column take turns in time, like samples of several hosts polled one after
 * another? Then they are series, although no time repeats. A state of one host has no separate
 * step. */
static bool takes_turns(struct look *l, size_t column)
{
	struct turn *t = alloc_zero(l->n_rows, sizeof(*t));
	double *steps = alloc_zero(l->n_rows, sizeof(*steps));
	size_t shared = 0, own = 0, n = 0;

	for (size_t i = 0; i < l->n_rows; i++)
		if (isfinite(l->times[i]))
			t[n++] = (struct turn){l->cells[i * l->width + KEY],
				l->cells[i * l->width + FIRST + column], l->times[i]};
	qsort(t, n, sizeof(*t), by_time);
	for (size_t i = 0, end; i < n; i = end) {
		size_t values, rows;

		for (end = i + 1; end < n && t[end].key == t[i].key; end++)
			;
		rows = own_steps(t + i, end - i, steps, &values);
		if (values > 1) {
			shared += end - i;
			own += rows;
		}
	}
	free(t);
	free(steps);
	return n && 2 * shared >= n && 10 * own >= 9 * shared;
}

/* Looks for a column whose values take turns, if few rows repeat. */
static int look_for_turns(
	struct look *l, struct csv_roles *roles, struct import_said *said, struct err *e)
{
	for (size_t i = 0; i < l->n_columns; i++) {
		struct column *c = &l->columns[i];

		if (!c->text || !l->n_rows || !takes_turns(l, i))
			continue;
		c->used = true;
		if (l->t->form == CSV_WIDE || !give_role(l, c, roles))
			return err_set(e, -EINVAL,
				"the values of column '%.60s' take turns in time, each at its own "
				"step, so they are several series: give --member '%.60s' or "
				"--group",
				l->t->names[c->at], l->t->names[c->at]);
		import_note(said,
			"the values of column '%.60s' take turns in time, each at its own step: "
			"it separates series; member in '%.40s' (--member and --group change "
			"this)",
			l->t->names[c->at], roles->member);
		return 1;
	}
	return 0;
}

struct sampled {
	uint64_t key, column;
	double time_s;
	uint64_t row; /* the whole row */
};

/* Uses the high bits of the hash: the low ones are the item's place in its table. */
static bool is_sampled(uint64_t hash)
{
	return !(hash >> 56 & (SAMPLED - 1));
}

void csv_repeats_row(struct csv *c, uint32_t key)
{
	struct look l = {.t = &c->table, .r = &c->rows, .o = c->o};
	struct sampled item = {.key = c->keys.v[key].hash, .time_s = c->time_s};
	const size_t n_time = offsetof(struct sampled, row);
	uint32_t times = c->times.n, whole = c->whole.n, first;
	const char *name;

	if (!is_sampled(hash_mix(
		    item.key, hash_words((const char *)&item.time_s, sizeof(item.time_s)))) ||
		(first = first_value(&l)) == none)
		return;
	/* By name: tables that follow one another may have other columns. */
	name = c->table.names[first];
	item.column = hash_words(name, strlen(name));
	for (uint32_t i = 0; i < c->rows.n_fields; i++)
		item.row = hash_mix(item.row, field_hash(&c->rows, i));
	if (csv_keys_find(&c->whole, (const char *)&item, sizeof(item)) == whole &&
		csv_keys_find(&c->times, (const char *)&item, n_time) != times && !c->first_repeat)
		c->first_repeat = c->rows.line;
}

int csv_repeats_judge(struct csv *c)
{
	uint32_t repeated = c->whole.n - c->times.n;

	if (!repeats_wrong(repeated, c->whole.n, WRONG_LEAST))
		return 0;
	c->rows.line = c->first_repeat;
	return csv_wrong(c,
		"%.0f%% of the rows repeat a time of their series, such as this one: keep one for "
		"each time, or give --member and --group",
		100.0 * repeated / c->whole.n);
}

static void roles_of_head(const struct csv_table *t, bool part, struct csv_roles *roles)
{
	*roles = (struct csv_roles){.part = part, .n_groups = t->n_groups};
	roles->member = t->member == none ? NULL : t->names[t->member];
	for (size_t g = 0; g < t->n_groups; g++)
		roles->group[g] = t->names[t->group[g]];
}

int csv_repeats(const struct csv_table *t, struct csv_rows *r, const struct import_options *o,
	struct csv_roles *roles, struct import_said *said, struct err *e)
{
	struct csv_rows before = *r;
	struct look l = {.t = t, .r = r, .o = o};
	size_t rows, repeated;
	bool part;
	int rc = 0;

	r->ahead = true;
	csv_repeats_scan(&l);
	part = !r->eof || r->next != r->end;
	rows = distinct(&l, (const size_t[]){TIME, KEY, ROW}, 3);
	repeated = rows - distinct(&l, (const size_t[]){TIME, KEY}, 2);
	roles_of_head(t, part, roles);
	list_columns(&l);
	if (repeated || (l.n_columns && !o->settled && !o->group[0] && any_text(&l))) {
		free(l.cells);
		l.cells = NULL;
		l.room = 0;
		l.times = alloc_zero(1, sizeof(*l.times));
		r->next = before.next;
		csv_repeats_scan(&l);
		rows = distinct(&l, (const size_t[]){TIME, KEY, ROW}, 3);
		repeated = rows - distinct(&l, (const size_t[]){TIME, KEY}, 2);
		if (repeated)
			rc = separate(&l, repeated, rows, roles, said, e);
		if (!rc && !o->settled && !o->group[0]) {
			roles_of_head(t, part, roles);
			rc = look_for_turns(&l, roles, said, e);
		}
	}
	r->ahead = false;
	r->next = before.next;
	r->line = before.line;
	r->lines = before.lines;
	r->wrong = NULL;
	free(l.columns);
	free(l.cells);
	free(l.times);
	return rc;
}
