/*
 * Rate at which one core takes and judges a fleet's samples, and the memory for it.
 *
 *     fleet_speed sink SERIES TIMES [METRICS]    samples straight into the fleet, all series of a
 *                                                time before the next time
 *     fleet_speed series SERIES TIMES [METRICS]  the same, one series after the other
 *     fleet_speed file FILE                      samples from a file ("-": standard input)
 *     fleet_speed make FORM SERIES TIMES         writes such a file: columns, long or wide
 *
 * Prints: samples, processor seconds to take them, to judge them, peak MiB, findings. Members are
 * in hosts of 24; they differ by 4 %, their samples by 20 %; every 200th is twice as slow from half
 * of the time on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "diag/fleet/fleet.h"
#include "harness/base/alloc.h"

enum { NOISE = 1 << 16, HOST = 24, ILL_EVERY = 200, START_S = 1700000000, STEP_S = 60 };

struct made {
	unsigned series, times, metrics;
	double noise[NOISE];
	double *level; /* by series */
};

static uint64_t state = 1;

static double draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) / 9007199254740992.0 + 1e-17;
}

static double gauss(void)
{
	return sqrt(-2 * log(draw())) * cos(6.283185307179586 * draw());
}

static void made_init(struct made *m, unsigned series, unsigned times, unsigned metrics)
{
	m->series = series;
	m->times = times;
	m->metrics = metrics;
	m->level = alloc_zero(series, sizeof(*m->level));
	for (unsigned i = 0; i < NOISE; i++)
		m->noise[i] = 5 * exp(0.2 * gauss());
	for (unsigned i = 0; i < series; i++)
		m->level[i] = exp(0.04 * gauss());
}

/* Noise is drawn from a table, at places that differ by series. */
static double value_of(const struct made *m, unsigned series, unsigned time, unsigned metric)
{
	unsigned at = (series * 2654435761u >> 13) + time * 40503u + metric * 7919u;
	bool ill = series % ILL_EVERY == 7 && time >= m->times / 2;

	return m->level[series] * m->noise[at & (NOISE - 1)] * (ill ? 2 : 1);
}

/* Processor time, so that other programs on the machine do not count. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fill(struct made *m, const struct import_sink *sink, bool by_series, struct err *e)
{
	uint32_t *id = alloc_zero((size_t)m->series * m->metrics, sizeof(*id));
	unsigned outer = by_series ? m->series : m->times, inner = by_series ? m->times : m->series;
	int rc = 0;

	for (unsigned i = 0; i < m->series * m->metrics && !rc; i++) {
		char host[32], disk[32], metric[32];
		struct series_key key = {metric, disk, {host}, 1};

		snprintf(host, sizeof(host), "host%u", i / m->metrics / HOST);
		snprintf(disk, sizeof(disk), "disk%u", i / m->metrics % HOST);
		snprintf(metric, sizeof(metric), "latency%u_ms", i % m->metrics);
		rc = sink->series(sink->ctx, &key, &id[i], e);
	}
	for (unsigned a = 0; a < outer && !rc; a++)
		for (unsigned b = 0; b < inner && !rc; b++) {
			unsigned s = by_series ? a : b, t = by_series ? b : a;

			for (unsigned k = 0; k < m->metrics && !rc; k++)
				rc = sink->sample(sink->ctx, id[s * m->metrics + k],
					START_S + (double)t * STEP_S, value_of(m, s, t, k), e);
		}
	free(id);
	return rc;
}

static void make_columns(const struct made *m, bool is_long)
{
	puts(is_long ? "time,host,disk,metric,value" : "time,host,disk,latency_ms");
	for (unsigned t = 0; t < m->times; t++)
		for (unsigned s = 0; s < m->series; s++)
			printf("%u,host%u,disk%u,%s%.3f\n", START_S + t * STEP_S, s / HOST,
				s % HOST, is_long ? "latency_ms," : "", value_of(m, s, t, 0));
}

static void make_wide(const struct made *m)
{
	printf("time");
	for (unsigned s = 0; s < m->series; s++)
		printf(",host%u/disk%u", s / HOST, s % HOST);
	for (unsigned t = 0; t < m->times; t++) {
		printf("\n%u", START_S + t * STEP_S);
		for (unsigned s = 0; s < m->series; s++)
			printf(",%.3f", value_of(m, s, t, 0));
	}
	puts("");
}

static double peak_mib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static int sample_nowhere(void *ctx, uint32_t id, double time_s, double v, struct err *e)
{
	(void)e;
	*(double *)ctx += v + time_s + id;
	return 0;
}

static int series_nowhere(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	(void)ctx;
	(void)key;
	(void)e;
	*id = 0;
	return 0;
}

/* What making the samples takes. */
static double making_s(struct made *m, bool by_series, struct err *e)
{
	double sum = 0, took = -cpu_s();
	struct import_sink sink = {.ctx = &sum, .series = series_nowhere, .sample = sample_nowhere};

	fill(m, &sink, by_series, e);
	return sum > 0 ? took + cpu_s() : 0;
}

/* 'm': made-up series; NULL: from the file 'path'. */
static int run(struct made *m, bool by_series, const char *path)
{
	struct fleet *f = fleet_new(&fleet_defaults);
	struct import_sink sink = fleet_sink(f);
	struct fleet_result *r = NULL;
	struct import_said said = {0};
	struct err e = {0};
	double before = m ? making_s(m, by_series, &e) : 0, took = -before - cpu_s(), judged;
	double samples = 0;
	int rc = m ? fill(m, &sink, by_series, &e) : import_file(path, NULL, &sink, &said, &e);

	took += cpu_s();
	judged = -cpu_s();
	rc = rc ? rc : fleet_judge(f, 0, 0, &r, &e);
	judged += cpu_s();
	if (rc) {
		fprintf(stderr, "fleet_speed: %s\n", e.text);
		return 1;
	}
	for (size_t i = 0; i < r->n_metrics; i++)
		samples += (double)r->metrics[i].samples;
	printf("%.0f %.4f %.4f %.1f %zu\n", samples, took, judged, peak_mib(), r->n_findings);
	fleet_result_free(r);
	import_said_clear(&said);
	fleet_free(f);
	return 0;
}

int main(int argc, char **argv)
{
	static struct made m;
	const char *what = argc > 1 ? argv[1] : "";
	int rc = 2, numbers = strcmp(what, "make") ? 2 : 3;

	if (argc == 3 && !strcmp(what, "file"))
		return run(NULL, false, argv[2]);
	if (argc < numbers + 2 || argc > 5 || atoi(argv[numbers]) < 1 ||
		atoi(argv[numbers + 1]) < 1) {
		fprintf(stderr,
			"usage: fleet_speed sink|series SERIES TIMES [METRICS] | file FILE "
			"| make columns|long|wide SERIES TIMES\n");
		return 2;
	}
	made_init(&m, (unsigned)atoi(argv[numbers]), (unsigned)atoi(argv[numbers + 1]),
		numbers == 2 && argc > 4 ? (unsigned)atoi(argv[4]) : 1);
	rc = 0;
	if (numbers == 2)
		rc = run(&m, !strcmp(what, "series"), NULL);
	else if (!strcmp(argv[2], "wide"))
		make_wide(&m);
	else
		make_columns(&m, !strcmp(argv[2], "long"));
	free(m.level);
	return rc;
}
