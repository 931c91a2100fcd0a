/* Output of exporters for Prometheus (text format 0.0.4, and OpenMetrics), saved to a file:
 *
 *     # time 1795357180              added by the user: the time of the samples that follow and
 *     have no # TYPE disk_reads counter      time; Unix seconds or ISO 8601
 *     disk_reads_total{device="sda"} 1234
 *     disk_reads_total{device="sda"} 1234 1795357180000
 *
 * A sample's own time is in milliseconds (Prometheus) or seconds (OpenMetrics): numbers below 1e11
 * or with a point are seconds. Lines {__name__="disk_reads", ...} value time, from 'promtool tsdb
 * dump', are also read.
 *
 * Member and groups are chosen among the labels of the first samples, which wait for that. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "diag/import/labels.h"
#include "diag/import/lines.h"
#include "harness/base/alloc.h"

static const char advice[] =
	"put a line '# time UNIX-SECONDS' before each scrape: while sleep 15; do echo \"# time "
	"$(date +%s)\"; curl -s http://HOST:9100/metrics; done";

enum { WAITING_MAX = 1000000, FAMILY_MAX = IMPORT_NAME_MAX };

struct waiting {
	double time_s, value;
	uint32_t series;
	unsigned long line;
};

/* # TYPE and # UNIT of the family whose samples follow. */
struct family {
	char name[FAMILY_MAX + 1], type[16], unit[32];
	bool declared[3]; /* the family itself, its _sum, its _count */
};

struct text {
	struct lines l;
	struct labels *labels;
	struct import_options how;
	const struct import_sink *sink;
	struct import_said *said;
	struct family family;
	struct waiting *waiting;
	size_t n;
	double time_s; /* of "# time", or NAN */
	uint64_t line_times;
	struct err *e;
};

static int prometheus_text_bad(struct text *t, const char *what)
{
	return err_set(t->e, -EINVAL, "%lu: %s", t->l.n, what);
}

static char *skip_blanks(char *p)
{
	return p + strspn(p, " \t");
}

/* Reads a word of a comment line; moves '*p' after it. */
static void word(char **p, char *out, size_t size)
{
	size_t n;

	*p = skip_blanks(*p);
	n = strcspn(*p, " \t");
	snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), *p);
	*p += n;
}

static int read_comment(struct text *t)
{
	char *p = t->l.text + 1, kind[8], name[FAMILY_MAX + 1], value[32];

	word(&p, kind, sizeof(kind));
	if (!strcmp(kind, "time")) {
		if (import_time(skip_blanks(p), 1, &t->time_s))
			return prometheus_text_bad(
				t, "the line '# time' takes Unix seconds or ISO 8601");
		return 0;
	}
	if (strcmp(kind, "TYPE") && strcmp(kind, "UNIT"))
		return 0;
	word(&p, name, sizeof(name));
	word(&p, value, sizeof(value));
	if (strcmp(name, t->family.name)) {
		memset(&t->family, 0, sizeof(t->family));
		memcpy(t->family.name, name, sizeof(name));
	}
	if (kind[0] == 'T')
		snprintf(t->family.type, sizeof(t->family.type), "%s", value);
	else
		snprintf(t->family.unit, sizeof(t->family.unit), "%s", value);
	return 0;
}

/* Reads a quoted text and unescapes it in place; '*p' is at the opening quote and moves after the
 * closing one. */
static char *quoted(char **p)
{
	char *start = ++*p, *out = start;

	for (; **p && **p != '"'; ++*p) {
		if (**p == '\\' && (*p)[1])
			*out++ = *++*p == 'n' ? '\n' : **p;
		else
			*out++ = **p;
	}
	if (**p != '"')
		return NULL;
	++*p;
	*out = '\0';
	return start;
}

/* Reads {name="value", ...}; '*p' is after the brace. '*name' gets the label __name__, or the one
 * without a value. */
static int read_labels(struct text *t, char **p, char **name, struct label *v, size_t *n)
{
	for (;;) {
		char *key, *value;
		bool alone, in_quotes;

		*p = skip_blanks(*p);
		if (**p == '}')
			break;
		in_quotes = **p == '"';
		if (in_quotes) {
			key = quoted(p);
		} else {
			key = *p;
			*p += strcspn(*p, "= \t}");
		}
		if (!key || *p == key)
			return prometheus_text_bad(
				t, "a label has no name, or its quote is not closed");
		value = skip_blanks(*p);
		alone = *value != '=';
		if (alone && !in_quotes)
			return prometheus_text_bad(t, "a label has no value");
		if (!alone) {
			char *end = *p;

			value = skip_blanks(value + 1);
			if (*value != '"')
				return prometheus_text_bad(
					t, "a label's value is not in double quotes");
			*p = value;
			*end = '\0';
			value = quoted(p);
			if (!value)
				return prometheus_text_bad(
					t, "a label's value has no closing quote");
		}
		if (alone || !strcmp(key, "__name__"))
			*name = alone ? key : value;
		else if (*n == LABELS_MAX)
			return prometheus_text_bad(t, "a series has too many labels");
		else
			v[(*n)++] = (struct label){key, value};
		*p = skip_blanks(*p);
		if (**p == ',')
			++*p;
		else if (**p != '}')
			return prometheus_text_bad(t, "labels are not separated by commas");
	}
	++*p;
	return 0;
}

