/*
 * A detector on large synthetic runs: time and memory of one diagnosis, for many servers and
 * seconds.
 *
 *     scale RUN DETECTOR SERVERS SECONDS
 *
 * The run is assembled from the controls of a recorded run, in pieces of ten seconds. All servers
 * use the same seconds, because peers share their workload. In each piece a synthetic server has
 * all metrics of one recorded server; values that are not integers vary by some per cent, so that
 * no two servers are equal. The disk of the middle server is five times slower in the middle third
 * of the run. Prints
 *
 *     servers seconds diagnosis_s rss_mib before_mib indicted
 *
 * where diagnosis_s is processor time of this process and its children for detector_diagnose alone,
 * rss_mib the largest memory of the process, measurements included, and before_mib that before the
 * diagnosis.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "diag/judge/columns.h"
#include "diag/judge/detector.h"
#include "harness/store/store.h"

enum { STRETCH = 10, SOURCES_MAX = 16, ATTEMPTS_MAX = 64 };

/* A recorded server: its samples of each metric. */
struct source {
	char server[64];
	struct sample *of[METRIC_COUNT];
	size_t n[METRIC_COUNT];
};

/* A recorded control. */
struct run_logs {
	struct source sources[SOURCES_MAX];
	size_t n;
	int32_t seconds;
};

struct recordings {
	struct run_logs attempts[ATTEMPTS_MAX];
	size_t n;
};

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int take(void *ctx, const char *metric, const char *server, const struct sample *samples,
	size_t n, struct err *e)
{
	struct run_logs *r = ctx;
	struct source *s;
	enum metric m;
	size_t i = 0;

	while (i < r->n && strcmp(r->sources[i].server, server))
		i++;
	if (i == SOURCES_MAX || metric_from_name(metric, &m))
		return 0;
	s = &r->sources[i];
	if (i == r->n) {
		r->n++;
		snprintf(s->server, sizeof(s->server), "%s", server);
	}
	s->of[m] = malloc(n * sizeof(*samples));
	if (!s->of[m])
		return err_errno(e, -ENOMEM, "cannot read the run");
	memcpy(s->of[m], samples, n * sizeof(*samples));
	s->n[m] = n;
	return 0;
}

static int read_run(const char *folder, struct recordings *all, struct err *e)
{
	struct store *store = NULL;
	json_t *rows = NULL, *row;
	size_t i;
	int rc = store_open(folder, &store, e);

	if (rc)
		return rc;
	rc = store_rows(store, ROWS_CONFIRMED, 0, &rows, e);
	json_array_foreach(rows, i, row) {
		struct run_logs *r = &all->attempts[all->n];

		if (rc || all->n == ATTEMPTS_MAX ||
			strcmp(json_string_value(json_object_get(row, "fault")), "none"))
			continue;
		r->seconds = (int32_t)json_integer_value(json_object_get(row, "seconds"));
		rc = store_samples(
			store, json_integer_value(json_object_get(row, "attempt")), take, r, e);
		all->n += r->n > 0 && r->seconds > STRETCH;
	}
	json_decref(rows);
	store_close(store);
	return rc || all->n ? rc : err_set(e, -EINVAL, "'%s' has no controls", folder);
}

static void recordings_free(struct recordings *all)
{
	for (size_t i = 0; i < ATTEMPTS_MAX; i++)
		for (size_t k = 0; k < SOURCES_MAX; k++)
			for (int m = 0; m < METRIC_COUNT; m++)
				free(all->attempts[i].sources[k].of[m]);
	free(all);
}

static bool is_disk(enum metric m)
{
	return m == METRIC_DREAD || m == METRIC_DWRITE || m == METRIC_DISK_READ_TIME ||
		m == METRIC_DISK_WRITE_TIME || m == METRIC_DISK_BUSY || m == METRIC_DISK_QUEUE;
}

/* The recorded second that each synthetic second is copied from. */
struct mapping {
	const struct run_logs *attempt;
	int32_t second;
};

static void make_series(struct columns *c, enum metric m, size_t server, const struct mapping *map,
	const size_t *which, int32_t seconds, bool ill, struct sample *out)
{
	size_t n = 0;

	for (int32_t t = 0; t < seconds; t++) {
		const struct source *s = &map[t].attempt
						  ->sources[which[t / STRETCH] % map[t].attempt->n];
		/* Without gaps a second is at its own index; otherwise it is searched. */
		size_t at = (size_t)map[t].second;

		if (!s->n[m])
			continue;
		at = at < s->n[m] ? at : s->n[m] - 1;
		while (at && s->of[m][at].second > map[t].second)
			at--;
		if (s->of[m][at].second != map[t].second)
			continue;
		out[n] = s->of[m][at];
		out[n].second = t;
		if (out[n].sum_s != floor(out[n].sum_s)) {
			double vary = 0.97 + 0.06 * (double)(draw() % 1024) / 1024;

			vary *= ill && t >= seconds / 3 && t < seconds * 2 / 3 ? 5 : 1;
			out[n].sum_s = round(out[n].sum_s * vary * 1e9) / 1e9;
			out[n].max_s = out[n].max_s * vary > out[n].sum_s
				? out[n].sum_s
				: round(out[n].max_s * vary * 1e9) / 1e9;
		}
		n++;
	}
	columns_put_samples(c, m, server, out, n);
}

