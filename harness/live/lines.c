/* Prints the lines of 'culprit watch'. */
#include "harness/live/lines.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"

/* Earlier times do not count from the epoch. */
static const double first_date_s = 1e8, last_date_s = 2e11;

char *line_time(double time_s, char *buf, size_t size)
{
	if (!(time_s >= first_date_s && time_s < last_date_s) ||
		!clock_utc(time_s, "%Y-%m-%dT%H:%M:%SZ", buf, size))
		snprintf(buf, size, "%.6gs", time_s);
	return buf;
}

char *line_duration(double s, char *buf, size_t size)
{
	static const struct {
		double s;
		const char *name;
	} units[] = {{7 * 86400.0, "weeks"}, {86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	size_t i = 0;

	while (i < 4 && s < 2 * units[i].s)
		i++;
	snprintf(buf, size, "%.3g %s", s / units[i].s, units[i].name);
	return buf;
}

static void print_who(FILE *f, const struct life *life)
{
	if (life->of_class) {
		fprintf(f, "%u members alike, such as ", life->count);
		text_print_clean(f, life->of_class);
		return;
	}
	if (!*life->member)
		fputs("group ", f);
	text_print_clean(f, life->group);
	if (*life->group && *life->member)
		fputc('/', f);
	text_print_clean(f, life->member);
	if (!*life->group && !*life->member)
		fputs("(all)", f);
}

/* Uses the terms of 'culprit diagnose'. */
static const char *line_kind(const struct life *life, char text[40])
{
	switch (life->view[life->shown].kind) {
	case FINDING_BURSTS: return "in bursts";
	case FINDING_GROUP: return "whole group";
	case FINDING_CLASS: snprintf(text, 40, "class of %u", life->count); return text;
	default: return "lasting";
	}
}

void line_text(FILE *f, enum life_event event, const struct life *life, double now_s, bool partial)
{
	const struct life_view *v = &life->view[life->shown];
	char at[40], since[40], lasted[40], kind[40];

	fprintf(f, "%s %s ", line_time(now_s, at, sizeof(at)),
		event == LIFE_BEGIN ? "begin" : "end  ");
	print_who(f, life);
	fprintf(f, ": ");
	text_print_clean(f, v->metric);
	if (event == LIFE_BEGIN)
		fprintf(f,
			" %.3g times its peers (%s) for %.0f %% of the time since %s, "
			"severity %.2g",
			v->effect, line_kind(life, kind), 100 * v->share,
			line_time(life->since_s, since, sizeof(since)), v->severity);
	else
		fprintf(f, " was %.3g times its peers (%s) from %s for %s%s", v->effect,
			line_kind(life, kind), line_time(life->since_s, since, sizeof(since)),
			line_duration(fmax(v->until_s - life->since_s, 0), lasted, sizeof(lasted)),
			life->absent ? "; it is no longer judged: it has no samples or no peers"
				     : "");
	fputs(partial ? "; the data is partial\n" : "\n", f);
}

/* JSON has no infinity. */
static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

void line_json(FILE *f, enum life_event event, const struct life *life, double now_s, bool partial)
{
	const struct life_view *v = &life->view[life->shown];
	auto_json json_t *line = json_pack(
		"{s:s, s:o, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "event",
		event == LIFE_BEGIN ? "begin" : "end", "time", real(now_s), "member", life->member,
		"group", life->group, "metric", v->metric, "kind", finding_kind_names[v->kind],
		"severity", real(v->severity), "effect", real(v->effect), "share", real(v->share),
		"since", real(life->since_s), "until", real(v->until_s), "began",
		real(life->began_s));

	if (life->of_class) {
		json_object_set_new(line, "example", json_string(life->of_class));
		json_object_set_new(line, "members", json_integer(life->count));
	}
	if (event == LIFE_END)
		json_object_set_new(line, "judged", json_boolean(!life->absent));
	if (partial)
		json_object_set_new(line, "partial", json_true());
	json_dumpf(line, f, JSON_COMPACT | JSON_REAL_PRECISION(15));
	fputc('\n', f);
}
