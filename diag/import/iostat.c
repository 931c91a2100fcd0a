/* The JSON of 'iostat -x -t -o JSON' and of 'sadf -j -- -d':
 *
 *     {"sysstat": {"hosts": [{"nodename": "host1", ..., "statistics": [
 *         {"timestamp": "2026-11-22T14:19:39+0000",                              iostat
 *          "timestamp": {"date": "2026-11-22", "time": "14:19:40", "utc": 1},     sadf
 *          "disk": [{"disk_device": "sda", "r/s": 1.50, ...}, ...]}, ...]}]}}
 *
 * Several such texts may follow one another. iostat's first report is a mean since boot, and is
 * left out. A truncated text (iostat was killed) is read as far as it goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "diag/import/json_scan.h"
#include "diag/import/lines.h"
#include "diag/import/sysstat.h"
#include "harness/base/alloc.h"
#include "harness/base/text.h"

enum { VALUES_MAX = 64, METRIC_MAX = 64 };

/* One disk at one time; its values wait here for the disk's name. */
struct disk {
	char name[SYSSTAT_NAME_MAX];
	struct value {
		char metric[METRIC_MAX];
		double value;
	} v[VALUES_MAX];
	size_t n;
};

struct iostat {
	struct json_scan s;
	struct sysstat *x;
	char host[SYSSTAT_NAME_MAX];
	char timezone[64]; /* of the host, by sadf */
	double time_s;
	bool has_time, iso, first; /* first: no statistics of iostat read yet for this host */
	bool since_boot;           /* the statistics are a mean since boot */
	bool sink_failed;
	struct disk d;
	char unknown_zone[64];
	bool local; /* times without a zone were taken as UTC */
	struct err *e;
};

static int iostat_scan(struct iostat *r)
{
	return json_scan(&r->s, r->e);
}

static int iostat_bad(struct iostat *r, const char *what)
{
	return err_set(
		r->e, -EINVAL, "%lu: %s; write the file by '" IOSTAT_ADVICE "'", r->s.line, what);
}

/* Enters the object or array after a name. */
static int enter(struct iostat *r, enum json_token token, const char *what)
{
	return json_scan_want(&r->s, token, what, r->e);
}

static int text_to(struct iostat *r, const char *what, char *out, size_t size)
{
	int rc = enter(r, JSON_SCAN_STRING, what);

	if (rc >= 0 && r->s.length >= size)
		return iostat_bad(r, "a name is too long");
	if (rc >= 0)
		memcpy(out, r->s.text, r->s.length + 1);
	return rc;
}

/* The offset of 'zone' from UTC; 0, with a note, if it is unknown. */
static int zone_offset(struct iostat *r, const char *zone)
{
	int offset = 0;

	if (!*zone)
		r->local = true;
	else if (!import_zone(zone, &offset) && !*r->unknown_zone)
		text_clean(zone, r->unknown_zone, sizeof(r->unknown_zone));
	return offset;
}

/* sadf's {"date", "time", "utc", "interval"}; newer versions have the zone, "tz", instead of "utc".
 * With "utc": 0 the zone is the host's. */
