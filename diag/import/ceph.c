/* Dumps of 'ceph osd perf -f json', one after another, each with its time:
 *
 *     1795357180                                                    a line before the dump: Unix
 *     {"osdstats": {"osd_perf_infos": [{"id": 0, "perf_stats": {     seconds or ISO 8601, as
 *         "commit_latency_ms": 3, "apply_latency_ms": 3,             'date +%s' writes it
 *         "commit_latency_ns": 3117000, "apply_latency_ns": 3117000}}, ...]}}
 *
 *     {"time": 1795357180, "osd_perf_infos": [...]}                 or inside the dump
 *     [{"time": ..., ...}, ...]                                     or an array of these
 *
 * Ceph before Nautilus has no "osdstats" around it, and no nanoseconds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "diag/import/json_scan.h"
#include "diag/import/labels.h"
#include "diag/import/lines.h"
#include "harness/base/alloc.h"

#define CEPH_ADVICE "while sleep 10; do date +%s; ceph osd perf -f json; done"

enum { OSDS_MAX = 1000000 };

struct osd {
	double id, commit_ms, apply_ms; /* NAN: missing */
};

struct ceph {
	struct json_scan s;
	struct labels *labels;
	struct import_options how;
	const struct import_sink *sink;
	struct import_said *said;
	struct osd *osd; /* of one dump */
	size_t n;
	double time_s, line_s; /* of the dump; of the line before it. NAN: none */
	bool declared, sink_failed;
	uint64_t dumps;
	struct err *e;
};

static int ceph_scan(struct ceph *c)
{
	return json_scan(&c->s, c->e);
}

static int ceph_bad(struct ceph *c, const char *what)
{
	return err_set(
		c->e, -EINVAL, "%lu: %s; write the file by '%s'", c->s.line, what, CEPH_ADVICE);
}

static int skip(struct ceph *c)
{
	return json_scan_skip(&c->s, JSON_SCAN_KEY, c->e);
}

static int read_stats(struct ceph *c, struct osd *o)
{
	int rc = json_scan_want(&c->s, JSON_SCAN_OBJECT, "\"perf_stats\"", c->e);

	while (rc >= 0 && (rc = ceph_scan(c)) == JSON_SCAN_KEY) {
		bool commit = !strncmp(c->s.text, "commit_latency_", 15),
		     apply = !strncmp(c->s.text, "apply_latency_", 14);
		const char *unit = c->s.text + (commit ? 15 : 14);
		double *to = commit ? &o->commit_ms : &o->apply_ms,
		       scale = strcmp(unit, "ns") ? 1 : 1e-6;

		if ((!commit && !apply) || (strcmp(unit, "ms") && strcmp(unit, "ns"))) {
			rc = skip(c);
			continue;
		}
		rc = json_scan_want(&c->s, JSON_SCAN_NUMBER, "a latency", c->e);
		/* Nanoseconds are more precise than milliseconds, whichever comes first. */
		if (rc >= 0 && (scale < 1 || isnan(*to)))
			*to = c->s.number * scale;
	}
	return rc;
}

