#include "harness/experiment/gates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/load.h"
#include "harness/cluster/cluster.h"
#include "harness/experiment/fingerprint.h"

#define CALL_TIMEOUT_S 30
#define HEALTHY_S 60

static double or_default(double given, double standard)
{
	return given < 0 ? standard : given;
}

/* Infinite where it is not given and the host shares its machine. */
static double limit(double given, double standard, bool shared)
{
	return given < 0 && shared ? INFINITY : or_default(given, standard);
}

static const char *machine_of(const struct member *m)
{
	const char *boot = json_string_value(json_object_get(node_hello(m->node), "boot_id"));

	return boot ? boot : m->host->ssh.name;
}

/* With another host of the run, or with ourselves. */
static bool is_shared(const struct cluster *c, const struct member *m)
{
	char *boot = NULL;
	size_t n = 0;

	if (!file_read("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
		n += !strncmp(boot, machine_of(m), strcspn(boot, "\n"));
	free(boot);
	for (size_t i = 0; i < c->n_members; i++)
		n += !strcmp(machine_of(&c->members[i]), machine_of(m));
	return n > 1;
}

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* What all hosts on the machine of 'm' used for this run: each sees the whole machine, but only its
 * own processes. */
static double own_s(const struct cluster *c, const struct member *m, const json_t *results)
{
	double sum = 0;

	for (size_t i = 0; i < c->n_members; i++)
		if (!strcmp(machine_of(&c->members[i]), machine_of(m)))
			sum += number(
				json_object_get(results, c->members[i].host->ssh.name), "own_s");
	return sum;
}

/* Shares instead of seconds. */
static json_t *host_load(const json_t *r, double own)
{
	double seconds = number(r, "seconds"), all = seconds * number(r, "cpus"),
	       others = number(r, "busy_s") - own;
	const json_t *pressure = json_object_get(r, "pressure_s"), *v;
	json_t *shares = json_object(), *out;
	double memory = number(r, "memory_bytes");
	const char *name;

	if (seconds <= 0)
		seconds = all = 1;
	json_object_foreach((json_t *)pressure, name, v) json_object_set_new(shares, name,
		json_is_number(v) ? json_real(100 * json_number_value(v) / seconds) : json_null());
	out = json_pack("{s:f, s:f, s:f, s:f, s:o, s:f, s:f, s:O}", "seconds", seconds,
		"others_pct", others > 0 ? 100 * others / all : 0.0, "steal_pct",
		100 * number(r, "steal_s") / all, "iowait_pct", 100 * number(r, "iowait_s") / all,
		"pressure_pct", shares, "load1", number(r, "load1"), "available_pct",
		memory > 0 ? 100 * number(r, "available_bytes") / memory : 100.0, "heavy",
		json_object_get(r, "heavy"));
	return out;
}

/* {host: load} since the last call. New reference. */
static int ask_load(struct cluster *c, json_t **out, struct err *e)
{
	json_t *results;
	int rc = cluster_ask(c, "load", fingerprint_pids, NULL, CALL_TIMEOUT_S, &results, e);

	if (!rc)
		*out = json_object();
	for (size_t i = 0; i < c->n_members && !rc; i++) {
		const char *name = c->members[i].host->ssh.name;

		json_object_set_new(*out, name,
			host_load(
				json_object_get(results, name), own_s(c, &c->members[i], results)));
	}
	json_decref(results);
	return rc;
}

/* Of the machine that we run on ourselves; for the record. */
static json_t *orchestrator_load(const struct load *was, const struct load *is)
{
	double all = (is->at_s - was->at_s) * is->cpus;

	return json_pack("{s:f, s:f, s:f, s:f}", "busy_pct",
		all > 0 ? 100 * (is->busy_s - was->busy_s) / all : 0.0, "steal_pct",
		all > 0 ? 100 * (is->steal_s - was->steal_s) / all : 0.0, "load1", is->load1,
		"available_pct",
		100.0 * (double)is->available_bytes /
			(double)(is->memory_bytes ? is->memory_bytes : 1));
}

/* Processes are looked at while an attempt goes on, too: others' short work among ours cannot be
 * told apart then. */
static int check_load(const struct gates *g, const char *host, const json_t *l, bool shared,
	bool quiet, bool before, int code, struct err *e)
{
	static const char *const pressures[] = {"io", "memory"};
	double most = limit(g->load_pct, gate_defaults.load_pct, shared),
	       others = number(l, "others_pct"), seconds = number(l, "seconds");
	const json_t *heavy = json_object_get(l, "heavy"), *first = json_array_get(heavy, 0);
	double cpu = seconds > 0 ? 100 * number(first, "cpu_s") / seconds : 0;

	if (first && cpu > limit(g->process_pct, gate_defaults.process_pct, shared))
		return err_set(e, code,
			"%s: process %d (%s) used %.0f %% of a processor; %.0f %% are allowed (gates: 'process')",
			host, (int)json_integer_value(json_object_get(first, "pid")),
			json_string_value(json_object_get(first, "comm")), cpu,
			limit(g->process_pct, gate_defaults.process_pct, shared));
	if (quiet && others > most)
		return err_set(e, code,
			"%s: others used %.0f %% of its processors%s%s; %.0f %% are allowed (gates: 'load')",
			host, others, first ? ", most of all " : "",
			first ? json_string_value(json_object_get(first, "comm")) : "", most);
	most = limit(g->steal_pct, gate_defaults.steal_pct, shared);
	if (number(l, "steal_pct") > most)
		return err_set(e, code,
			"%s: its hypervisor took %.0f %% of its processors' time; %.0f %% are allowed (gates: 'steal')",
			host, number(l, "steal_pct"), most);
	most = limit(g->pressure_pct, gate_defaults.pressure_pct, shared);
	for (size_t i = 0; i < sizeof(pressures) / sizeof(pressures[0]) && before; i++)
		if (number(json_object_get(l, "pressure_pct"), pressures[i]) > most)
			return err_set(e, code,
				"%s: something waited for %s in %.0f %% of the time; %.0f %% are allowed (gates: "
				"'pressure')",
				host, pressures[i],
				number(json_object_get(l, "pressure_pct"), pressures[i]), most);
	most = or_default(g->memory_pct, gate_defaults.memory_pct);
	if (number(l, "available_pct") < most)
		return err_set(e, code,
			"%s: %.1f %% of its memory is available; %.0f %% must be (gates: 'memory')",
			host, number(l, "available_pct"), most);
	return 0;
}

static int check_loads(
	struct gate *g, const json_t *loads, bool quiet, bool before, int code, struct err *e)
{
	struct cluster *c = g->cluster;
	int rc = 0;

	for (size_t i = 0; i < c->n_members && !rc; i++) {
		const char *name = c->members[i].host->ssh.name;

		rc = check_load(g->limits, name, json_object_get(loads, name),
			is_shared(c, &c->members[i]), quiet, before, code, e);
	}
	return rc;
}

/* {host: {offset_s, error_s}}. New reference. */
static int measure_clocks(struct cluster *c, json_t **out, struct err *e)
{
	json_t *all = json_object();
	int rc = 0;

	for (size_t i = 0; i < c->n_members && !rc; i++) {
		double offset, error;

		rc = cluster_blame(node_clock_offset(c->members[i].node, &offset, &error, e), e);
		if (!rc)
			json_object_set_new(all, c->members[i].host->ssh.name,
				json_pack("{s:f, s:f}", "offset_s", offset, "error_s", error));
	}
	if (rc)
		json_decref(all);
	else
		*out = all;
	return rc;
}

/* What the measuring cannot explain must be within the bound. */
static int check_clocks(const struct gates *g, const json_t *clocks, int code, struct err *e)
{
	double most = or_default(g->clock_s, gate_defaults.clock_s);
	const char *name, *other;
	json_t *a, *b;

	json_object_foreach((json_t *)clocks, name, a)
	{
		json_object_foreach((json_t *)clocks, other, b)
		{
			double apart = number(a, "offset_s") - number(b, "offset_s");

			if (apart - number(a, "error_s") - number(b, "error_s") > most)
				return err_set(e, code,
					"%s: its clock is %.3f s before %s's; %.3f s are allowed (gates: 'clock')",
					name, apart, other, most);
		}
	}
	return 0;
}

static int check_drift(
	const struct gates *g, const json_t *before, const json_t *after, struct err *e)
{
	double most = or_default(g->drift_s, gate_defaults.drift_s);
	const char *name;
	json_t *was;

	json_object_foreach((json_t *)before, name, was)
	{
		const json_t *is = json_object_get(after, name);
		double drift = fabs(number(is, "offset_s") - number(was, "offset_s"));

		if (drift - number(is, "error_s") - number(was, "error_s") > most)
			return err_set(e, -EBUSY,
				"%s: its clock moved by %.3f s against ours; %.3f s are allowed (gates: 'drift')",
				name, drift, most);
	}
	return 0;
}

static int check_disk(struct gate *g, struct err *e)
{
	double least = or_default(g->limits->disk_bytes, gate_defaults.disk_bytes);
	struct statvfs st;
	char room[32], wanted[32];

	if (statvfs(g->folder, &st) < 0)
		return err_errno(e, -errno, "cannot see how full the disk of '%s' is", g->folder);
	if ((double)st.f_bavail * (double)st.f_frsize >= least)
		return 0;
	return err_set(e, -EAGAIN,
		"the disk that '%s' is kept on has %s left; %s must be (gates: 'disk')", g->folder,
		unit_format(
			UNIT_BYTES, (double)st.f_bavail * (double)st.f_frsize, room, sizeof(room)),
		unit_format(UNIT_BYTES, least, wanted, sizeof(wanted)));
}

/* As the run began, or as it was when it was clean. */
static int check_fingerprint(struct gate *g, struct err *e)
{
	json_t *now = NULL;
	int rc = fingerprint_take(g->cluster, &now, e);

	if (rc)
		return rc;
	if (!g->clean)
		g->clean = json_incref(now);
	else if (fingerprint_compare(g->clean, now, e))
		rc = -EAGAIN;
	json_decref(now);
	return rc;
}

/* The look at the load goes on meanwhile. */
static int look_around(struct gate *g, json_t *report, struct err *e)
{
	json_t *clocks = NULL;
	int rc = cluster_find_processes(g->cluster, e);

	if (!rc && g->unsettled)
		rc = cluster_wait_healthy(g->cluster, HEALTHY_S, e);
	if (rc == -ENOENT || rc == -ETIMEDOUT)
		return -EAGAIN;
	if (!rc)
		g->unsettled = false;
	if (!rc)
		rc = check_fingerprint(g, e);
	if (!rc)
		rc = measure_clocks(g->cluster, &clocks, e);
	if (!rc)
		json_object_set_new(report, "clocks", clocks);
	return rc ? rc : check_clocks(g->limits, clocks, -EAGAIN, e);
}

/* Of an attempt that has ended. */
static void on_event(void *ctx, struct node *n, const json_t *event)
{
	(void)ctx;
	(void)n;
	(void)event;
}

static int wait_window(struct gate *g, double begin, struct err *e)
{
	double until = begin + or_default(g->limits->window_s, gate_defaults.window_s);

	for (double left; (left = until - clock_mono_s()) > 0;) {
		if (*g->interrupted)
			return err_set(e, -EINTR, "interrupted");
		if (node_events(g->cluster->set, left > 0.25 ? 0.25 : left, on_event, NULL) ==
			-EINTR)
			return err_set(e, -EINTR, "interrupted");
		if (cluster_lost(g->cluster, e))
			return -ENOTCONN;
	}
	return 0;
}

int gates_before(struct gate *g, json_t **out, struct err *e)
{
	json_t *report = json_object(), *loads = NULL;
	double begin = clock_mono_s();
	struct load was, is;
	int rc = check_disk(g, e);

	if (!rc)
		rc = load_read(&was, e);
	if (!rc)
		rc = ask_load(g->cluster, &loads, e);
	json_decref(loads);
	loads = NULL;
	if (!rc)
		rc = look_around(g, report, e);
	if (!rc)
		rc = wait_window(g, begin, e);
	if (!rc)
		rc = ask_load(g->cluster, &loads, e);
	if (!rc)
		rc = load_read(&is, e);
	if (!rc) {
		json_object_set(report, "before", loads);
		json_object_set_new(report, "orchestrator", orchestrator_load(&was, &is));
		rc = check_loads(g, loads, true, true, -EAGAIN, e);
	}
	for (size_t i = 0; i < g->cluster->n_members && !rc; i++) {
		struct member *m = &g->cluster->members[i];
		const json_t *clock = json_object_get(
			json_object_get(report, "clocks"), m->host->ssh.name);

		m->offset_s = number(clock, "offset_s");
		m->offset_error_s = number(clock, "error_s");
	}
	json_decref(loads);
	if (rc)
		json_decref(report);
	else
		*out = report;
	return rc;
}

int gates_during(struct gate *g, json_t *report, struct err *e)
{
	json_t *loads = NULL;
	int rc = ask_load(g->cluster, &loads, e);

	if (!rc)
		json_object_set(report, "during", loads);
	if (!rc)
		rc = check_loads(g, loads, false, false, -EBUSY, e);
	json_decref(loads);
	return rc;
}

int gates_after(struct gate *g, json_t *report, double since_s, struct err *e)
{
	json_t *loads = NULL, *clocks = NULL;
	int rc = measure_clocks(g->cluster, &clocks, e);

	if (!rc) {
		json_object_set(report, "clocks_after", clocks);
		rc = check_drift(g->limits, json_object_get(report, "clocks"), clocks, e);
	}
	if (!rc)
		rc = wait_window(g, since_s, e);
	if (!rc)
		rc = ask_load(g->cluster, &loads, e);
	if (!rc) {
		json_object_set(report, "after", loads);
		rc = check_loads(g, loads, true, false, -EBUSY, e);
	}
	json_decref(loads);
	json_decref(clocks);
	return rc;
}
