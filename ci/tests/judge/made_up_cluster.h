/* A made-up cluster, second by second, and peer-robust's verdicts on it. Include it after
 * cmocka.h. */
#ifndef CULPRIT_CI_TESTS_JUDGE_MADE_UP_CLUSTER_H
#define CULPRIT_CI_TESTS_JUDGE_MADE_UP_CLUSTER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/columns.h"
#include "diag/judge/detector.h"

enum { SECONDS = 60, ONSET = 20, END = 45, SERVERS_MAX = 12, HOLD = 2 };

static const char *const names[SERVERS_MAX] = {
	"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L"};

enum fault { NONE, DISK, HOG_IN, HOG_OUT, LOSS_IN, LOSS_OUT, CPU, MEMORY, READER, WRITER };
static const char *const resources[] = {NULL, "disk", "network/hog", "network/hog",
	"network/receive-loss", "network/send-loss", "cpu", "memory", "disk", "disk"};

/* A made-up cluster that serves reads of 128 KiB from disks of 8 MB/s and 4 ms over connections
 * that lose segments in bursts. */
struct cluster {
	gsl_rng *rng;
	size_t servers;
	double load[SERVERS_MAX]; /* of each server; 1: the usual load */
	double request_bytes[SERVERS_MAX];
	double slow
		/* Factor of the disk's times while a fault lasts. */
		[SERVERS_MAX];
	enum fault fault;
	size_t victim;
	double late[SERVERS_MAX];
	double in_flight[SERVERS_MAX], unwritten[SERVERS_MAX]; /* the server's own bytes */
	/* factor of slowness, bytes/s, share of segments, of processors or memory */
	double strength;
	bool silently;  /* lost segments are never sent again */
	bool under_way; /* up to fifty of a second's segments arrive in the next second */
	bool skewed;    /* servers are sampled up to 50 ms before or after the clients */
	/* The server whose NIC merges received segments, three at a time; SERVERS_MAX: none. */
	size_t merges;
	bool no_balance; /* the detector's parameter 'balance' off */
	int hold;        /* the detector's parameter; 0: its default */
	bool (*has)(enum metric m, size_t server, int second); /* NULL: all samples */
	struct columns *columns;
	double *values; /* [metric][server][second] */
};

static struct cluster *cluster_new(size_t servers, unsigned long seed)
{
	struct cluster *c = calloc(1, sizeof(*c));

	c->rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(c->rng, seed);
	c->servers = servers;
	c->merges = SERVERS_MAX;
	c->values = calloc((size_t)METRIC_COUNT * SERVERS_MAX * SECONDS, sizeof(*c->values));
	for (size_t s = 0; s < servers; s++) {
		c->load[s] = exp(gsl_ran_gaussian(c->rng, 0.2));
		c->request_bytes[s] = 131072;
		c->slow[s] = 1;
	}
	return c;
}

static void cluster_free(struct cluster *c)
{
	gsl_rng_free(c->rng);
	columns_free(c->columns);
	free(c->values);
	free(c);
}

static void put(struct cluster *c, enum metric m, size_t server, int second, double value)
{
	c->values[((size_t)m * SERVERS_MAX + server) * SECONDS + (size_t)second] = value;
}

/* Segments lost between two ends in a second: some all the time on a bad link, hundreds now and
 * then when a queue overflows. */
static double lost(struct cluster *c, double segments, double share)
{
	double n = share > 0 ? gsl_ran_binomial(c->rng, share, (unsigned)segments) : 0;

	return gsl_rng_uniform(c->rng) < 0.06 ? n + floor(300 * gsl_rng_uniform(c->rng)) : n;
}

/* Other programs read or write 'others' bytes on the drive. Some of a second's reads are done in
 * the next; writes go to the drive every few seconds, with a journal. */
static void fill_drive(struct cluster *c, size_t s, int t, double bytes, double busy, double others)
{
	double left = 0.3 * bytes * fmod(0.37 * t + 0.61 * (double)s, 1);
	double own = 4e5 * c->load[s], flushed = 0;
	bool reads = c->fault == READER;

	c->unwritten[s] += own;
	if ((t + (int)s) % 5 == 0) {
		flushed = 1.25 * c->unwritten[s];
		c->unwritten[s] = 0;
	}
	put(c, METRIC_DRIVE_READ, s, t, bytes + (reads ? others : 0));
	put(c, METRIC_DRIVE_WRITTEN, s, t, flushed + (reads ? 0 : others));
	put(c, METRIC_DRIVE_BUSY, s, t, fmin(1, busy + (flushed + others) / 8e6));
	put(c, METRIC_PROCESS_READ, s, t, bytes + left - (t ? c->in_flight[s] : 0));
	put(c, METRIC_PROCESS_WRITTEN, s, t, own);
	put(c, METRIC_MEMORY_UNWRITTEN, s, t, 3e6 + c->unwritten[s]);
	c->in_flight[s] = left;
}

