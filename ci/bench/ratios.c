#include "ci/bench/ratios.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

enum { FIELDS = 6, FIELD = 64 };

/* An average on one server in one cell. */
struct average {
	long cell;
	char fault[FIELD], server[FIELD], component[FIELD];
	bool victim;
	double value;
};

struct ratios {
	struct average *rows;
	size_t n;
	char run[FIELD], fs[FIELD];
};

/* ---- reading ---- */

/* Cuts a line into fields; how many there are, or FIELDS + 1. */
static size_t cut(char *line, char *fields[FIELDS])
{
	size_t n = 0;

	for (char *at; (at = strsep(&line, ",")) && n <= FIELDS; n++)
		if (n < FIELDS)
			fields[n] = at;
	return n;
}

static bool put(char out[FIELD], const char *text)
{
	size_t n = strlen(text);

	if (!n || n >= FIELD)
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static bool number(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && isfinite(*out);
}

static bool read_row(char *line, struct average *a)
{
	char *fields[FIELDS];
	double cell;

	if (cut(line, fields) != FIELDS || !number(fields[0], &cell) || fabs(cell) > 1e9)
		return false;
	a->cell = (long)cell;
	a->victim = !strcmp(fields[3], "1");
	return (a->victim || !strcmp(fields[3], "0")) && put(a->fault, fields[1]) &&
		put(a->server, fields[2]) && put(a->component, fields[4]) &&
		number(fields[5], &a->value);
}

static void read_note(struct ratios *r, const char *line)
{
	sscanf(line, "# run: %63[^\n]", r->run);
	sscanf(line, "# file system: %63[^\n]", r->fs);
}

int ratios_parse(const char *name, const char *averages, struct ratios **out, struct err *e)
{
	struct ratios *r = alloc_zero(1, sizeof(*r));
	char *copy = alloc_copy(averages), *rest = copy, *line;
	bool head = false;
	int rc = 0;

	for (unsigned long number_of = 1; !rc && (line = strsep(&rest, "\n")); number_of++) {
		if (*line == '#')
			read_note(r, line);
		if (*line == '#' || !*line)
			continue;
		if (!head) {
			head = !strcmp(line, "cell,fault,server,victim,component,average");
			rc = head ? 0 : -EINVAL;
		} else {
			r->rows = alloc_resize(r->rows, r->n + 1, sizeof(*r->rows));
			rc = read_row(line, &r->rows[r->n++]) ? 0 : -EINVAL;
		}
		if (rc)
			err_set(e, rc,
				"%s:%lu: expected %s 'cell,fault,server,victim,component,average'",
				name, number_of, head ? "the fields" : "the heading");
	}
	if (!rc && !r->n)
		rc = err_set(e, -EINVAL, "%s: no averages", name);
	free(copy);
	if (rc)
		ratios_free(r);
	else
		*out = r;
	return rc;
}

void ratios_free(struct ratios *r)
{
	if (!r)
		return;
	free(r->rows);
	free(r);
}

/* ---- ratios ---- */

/* The two sides of a cell: the victim's average, or the one whose turn it is, and the others'. */
static bool sides(const struct ratios *r, long cell, const char *component, size_t turn,
	double *victim, double *plain)
{
	size_t n = 0, at = 0, victims = 0, others = 0;
	bool control = true;

	for (size_t i = 0; i < r->n; i++)
		if (r->rows[i].cell == cell && !strcmp(r->rows[i].component, component)) {
			control = control && !r->rows[i].victim;
			n++;
		}
	*victim = *plain = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct average *a = &r->rows[i];

		if (a->cell != cell || strcmp(a->component, component) != 0)
			continue;
		if (control ? at++ == turn % n : a->victim) {
			*victim += a->value;
			victims++;
		} else {
			*plain += a->value;
			others++;
		}
	}
	if (!victims || !others)
		return false;
	*victim /= (double)victims;
	*plain /= (double)others;
	return *victim > 0 && *plain > 0;
}

static void interval(struct ratio *out, double sum, double squares)
{
	const double n = out->n, mean = sum / n;
	double half;

	out->value = exp(mean);
	if (out->n < 2)
		return;
	half = gsl_cdf_tdist_Pinv(0.975, n - 1) *
		sqrt(fmax(squares - n * mean * mean, 0) / (n - 1) / n);
	out->low = exp(mean - half);
	out->high = exp(mean + half);
}

struct ratio ratios_of(const struct ratios *r, const char *fault, const char *component)
{
	struct ratio out = {.value = NAN, .low = NAN, .high = NAN, .plain = NAN, .victim = NAN};
	double sum = 0, squares = 0, plain = 0, victim = 0, a, b;
	long cell = 0;
	size_t turn = 0;

	for (size_t i = 0; i < r->n; i++) {
		if ((i && r->rows[i].cell == cell) || strcmp(r->rows[i].fault, fault) != 0)
			continue;
		cell = r->rows[i].cell;
		if (!sides(r, cell, component, turn++, &a, &b)) {
			out.without++;
			continue;
		}
		out.n++;
		victim += a;
		plain += b;
		sum += log(a / b);
		squares += log(a / b) * log(a / b);
	}
	if (!out.n)
		return out;
	out.victim = victim / out.n;
	out.plain = plain / out.n;
	interval(&out, sum, squares);
	return out;
}

/* ---- the table ---- */

