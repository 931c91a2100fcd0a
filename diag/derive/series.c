#include "diag/derive/series.h"

#include <csv.h>
#include <errno.h>
#include <gsl/gsl_statistics_float.h>
#include <jansson.h>
#include <math.h>
#include <search.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

enum column { TIME, SERVER, METRIC, VALUE, COLUMNS };
static const char *const column_names[] = {"time", "server", "metric", "value"};

/* Names are looked up by a tree; the last point of each series by server and metric. */
struct named {
	char *name;
	uint32_t index;
};

struct series_index {
	void *servers, *metrics; /* tsearch trees of struct named */
};

struct last {
	double time_s;
	bool any;
};

/* One reading. */
struct reader {
	const char *source;
	struct series_names *names;
	struct series *out;
	struct err *e;
	int rc;
	unsigned long line; /* of the row's first field */
	unsigned long now;  /* that is being parsed */
	bool begun;         /* a field of the row has come */
	int column;         /* of the next field */
	int place[COLUMNS]; /* which column of the file it is; -1 */
	int columns;        /* in the head; 0: not read yet */
	double unit_s;      /* of the time column */
	char *fields[COLUMNS];
	size_t room;       /* of the points */
	struct last *last; /* [server * SERIES_METRICS_MAX + metric] */
	size_t last_servers;
	float *steps; /* between points of a series */
	size_t n_steps, steps_room;
};

/* UTF-8 without control characters. */
static bool good_text(const char *s)
{
	bool ascii = true, good;
	json_t *v;

	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		if (*p < ' ' || *p == 0x7f)
			return false;
		ascii = ascii && *p < 0x80;
	}
	if (ascii)
		return true;
	v = json_string(s); /* NULL: no UTF-8 */
	good = v != NULL;
	json_decref(v);
	return good;
}

/* A name that can stand in JSON and on a terminal. */
static bool good_name(const char *s)
{
	size_t len = strlen(s);

	return len && len <= SERIES_NAME_MAX && good_text(s);
}