static int read_parts(struct iostat *r)
{
	char date[32] = "", clock[32] = "", zone[64] = "";
	const char *end;
	bool utc = false;
	int rc, day, seconds;

	while ((rc = iostat_scan(r)) == JSON_SCAN_KEY) {
		if (!strcmp(r->s.text, "date"))
			rc = text_to(r, "\"date\"", date, sizeof(date));
		else if (!strcmp(r->s.text, "time"))
			rc = text_to(r, "\"time\"", clock, sizeof(clock));
		else if (!strcmp(r->s.text, "tz"))
			rc = text_to(r, "\"tz\"", zone, sizeof(zone));
		else if (!strcmp(r->s.text, "utc")) {
			rc = iostat_scan(r);
			if (rc == JSON_SCAN_NUMBER)
				utc = r->s.number != 0;
			else if (rc >= 0)
				rc = json_scan_skip(&r->s, rc, r->e);
		} else
			rc = json_scan_skip(&r->s, JSON_SCAN_KEY, r->e);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (sysstat_date(date, &day, NULL) || sysstat_clock(clock, &seconds, &end) || *end)
		return iostat_bad(r, "the timestamp is not a date and time");
	r->time_s = day * 86400.0 + seconds;
	if (!utc)
		r->time_s -= zone_offset(r, *zone ? zone : r->timezone);
	r->has_time = true;
	return 0;
}

/* iostat's text, in the locale's form or ISO 8601. */
static int read_timestamp(struct iostat *r)
{
	int rc = iostat_scan(r), day, seconds;
	const char *end;

	if (rc == JSON_SCAN_OBJECT)
		return read_parts(r);
	if (rc < 0)
		return rc;
	if (rc != JSON_SCAN_STRING)
		return iostat_bad(r, "\"timestamp\" is not a text");
	r->since_boot = r->first;
	r->first = false;
	r->has_time = true;
	if (!import_time(r->s.text, 1, &r->time_s))
		return 0;
	if (sysstat_date(r->s.text, &day, &end) || *end != ' ' ||
		sysstat_clock(end + 1, &seconds, &end) || *end)
		return iostat_bad(r, "the timestamp is neither ISO 8601 nor month/day/year time");
	r->time_s = day * 86400.0 + seconds;
	r->iso = false;
	r->local = true;
	return 0;
}

static int read_disk(struct iostat *r)
{
	struct disk *d = &r->d;
	int rc;

	d->n = 0;
	*d->name = '\0';
	while ((rc = iostat_scan(r)) == JSON_SCAN_KEY) {
		struct value *v = &d->v[d->n];

		if (!strcmp(r->s.text, "disk_device") || !strcmp(r->s.text, "disk-device")) {
			rc = text_to(r, "the disk's name", d->name, sizeof(d->name));
		} else if (r->s.length >= METRIC_MAX || d->n == VALUES_MAX) {
			return iostat_bad(r, "a disk has too many or too long names");
		} else {
			memcpy(v->metric, r->s.text, r->s.length + 1);
			rc = iostat_scan(r);
			if (rc == JSON_SCAN_NUMBER) {
				v->value = r->s.number;
				d->n++;
			} else if (rc >= 0) {
				rc = json_scan_skip(&r->s, rc, r->e);
			}
		}
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (!r->has_time)
		return iostat_bad(r, "the disks have no time before them (iostat's option -t)");
	if (!*d->name)
		return iostat_bad(r, "a disk has no \"disk_device\"");
	rc = 0;
	for (size_t i = 0; i < d->n && !rc && !r->since_boot; i++)
		rc = sysstat_sample(r->x, *r->host ? r->host : "host", d->name, d->v[i].metric,
			r->time_s, r->s.line, d->v[i].value, r->e);
	r->sink_failed = rc < 0;
	return rc ? err_prefix(r->e, rc, "%lu", r->s.line) : 0;
}

static int read_disks(struct iostat *r)
{
	int rc = enter(r, JSON_SCAN_ARRAY, "\"disk\"");

	while (rc >= 0 && (rc = iostat_scan(r)) == JSON_SCAN_OBJECT)
		rc = read_disk(r);
	return rc < 0 || rc == JSON_SCAN_ARRAY_END ? rc : iostat_bad(r, "a disk is not an object");
}

/* Calls 'one' for each element of an array of objects, and skips other elements. */
static int each(struct iostat *r, const char *what, int (*one)(struct iostat *))
{
	int rc = enter(r, JSON_SCAN_ARRAY, what);

	while (rc >= 0 && (rc = iostat_scan(r)) >= 0 && rc != JSON_SCAN_ARRAY_END)
		rc = rc == JSON_SCAN_OBJECT ? one(r) : json_scan_skip(&r->s, rc, r->e);
	return rc;
}

static int read_statistics(struct iostat *r)
{
	int rc;

	r->has_time = r->since_boot = false;
	while ((rc = iostat_scan(r)) == JSON_SCAN_KEY) {
		if (!strcmp(r->s.text, "timestamp"))
			rc = read_timestamp(r);
		else if (!strcmp(r->s.text, "disk"))
			rc = read_disks(r);
		else
			rc = json_scan_skip(&r->s, JSON_SCAN_KEY, r->e);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int read_host(struct iostat *r)
{
	int rc;

	*r->host = *r->timezone = '\0';
	r->first = true;
	sysstat_begin(r->x);
	while ((rc = iostat_scan(r)) == JSON_SCAN_KEY) {
		if (!strcmp(r->s.text, "nodename"))
			rc = text_to(r, "\"nodename\"", r->host, sizeof(r->host));
		else if (!strcmp(r->s.text, "timezone"))
			rc = text_to(r, "\"timezone\"", r->timezone, sizeof(r->timezone));
		else if (!strcmp(r->s.text, "statistics"))
			rc = each(r, "\"statistics\"", read_statistics);
		else
			rc = json_scan_skip(&r->s, JSON_SCAN_KEY, r->e);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int read_sysstat(struct iostat *r)
{
	int rc = enter(r, JSON_SCAN_OBJECT, "\"sysstat\"");

	while (rc >= 0 && (rc = iostat_scan(r)) == JSON_SCAN_KEY)
		rc = strcmp(r->s.text, "hosts") ? json_scan_skip(&r->s, JSON_SCAN_KEY, r->e)
						: each(r, "\"hosts\"", read_host);
	return rc;
}

static int read_text(struct iostat *r)
{
	int rc = iostat_scan(r);

	if (rc <= JSON_SCAN_END)
		return rc;
	if (rc != JSON_SCAN_OBJECT)
		return iostat_bad(r, "this is not a JSON object");
	while (rc >= 0 && (rc = iostat_scan(r)) == JSON_SCAN_KEY)
		rc = strcmp(r->s.text, "sysstat") ? json_scan_skip(&r->s, JSON_SCAN_KEY, r->e)
						  : read_sysstat(r);
	return rc < 0 ? rc : 1;
}

bool iostat_looks(const char *head, size_t size)
{
	(void)size;
	head += strspn(head, " \t\r\n");
	if (*head++ != '{')
		return false;
	head += strspn(head, " \t\r\n");
	return !strncmp(head, "\"sysstat\"", 9);
}

/* ---- several texts, one after another ---- */

enum { BEGIN_MAX = 128 }; /* {, blanks, "sysstat" */

/* A stream that ends before each text except the first, even if the previous text is truncated. */
struct texts {
	FILE *from;
	char b[8192];
	size_t at, n;
	bool begun, more; /* inside a text; another text follows */
};

static bool is_begin(const char *p, size_t n)
{
	static const char key[] = "\"sysstat\"";
	size_t blanks = 1;

	while (blanks < n && strchr(" \t\r\n", p[blanks]) && p[blanks])
		blanks++;
	return n >= blanks + sizeof(key) - 1 && *p == '{' &&
		!memcmp(p + blanks, key, sizeof(key) - 1);
}

static ssize_t texts_read(void *cookie, char *out, size_t size)
{
	struct texts *t = cookie;
	size_t n = 0, room;

	memmove(t->b, t->b + t->at, t->n - t->at);
	t->n -= t->at;
	t->at = 0;
	t->n += fread(t->b + t->n, 1, sizeof(t->b) - t->n, t->from);
	if (ferror(t->from))
		return -1;
	/* A beginning that may extend beyond the buffer is searched in the next call. */
	room = feof(t->from) ? t->n : t->n - BEGIN_MAX;
	for (; n < room && n < size; n++) {
		if (is_begin(t->b + n, t->n - n)) {
			if (t->begun)
				break;
			t->begun = true;
		}
		out[n] = t->b[n];
	}
	t->more = !n && t->n;
	t->at = n;
	return (ssize_t)n;
}

/* Continues with the next text. False: no more texts. */
static bool texts_next(struct texts *t, struct json_scan *s)
{
	unsigned long line = s->line;
	FILE *f = s->f;

	if (!t->more)
		return false;
	t->begun = t->more = false;
	clearerr(f);
	*s = (struct json_scan){.f = f, .line = line};
	return true;
}

static void note_cut(struct import_said *said, size_t n, unsigned long line)
{
	char note[200];

	if (n == 1)
		snprintf(note, sizeof(note),
			"a text ends in the middle, at line %lu: the rest is missing", line);
	else
		snprintf(note, sizeof(note),
			"%zu texts end in the middle, the first at line %lu: the rest of each is "
			"missing",
			n, line);
	import_note_partial(said, note);
}

int iostat_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct iostat *r = alloc_zero(1, sizeof(*r));
	struct texts *t = alloc_zero(1, sizeof(*t));
	unsigned long cut_at = 0;
	struct err own = {0};
	size_t n_cut = 0;
	bool cut;
	int rc;

	t->from = f;
	r->s.f = fopencookie(t, "r", (cookie_io_functions_t){.read = texts_read});
	if (!r->s.f)
		alloc_end();
	r->s.line = 1;
	r->iso = true;
	r->e = &own;
	r->x = sysstat_new(o, sink, said);
	do {
		while ((rc = read_text(r)) > 0)
			;
		cut = rc == -EINVAL && !r->sink_failed && feof(r->s.f) && r->s.depth;
		if (cut && !n_cut++)
			cut_at = r->s.line;
	} while ((rc == 0 || cut) && texts_next(t, &r->s));
	if (rc < 0 && !cut)
		lines_where(&own, source, rc);
	else
		rc = sysstat_finish(r->x, source, "JSON of iostat or sadf", IOSTAT_ADVICE, &own);
	if (!rc && n_cut)
		note_cut(said, n_cut, cut_at);
	if (!rc && !r->iso)
		import_note(said, "timestamps such as 11/22/26 are taken as month/day/year");
	if (!rc && r->local)
		import_note(said, SYSSTAT_LOCAL);
	if (!rc && *r->unknown_zone)
		import_note(said,
			"the time zone '%s' is unknown or ambiguous: its times are taken "
			"as UTC",
			r->unknown_zone);
	if (rc && e)
		*e = own;
	sysstat_free(r->x);
	fclose(r->s.f);
	free(t);
	free(r);
	return rc;
}
