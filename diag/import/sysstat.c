/* Shared by the readers of sar, sadf and iostat: disks, dates and clocks. */
#include "diag/import/sysstat.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diag/import/labels.h"
#include "diag/import/lines.h"
#include "harness/base/alloc.h"

/* 'zero=missing': a disk without requests has waited 0 ms, which has no meaning. Sizes and rates
 * are the load on the disk. Queue and utilization are rate times latency: they would blame a busy
 * disk. */
static const struct known {
	const char *name, *other, *declaration;
} known[] = {
	{"tps", NULL, "unit=1/s worse=load kind=gauge"},
	{"rkB/s", "rkB", "unit=kB/s worse=load kind=gauge"},
	{"wkB/s", "wkB", "unit=kB/s worse=load kind=gauge"},
	{"dkB/s", "dkB", "unit=kB/s worse=load kind=gauge"},
	{"rd_sec/s", "rd_sec", "unit=sectors/s worse=load kind=gauge"},
	{"wr_sec/s", "wr_sec", "unit=sectors/s worse=load kind=gauge"},
	{"dc_sec/s", "dc_sec", "unit=sectors/s worse=load kind=gauge"},
	{"kB_read/s", NULL, "unit=kB/s worse=load kind=gauge"},
	{"kB_wrtn/s", NULL, "unit=kB/s worse=load kind=gauge"},
	{"kB_dscd/s", NULL, "unit=kB/s worse=load kind=gauge"},
	{"kB_read", NULL, "unit=kB worse=none"},
	{"kB_wrtn", NULL, "unit=kB worse=none"},
	{"kB_dscd", NULL, "unit=kB worse=none"},
	{"r/s", NULL, "unit=1/s worse=load kind=gauge"},
	{"w/s", NULL, "unit=1/s worse=load kind=gauge"},
	{"d/s", NULL, "unit=1/s worse=load kind=gauge"},
	{"f/s", NULL, "unit=1/s worse=load kind=gauge"},
	{"rrqm/s", NULL, "unit=1/s worse=none kind=gauge"},
	{"wrqm/s", NULL, "unit=1/s worse=none kind=gauge"},
	{"drqm/s", NULL, "unit=1/s worse=none kind=gauge"},
	{"rrqm", NULL, "unit=% worse=none kind=gauge"},
	{"wrqm", NULL, "unit=% worse=none kind=gauge"},
	{"drqm", NULL, "unit=% worse=none kind=gauge"},
	{"areq-sz", NULL, "unit=kB worse=load kind=gauge zero=missing"},
	{"rareq-sz", NULL, "unit=kB worse=load kind=gauge zero=missing"},
	{"wareq-sz", NULL, "unit=kB worse=load kind=gauge zero=missing"},
	{"dareq-sz", NULL, "unit=kB worse=load kind=gauge zero=missing"},
	{"avgrq-sz", NULL, "unit=sectors worse=load kind=gauge zero=missing"},
	{"aqu-sz", NULL, "worse=none kind=gauge"},
	{"avgqu-sz", NULL, "worse=none kind=gauge"},
	{"await", NULL, "unit=ms worse=more kind=gauge zero=missing"},
	{"r_await", NULL, "unit=ms worse=more kind=gauge zero=missing"},
	{"w_await", NULL, "unit=ms worse=more kind=gauge zero=missing"},
	{"d_await", NULL, "unit=ms worse=more kind=gauge zero=missing"},
	{"f_await", NULL, "unit=ms worse=more kind=gauge zero=missing"},
	{"svctm", NULL, "unit=ms worse=none kind=gauge"},
	{"%util", "util-percent", "unit=% worse=none kind=gauge"},
	{"util", NULL, "unit=% worse=none kind=gauge"},
};
enum { N_KNOWN = sizeof(known) / sizeof(known[0]) };

struct sysstat {
	struct import_options how;
	const struct import_sink *sink;
	struct import_said *said;
	struct labels *labels;
	bool declared[N_KNOWN];
	uint64_t given;
	/* The host of the current samples. */
	char host[SYSSTAT_NAME_MAX];
	double last_s;
	struct jumps {
		uint64_t n;
		unsigned long line; /* of the first place */
	} back, gaps;
};

struct sysstat *sysstat_new(
	const struct import_options *o, const struct import_sink *sink, struct import_said *said)
{
	struct sysstat *x = alloc_zero(1, sizeof(*x));

	x->how = *o;
	x->how.member = "disk";
	memset(x->how.group, 0, sizeof(x->how.group));
	x->how.group[0] = "host";
	x->sink = sink;
	x->said = said;
	x->labels = labels_new(&x->how);
	labels_watch_repeats(x->labels, true,
		"if two hosts have this name, give one another name in the file; if it is one "
		"recording, keep one sample for each time");
	return x;
}