/* Reads a number that ends at a blank or the end of the line. */
static bool prometheus_text_number(char **p, double *x)
{
	char *end;

	*p = skip_blanks(*p);
	*x = strtod(*p, &end);
	if (end == *p || (*end && *end != ' ' && *end != '\t'))
		return false;
	*p = end;
	return true;
}

/* Reads the sample's own time, or takes that of the line "# time"; an exemplar may follow. */
static int read_time(struct text *t, char *p, double *time_s)
{
	char *first;
	double x;

	p = skip_blanks(p);
	if (*p && *p != '#') {
		first = p;
		if (!prometheus_text_number(&p, &x) || !isfinite(x) ||
			(*skip_blanks(p) && *skip_blanks(p) != '#'))
			return prometheus_text_bad(t, "only a time may follow the value");
		*time_s = fabs(x) < 1e11 || memchr(first, '.', (size_t)(p - first)) ? x : x / 1000;
		return 0;
	}
	if (isnan(t->time_s))
		return err_set(t->e, -EINVAL, "%lu: the sample has no time; %s", t->l.n, advice);
	*time_s = t->time_s;
	t->line_times++;
	return 0;
}

static bool ends_with(const char *text, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n > m && !memcmp(text + n - m, end, m);
}

/* Declares the metric from its family's type; an empty text if the type says nothing about it. */
static void declaration(const struct family *f, const char *metric, char *out, size_t size)
{
	size_t n = strcspn(metric, "{"), name = strlen(f->name);
	const char *rest = metric + name;
	bool histogram = !strcmp(f->type, "histogram"),
	     counts = histogram || !strcmp(f->type, "summary");
	char unit[48] = "";

	*out = '\0';
	if (!name || n < name || memcmp(metric, f->name, name) ||
		(n > name && *rest != '_' && *rest != '{'))
		return;
	if (*f->unit)
		snprintf(unit, sizeof(unit), " unit=%s", f->unit);
	if (n == name && histogram)
		snprintf(out, size, "%.*s kind=bucket%s", (int)n, metric, unit);
	else if (counts && ends_with(metric, n, "_sum"))
		snprintf(out, size, "%s kind=amount per=%s_count counter=yes%s", metric, f->name,
			unit);
	else if (counts && ends_with(metric, n, "_count"))
		snprintf(out, size, "%s kind=counter worse=load", metric);
	else if (!strcmp(f->type, "counter") && (n == name || !strncmp(rest, "_total", 6)))
		snprintf(out, size, "%s kind=counter%s", metric, unit);
	else if (n == name && !strcmp(f->type, "gauge"))
		snprintf(out, size, "%s kind=gauge%s", metric, unit);
}

/* Declares the metric of a new series if this is the first one with it. */
static int prometheus_text_declare(struct text *t, uint32_t series, struct err *e)
{
	const char *metric = labels_metric(t->labels, series);
	char text[2 * FAMILY_MAX + 100];
	int part;

	if (!t->sink->metric)
		return 0;
	part = ends_with(metric, strcspn(metric, "{"), "_sum")      ? 1
		: ends_with(metric, strcspn(metric, "{"), "_count") ? 2
								    : 0;
	if (t->family.declared[part])
		return 0;
	declaration(&t->family, metric, text, sizeof(text));
	t->family.declared[part] = *text != '\0';
	return *text ? t->sink->metric(t->sink->ctx, text, e) : 0;
}

/* Passes on the waiting samples. */
static int prometheus_text_flush(struct text *t)
{
	int rc = labels_decide(t->labels, t->said, t->e);

	for (size_t i = 0; i < t->n && !rc; i++) {
		labels_line(t->labels, t->waiting[i].line);
		rc = labels_sample(t->labels, t->waiting[i].series, t->waiting[i].time_s,
			t->waiting[i].value, t->sink, t->said, t->e);
	}
	t->n = 0;
	return rc;
}

