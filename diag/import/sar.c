/* The text of 'sar -d', and of 'sadf -d -- -d'. Several files may follow one another in one stream:
 * each file of sar begins with a line that has its host and date.
 *
 *     Linux 6.1.0 (host1)  11/22/26  _x86_64_  (8 CPU)
 *
 *     14:19:39          DEV       tps     rkB/s ...
 *     14:19:40          sda      3.00     56.00 ...
 *
 * Rows have no date. A table may continue after midnight, on the next day; the next table starts
 * again at the file's beginning, as in 'sar -A'. Tables after 'LINUX RESTART' begin at that
 * time. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "diag/import/lines.h"
#include "diag/import/sysstat.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/text.h"

#define SAR_ADVICE "LC_ALL=C sar -d -f FILE"
#define SADF_ADVICE "sadf -d FILE -- -d"

enum { FIELDS_MAX = 64, NAME_MAX_ = 64, TABLES_MAX = 256 };

/* A point in a file's time. */
struct moment {
	int day, clock_s; /* since midnight; -1: unknown */
};

struct sar {
	struct lines l;
	struct sysstat *x;
	char host[SYSSTAT_NAME_MAX];
	struct moment from;  /* start of the tables: the file's beginning, or a restart */
	struct moment *last; /* of the current table's rows: in 'tables' */
	struct table {
		char *names;
		struct moment last;
	} tables[TABLES_MAX]; /* since 'from' */
	size_t n_tables;
	size_t n, device; /* columns of the table; index of the device's column */
	char column[FIELDS_MAX][NAME_MAX_];
	bool blank;          /* the previous line was empty */
	bool table, slashes; /* inside a table of disks; a date was month/day/year */
	bool local;          /* times had no zone */
	bool iostat;         /* the file has tables of iostat */
	struct err *e;
};

static int sar_bad(struct sar *s, const char *what, const char *text)
{
	char clean[100];

	text_clean(text, clean, sizeof(clean));
	return err_set(s->e, -EINVAL, "%lu: %s: '%s'; write the file by '" SAR_ADVICE "'", s->l.n,
		what, clean);
}

/* Splits the text at blanks. */
static size_t cut(char *text, char **field)
{
	size_t n = 0;
	char *save = NULL;

	for (char *p = strtok_r(text, " \t", &save); p && n < FIELDS_MAX;
		p = strtok_r(NULL, " \t", &save))
		field[n++] = p;
	return n;
}

static void begin_tables(struct sar *s, struct moment from)
{
	while (s->n_tables)
		free(s->tables[--s->n_tables].names);
	s->from = from;
	s->last = &s->from;
	s->table = false;
}

/* Advances to the time of a row or head: half a day before the table's last time is after
 * midnight. */
static void go_to(struct moment *m, int clock_s)
{
	if (m->clock_s >= 0 && clock_s < m->clock_s - 43200)
		m->day++;
	m->clock_s = clock_s;
}

/* Finds the table with these names. A new one begins at the same time as the others. */
static struct moment *find_table(struct sar *s, const char *names)
{
	struct table *t = s->tables;

	while (t < s->tables + s->n_tables && strcmp(t->names, names))
		t++;
	if (t == s->tables + TABLES_MAX)
		return s->last;
	if (t == s->tables + s->n_tables) {
		*t = (struct table){alloc_copy(names), s->from};
		s->n_tables++;
	}
	return &t->last;
}

/* "Linux 6.1.0 (host1) 	11/22/26 	_x86_64_	(8 CPU)" */
static int sar_read_head(struct sar *s)
{
	const char *open = strchr(s->l.text, '('), *close = open ? strchr(open, ')') : NULL, *end;
	size_t n = close ? (size_t)(close - open - 1) : 0;
	int day;

	if (!n || n >= sizeof(s->host))
		return sar_bad(s, "the line has no host in brackets", s->l.text);
	memcpy(s->host, open + 1, n);
	s->host[n] = '\0';
	close++;
	close += strspn(close, " \t");
	if (sysstat_date(close, &day, &end) || (*end && !isspace((unsigned char)*end)))
		return sar_bad(
			s, "this is not a date such as month/day/year or year-month-day", close);
	s->slashes |= memchr(close, '/', (size_t)(end - close)) != NULL;
	begin_tables(s, (struct moment){day, -1});
	sysstat_begin(s->x);
	return 0;
}

