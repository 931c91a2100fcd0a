/* Writes metrics in Prometheus's text format. */
#include "harness/live/exposition.h"

#include <math.h>

void exposition_label(FILE *f, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", f);
		else if (*value == '"' || *value == '\\')
			fprintf(f, "\\%c", *value);
		else
			fputc(*value, f);
	}
}

static void exposition_put_number(FILE *f, double v)
{
	if (isnan(v))
		fputs("NaN\n", f);
	else if (isinf(v))
		fputs(v > 0 ? "+Inf\n" : "-Inf\n", f);
	else
		fprintf(f, "%.15g\n", v);
}

static void exposition_put(
	FILE *f, const char *name, const char *type, const char *help, double value)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n%s ", name, help, name, type, name);
	exposition_put_number(f, value);
}

static double severity_of(const struct life *life)
{
	return life->view[life->shown].severity;
}

static double effect_of(const struct life *life)
{
	return life->view[life->shown].effect;
}

static double share_of(const struct life *life)
{
	return life->view[life->shown].share;
}

static double since_of(const struct life *life)
{
	return life->since_s;
}

static void put_findings(FILE *f, const struct lives *l, const char *name, const char *help,
	double (*value)(const struct life *life))
{
	fprintf(f, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	for (size_t i = 0; i < l->n; i++) {
		const struct life *life = l->v[i];
		const struct life_view *v = &life->view[life->shown];

		fprintf(f, "%s{member=\"", name);
		exposition_label(f, life->of_class ? "" : life->member);
		fputs("\",group=\"", f);
		exposition_label(f, life->group);
		fputs("\",metric=\"", f);
		exposition_label(f, v->metric);
		fprintf(f, "\",kind=\"%s\"} ", finding_kind_names[v->kind]);
		exposition_put_number(f, value(life));
	}
}

void exposition_write(FILE *f, const struct exposition *x)
{
	fputs("# HELP culprit_build_info The version of culprit, in a label.\n"
	      "# TYPE culprit_build_info gauge\n"
	      "culprit_build_info{version=\"" CULPRIT_VERSION "\"} 1\n",
		f);
	put_findings(f, x->lives, "culprit_finding_severity",
		"Distance from the peers divided by the allowed distance.", severity_of);
	put_findings(f, x->lives, "culprit_finding_effect_ratio",
		"Ratio to the peers' value while the member is off.", effect_of);
	put_findings(f, x->lives, "culprit_finding_off_ratio",
		"Share of the time since the beginning during which the member is off.", share_of);
	put_findings(f, x->lives, "culprit_finding_since_timestamp_seconds",
		"The first time that the member was off.", since_of);
	exposition_put(
		f, "culprit_findings", "gauge", "Number of open findings.", (double)x->lives->n);
	exposition_put(f, "culprit_findings_begun_total", "counter", "Findings that have begun.",
		(double)x->lives->begun);
	exposition_put(f, "culprit_findings_ended_total", "counter", "Findings that have ended.",
		(double)x->lives->ended);
	exposition_put(
		f, "culprit_members", "gauge", "Members that have samples.", (double)x->members);
	exposition_put(f, "culprit_members_judged", "gauge",
		"Members compared with peers in the last judgement.", (double)x->judged);
	exposition_put(f, "culprit_samples_total", "counter", "Samples read.", (double)x->samples);
	exposition_put(f, "culprit_lines_skipped_total", "counter", "Lines that could not be read.",
		(double)x->skipped);
	exposition_put(f, "culprit_last_sample_timestamp_seconds", "gauge",
		"Time of the newest sample.", x->last_sample_s);
	exposition_put(
		f, "culprit_looks_total", "counter", "Judgements of a horizon.", (double)x->looks);
	exposition_put(
		f, "culprit_judge_seconds_total", "counter", "Time spent on judging.", x->judge_s);
	exposition_put(f, "culprit_source_up", "gauge",
		"Whether the last attempt to read the source succeeded.", x->up);
	exposition_put(f, "culprit_source_partial", "gauge",
		"Whether the source's last answer was partial.", x->partial);
	exposition_put(f, "culprit_source_failures_total", "counter",
		"Failed attempts to read the source.", (double)x->failures);
}
