/* What 'culprit watch' costs a sample: healthy log-normal series of a fleet in groups of 8 go
 * through its sink, with and without looks. Prints nanoseconds a sample, and how many findings
 * began (false alarms, as nobody is ill).
 *
 *     watch_cost MEMBERS STEPS STEP_S ALARMS SEED */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/live/watch.h"

enum { GROUP = 8 };
static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static float normal(void)
{
	return (float)(sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
}

static void tell(const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
}

static int run(const struct watch_options *o, bool live, unsigned members, unsigned steps,
	double step_s, double *seconds)
{
	uint32_t *ids = alloc_zero(members, sizeof(*ids));
	float *own = alloc_zero(members, sizeof(*own)),
	      *noise = alloc_zero(1 << 16, sizeof(*noise));
	struct watch *w = NULL;
	struct import_sink sink;
	struct err e = {0};
	int rc = watch_new(o, &w, &e);
	double begun;

	for (unsigned i = 0; i < 1 << 16; i++)
		noise[i] = expf(0.3F * normal());
	sink = watch_sink(w);
	watch_live(w, live);
	for (unsigned m = 0; m < members && !rc; m++) {
		char member[32], group[32];
		struct series_key key = {"latency_ms", member, {group}, 1};

		snprintf(member, sizeof(member), "disk%u", m);
		snprintf(group, sizeof(group), "host%u", m / GROUP);
		own[m] = expf(0.05F * normal());
		rc = sink.series(sink.ctx, &key, &ids[m], &e);
	}
	begun = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	for (unsigned i = 0; i < steps && !rc; i++)
		for (unsigned m = 0; m < members && !rc; m++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			rc = sink.sample(sink.ctx, ids[m], 1.7e9 + i * step_s,
				(double)(5 * own[m] * noise[state >> 48]), &e);
		}
	*seconds = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9 - begun;
	if (rc)
		tell(e.text);
	watch_free(w);
	free(ids);
	free(own);
	free(noise);
	return rc;
}

int main(int argc, char **argv)
{
	struct watch_options o = {.fleet = fleet_defaults, .tell = tell};
	unsigned members = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : 10000;
	double step_s = argc > 3 ? atof(argv[3]) : 60, taken, judged, n = (double)members * steps;
	size_t size;
	char *text, *at;
	unsigned begins = 0;

	o.fleet.alarms = argc > 4 ? atof(argv[4]) : 1e-4;
	state = argc > 5 ? strtoull(argv[5], NULL, 10) * 2654435761u : 88172645463325252u;
	o.out = alloc_text(&text, &size);
	if (run(&o, false, members, steps, step_s, &taken) ||
		run(&o, true, members, steps, step_s, &judged))
		return 1;
	fclose(o.out);
	for (at = text; (at = strstr(at, " begin ")); at++)
		begins++;
	printf("samples %.0f; without looks %.1f ns a sample; with looks %.1f ns a sample; %u "
	       "false alarms in %.0f series-weeks\n",
		n, taken / n * 1e9, judged / n * 1e9, begins, n * step_s / (7 * 86400));
	free(text);
	return 0;
}