/* A line of names: does it begin the table of disks? */
static int read_names(struct sar *s, char **field, size_t n)
{
	s->table = false;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(field[i], "DEV")) {
			s->table = true;
			s->device = i;
		}
	s->n = n;
	for (size_t i = 0; i < n && s->table; i++) {
		if (strlen(field[i]) >= NAME_MAX_)
			return sar_bad(s, "this is not the name of a column", field[i]);
		strcpy(s->column[i], field[i]);
	}
	return 0;
}

static int read_values(struct sar *s, char **field, size_t n, double time_s)
{
	if (n != s->n)
		return sar_bad(s, "the row and the names above differ in their number of columns",
			field[0]);
	for (size_t i = 0; i < n; i++) {
		char *end;
		double value;
		int rc;

		if (i == s->device)
			continue;
		value = strtod(field[i], &end);
		if (end == field[i] || *end || !isfinite(value))
			return sar_bad(s, "this is not a number with a decimal point", field[i]);
		rc = sysstat_sample(
			s->x, s->host, field[s->device], s->column[i], time_s, s->l.n, value, s->e);
		if (rc)
			return err_prefix(s->e, rc, "%lu", s->l.n);
	}
	return 0;
}

/* Rows of values have a number; names follow an empty line. */
static bool all_names(char **field, size_t n)
{
	char *end;

	for (size_t i = 0; i < n; i++) {
		strtod(field[i], &end);
		if (!*end)
			return false;
	}
	return true;
}

static int read_row(struct sar *s)
{
	char *field[FIELDS_MAX];
	const char *rest;
	auto_free char *names = NULL;
	bool blank = s->blank;
	int clock_s;
	size_t n;

	s->blank = !*s->l.text;
	if (s->blank || !strncmp(s->l.text, "Average:", 8))
		return 0;
	if (!strncmp(s->l.text, "Linux ", 6))
		return sar_read_head(s);
	s->iostat |= !strncmp(s->l.text, "Device", 6) || !strncmp(s->l.text, "avg-cpu:", 8);
	if (sysstat_clock(s->l.text, &clock_s, &rest) || !isspace((unsigned char)*rest))
		return s->table || !*s->host
			? sar_bad(s, "the line does not begin with a time of day", s->l.text)
			: 0;
	if (!*s->host)
		return sar_bad(
			s, "the line with host and date is missing before this one", s->l.text);
	if (strstr(rest, "LINUX RESTART")) {
		struct moment from = *s->last;

		go_to(&from, clock_s);
		begin_tables(s, from);
		return 0;
	}
	names = blank ? alloc_copy(rest + strspn(rest, " \t")) : NULL;
	n = cut((char *)rest, field);
	if (blank && all_names(field, n)) {
		s->last = find_table(s, names);
		go_to(s->last, clock_s);
		if (s->from.clock_s < 0)
			s->from = *s->last;
		return read_names(s, field, n);
	}
	if (n && !strcmp(field[0], "COM")) /* a comment: sar -C */
		return 0;
	go_to(s->last, clock_s);
	if (!s->table)
		return 0;
	s->local = true;
	return read_values(s, field, n, s->last->day * 86400.0 + clock_s);
}

/* A row without a newline may lack columns or digits: it is left out. */
static bool cut_off(const struct sar *s, struct import_said *said)
{
	if (!s->l.open || !s->table || !*s->l.text || *s->l.text == '#' ||
		!strncmp(s->l.text, "Average:", 8))
		return false;
	lines_note_open(s->l.n, said);
	return true;
}

static int sar_read_all(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e,
	int (*row)(struct sar *), const char *form, const char *advice)
{
	struct sar *s = alloc_zero(1, sizeof(*s));
	int rc;

	s->l.f = f;
	s->e = e;
	s->x = sysstat_new(o, sink, said);
	s->last = &s->from;
	while ((rc = lines_next(&s->l, e)) > 0)
		if (!cut_off(s, said) && (rc = row(s)) < 0)
			break;
	rc = rc < 0 ? lines_where(e, source, rc) : sysstat_finish(s->x, source, form, advice, e);
	if (rc && s->iostat && !*s->column[0])
		rc = err_set(e, rc,
			"%s: this is iostat's text, which is not read; write its JSON by "
			"'" IOSTAT_ADVICE "'",
			source);
	if (!rc && s->slashes)
		import_note(said, "dates such as 11/22/26 are taken as month/day/year");
	if (!rc && s->local)
		import_note(said, SYSSTAT_LOCAL);
	begin_tables(s, s->from);
	sysstat_free(s->x);
	free(s);
	return rc;
}

