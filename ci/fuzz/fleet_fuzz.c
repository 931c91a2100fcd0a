/* libFuzzer entry of the fleet: make fuzz, then out/fuzz/fleet_fuzz CORPUS. Bytes become
 * declarations, series and samples in any order, judgements of parts of the time and forgetting.
 * Whatever comes, results must be sound: finite severities, known members, times within what was
 * judged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *at, *end;
};

static unsigned next(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

static const char *const declarations[] = {"a worse=more", "a worse=less zero=value",
	"a kind=counter", "a per=b worse=more", "a per=b counter=yes zero=value", "b worse=load",
	"h kind=bucket worse=more", "h kind=bucket quantile=0.5 zero=value", "b worse=none",
	"a worse=load"};
static const char *const metrics[] = {"a", "b", "h{le=\"1\"}", "h{le=\"+Inf\"}", "h{le=\"0.5\"}",
	"latency_ms", "iops", "h{le=\"x\"}"};
static const double hard[] = {0, -1, 1e300, -1e300, 1e-300, INFINITY, -INFINITY, NAN, 1e12, -1e12};

/* A text of the fuzzer's own. */
static void own_declaration(struct bytes *b, struct import_sink *sink)
{
	char text[64];
	size_t n = next(b) % sizeof(text);
	struct err e = {.text = ""};

	if (n > (size_t)(b->end - b->at))
		n = (size_t)(b->end - b->at);
	memcpy(text, b->at, n);
	text[n] = '\0';
	b->at += n;
	if (sink->metric(sink->ctx, text, &e) && !*e.text)
		abort();
}

static double number(struct bytes *b)
{
	unsigned how = next(b);

	return how >= 250 ? hard[next(b) % (sizeof(hard) / sizeof(*hard))]
			  : (double)(how * 256 + next(b)) / 16;
}

static void sound(const struct fleet_result *r, const struct fleet *f)
{
	double from, to, step = 0;

	if (!fleet_extent(f, &from, &to))
		abort();
	for (size_t i = 0; i < r->n_metrics; i++)
		step = fmax(step, r->metrics[i].step_s);
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct fleet_finding *x = &r->findings[i];

		if (!(x->severity >= 1) || !isfinite(x->severity) || !isfinite(x->effect) ||
			!(x->effect > 0) || !(x->share >= 0 && x->share <= 1) ||
			!(x->share_of_all >= 0 && x->share_of_all <= 1) ||
			x->metric >= r->n_metrics || x->kind >= FINDING_KINDS ||
			x->member >= (x->kind == FINDING_GROUP ? r->n_groups : r->n_members) ||
			!(x->since_s <= x->until_s))
			abort();
		/* Windows begin at multiples of their width, so up to a window earlier or later. */
		if (x->since_s < r->from_s - (r->to_s - r->from_s) - 2 * step ||
			x->until_s > r->to_s + (r->to_s - r->from_s) + 2 * step)
			abort();
	}
	for (size_t i = 0; i < r->n_members; i++) {
		const struct fleet_member *m = &r->members[i];

		if (!isfinite(m->severity) || m->finding >= (int64_t)r->n_findings ||
			m->group >= r->n_groups || r->ranking[i] >= r->n_members)
			abort();
	}
}

static void judge(struct fleet *f, double from, double to)
{
	struct fleet_result *r = NULL;
	struct err e = {.text = ""};
	float ratio[7], peak[7];

	if (fleet_judge(f, from, to, &r, &e)) {
		if (!*e.text || r)
			abort();
		return;
	}
	sound(r, f);
	for (uint32_t m = 0; m < r->n_metrics; m++) {
		fleet_trace(f, r, 0, m, 7, ratio, peak);
		fleet_trace_group(f, r, (uint32_t)r->n_groups - 1, m, 7, ratio, peak);
	}
	fleet_result_free(r);
}

/* A run of samples of the members of a group. */
static void samples(struct bytes *b, struct import_sink *sink, double *time_s)
{
	unsigned metric = next(b) % (sizeof(metrics) / sizeof(*metrics)), groups = next(b) % 4,
		 first = next(b) % 16, n = 1 + next(b) % 12, times = 1 + next(b) % 100;
	double step = number(b), level = number(b), ill = number(b);
	char group[8], member[8];
	struct series_key key = {.metric = metrics[metric],
		.member = member,
		.group = {group, "x"},
		.n_groups = groups > 2 ? 2 : groups > 0};
	struct err e;

	snprintf(group, sizeof(group), "g%u", groups);
	for (unsigned t = 0; t < times; t++) {
		for (unsigned i = 0; i < n; i++) {
			uint32_t id;

			snprintf(member, sizeof(member), "m%u", first + i);
			if (sink->series(sink->ctx, &key, &id, &e))
				return;
			/* Times that are too far are refused. */
			if (sink->sample(sink->ctx, id, *time_s + t * step,
				    (i ? level : ill) * (1 + 0.01 * ((t * 7 + i * 3) % 11)), &e))
				return;
		}
	}
	step *= times;
	if (fabs(*time_s + step) < 1e11)
		*time_s += step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {data, data + size};
	struct fleet_options o = fleet_defaults;
	unsigned how = next(&b);
	struct fleet *f;
	struct import_sink sink;
	double time_s = how & 1 ? 1.7e9 : 0;
	struct err e;

	o.memory_bytes = how & 2 ? 4096 : o.memory_bytes;
	o.step_s = how & 4 ? 600 : 0;
	o.shortest = how & 8 ? 0.5 : o.shortest;
	o.alarms = how & 16 ? 1000 : o.alarms;
	f = fleet_new(&o);
	sink = fleet_sink(f);
	for (unsigned steps = 0; b.at < b.end && steps < 60; steps++)
		switch (next(&b) % 16) {
		case 0: judge(f, 0, 0); break;
		case 1: {
			double from = number(&b);

			judge(f, time_s - from, time_s);
			break;
		}
		case 2: fleet_forget(f, time_s - number(&b)); break;
		case 3: own_declaration(&b, &sink); break;
		case 4:
		case 5:
			sink.metric(sink.ctx,
				declarations[next(&b) %
					(sizeof(declarations) / sizeof(*declarations))],
				&e);
			break;
		case 6: time_s -= next(&b) * 60; break;
		default: samples(&b, &sink, &time_s);
		}
	judge(f, 0, 0);
	fleet_free(f);
	return 0;
}