static void fill_second(struct cluster *c, size_t s, int t)
{
	bool on = t >= ONSET && t < END, ill = on && s == c->victim;
	double slow = (ill && c->fault == DISK ? c->strength : 1) * (on ? c->slow[s] : 1);
	/* A slow disk serves less, and so does a disk with little load. */
	double requests = gsl_ran_poisson(
		c->rng, 40 * c->load[s] / slow * 131072 / c->request_bytes[s]);
	double bytes = requests * c->request_bytes[s];
	/* Heavy tails: one second in twenty takes up to three times as long. */
	double noise = exp(gsl_ran_gaussian(c->rng, 0.05)) *
		(gsl_rng_uniform(c->rng) < 0.05 ? 1 + 2 * gsl_rng_uniform(c->rng) : 1);
	double busy = requests * (0.004 + c->request_bytes[s] / 8e6) * slow * noise,
	       depth = 1 + 7 * gsl_rng_uniform(c->rng) * c->load[s];
	double out = floor(bytes / 1448) + requests, in = requests + floor(out / 2);
	double to = lost(c, in, ill && c->fault == LOSS_IN ? c->strength : 0),
	       from = lost(c, out, ill && c->fault == LOSS_OUT ? c->strength : 0);
	double foreign_in = ill && c->fault == HOG_IN ? c->strength
						      : gsl_rng_uniform(c->rng) * 2000;
	double foreign_out = ill && c->fault == HOG_OUT ? c->strength
							: gsl_rng_uniform(c->rng) * 2000;
	double used = 0.1 * c->load[s] * noise;
	double again = c->silently ? 0 : to,
	       late = c->under_way ? floor(50 * gsl_rng_uniform(c->rng)) : 0;
	double before = t ? c->late[s] : 0, got;

	if (c->skewed)
		late += floor(0.1 * in * (gsl_rng_uniform(c->rng) - 0.5));
	got = in + before - late;
	c->late[s] = late;
	put(c, METRIC_DREAD, s, t, busy * depth);
	put(c, METRIC_DISK_BUSY, s, t, busy);
	put(c, METRIC_DISK_QUEUE, s, t, busy * depth);
	put(c, METRIC_DISK_READS, s, t, requests);
	put(c, METRIC_DISK_READ_BYTES, s, t, bytes);
	put(c, METRIC_DISK_READ_TIME, s, t, busy * depth);
	put(c, METRIC_DISK_WRITES, s, t, 0);
	put(c, METRIC_DISK_WRITTEN_BYTES, s, t, 0);
	put(c, METRIC_DISK_WRITE_TIME, s, t, 0);
	put(c, METRIC_NIC_RECEIVED, s, t, in * 66 + requests * 130 + foreign_in * 1514 / 1448);
	put(c, METRIC_NIC_RECEIVED_PACKETS, s, t, in + floor(foreign_in / 1448));
	put(c, METRIC_NIC_SENT, s, t, out * 66 + bytes + from * 1448 + foreign_out * 1514 / 1448);
	put(c, METRIC_NIC_SENT_PACKETS, s, t, out + from + floor(foreign_out / 1448));
	put(c, METRIC_TCP_RECEIVED, s, t, requests * 130);
	put(c, METRIC_TCP_SENT, s, t, bytes + from * 1448);
	put(c, METRIC_TCP_SENT_SEGMENTS, s, t, out + from);
	put(c, METRIC_TCP_RECEIVED_SEGMENTS, s, t, s == c->merges ? floor(got / 3) : got);
	put(c, METRIC_TCP_RETRANSMITTED, s, t, from);
	put(c, METRIC_TCP_OUT_OF_ORDER, s, t, again);
	put(c, METRIC_TCP_DUPLICATES, s, t, 0);
	put(c, METRIC_CLIENT_TCP_SENT, s, t, requests * 130);
	put(c, METRIC_CLIENT_TCP_RECEIVED, s, t, bytes);
	put(c, METRIC_CLIENT_TCP_SENT_SEGMENTS, s, t, in + to);
	put(c, METRIC_CLIENT_TCP_RECEIVED_SEGMENTS, s, t, out);
	put(c, METRIC_CLIENT_TCP_RETRANSMITTED, s, t, again);
	put(c, METRIC_CLIENT_TCP_OUT_OF_ORDER, s, t, from);
	put(c, METRIC_CLIENT_TCP_DUPLICATES, s, t, 0);
	put(c, METRIC_PROCESS_CPU, s, t, used);
	put(c, METRIC_CPU_BUSY, s, t,
		ill && c->fault == CPU ? 8 * c->strength : used + 0.1 * gsl_rng_uniform(c->rng));
	put(c, METRIC_MEMORY_TOTAL, s, t, 16e9);
	put(c, METRIC_PROCESS_MEMORY, s, t, 1e9 * c->load[s]);
	put(c, METRIC_MEMORY_AVAILABLE, s, t,
		16e9 - 1e9 * c->load[s] -
			(ill && c->fault == MEMORY ? 16e9 * c->strength : 5e8 * noise));
	fill_drive(c, s, t, bytes, busy,
		ill && (c->fault == READER || c->fault == WRITER) ? c->strength : 0);
	put(c, METRIC_CPU_IDLE, s, t, ill && c->fault == CPU ? 8 * (1 - c->strength) : 8 - used);
}