bool sar_looks(const char *head, size_t size)
{
	const char *names = strstr(head, " DEV ");

	(void)size;
	return !strncmp(head, "Linux ", 6) && strstr(head, "CPU)") &&
		(names || strstr(head, " DEV\n") || !strchr(head, ';'));
}

int sar_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	return sar_read_all(f, source, o, sink, said, e, read_row, "text of sar -d", SAR_ADVICE);
}

/* "# hostname;interval;timestamp;DEV;tps;...": s->column gets all names. */
static int sadf_names(struct sar *s, char *text)
{
	char *field;

	s->n = 0;
	s->table = false;
	while ((field = strsep(&text, ";"))) {
		if (s->n == FIELDS_MAX || strlen(field) >= NAME_MAX_)
			return sar_bad(s, "these are not names of columns", field);
		if (!strcmp(field, "DEV")) {
			s->table = true;
			s->device = s->n;
		}
		strcpy(s->column[s->n++], field);
	}
	if (s->n < 5 || strcmp(s->column[0], "hostname") || strcmp(s->column[2], "timestamp"))
		return err_set(s->e, -EINVAL,
			"%lu: the line of names must be 'hostname;interval;timestamp;DEV;...'; "
			"write the file by '" SADF_ADVICE "'",
			s->l.n);
	return 0;
}

/* "2026-11-22 14:19:40 CST" */
static int bad_time(struct sar *s, const char *text)
{
	const char *zone = strrchr(text, ' ');
	char clean[100];

	text_clean(text, clean, sizeof(clean));
	if (zone && isalpha((unsigned char)zone[1]))
		return err_set(s->e, -EINVAL,
			"%lu: the time zone of '%s' is unknown or ambiguous; write the file "
			"in UTC by '" SADF_ADVICE "'",
			s->l.n, clean);
	return err_set(s->e, -EINVAL,
		"%lu: this is not a time: '%s'; write the file by '" SADF_ADVICE "'", s->l.n,
		clean);
}

/* A Unix time needs no zone. */
static bool has_zone(const char *text)
{
	const char *clock = strchr(text, ':');

	return !clock || clock[strspn(clock, ":.0123456789")];
}

static int sadf_row(struct sar *s)
{
	char *p = s->l.text, *field[FIELDS_MAX], *end;
	double time_s, value;
	size_t n = 0;
	int rc = 0;

	if (!strncmp(p, "# hostname;", 11)) {
		sysstat_begin(s->x);
		return sadf_names(s, p + 2);
	}
	if (!*p || *p == '#' || strstr(p, "LINUX-RESTART") || !s->table)
		return 0;
	while (n < FIELDS_MAX && (field[n] = strsep(&p, ";")))
		n++;
	if (n == 4 && !strncmp(field[3], "COM", 3))
		return 0;
	if (n != s->n)
		return err_set(s->e, -EINVAL,
			"%lu: the row has %zu columns, not the %zu of the names above; write the "
			"file by '" SADF_ADVICE "'",
			s->l.n, n, s->n);
	if (import_time(field[2], 1, &time_s))
		return bad_time(s, field[2]);
	s->local |= !has_zone(field[2]);
	for (size_t i = 3; i < n && !rc; i++) {
		if (i == s->device)
			continue;
		value = strtod(field[i], &end);
		if (end == field[i] || *end || !isfinite(value))
			return err_set(s->e, -EINVAL,
				"%lu: column %zu is not a number with a decimal point", s->l.n,
				i + 1);
		rc = sysstat_sample(s->x, field[0], field[s->device], s->column[i], time_s, s->l.n,
			value, s->e);
		if (rc)
			err_prefix(s->e, rc, "%lu", s->l.n);
	}
	return rc;
}

bool sadf_looks(const char *head, size_t size)
{
	(void)size;
	return !strncmp(head, "# hostname;interval;timestamp;", 30);
}

int sadf_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	return sar_read_all(
		f, source, o, sink, said, e, sadf_row, "columns of sadf -d", SADF_ADVICE);
}