static void complain(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void complain(struct reader *r, const char *fmt, ...)
{
	char sentence[600];
	va_list ap;
	bool good;

	if (r->rc)
		return;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	good = good_text(sentence);
	/* What was refused may be anything, and a cut may go through a character. */
	for (char *p = sentence; !good && *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			*p = '?';
	r->rc = err_set(r->e, -EINVAL, "%s:%lu: %s", r->source, r->line, sentence);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int find_name(struct reader *r, void **tree, char ***names, size_t *n, size_t max,
	const char *name, uint32_t *index)
{
	struct named key = {.name = (char *)name}, *fresh, **found = tfind(&key, tree, by_name);

	if (found) {
		*index = (*found)->index;
		return 0;
	}
	if (*n == max)
		return r->rc = err_set(r->e, -E2BIG,
			       "%s:%lu: more than %zu names of this kind ('%.60s')", r->source,
			       r->line, max, name);
	fresh = alloc_zero(1, sizeof(*fresh));
	fresh->name = alloc_copy(name);
	fresh->index = (uint32_t)*n;
	if (!tsearch(fresh, tree, by_name))
		return r->rc = err_errno(r->e, -ENOMEM, "cannot read '%s'", r->source);
	*names = alloc_resize(*names, *n + 1, sizeof(**names));
	(*names)[(*n)++] = fresh->name; /* the tree's node owns it */
	*index = fresh->index;
	return 0;
}

/* All of 'text' as a number. No hexadecimal, no infinity, no NaN: what writes those means something
 * else. */
static bool read_number(const char *text, double *x)
{
	char *end;

	if (text[strspn(text, "0123456789+-.eE")])
		return false;
	*x = strtod(text, &end);
	return end != text && !*end && isfinite(*x);
}

static void read_head_field(struct reader *r, const char *name)
{
	static const struct {
		const char *name;
		double unit_s;
	} times[] = {{"time", 1}, {"time_s", 1}, {"time_ms", 1e-3}, {"time_us", 1e-6},
		{"time_ns", 1e-9}};
	int c = -1;

	if (r->columns == 0 && r->column == 0 && !strncmp(name, "\xef\xbb\xbf", 3))
		name += 3;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (!strcmp(name, times[i].name)) {
			c = TIME;
			r->unit_s = times[i].unit_s;
		}
	for (int i = SERVER; i < COLUMNS; i++)
		if (!strcmp(name, column_names[i]))
			c = i;
	if (c < 0)
		complain(r,
			"column '%.60s' is none of time (or time_ms, time_us, time_ns), server, "
			"metric, value",
			name);
	else if (r->place[c] >= 0)
		complain(r, "column '%s' stands twice", column_names[c]);
	else
		r->place[c] = r->column;
}

static void end_head(struct reader *r)
{
	for (int c = 0; c < COLUMNS && !r->rc; c++)
		if (r->place[c] < 0)
			complain(r, "there is no column '%s'; the head is time,server,metric,value",
				column_names[c]);
	r->columns = r->column;
}

/* libcsv: a field is whole. */
static void on_field(void *text, size_t size, void *ctx)
{
	struct reader *r = ctx;

	if (!r->begun) {
		r->begun = true;
		r->line = r->now;
	}
	if (r->rc)
		return;
	if (strlen(text ? text : "") != size) {
		complain(r, "there is a zero byte in it");
	} else if (!r->columns) {
		read_head_field(r, text);
	} else if (r->column >= r->columns) {
		complain(r, "more fields than the head has");
	} else {
		for (int c = 0; c < COLUMNS; c++)
			if (r->place[c] == r->column) {
				free(r->fields[c]);
				r->fields[c] = alloc_copy(text);
			}
	}
	r->column++;
}

/* Where the last time of a series is kept. */
static struct last *last_of(struct reader *r, uint32_t server, uint32_t metric)
{
	const size_t row = SERIES_METRICS_MAX;

	if (server >= r->last_servers) {
		size_t n = server + 8;

		r->last = alloc_resize(r->last, n * row, sizeof(*r->last));
		memset(r->last + r->last_servers * row, 0,
			(n - r->last_servers) * row * sizeof(*r->last));
		r->last_servers = n;
	}
	return &r->last[server * row + metric];
}

static void add_step(struct reader *r, double step)
{
	if (r->n_steps == r->steps_room) {
		r->steps_room = r->steps_room ? r->steps_room * 2 : 1024;
		r->steps = alloc_resize(r->steps, r->steps_room, sizeof(*r->steps));
	}
	r->steps[r->n_steps++] = (float)step;
}

static void add_point(struct reader *r, struct series_point p)
{
	struct series *s = r->out;

	if (s->n == SERIES_POINTS_MAX) {
		r->rc = err_set(r->e, -E2BIG, "%s:%lu: more than %d rows", r->source, r->line,
			SERIES_POINTS_MAX);
		return;
	}
	if (s->n == r->room) {
		r->room = r->room ? r->room * 2 : 1024;
		s->points = alloc_resize(s->points, r->room, sizeof(*s->points));
	}
	s->from_s = !s->n || p.time_s < s->from_s ? p.time_s : s->from_s;
	s->to_s = !s->n || p.time_s > s->to_s ? p.time_s : s->to_s;
	s->points[s->n++] = p;
}

static void end_data(struct reader *r)
{
	char *const *f = r->fields;
	struct series_point p = {.value = NAN};
	struct last *last;
	bool missing;

	if (r->column != r->columns) {
		complain(r, "fewer fields than the head has");
		return;
	}
	missing = !*f[VALUE];
	if (!read_number(f[TIME], &p.time_s))
		complain(r, "time '%.60s' is no number", f[TIME]);
	else if (!missing && !read_number(f[VALUE], &p.value))
		complain(r,
			"value '%.60s' is no decimal number (leave it empty where there is no "
			"sample)",
			f[VALUE]);
	else if (!good_name(f[SERVER]) || !good_name(f[METRIC]))
		complain(r,
			"a server and a metric need names, of UTF-8 and at most 200 bytes, not "
			"'%.60s' and '%.60s'",
			f[SERVER], f[METRIC]);
	else if (!strcmp(f[METRIC], "any"))
		complain(r, "no metric can be called 'any'");
	if (r->rc ||
		find_name(r, &r->names->index->servers, &r->names->servers, &r->names->n_servers,
			SERIES_SERVERS_MAX, f[SERVER], &p.server) ||
		find_name(r, &r->names->index->metrics, &r->names->metrics, &r->names->n_metrics,
			SERIES_METRICS_MAX, f[METRIC], &p.metric))
		return;
	p.time_s *= r->unit_s;
	last = last_of(r, p.server, p.metric);
	if (last->any && p.time_s == last->time_s)
		complain(r, "'%.60s' of '%.60s' has had this time in an earlier row", f[METRIC],
			f[SERVER]);
	else if (last->any && p.time_s < last->time_s)
		complain(r, "'%.60s' of '%.60s' goes back in time; sort the rows by it", f[METRIC],
			f[SERVER]);
	else if (last->any)
		add_step(r, p.time_s - last->time_s);
	*last = (struct last){p.time_s, true};
	if (!r->rc && !missing)
		add_point(r, p);
}

/* libcsv: a row is whole. */
static void on_row(int end, void *ctx)
{
	struct reader *r = ctx;

	(void)end;
	if (!r->rc)
		(r->columns ? end_data : end_head)(r);
	r->column = 0;
	r->begun = false;
}

/* Line by line, so that it is known which one is being parsed. */
static int parse(struct reader *r, FILE *f)
{
	struct csv_parser parser;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
	while (!r->rc && (n = getline(&line, &room, f)) > 0) {
		r->now++;
		if (csv_parse(&parser, line, (size_t)n, on_field, on_row, r) != (size_t)n) {
			r->line = r->now;
			complain(r, "a quote where none can be");
		}
	}
	if (!r->rc && ferror(f))
		r->rc = err_errno(r->e, -EIO, "cannot read '%s'", r->source);
	if (!r->rc && csv_fini(&parser, on_field, on_row, r)) {
		r->line = r->now;
		complain(r, "a quote is not closed");
	}
	csv_free(&parser);
	free(line);
	if (!r->rc && !r->columns) {
		r->line = 1;
		complain(r, "it is empty; the head is time,server,metric,value");
	}
	return r->rc;
}

int series_read(
	FILE *f, const char *source, struct series_names *names, struct series *out, struct err *e)
{
	struct series s = {0};
	struct reader r = {.source = source,
		.names = names,
		.out = &s,
		.e = e,
		.place = {-1, -1, -1, -1},
		.unit_s = 1};
	int rc;

	if (!names->index)
		names->index = alloc_zero(1, sizeof(*names->index));
	rc = parse(&r, f);
	if (!rc && r.n_steps)
		s.step_s = (double)gsl_stats_float_select(r.steps, 1, r.n_steps, r.n_steps / 2);
	for (int c = 0; c < COLUMNS; c++)
		free(r.fields[c]);
	free(r.last);
	free(r.steps);
	if (rc)
		series_clear(&s);
	else
		*out = s;
	return rc;
}

void series_clear(struct series *s)
{
	free(s->points);
	*s = (struct series){0};
}

static void free_named(void *node)
{
	struct named *n = node;

	free(n->name);
	free(n);
}

void series_names_clear(struct series_names *names)
{
	if (names->index) {
		tdestroy(names->index->servers, free_named);
		tdestroy(names->index->metrics, free_named);
	}
	free(names->index);
	free(names->servers);
	free(names->metrics);
	*names = (struct series_names){0};
}

struct sample *series_samples(
	const struct series *s, double from_s, double to_s, double step_s, size_t *n)
{
	struct sample *list = alloc_zero(s->n, sizeof(*list));
	size_t k = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct series_point *p = &s->points[i];
		/* A step is rarely a whole binary fraction: 0.3 / 0.1 is below 3. */
		double second = floor((p->time_s - from_s) / step_s + 1e-6);

		if (p->time_s < from_s || p->time_s >= to_s || second > INT32_MAX)
			continue;
		list[k++] = (struct sample){.metric = (enum metric)p->metric,
			.server = p->server,
			.second = (int32_t)second,
			.count = 1,
			.sum_s = p->value,
			.max_s = p->value};
	}
	*n = k;
	return list;
}