static int read_osd(struct ceph *c)
{
	struct osd o = {NAN, NAN, NAN};
	int rc;

	while ((rc = ceph_scan(c)) == JSON_SCAN_KEY) {
		if (!strcmp(c->s.text, "id")) {
			rc = json_scan_want(&c->s, JSON_SCAN_NUMBER, "\"id\"", c->e);
			o.id = c->s.number;
		} else if (!strcmp(c->s.text, "perf_stats")) {
			rc = read_stats(c, &o);
		} else {
			rc = skip(c);
		}
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (!(o.id >= 0) || o.id > 1e9 || o.id != floor(o.id))
		return ceph_bad(c, "an OSD has no number as its \"id\"");
	if (c->n == OSDS_MAX)
		return ceph_bad(c, "a dump has more than a million OSDs");
	c->osd = alloc_room(c->osd, c->n, sizeof(*c->osd));
	c->osd[c->n++] = o;
	return 0;
}

static int read_infos(struct ceph *c)
{
	int rc = json_scan_want(&c->s, JSON_SCAN_ARRAY, "\"osd_perf_infos\"", c->e);

	while (rc >= 0 && (rc = ceph_scan(c)) == JSON_SCAN_OBJECT)
		rc = read_osd(c);
	return rc < 0 || rc == JSON_SCAN_ARRAY_END ? rc : ceph_bad(c, "an OSD is not an object");
}

static bool is_time(const char *key)
{
	return !strcmp(key, "time") || !strcmp(key, "timestamp") || !strcmp(key, "date") ||
		!strcmp(key, "ts");
}

static int read_time(struct ceph *c)
{
	int rc = ceph_scan(c);

	if (rc == JSON_SCAN_NUMBER)
		c->time_s = c->s.number;
	else if (rc == JSON_SCAN_STRING && import_time(c->s.text, 1, &c->time_s))
		return ceph_bad(c, "a time is neither Unix seconds nor ISO 8601");
	else if (rc >= 0 && rc != JSON_SCAN_STRING)
		return ceph_bad(c, "a time is neither a number nor a text");
	return rc;
}

/* Reads the object of a dump; "osd_perf_infos" may be nested in it. */
static int read_object(struct ceph *c, unsigned depth, bool *found)
{
	int rc;

	while ((rc = ceph_scan(c)) == JSON_SCAN_KEY) {
		if (!strcmp(c->s.text, "osd_perf_infos")) {
			*found = true;
			rc = read_infos(c);
		} else if (!depth && is_time(c->s.text)) {
			rc = read_time(c);
		} else {
			rc = ceph_scan(c);
			rc = rc == JSON_SCAN_OBJECT && depth < 4 ? read_object(c, depth + 1, found)
								 : json_scan_skip(&c->s, rc, c->e);
		}
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int ceph_give(struct ceph *c, const char *metric, double id, double value)
{
	char osd[32];
	struct label v = {"osd", osd};
	uint32_t series;
	int rc;

	if (isnan(value))
		return 0;
	snprintf(osd, sizeof(osd), "osd.%.0f", id);
	if (labels_add(c->labels, metric, &v, 1, &series) < 0)
		return 0;
	rc = labels_decide(c->labels, NULL, c->e)
		?: labels_sample(c->labels, series, c->time_s, value, c->sink, c->said, c->e);
	return rc;
}

static int ceph_declare(struct ceph *c)
{
	const struct import_sink *s = c->sink;

	if (c->declared || !s->metric)
		return 0;
	c->declared = true;
	return s->metric(
		       s->ctx, "commit_latency_ms unit=ms worse=more kind=gauge zero=missing", c->e)
		?: s->metric(s->ctx, "apply_latency_ms unit=ms worse=more kind=gauge zero=missing",
			   c->e);
}

/* Ends a dump and passes on its samples. */
static int end_dump(struct ceph *c, bool found)
{
	const struct import_options *o = &c->how;
	int rc = 0;

	if (!found)
		return ceph_bad(c, "the dump has no \"osd_perf_infos\"");
	if (isnan(c->time_s))
		return ceph_bad(c, "the dump has no time");
	if ((o->from_s != 0 || o->to_s != 0) && (c->time_s < o->from_s || c->time_s >= o->to_s))
		c->n = 0;
	c->dumps++;
	labels_line(c->labels, c->s.line);
	rc = ceph_declare(c);
	for (size_t i = 0; i < c->n && !rc; i++)
		rc = ceph_give(c, "commit_latency_ms", c->osd[i].id, c->osd[i].commit_ms)
			?: ceph_give(c, "apply_latency_ms", c->osd[i].id, c->osd[i].apply_ms);
	c->sink_failed = rc < 0;
	return rc ? err_prefix(c->e, rc, "%lu", c->s.line) : 0;
}

static int read_dump(struct ceph *c)
{
	bool found = false;
	int rc;

	c->n = 0;
	c->time_s = c->line_s;
	rc = read_object(c, 0, &found);
	return rc < 0 ? rc : end_dump(c, found);
}

/* Reads a line with a time between dumps. 1: JSON follows; 0: the end. */
static int read_between(struct ceph *c)
{
	char line[100];
	size_t n;
	int ch;

	for (;;) {
		while ((ch = getc(c->s.f)) == ' ' || ch == '\n' || ch == '\t' || ch == '\r')
			c->s.line += ch == '\n';
		if (ch == EOF)
			return ferror(c->s.f) ? err_errno(c->e, -EIO, "%lu: cannot read", c->s.line)
					      : 0;
		if (ch == '{' || ch == '[') {
			ungetc(ch, c->s.f);
			return 1;
		}
		for (n = 0; ch != EOF && ch != '\n'; ch = getc(c->s.f)) {
			if (n + 1 == sizeof(line) || !ch)
				return ceph_bad(c, "this is neither a time nor JSON");
			line[n++] = (char)ch;
		}
		while (n && (line[n - 1] == ' ' || line[n - 1] == '\r' || line[n - 1] == '\t'))
			n--;
		line[n] = '\0';
		if (import_time(line + strspn(line, "# \t"), 1, &c->line_s))
			return ceph_bad(
				c, "this is neither a time (Unix seconds or ISO 8601) nor JSON");
		c->s.line += ch == '\n';
	}
}

/* Reads a dump, or an array of dumps. */
static int read_value(struct ceph *c)
{
	int rc = ceph_scan(c);

	if (rc == JSON_SCAN_OBJECT)
		rc = read_dump(c);
	else
		while (rc >= 0 && (rc = ceph_scan(c)) == JSON_SCAN_OBJECT)
			rc = read_dump(c);
	c->line_s = NAN;
	return rc < 0 || rc == JSON_SCAN_ARRAY_END || !rc ? rc
							  : ceph_bad(c, "a dump is not an object");
}

bool ceph_looks(const char *head, size_t size)
{
	(void)size;
	return strstr(head, "\"osd_perf_infos\"") != NULL;
}

int ceph_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct ceph c = {.s.f = f, .s.line = 1, .how = *o, .sink = sink, .said = said, .e = e};
	char note[120];
	int rc;

	c.line_s = NAN;
	c.how.member = "osd";
	memset(c.how.group, 0, sizeof(c.how.group));
	c.labels = labels_new(&c.how);
	labels_watch_repeats(c.labels, false,
		"if they are dumps of two clusters, keep each in its own file and diagnose it "
		"alone");
	while ((rc = read_between(&c)) > 0 && (rc = read_value(&c)) >= 0)
		;
	if (rc == -EINVAL && !c.sink_failed && c.dumps && c.s.depth && feof(f)) {
		snprintf(note, sizeof(note),
			"the file ends in the middle of a dump, at line %lu, which is left out",
			c.s.line);
		import_note_partial(said, note);
		rc = 0;
	}
	if (!rc && !c.dumps)
		rc = ceph_bad(&c, "the file has no dump");
	if (rc < 0)
		lines_where(e, source, rc);
	else if (labels_finish(c.labels, said, e))
		rc = lines_where(e, source, -EINVAL);
	if (!rc && said && !said->form)
		said->form = alloc_format(
			"%llu dumps of ceph osd perf: member is the OSD, no groups",
			(unsigned long long)c.dumps);
	labels_free(c.labels);
	free(c.osd);
	return rc;
}