static int make_columns(const struct recordings *all, size_t servers, int32_t seconds,
	struct columns **out, struct err *e)
{
	struct mapping *map = calloc((size_t)seconds, sizeof(*map));
	struct sample *room = calloc((size_t)seconds, sizeof(*room));
	size_t *which = calloc((size_t)seconds, sizeof(*which));
	int rc = map && room && which ? 0 : err_errno(e, -ENOMEM, "cannot make a run");

	*out = columns_new(METRIC_COUNT, servers, seconds);

	for (int32_t t = 0; t < seconds && !rc; t++) {
		const struct run_logs *r = &all->attempts[draw() % all->n];
		int32_t from = (int32_t)(draw() % (uint64_t)(r->seconds - STRETCH));

		map[t] = t % STRETCH ? (struct mapping){map[t - 1].attempt, map[t - 1].second + 1}
				     : (struct mapping){r, from};
	}
	for (size_t s = 0; s < servers && !rc; s++) {
		for (int32_t t = 0; t <= seconds / STRETCH && t < seconds; t++)
			which[t] = (size_t)draw();
		for (int m = 0; m < METRIC_COUNT && !rc; m++)
			make_series(*out, (enum metric)m, s, map, which, seconds,
				s == servers / 2 && is_disk((enum metric)m), room);
	}
	free(map);
	free(room);
	free(which);
	return rc;
}

static double cpu_s(void)
{
	struct rusage own, children; /* detectors run in child processes */

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	timeradd(&own.ru_utime, &own.ru_stime, &own.ru_utime);
	timeradd(&children.ru_utime, &children.ru_stime, &children.ru_utime);
	timeradd(&own.ru_utime, &children.ru_utime, &own.ru_utime);
	return (double)own.ru_utime.tv_sec + (double)own.ru_utime.tv_usec / 1e6;
}

static double rss_mib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1024;
}

int main(int argc, char **argv)
{
	struct recordings *r = calloc(1, sizeof(*r));
	struct detector_run run = {.id = "scale"};
	json_t *model = NULL, *verdicts = NULL, *any, *name;
	struct detector *d = NULL;
	struct columns *c = NULL;
	double begun, before;
	char(*names)[24];
	const char **list;
	struct err e;
	size_t i;
	int rc;

	if (argc != 5 || !r) {
		fputs("usage: scale RUN DETECTOR SERVERS SECONDS\n", stderr);
		return 2;
	}
	run.n_servers = (size_t)atoi(argv[3]);
	run.seconds = atoi(argv[4]);
	names = calloc(run.n_servers, sizeof(*names));
	list = calloc(run.n_servers, sizeof(*list));
	for (i = 0; i < run.n_servers; i++) {
		snprintf(names[i], sizeof(names[i]), "server-%04zu", i + 1);
		list[i] = names[i];
	}
	run.servers = list;
	rc = detector_load(argv[2], NULL, &d, &e);
	if (!rc)
		rc = read_run(argv[1], r, &e);
	/* A detector that needs training gets a small healthy run of the same servers. */
	if (!rc && detector_trains(d)) {
		struct detector_run training = run;

		training.seconds = 60;
		rc = make_columns(r, run.n_servers, 60, &c, &e);
		training.columns = c;
		if (!rc)
			rc = detector_train(d, &training, 1, &model, &e);
		columns_free(c);
		c = NULL;
	}
	if (!rc)
		rc = make_columns(r, run.n_servers, run.seconds, &c, &e);
	before = rss_mib();
	begun = cpu_s();
	run.columns = c;
	if (!model)
		model = json_object();
	if (!rc)
		rc = detector_diagnose(d, model, &run, &verdicts, &e);
	if (rc) {
		fprintf(stderr, "scale: %s\n", e.text);
		return 3;
	}
	printf("%zu %d %.3f %.0f %.0f", run.n_servers, run.seconds, cpu_s() - begun, rss_mib(),
		before);
	any = json_array_get(verdicts, json_array_size(verdicts) - 1);
	json_array_foreach(json_object_get(any, "indicted"), i, name)
		printf(" %s", json_string_value(name));
	printf("%s\n", json_array_size(json_object_get(any, "indicted")) ? "" : " -");
	json_decref(verdicts);
	json_decref(model);
	detector_free(d);
	columns_free(c);
	recordings_free(r);
	free(names);
	free(list);
	return 0;
}
