#include "harness/cli/environment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/judging/scoring.h"

enum { LINES = 64 };

struct environment {
	char *lines[LINES];
	size_t n;
};

void environment_free(struct environment *env)
{
	for (size_t i = 0; env && i < env->n; i++)
		free(env->lines[i]);
	free(env);
}

const char *const *environment_lines(const struct environment *env, size_t *n)
{
	*n = env->n;
	return (const char *const *)env->lines;
}

static void add(struct environment *env, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct environment *env, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (env->n < LINES && vasprintf(&env->lines[env->n], fmt, ap) >= 0)
		env->n++;
	va_end(ap);
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : otherwise;
}

static int add_scenario(
	struct environment *env, struct store *s, const json_t *inputs, struct err *e)
{
	static const char *const keys[] = {"scenario", "seed", "tracer", "culprit_version"};
	char *facts[4] = {NULL};
	int rc = 0;

	for (size_t i = 0; i < 4 && rc >= 0; i++)
		rc = store_get(s, keys[i], &facts[i], e);
	add(env, "scenario %s, seed %s, phases %g, %g, %g s, tracer %s, culprit %s",
		facts[0] ? facts[0] : "?", facts[1] ? facts[1] : "?",
		json_number_value(json_object_get(inputs, "phases.before")),
		json_number_value(json_object_get(inputs, "phases.fault")),
		json_number_value(json_object_get(inputs, "phases.after")),
		facts[2] ? facts[2] : "?", facts[3] ? facts[3] : "?");
	for (size_t i = 0; i < 4; i++)
		free(facts[i]);
	return rc < 0 ? rc : 0;
}

static void add_hosts(struct environment *env, const json_t *inputs)
{
	const json_t *fs = json_object_get(inputs, "file system");
	unsigned servers = 0, clients = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)inputs, key, v)
	{
		if (strncmp(key, "host ", 5))
			continue;
		servers += !strcmp(text_of(v, "role", ""), "server");
		clients += !strcmp(text_of(v, "role", ""), "client");
	}
	add(env, "%u servers and %u clients, %s %s", servers, clients, text_of(fs, "type", "?"),
		text_of(fs, "layout", ""));
}

static void stamp(json_int_t ns, char *text, size_t size)
{
	time_t at = (time_t)(ns / 1000000000);
	struct tm tm;

	strftime(text, size, "%Y-%m-%d %H:%M", gmtime_r(&at, &tm));
}

static int add_times(struct environment *env, struct store *s, struct err *e)
{
	json_int_t from = 0, to = 0;
	char first[32], last[32];
	json_t *rows = NULL, *row;
	size_t i;
	int rc = store_table(s, "attempt", &rows, e);

	json_array_foreach(rows, i, row)
	{
		json_int_t a = json_integer_value(json_object_get(row, "started_ns")),
			   b = json_integer_value(json_object_get(row, "ended_ns"));

		from = a && (!from || a < from) ? a : from;
		to = b > to ? b : to;
	}
	if (from && to) {
		stamp(from, first, sizeof(first));
		stamp(to, last, sizeof(last));
		add(env, "%zu attempts, from %s to %s UTC", json_array_size(rows), first, last);
	}
	json_decref(rows);
	return rc;
}

/* How much a workload made the hosts do where nothing was wrong. */
struct use {
	const char *workload;
	unsigned cells;
	double busy_s, idle_s;  /* processors */
	double disk_s, in, out; /* over servers and seconds */
	unsigned disk_n, in_n, out_n;
};

static int count(void *ctx, const char *metric, const char *server, const struct sample *samples,
	size_t n, struct err *e)
{
	struct use *u = ctx;
	struct {
		const char *metric;
		double *sum;
		unsigned *n;
	} sums[] = {{"cpu_busy_s", &u->busy_s, NULL}, {"cpu_idle_s", &u->idle_s, NULL},
		{"disk_busy_s", &u->disk_s, &u->disk_n}, {"nic_received_bytes", &u->in, &u->in_n},
		{"nic_sent_bytes", &u->out, &u->out_n}};

	(void)server;
	(void)e;
	for (size_t k = 0; k < sizeof(sums) / sizeof(sums[0]); k++) {
		if (strcmp(metric, sums[k].metric))
			continue;
		for (size_t i = 0; i < n; i++)
			*sums[k].sum += samples[i].sum_s;
		if (sums[k].n)
			*sums[k].n += (unsigned)n;
	}
	return 0;
}

static void add_use(struct environment *env, const struct use *u)
{
	if (u->busy_s + u->idle_s > 0 && u->disk_n && u->in_n && u->out_n)
		add(env,
			"%s, %u fault-free cell%s: processors idle for %.0f%%, servers' disks "
			"busy for %.0f%%, their NICs %.2f MB/s in, "
			"%.2f MB/s out",
			u->workload, u->cells, u->cells == 1 ? "" : "s",
			100 * u->idle_s / (u->busy_s + u->idle_s), 100 * u->disk_s / u->disk_n,
			u->in / u->in_n / 1e6, u->out / u->out_n / 1e6);
}

static int add_uses(struct environment *env, struct store *s, struct err *e)
{
	json_t *rows = NULL, *row;
	struct use *uses;
	size_t n = 0, i;
	int rc = store_confirmed(s, &rows, e);

	uses = calloc(json_array_size(rows) + 1, sizeof(*uses));
	if (!rc && !uses)
		rc = err_errno(e, -ENOMEM, "cannot describe the run");
	json_array_foreach(rows, i, row)
	{
		const char *workload = text_of(row, "workload", "?");
		size_t k = 0;

		if (rc || json_array_size(json_object_get(row, "victims")))
			continue;
		while (k < n && strcmp(uses[k].workload, workload))
			k++;
		n += k == n;
		uses[k].workload = workload;
		uses[k].cells++;
		rc = store_samples(
			s, json_integer_value(json_object_get(row, "attempt")), count, &uses[k], e);
	}
	for (i = 0; !rc && i < n; i++)
		add_use(env, &uses[i]);
	free(uses);
	json_decref(rows);
	return rc;
}

int environment_new(struct store *s, struct environment **out, struct err *e)
{
	struct environment *env = calloc(1, sizeof(*env));
	json_t *inputs = NULL;
	int rc = env ? store_get_json(s, "inputs", &inputs, e)
		     : err_errno(e, -ENOMEM, "cannot describe the run");

	if (rc == 1) {
		rc = add_scenario(env, s, inputs, e);
		add_hosts(env, inputs);
	}
	if (!rc)
		rc = add_times(env, s, e);
	if (!rc)
		rc = add_uses(env, s, e);
	json_decref(inputs);
	if (rc)
		environment_free(env);
	else
		*out = env;
	return rc;
}
