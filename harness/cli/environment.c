/* Describes a run's scenario, hosts and load below its table. */
#include "harness/cli/tables.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/judging/scoring.h"

void environment_clear(struct environment *env)
{
	while (env->n)
		free(env->lines[--env->n]);
}

static void __attribute__((format(printf, 2, 3))) add(struct environment *env, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (env->n < sizeof(env->lines) / sizeof(env->lines[0]) &&
		vasprintf(&env->lines[env->n], fmt, ap) >= 0)
		env->n++;
	va_end(ap);
}

static const char *environment_text_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = jget_text(object, key);

	return text ? text : otherwise;
}

static int add_scenario(
	struct environment *env, struct store *s, const json_t *inputs, struct err *e)
{
	static const char *const keys[] = {"scenario", "seed", "tracer", "culprit_version"};
	char *v[4] = {NULL};
	int rc = 0;

	for (int i = 0; i < 4 && rc >= 0; i++) {
		rc = store_get(s, keys[i], &v[i], e);
		v[i] = v[i] ? v[i] : alloc_copy("?");
	}
	if (rc >= 0)
		add(env, "scenario %s, seed %s, phases %g, %g, %g s, tracer %s, culprit %s", v[0],
			v[1], jget_real(inputs, "phases.before"), jget_real(inputs, "phases.fault"),
			jget_real(inputs, "phases.after"), v[2], v[3]);
	for (int i = 0; i < 4; i++)
		free(v[i]);
	return rc < 0 ? rc : 0;
}

static void add_hosts(struct environment *env, const json_t *inputs)
{
	const json_t *fs = jget(inputs, "file system");
	unsigned servers = 0, clients = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)inputs, key, v) {
		const char *role = strncmp(key, "host ", 5) ? ""
							    : environment_text_of(v, "role", "");

		servers += !strcmp(role, "server");
		clients += !strcmp(role, "client");
	}
	add(env, "%u servers and %u clients, %s %s", servers, clients,
		environment_text_of(fs, "type", "?"), environment_text_of(fs, "layout", ""));
}

static int add_times(struct environment *env, struct store *s, struct err *e)
{
	time_t from = 0, to = 0;
	char first[32], last[32];
	json_t *rows = NULL, *row;
	size_t i;
	int rc = store_table(s, "attempt", &rows, e);

	json_array_foreach(rows, i, row) {
		time_t a = jget_int(row, "started_ns") / 1000000000,
		       b = jget_int(row, "ended_ns") / 1000000000;

		from = a && (!from || a < from) ? a : from;
		to = b > to ? b : to;
	}
	clock_utc((double)from, "%Y-%m-%d %H:%M", first, sizeof(first));
	clock_utc((double)to, "%Y-%m-%d %H:%M", last, sizeof(last));
	if (from && to)
		add(env, "%zu attempts, from %s to %s UTC", json_array_size(rows), first, last);
	json_decref(rows);
	return rc;
}

/* How much a workload made the hosts do where nothing was wrong: readings of these metrics. */
enum { BUSY, IDLE, DISK, IN, OUT, USES };
static const char *const metrics[USES] = {
	"cpu_busy_s", "cpu_idle_s", "disk_busy_s", "nic_received_bytes", "nic_sent_bytes"};

struct use {
	const char *workload;
	unsigned cells;
	double sum[USES]; /* over servers and seconds */
	size_t n[USES];
};

static int environment_count(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	struct use *u = ctx;

	(void)server;
	(void)e;
	for (int k = 0; k < USES; k++) {
		if (strcmp(metric, metrics[k]))
			continue;
		for (size_t i = 0; i < n; i++)
			u->sum[k] += samples[i].sum_s;
		u->n[k] += n;
	}
	return 0;
}

static void add_use(struct environment *env, const struct use *u)
{
	double processors = u->sum[BUSY] + u->sum[IDLE];

	if (processors > 0 && u->n[DISK] && u->n[IN] && u->n[OUT])
		add(env,
			"%s, %u fault-free cell%s: processors idle for %.0f%%, servers' disks "
			"busy for %.0f%%, their NICs %.2f MB/s in, "
			"%.2f MB/s out",
			u->workload, u->cells, u->cells == 1 ? "" : "s",
			100 * u->sum[IDLE] / processors, 100 * u->sum[DISK] / (double)u->n[DISK],
			u->sum[IN] / (double)u->n[IN] / 1e6, u->sum[OUT] / (double)u->n[OUT] / 1e6);
}

static int add_uses(struct environment *env, struct store *s, struct err *e)
{
	json_t *rows = NULL, *row;
	size_t n = 0, i, k;
	int rc = store_rows(s, ROWS_CONFIRMED, 0, &rows, e);
	struct use *uses = alloc_zero(json_array_size(rows), sizeof(*uses));

	json_array_foreach(rows, i, row) {
		const char *workload = environment_text_of(row, "workload", "?");

		if (rc || json_array_size(jget(row, "victims")))
			continue;
		for (k = 0; k < n && strcmp(uses[k].workload, workload);)
			k++;
		n += k == n;
		uses[k].workload = workload;
		uses[k].cells++;
		rc = store_samples(s, jget_int(row, "attempt"), environment_count, &uses[k], e);
	}
	for (i = 0; !rc && i < n; i++)
		add_use(env, &uses[i]);
	free(uses);
	json_decref(rows);
	return rc;
}

int environment_read(struct store *s, struct environment *env, struct err *e)
{
	json_t *inputs = NULL;
	int rc = store_get_json(s, "inputs", &inputs, e);

	if (rc == 1) {
		rc = add_scenario(env, s, inputs, e);
		add_hosts(env, inputs);
	}
	json_decref(inputs);
	rc = rc ? rc : add_times(env, s, e);
	return rc ? rc : add_uses(env, s, e);
}