static int prometheus_text_keep(struct text *t, uint32_t series, double time_s, double value)
{
	labels_line(t->labels, t->l.n);
	if (labels_decided(t->labels))
		return labels_sample(t->labels, series, time_s, value, t->sink, t->said, t->e);
	t->waiting = alloc_room(t->waiting, t->n, sizeof(*t->waiting));
	labels_seen(t->labels, series, time_s);
	t->waiting[t->n++] = (struct waiting){time_s, value, series, t->l.n};
	return t->n >= WAITING_MAX ? prometheus_text_flush(t) : 0;
}

static int read_sample(struct text *t, char *p)
{
	struct label v[LABELS_MAX];
	const struct import_options *o = &t->how;
	char *name = NULL, *end = p + strcspn(p, "{ \t");
	uint32_t series;
	double value, time_s = 0;
	bool braces;
	size_t n = 0;
	int rc = 0;

	if (end > p)
		name = p;
	p = skip_blanks(end);
	braces = *p == '{';
	*end = braces || end != p ? '\0' : *end;
	p += braces;
	if (braces)
		rc = read_labels(t, &p, &name, v, &n);
	if (rc)
		return rc;
	if (!name || !prometheus_text_number(&p, &value))
		return prometheus_text_bad(t, "this is not 'name{label=\"value\"} number time'");
	rc = read_time(t, p, &time_s);
	if (rc)
		return rc;
	if ((o->from_s != 0 || o->to_s != 0) && (time_s < o->from_s || time_s >= o->to_s))
		return 0;
	if (ends_with(name, strlen(name), "_created"))
		return 0;
	rc = labels_add(t->labels, name, v, n, &series);
	if (rc < 0)
		return 0;
	rc = rc ? prometheus_text_declare(t, series, t->e) : 0;
	rc = rc ?: prometheus_text_keep(t, series, time_s, value);
	return rc ? err_prefix(t->e, rc, "%lu", t->l.n) : 0;
}

/* Each line of an exporter ends with a newline; without it a number may lack digits. */
static int leave_out(struct text *t)
{
	lines_note_open(t->l.n, t->said);
	return 0;
}

static int read_line(struct text *t)
{
	char *p = skip_blanks(t->l.text);

	if (!*p)
		return 0;
	if (t->l.open && *p != '#')
		return leave_out(t);
	if (*p == '#') {
		memmove(t->l.text, p, strlen(p) + 1);
		return read_comment(t);
	}
	return read_sample(t, p);
}

/* The first line is "# HELP", "# TYPE" or "# time", or a sample with labels in braces. */
bool prometheus_text_looks(const char *head, size_t size)
{
	size_t name;

	(void)size;
	head += strspn(head, " \t\r\n");
	if (*head == '#') {
		head += 1 + strspn(head + 1, " ");
		return !strncmp(head, "HELP ", 5) || !strncmp(head, "TYPE ", 5) ||
			!strncmp(head, "time ", 5) || !strncmp(head, "UNIT ", 5);
	}
	for (name = 0; isalnum((unsigned char)head[name]) || head[name] == '_' || head[name] == ':';
		name++)
		;
	if (name && isdigit((unsigned char)*head))
		return false;
	head += name + strspn(head + name, " ");
	if (*head++ != '{')
		return false;
	head += strspn(head, " ");
	name = strspn(head, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	return name && !strncmp(head + name, "=\"", 2);
}

int prometheus_text_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct text *t = alloc_zero(1, sizeof(*t));
	char *form;
	int rc;

	t->l.f = f;
	t->how = *o;
	t->labels = labels_new(&t->how);
	labels_watch_repeats(t->labels, false,
		"if they are scrapes of two servers, give the samples of each a label with its "
		"name");
	t->sink = sink;
	t->said = said;
	t->time_s = NAN;
	t->e = e;
	while ((rc = lines_next(&t->l, e)) > 0)
		if ((rc = read_line(t)) < 0)
			break;
	if (rc < 0) {
		lines_where(e, source, rc);
	} else {
		rc = prometheus_text_flush(t) ?: labels_finish(t->labels, said, e);
		if (!rc && !labels_count(t->labels))
			rc = err_set(e, -EINVAL, "there is no sample of the requested metrics");
		if (rc)
			lines_where(e, source, rc);
	}
	if (!rc && said && !said->form) {
		form = labels_describe(t->labels);
		said->form = alloc_format("Prometheus text, times %s: %zu series, %s",
			t->line_times ? "in lines '# time'" : "after the values",
			labels_count(t->labels), form);
		free(form);
	}
	labels_free(t->labels);
	free(t->waiting);
	free(t);
	return rc;
}