struct line {
	const char *name, *component; /* component: NULL: nothing is measured */
	double plain, unbalanced;     /* published; NAN: nothing is */
};

static const struct grid_column columns[] = {{"component", "component", .gap = 0, .width = 24},
	{"fault", "fault", .gap = 1, .width = 11},
	{"published", "published", .flags = GRID_RIGHT, .gap = 1, .width = 9, .number = "%.2f"},
	{"ratio", "ratio", .flags = GRID_RIGHT, .gap = 1, .width = 6, .number = "%.2f"},
	{"low", "from", "95 % from", GRID_RIGHT, 1, 6, .number = "%.2f"},
	{"high", "to", .flags = GRID_RIGHT, .gap = 1, .width = 6, .number = "%.2f"},
	{"n", "n", .flags = GRID_RIGHT, .gap = 1, .width = 2},
	{"plain", "plain", .flags = GRID_MARKDOWN | GRID_CSV | GRID_JSON, .number = "%.4g"},
	{"victim", "victim", .flags = GRID_MARKDOWN | GRID_CSV | GRID_JSON, .number = "%.4g"}};

static void put_line(
	const struct ratios *r, const struct line *l, const char *fault, struct grid *g)
{
	const bool control = !strcmp(fault, "none");
	struct ratio x = {.value = NAN, .low = NAN, .high = NAN, .plain = NAN, .victim = NAN};

	if (l->component)
		x = ratios_of(r, fault, l->component);
	if (l->component && strcmp(l->name, l->component) != 0)
		grid_words(g, "%s (%s)", l->name, l->component);
	else
		grid_words(g, "%s", l->name);
	grid_words(g, "%s", control ? "control" : fault);
	grid_number(g, control ? NAN : l->unbalanced / l->plain);
	grid_number(g, x.value);
	grid_number(g, x.low);
	grid_number(g, x.high);
	grid_count(g, x.n);
	grid_number(g, x.plain);
	grid_number(g, x.victim);
}

/* Names in the order of their first row. */
static size_t names(const struct ratios *r, bool of_fault, const char ***out)
{
	const char **list = NULL;
	size_t n = 0, k;

	for (size_t i = 0; i < r->n; i++) {
		const char *name = of_fault ? r->rows[i].fault : r->rows[i].component;

		for (k = 0; k < n && strcmp(list[k], name); k++)
			;
		if (k < n)
			continue;
		list = alloc_resize(list, n + 1, sizeof(*list));
		list[n++] = name;
	}
	*out = list;
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The column that names the file system's; 0: none. */
static size_t column_of(char *const heads[FIELDS], const char *fs)
{
	for (size_t i = 4; i < FIELDS; i++)
		if (!strcmp(heads[i], fs))
			return i;
	return 0;
}

/* 'text' is cut up, and lines point into it. */
static int read_published(
	const struct ratios *r, char *text, struct line **out, size_t *n, struct err *e)
{
	size_t column = 0;
	char *line, *fields[FIELDS];

	for (size_t at = 1; (line = strsep(&text, "\n")); at++) {
		struct line l = {0};

		if (*line == '#' || !*line)
			continue;
		if (cut(line, fields) != FIELDS)
			return err_set(
				e, -EINVAL, "published table, line %zu: not %d fields", at, FIELDS);
		if (!column && !(column = column_of(fields, r->fs)))
			return err_set(e, -EINVAL,
				"published table: no column says what is measured on '%s'", r->fs);
		if (!strcmp(fields[0], "component"))
			continue;
		if (!number(fields[2], &l.plain) || !number(fields[3], &l.unbalanced) ||
			l.plain <= 0)
			return err_set(e, -EINVAL,
				"published table, line %zu: no two figures above 0", at);
		l.name = fields[0];
		l.component = strcmp(fields[column], "-") ? fields[column] : NULL;
		*out = alloc_resize(*out, *n + 1, sizeof(**out));
		(*out)[(*n)++] = l;
	}
	return *n ? 0 : err_set(e, -EINVAL, "the published table is empty");
}

static void measured_lines(const struct ratios *r, struct line **out, size_t *n)
{
	const char **list;

	*n = names(r, false, &list);
	*out = alloc_zero(*n, sizeof(**out));
	for (size_t i = 0; i < *n; i++)
		(*out)[i] = (struct line){list[i], list[i], NAN, NAN};
	free(list);
}

int ratios_render(const struct ratios *r, const char *published, enum table_format format, FILE *f,
	struct err *e)
{
	struct sheet sheet = {.f = f, .format = format};
	struct grid g = {.out = &sheet};
	char *text = published ? alloc_copy(published) : NULL;
	struct line *lines = NULL;
	const char **faults = NULL;
	size_t n = 0, n_faults = names(r, true, &faults);
	int rc = 0;

	qsort(faults, n_faults, sizeof(*faults), by_name);
	if (text)
		rc = read_published(r, text, &lines, &n, e);
	else
		measured_lines(r, &lines, &n);
	if (!rc) {
		GRID_COLUMNS(&g, columns);
		for (size_t k = n_faults; k-- > 0;)
			for (size_t i = 0; i < n; i++)
				put_line(r, &lines[i], faults[k], &g);
		if (format == TABLE_JSON)
			sheet_json(&sheet, grid_json(&g));
		else
			grid_print(&g);
		if ((rc = sheet_end(&sheet)))
			err_errno(e, rc, "cannot write the table");
	}
	free(faults);
	free(lines);
	free(text);
	return rc;
}
