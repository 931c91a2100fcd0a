/* The text of 'sar -d', and of 'sadf -d -- -d'. Several files may follow one another in one stream:
 * each of sar's begins with a line that has its host and date.
 *
 *     Linux 6.1.0 (host1)  11/22/26  _x86_64_  (8 CPU)
 *
 *     14:19:39          DEV       tps     rkB/s ...
 *     14:19:40          sda      3.00     56.00 ...
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "diag/import/lines.h"
#include "diag/import/sysstat.h"
#include "harness/base/alloc.h"
#include "harness/base/text.h"

#define SAR_ADVICE "LC_ALL=C sar -d -f FILE"
#define SADF_ADVICE "sadf -d FILE -- -d"

enum { FIELDS_MAX = 64, NAME_MAX_ = 64 };

struct sar {
	struct lines l;
	struct sysstat *x;
	char host[SYSSTAT_NAME_MAX];
	int day, last_s;  /* of the last row */
	size_t n, device; /* columns of the table, and which is the device's */
	char column[FIELDS_MAX][NAME_MAX_];
	bool blank;          /* the line before was empty */
	bool table, slashes; /* inside a table of disks; a date was month/day/year */
	struct err *e;
};

static int bad(struct sar *s, const char *what, const char *text)
{
	char clean[100];

	text_clean(text, clean, sizeof(clean));
	return err_set(s->e, -EINVAL, "%lu: %s: '%s'; write the file by '" SAR_ADVICE "'", s->l.n,
		what, clean);
}

/* Cuts the text at blanks. */
static size_t cut(char *text, char **field)
{
	size_t n = 0;
	char *save = NULL;

	for (char *p = strtok_r(text, " \t", &save); p && n < FIELDS_MAX;
		p = strtok_r(NULL, " \t", &save))
		field[n++] = p;
	return n;
}

/* "Linux 6.1.0 (host1) 	11/22/26 	_x86_64_	(8 CPU)" */
static int read_head(struct sar *s)
{
	const char *open = strchr(s->l.text, '('), *close = open ? strchr(open, ')') : NULL, *end;
	size_t n = close ? (size_t)(close - open - 1) : 0;

	if (!n || n >= sizeof(s->host))
		return bad(s, "there is no host in brackets", s->l.text);
	memcpy(s->host, open + 1, n);
	s->host[n] = '\0';
	close++;
	close += strspn(close, " \t");
	if (sysstat_date(close, &s->day, &end) || (*end && !isspace((unsigned char)*end)))
		return bad(s, "this is no date as month/day/year or year-month-day", close);
	s->slashes |= memchr(close, '/', (size_t)(end - close)) != NULL;
	s->last_s = -1;
	s->table = false;
	return 0;
}

/* A line of names: is it of the table of disks? */
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
			return bad(s, "this is no name of a column", field[i]);
		strcpy(s->column[i], field[i]);
	}
	return 0;
}

static int read_values(struct sar *s, char **field, size_t n, double time_s)
{
	if (n != s->n)
		return bad(s, "the row has not as many columns as the names above", field[0]);
	for (size_t i = 0; i < n; i++) {
		char *end;
		double value;
		int rc;

		if (i == s->device)
			continue;
		value = strtod(field[i], &end);
		if (end == field[i] || *end || !isfinite(value))
			return bad(s, "this is no number with a decimal point", field[i]);
		rc = sysstat_sample(
			s->x, s->host, field[s->device], s->column[i], time_s, value, s->e);
		if (rc)
			return err_prefix(s->e, rc, "%lu", s->l.n);
	}
	return 0;
}

/* Rows of values hold a number; names stand behind an empty line. */
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
	bool blank = s->blank;
	int clock_s;
	size_t n;

	s->blank = !*s->l.text;
	if (s->blank || !strncmp(s->l.text, "Average:", 8) || strstr(s->l.text, "RESTART"))
		return 0;
	if (!strncmp(s->l.text, "Linux ", 6))
		return read_head(s);
	if (sysstat_clock(s->l.text, &clock_s, &rest) || !isspace((unsigned char)*rest))
		return s->table || !*s->host
			? bad(s, "the line begins with no time of day", s->l.text)
			: 0;
	if (!*s->host)
		return bad(s, "there was no line with host and date", s->l.text);
	n = cut((char *)rest, field);
	/* 'sar -d 10' goes on past midnight, and does not write a new date. */
	if (s->last_s >= 0 && clock_s < s->last_s - 43200)
		s->day++;
	s->last_s = clock_s;
	if (blank && all_names(field, n))
		return read_names(s, field, n);
	if (!s->table)
		return 0;
	return read_values(s, field, n, s->day * 86400.0 + clock_s);
}

static int read_all(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e,
	int (*row)(struct sar *), const char *form, const char *advice)
{
	struct sar *s = alloc_zero(1, sizeof(*s));
	int rc;

	s->l.f = f;
	s->e = e;
	s->x = sysstat_new(o, sink, said);
	while ((rc = lines_next(&s->l, e)) > 0)
		if ((rc = row(s)) < 0)
			break;
	rc = rc < 0 ? lines_where(e, source, rc) : sysstat_finish(s->x, source, form, advice, e);
	if (!rc && s->slashes)
		import_note(said,
			"dates such as 11/22/26 are taken as month/day/year; times are "
			"taken as UTC");
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
	return read_all(f, source, o, sink, said, e, read_row, "text of sar -d", SAR_ADVICE);
}

/* "# hostname;interval;timestamp;DEV;tps;...": s->column gets all of them. */
static int sadf_names(struct sar *s, char *text)
{
	char *field;

	s->n = 0;
	s->table = false;
	while ((field = strsep(&text, ";"))) {
		if (s->n == FIELDS_MAX || strlen(field) >= NAME_MAX_)
			return bad(s, "these are no names of columns", field);
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

static int sadf_row(struct sar *s)
{
	char *p = s->l.text, *field[FIELDS_MAX], *end;
	double time_s, value;
	size_t n = 0;
	int rc = 0;

	if (!strncmp(p, "# hostname;", 11))
		return sadf_names(s, p + 2);
	if (!*p || *p == '#' || strstr(p, "LINUX-RESTART") || !s->table)
		return 0;
	while (n < FIELDS_MAX && (field[n] = strsep(&p, ";")))
		n++;
	if (n == 4 && !strncmp(field[3], "COM", 3))
		return 0;
	if (n != s->n || import_time(field[2], 1, &time_s))
		return err_set(s->e, -EINVAL,
			"%lu: the row has %zu columns, not the %zu of the names above, or no time; "
			"write the file by '" SADF_ADVICE "'",
			s->l.n, n, s->n);
	for (size_t i = 3; i < n && !rc; i++) {
		if (i == s->device)
			continue;
		value = strtod(field[i], &end);
		if (end == field[i] || *end || !isfinite(value))
			return err_set(s->e, -EINVAL,
				"%lu: column %zu is no number with a decimal point", s->l.n, i + 1);
		rc = sysstat_sample(
			s->x, field[0], field[s->device], s->column[i], time_s, value, s->e);
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
	return read_all(f, source, o, sink, said, e, sadf_row, "columns of sadf -d", SADF_ADVICE);
}