void sysstat_free(struct sysstat *x)
{
	if (x)
		labels_free(x->labels);
	free(x);
}

static const struct known *sysstat_find(const char *metric)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		if (!strcmp(known[i].name, metric) ||
			(known[i].other && !strcmp(known[i].other, metric)))
			return &known[i];
	return NULL;
}

static int sysstat_declare(struct sysstat *x, const struct known *k, struct err *e)
{
	char text[120];

	if (!k || x->declared[k - known] || !x->sink->metric)
		return 0;
	x->declared[k - known] = true;
	snprintf(text, sizeof(text), "%s %s", k->name, k->declaration);
	return x->sink->metric(x->sink->ctx, text, e);
}

static void jump(struct jumps *j, unsigned long line)
{
	if (!j->n++)
		j->line = line;
}

/* Notices a clock that was set, files in the wrong order, or a misread date. */
static void watch_time(struct sysstat *x, const char *host, double time_s, unsigned long line)
{
	if (strcmp(x->host, host))
		snprintf(x->host, sizeof(x->host), "%s", host);
	else if (time_s < x->last_s)
		jump(&x->back, line);
	else if (time_s > x->last_s + 86400)
		jump(&x->gaps, line);
	x->last_s = time_s;
}

void sysstat_begin(struct sysstat *x)
{
	labels_text(x->labels);
}

int sysstat_sample(struct sysstat *x, const char *host, const char *disk, const char *metric,
	double time_s, unsigned long line, double value, struct err *e)
{
	const struct import_options *o = &x->how;
	struct label v[] = {{"disk", disk}, {"host", host}};
	const struct known *k = sysstat_find(metric);
	uint32_t series;
	int new, rc;

	watch_time(x, host, time_s, line);
	labels_line(x->labels, line);
	if ((o->from_s != 0 || o->to_s != 0) && (time_s < o->from_s || time_s >= o->to_s)) {
		x->given++;
		return 0;
	}
	new = labels_add(x->labels, k ? k->name : metric, v, 2, &series);
	x->given++;
	if (new < 0)
		return 0;
	rc = labels_decide(x->labels, NULL, e);
	if (!rc && new)
		rc = sysstat_declare(x, k, e);
	return rc ?: labels_sample(x->labels, series, time_s, value, x->sink, x->said, e);
}

int sysstat_finish(
	struct sysstat *x, const char *source, const char *form, const char *advice, struct err *e)
{
	if (!x->given)
		return err_set(e, -EINVAL, "%s: it has no disks; write it by '%s'", source, advice);
	if (x->said && !x->said->form)
		x->said->form = alloc_format(
			"%s: member is the disk, group the host; %zu series of a disk "
			"and a metric",
			form, labels_count(x->labels));
	if (x->back.n)
		import_note(x->said,
			"places where a host's time goes back: %" PRIu64 ", the first at line %lu",
			x->back.n, x->back.line);
	if (x->gaps.n)
		import_note(x->said,
			"gaps of more than a day in a host's times: %" PRIu64
			", the first at line %lu",
			x->gaps.n, x->gaps.line);
	return labels_finish(x->labels, x->said, e) ? lines_where(e, source, -EINVAL) : 0;
}

int sysstat_date(const char *text, int *day, const char **end)
{
	struct tm tm = {0};
	int y, m, d, n = 0;

	if (sscanf(text, "%4d-%2d-%2d%n", &y, &m, &d, &n) != 3) {
		if (sscanf(text, "%2d/%2d/%4d%n", &m, &d, &y, &n) != 3)
			return -EINVAL;
		y += y < 100 ? 2000 : 0;
	}
	if (y < 1970 || y > 2999 || m < 1 || m > 12 || d < 1 || d > 31 || (!end && text[n]))
		return -EINVAL;
	tm.tm_year = y - 1900;
	tm.tm_mon = m - 1;
	tm.tm_mday = d;
	*day = (int)(timegm(&tm) / 86400);
	if (end)
		*end = text + n;
	return 0;
}

int sysstat_clock(const char *text, int *seconds, const char **end)
{
	int h, m, s, n = 0, pm;

	if (sscanf(text, "%2d:%2d:%2d%n", &h, &m, &s, &n) != 3 || h < 0 || m < 0 || s < 0 ||
		h > 23 || m > 59 || s > 60)
		return -EINVAL;
	text += n;
	if (text[0] == ' ' && (text[1] == 'A' || text[1] == 'P') && text[2] == 'M' &&
		!isalpha((unsigned char)text[3])) {
		pm = text[1] == 'P';
		if (h < 1 || h > 12)
			return -EINVAL;
		h = h % 12 + 12 * pm;
		text += 3;
	}
	*seconds = h * 3600 + m * 60 + s;
	*end = text;
	return 0;
}
