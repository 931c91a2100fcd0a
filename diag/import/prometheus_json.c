/* Saved answers of Prometheus's range queries: from /api/v1/query_range by curl, or from 'promtool
 * query range -o json'. Several may follow one another.
 *
 * Series come one after another, and labels show the member only when all series are known, so
 * samples wait in a temporary file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "diag/import/prometheus_answer.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

struct waiting {
	double time_s, value;
	uint32_t series;
};

struct saved {
	const struct import_options *how;
	struct labels *labels;
	FILE *waiting;
	struct waiting *last; /* by series: its newest sample */
	size_t room;
};

/* Is the sample known? Parts of a range that were queried separately share the sample at their
 * border. */
static bool prometheus_json_is_known(
	struct saved *s, const struct waiting *w, int *rc, struct err *e)
{
	struct waiting *last;

	if (w->series >= s->room) {
		size_t room = 2 * (size_t)w->series + 64;

		s->last = alloc_resize(s->last, room, sizeof(*s->last));
		while (s->room < room)
			s->last[s->room++] = (struct waiting){.time_s = -INFINITY};
	}
	last = &s->last[w->series];
	if (w->time_s < last->time_s ||
		(w->time_s == last->time_s && w->value != last->value &&
			!(isnan(w->value) && isnan(last->value))))
		*rc = err_set(e, -EINVAL,
			"series '%s' comes twice for one time: keep results of different queries "
			"in different files, and results of one query in order of time",
			labels_metric(s->labels, w->series));
	if (w->time_s <= last->time_s)
		return true;
	*last = *w;
	return false;
}

static int prometheus_json_keep(
	void *ctx, uint32_t series, double time_s, double value, struct err *e)
{
	const struct waiting w = {time_s, value, series};
	struct saved *s = ctx;
	int rc = 0;

	if ((s->how->from_s != 0 || s->how->to_s != 0) &&
		(time_s < s->how->from_s || time_s >= s->how->to_s))
		return 0;
	if (prometheus_json_is_known(s, &w, &rc, e))
		return rc;
	labels_seen(s->labels, series, time_s);
	if (fwrite(&w, sizeof(w), 1, s->waiting) != 1)
		return err_errno(e, -EIO, "cannot write a temporary file");
	return 0;
}

static int prometheus_json_give(
	struct saved *s, const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct waiting w;
	int rc = 0;

	if (fflush(s->waiting) || fseek(s->waiting, 0, SEEK_SET))
		return err_errno(e, -EIO, "cannot write a temporary file");
	while (!rc && fread(&w, sizeof(w), 1, s->waiting) == 1)
		rc = labels_sample(s->labels, w.series, w.time_s, w.value, sink, said, e);
	if (!rc && ferror(s->waiting))
		rc = err_errno(e, -EIO, "cannot read a temporary file");
	return rc;
}

/* Does this value follow "NAME": ? */
static bool has_key(const char *head, const char *name, const char *value)
{
	for (const char *p = strstr(head, name); p; p = strstr(p, name)) {
		p += strlen(name);
		p += strspn(p, " \t\r\n");
		if (*p != ':')
			continue;
		p += 1 + strspn(p + 1, " \t\r\n");
		if (!strncmp(p, value, strlen(value)))
			return true;
	}
	return false;
}

/* An object or a list of objects with "status" (of the API), "resultType" or "metric". */
bool prometheus_json_looks(const char *head, size_t size)
{
	(void)size;
	head += strspn(head, " \t\r\n");
	if (*head == '[')
		return head[1 + strspn(head + 1, " \t\r\n")] == '{' &&
			has_key(head, "\"metric\"", "{");
	return *head == '{' &&
		(has_key(head, "\"status\"", "\"success\"") ||
			has_key(head, "\"status\"", "\"error\"") ||
			has_key(head, "\"resultType\"", "\"") || has_key(head, "\"metric\"", "{"));
}

int prometheus_json_read(FILE *f, const char *source, const struct import_options *o,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	struct saved s = {.how = o, .labels = labels_new(o), .waiting = tmpfile()};
	int rc = s.waiting ? 0 : err_errno(e, -EIO, "cannot make a temporary file");

	rc = rc ?: prometheus_answer_saved(f, source, s.labels, prometheus_json_keep, &s, said, e);
	if (!rc) {
		rc = labels_decide(s.labels, said, e)
			?: labels_declare_buckets(s.labels, sink, e)
			?: prometheus_json_give(&s, sink, said, e)
			?: labels_finish(s.labels, said, e);
		if (!rc && !labels_count(s.labels))
			rc = err_set(e, -EINVAL, "there is no sample of the requested metrics");
		if (rc)
			err_prefix(e, rc, "%s", source);
	}
	if (!rc && said && !said->form) {
		auto_free char *labels = labels_describe(s.labels);

		said->form = alloc_format("saved answer of Prometheus: %zu series, %s",
			labels_count(s.labels), labels);
	}
	if (s.waiting)
		fclose(s.waiting);
	labels_free(s.labels);
	free(s.last);
	return rc;
}
