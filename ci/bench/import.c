/*
 * Rate at which one core reads series from elsewhere, without judging them.
 *
 *     import make FORM SERIES TIMES >FILE      long, long-by-series, long-random, columns or wide
 *     import read FILE                         prints: samples, processor time in s, peak MiB
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "diag/import/import.h"

static uint64_t state = 1;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* Latencies of 0.4 to 50 ms, written with three digits behind the point. */
static double value(void)
{
	return (draw() % 49600 + 400) / 1e3;
}

static void put_long(unsigned time, unsigned series)
{
	printf("%u,host%u,disk%u,read_ms,%.3f\n", 1700000000 + time * 60, series / 24, series % 24,
		value());
}

static void make_long(const char *form, unsigned series, unsigned times)
{
	puts("time,host,disk,metric,value");
	for (unsigned i = 0; i < series * times; i++) {
		if (!strcmp(form, "long"))
			put_long(i / series, i % series);
		else if (!strcmp(form, "long-by-series"))
			put_long(i % times, i / times);
		else
			put_long(i / series, draw() % series);
	}
}

static void make_columns(unsigned series, unsigned times)
{
	puts("time,host,disk,read_ms,write_ms,reads,writes");
	for (unsigned t = 0; t < times; t++)
		for (unsigned s = 0; s < series / 4; s++)
			printf("%u,host%u,disk%u,%.3f,%.3f,%u,%u\n", 1700000000 + t * 60, s / 24,
				s % 24, value(), value(), draw() % 1000, draw() % 1000);
}

static void make_wide(unsigned series, unsigned times)
{
	printf("time");
	for (unsigned s = 0; s < series; s++)
		printf(",host%u/disk%u", s / 24, s % 24);
	for (unsigned t = 0; t < times; t++) {
		printf("\n%u", 1700000000 + t * 60);
		for (unsigned s = 0; s < series; s++)
			printf(",%.3f", value());
	}
	puts("");
}

struct sums {
	uint32_t series;
	double times, values;
};

static int on_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	(void)key;
	(void)e;
	*id = ((struct sums *)ctx)->series++;
	return 0;
}

static int on_sample(void *ctx, uint32_t id, double time_s, double v, struct err *e)
{
	struct sums *s = ctx;

	(void)id;
	(void)e;
	s->times += time_s;
	s->values += v;
	return 0;
}

/* Processor time, so that other programs on the machine do not count. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int read_file(const char *path)
{
	struct sums sums = {0};
	struct import_sink sink = {.ctx = &sums, .series = on_series, .sample = on_sample};
	struct import_said said = {0};
	double took = -cpu_s();
	struct rusage usage;
	struct err e;

	if (import_file(path, NULL, &sink, &said, &e)) {
		fprintf(stderr, "import: %s\n", e.text);
		return 1;
	}
	took += cpu_s();
	getrusage(RUSAGE_SELF, &usage);
	printf("%llu %.4f %.1f\n", (unsigned long long)said.samples, took,
		(double)usage.ru_maxrss / 1024);
	import_said_clear(&said);
	return sums.values > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_file(argv[2]);
	if (argc != 5 || strcmp(argv[1], "make")) {
		fprintf(stderr, "usage: import make FORM SERIES TIMES | import read FILE\n");
		return 2;
	}
	if (!strcmp(argv[2], "wide"))
		make_wide((unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	else if (!strcmp(argv[2], "columns"))
		make_columns((unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	else
		make_long(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	return 0;
}