static bool is_made(enum metric m)
{
	return m == METRIC_DREAD || (m >= METRIC_DRIVE_READ && m <= METRIC_MEMORY_UNWRITTEN) ||
		m == METRIC_PROCESS_READ || m == METRIC_PROCESS_WRITTEN ||
		(m >= METRIC_NIC_RECEIVED && m <= METRIC_NIC_SENT_PACKETS) ||
		(m >= METRIC_DISK_READS && m <= METRIC_CPU_IDLE) || m == METRIC_PROCESS_CPU ||
		m == METRIC_PROCESS_MEMORY || m == METRIC_MEMORY_AVAILABLE ||
		m == METRIC_MEMORY_TOTAL || (m >= METRIC_TCP_SENT && m <= METRIC_TCP_DUPLICATES) ||
		(m >= METRIC_CLIENT_TCP_SENT && m <= METRIC_CLIENT_TCP_DUPLICATES);
}

static void fill_columns(struct cluster *c)
{
	struct sample samples[SECONDS];

	columns_free(c->columns);
	c->columns = columns_new(METRIC_COUNT, c->servers, SECONDS);
	for (int m = 0; m < METRIC_COUNT; m++)
		for (size_t s = 0; s < c->servers && is_made((enum metric)m); s++) {
			const double *v = &c->values[((size_t)m * SERVERS_MAX + s) * SECONDS];
			const double *requests =
				&c->values[((size_t)METRIC_DISK_READS * SERVERS_MAX + s) * SECONDS];
			size_t n = 0;

			for (int t = 0; t < SECONDS; t++) {
				double count = m == METRIC_DREAD ? requests[t] : 1;

				if (count > 0 && (!c->has || c->has((enum metric)m, s, t)))
					samples[n++] = (struct sample){.second = t,
						.count = (uint64_t)count,
						.sum_s = v[t],
						.max_s = v[t],
						.bytes = m == METRIC_DREAD
							? (uint64_t)(count * c->request_bytes[s])
							: 0};
			}
			columns_put_samples(c->columns, (size_t)m, s, samples, n);
		}
}

static void fill(struct cluster *c)
{
	for (size_t s = 0; s < c->servers; s++)
		for (int t = 0; t < SECONDS; t++)
			fill_second(c, s, t);
	fill_columns(c);
}

/* The verdict as "A disk", "A B network/hog", "healthy" or "abstain"; its earliest time in
 * '*time_s'. Static. */
static const char *judge_with(
	const struct detector_run *run, bool balance, int hold, double *time_s)
{
	static char text[256];
	json_t *verdicts = NULL, *model = json_object(),
	       *params = json_pack("{s:b, s:i}", "balance", balance, "hold", hold), *v, *name;
	struct detector *d = NULL;
	const char *server;
	struct err e;
	size_t i;

	if (detector_load("peer-robust", params, &d, &e) ||
		detector_diagnose(d, model, run, &verdicts, &e))
		fail_msg("%s", e.text);
	v = json_array_get(verdicts, json_array_size(verdicts) - 1);
	*text = 0;
	json_array_foreach(json_object_get(v, "indicted"), i, name)
		strcat(strcat(text, json_string_value(name)), " ");
	strcat(text,
		json_is_true(json_object_get(v, "abstain"))                ? "abstain"
			: !json_array_size(json_object_get(v, "indicted")) ? "healthy"
			: json_object_get(v, "resource")
			? json_string_value(json_object_get(v, "resource"))
			: "-");
	if (time_s) {
		*time_s = INFINITY;
		json_object_foreach(json_object_get(v, "time_s"), server, name)
			*time_s = fmin(*time_s, json_number_value(name));
	}
	json_decref(verdicts);
	json_decref(model);
	json_decref(params);
	detector_free(d);
	return text;
}

static const char *judge_run(const struct detector_run *run, double *time_s)
{
	return judge_with(run, true, HOLD, time_s);
}

/* Judges the series as they are. */
static const char *judge_again(struct cluster *c, double *time_s)
{
	return judge_with(&(struct detector_run){.id = "r",
				  .seconds = SECONDS,
				  .servers = names,
				  .n_servers = c->servers,
				  .columns = c->columns},
		!c->no_balance, c->hold ? c->hold : HOLD, time_s);
}

static const char *judge(struct cluster *c, double *time_s)
{
	fill(c);
	return judge_again(c, time_s);
}

/* Does the balance indict a server when without it the run is healthy? */
static bool balance_alarms(struct cluster *c)
{
	c->no_balance = true;
	if (strcmp(judge(c, NULL), "healthy") != 0)
		return false;
	c->no_balance = false;
	return strcmp(judge_again(c, NULL), "healthy") != 0;
}

#endif
