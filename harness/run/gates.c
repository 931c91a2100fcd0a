/* Checks hosts and clocks before, during and after an attempt. */
#include "harness/run/gates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "harness/base/jget.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/load.h"
#include "harness/run/cluster.h"
#include "harness/run/fingerprint.h"
#include "harness/run/signals.h"

#define CALL_TIMEOUT_S 30
#define HEALTHY_S 60

static const char *machine_of(const struct member *m)
{
	const char *boot = jget_text(node_hello(m->node), "boot_id");

	return boot ? boot : m->name;
}

/* Is its machine that of another host of the run, or of the orchestrator? */
static bool is_shared(const struct cluster *c, const struct member *m)
{
	char *boot = NULL;
	size_t n = 0;

	if (!file_read("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
		n += !strncmp(boot, machine_of(m), strcspn(boot, "\n"));
	free(boot);
	cluster_each(other, c) {
		n += !strcmp(machine_of(other), machine_of(m));
	}
	return n > 1;
}

/* The limits that hold for a host: defaults where the scenario gives none, or none at all where the
 * host shares its machine. */
static struct gates limits_of(const struct gates *given, bool shared)
{
	struct gates l = *given;

#define DEFAULT(limit, unlimited)                                                                  \
	l.limit = l.limit >= 0 ? l.limit : (unlimited) ? INFINITY : gate_defaults.limit
	DEFAULT(load_pct, shared);
	DEFAULT(process_pct, shared);
	DEFAULT(steal_pct, shared);
	DEFAULT(pressure_pct, shared);
	DEFAULT(memory_pct, false);
	DEFAULT(disk_bytes, false);
	DEFAULT(clock_s, false);
	DEFAULT(drift_s, false);
	DEFAULT(window_s, false);
#undef DEFAULT
	return l;
}

/* What all hosts on the machine of 'm' used for this run: each sees the whole machine, but only its
 * own processes. */
static double own_s(const struct cluster *c, const struct member *m, const json_t *results)
{
	double sum = 0;

	cluster_each(other, c) {
		if (!strcmp(machine_of(other), machine_of(m)))
			sum += jget_real(jget(results, other->name), "own_s");
	}
	return sum;
}

/* The agent's seconds as shares. */
static json_t *host_load(const json_t *r, double own)
{
	double seconds = jget_real(r, "seconds"), all = seconds * jget_real(r, "cpus"),
	       others = jget_real(r, "busy_s") - own;
	const json_t *pressure = jget(r, "pressure_s"), *v;
	json_t *shares = json_object(), *out;
	double memory = jget_real(r, "memory_bytes");
	const char *name;

	if (seconds <= 0)
		seconds = all = 1;
	json_object_foreach((json_t *)pressure, name, v)
		json_object_set_new(shares, name,
			json_is_number(v) ? json_real(100 * json_number_value(v) / seconds)
					  : json_null());
	out = json_pack("{s:f, s:f, s:f, s:f, s:o, s:f, s:f, s:O, s:O*, s:O*}", "seconds", seconds,
		"others_pct", others > 0 ? 100 * others / all : 0.0, "steal_pct",
		100 * jget_real(r, "steal_s") / all, "iowait_pct",
		100 * jget_real(r, "iowait_s") / all, "pressure_pct", shares, "load1",
		jget_real(r, "load1"), "available_pct",
		memory > 0 ? 100 * jget_real(r, "available_bytes") / memory : 100.0, "heavy",
		jget(r, "heavy"), "state_bytes", jget(r, "state_bytes"), "state", jget(r, "state"));
	return out;
}

/* {host: load} since the last call. New reference. */
static int ask_load(struct cluster *c, json_t **out, struct err *e)
{
	json_t *results;
	int rc = cluster_ask(c, "load", fingerprint_pids, NULL, CALL_TIMEOUT_S, &results, e);

	if (!rc)
		*out = json_object();
	cluster_each(m, c) {
		if (!rc)
			json_object_set_new(*out, m->name,
				host_load(jget(results, m->name), own_s(c, m, results)));
	}
	json_decref(results);
	return rc;
}

/* The orchestrator's own machine; for the record. */
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

/* Fills 'text' if the disk has less than the least. */
static bool too_full(const char *folder, double free_bytes, double least, char *text, size_t size)
{
	char room[32], wanted[32];

	if (free_bytes >= least)
		return false;
	snprintf(text, size,
		"the disk that '%.300s' is kept on has %s left; %s must be (gates: 'disk')", folder,
		unit_format(UNIT_BYTES, free_bytes, room, sizeof(room)),
		unit_format(UNIT_BYTES, least, wanted, sizeof(wanted)));
	return true;
}

/* As too_full, of the host's folder for the agent. */
static bool host_too_full(const struct gates *g, const json_t *l, char *text, size_t size)
{
	const char *state = jget_text(l, "state");

	return state && jget(l, "state_bytes") &&
		too_full(state, jget_real(l, "state_bytes"), g->disk_bytes, text, size);
}

enum when { BEFORE, DURING, AFTER };

/* During an attempt, others' short work cannot be told from the run's own, so only whole processes
 * are checked; pressure before it only. */
static int check_load(
	const struct gates *g, const char *host, const json_t *l, enum when when, struct err *e)
{
	static const char *const pressures[] = {"io", "memory"};
	const json_t *heavy = json_array_get(jget(l, "heavy"), 0),
		     *pressure = jget(l, "pressure_pct");
	const char *comm = jget_text(heavy, "comm");
	double others = jget_real(l, "others_pct"), seconds = jget_real(l, "seconds"),
	       cpu = seconds > 0 ? 100 * jget_real(heavy, "cpu_s") / seconds : 0;
	int code = when == BEFORE ? -EAGAIN : -EBUSY;
	char full[512];

	/* During an attempt, a full disk is told by what it makes fail. */
	if (when == BEFORE && host_too_full(g, l, full, sizeof(full)))
		return err_set(e, code, "%s: %s", host, full);
	if (heavy && cpu > g->process_pct)
		return err_set(e, code,
			"%s: process %d (%s) used %.0f %% of a processor; %.0f %% are allowed "
			"(gates: 'process')",
			host, (int)jget_real(heavy, "pid"), comm, cpu, g->process_pct);
	if (when != DURING && others > g->load_pct)
		return err_set(e, code,
			"%s: others used %.0f %% of its processors%s%s; %.0f %% are allowed "
			"(gates: 'load')",
			host, others, heavy ? ", most of all " : "", heavy ? comm : "",
			g->load_pct);
	if (jget_real(l, "steal_pct") > g->steal_pct)
		return err_set(e, code,
			"%s: its hypervisor took %.0f %% of its processors' time; %.0f %% are "
			"allowed (gates: 'steal')",
			host, jget_real(l, "steal_pct"), g->steal_pct);
	for (size_t i = 0; i < sizeof(pressures) / sizeof(pressures[0]) && when == BEFORE; i++)
		if (jget_real(pressure, pressures[i]) > g->pressure_pct)
			return err_set(e, code,
				"%s: something waited for %s in %.0f %% of the time; %.0f %% are "
				"allowed (gates: 'pressure')",
				host, pressures[i], jget_real(pressure, pressures[i]),
				g->pressure_pct);
	if (jget_real(l, "available_pct") < g->memory_pct)
		return err_set(e, code,
			"%s: %.1f %% of its memory is available; %.0f %% must be (gates: 'memory')",
			host, jget_real(l, "available_pct"), g->memory_pct);
	return 0;
}

/* Asks for the load, puts it into the report under 'key', checks it. */
static int check_loads(
	struct gate *g, json_t *report, const char *key, enum when when, struct err *e)
{
	struct cluster *c = g->cluster;
	json_t *loads = NULL;
	int rc = ask_load(c, &loads, e);

	if (!rc)
		json_object_set_new(report, key, loads);
	cluster_each(m, c) {
		const struct gates limits = limits_of(g->limits, is_shared(c, m));

		rc = rc ?: check_load(&limits, m->name, jget(loads, m->name), when, e);
	}
	return rc;
}

/* {host: {offset_s, error_s}}. New reference. */
static int measure_clocks(struct cluster *c, json_t **out, struct err *e)
{
	json_t *all = json_object();
	int rc = 0;

	cluster_each(m, c) {
		double offset, error;

		if (rc)
			break;
		rc = cluster_blame(node_clock_offset(m->node, &offset, &error, e), e);
		if (!rc)
			json_object_set_new(all, m->name,
				json_pack("{s:f, s:f}", "offset_s", offset, "error_s", error));
	}
	if (rc)
		json_decref(all);
	else
		*out = all;
	return rc;
}

/* Any two clocks must agree within the limit and the errors of measuring them. */
static int check_clocks(const struct gates *g, const json_t *clocks, int code, struct err *e)
{
	double most = limits_of(g, false).clock_s;
	const char *name, *other;
	json_t *a, *b;

	json_object_foreach((json_t *)clocks, name, a) {
		json_object_foreach((json_t *)clocks, other, b) {
			double apart = jget_real(a, "offset_s") - jget_real(b, "offset_s");

			if (apart - jget_real(a, "error_s") - jget_real(b, "error_s") > most)
				return err_set(e, code,
					"%s: its clock is %.3f s before %s's; %.3f s are "
					"allowed (gates: 'clock')",
					name, apart, other, most);
		}
	}
	return 0;
}

static int check_drift(
	const struct gates *g, const json_t *before, const json_t *after, struct err *e)
{
	double most = limits_of(g, false).drift_s;
	const char *name;
	json_t *was;

	json_object_foreach((json_t *)before, name, was) {
		const json_t *is = jget(after, name);
		double drift = fabs(jget_real(is, "offset_s") - jget_real(was, "offset_s"));

		if (drift - jget_real(is, "error_s") - jget_real(was, "error_s") > most)
			return err_set(e, -EBUSY,
				"%s: its clock moved by %.3f s against ours; %.3f s are "
				"allowed (gates: 'drift')",
				name, drift, most);
	}
	return 0;
}

static int check_disk(struct gate *g, struct err *e)
{
	double least = limits_of(g->limits, false).disk_bytes;
	struct statvfs st;
	char full[512];

	if (statvfs(g->folder, &st) < 0)
		return err_errno(e, -errno, "cannot see how full the disk of '%s' is", g->folder);
	return too_full(g->folder, (double)st.f_bavail * (double)st.f_frsize, least, full,
		       sizeof(full))
		? err_set(e, -EAGAIN, "%s", full)
		: 0;
}

/* The fingerprint must be that of the run's first check. */
static int check_fingerprint(struct gate *g, struct err *e)
{
	json_auto_t *now = NULL;
	int rc = fingerprint_take(g->cluster, &now, e);

	if (rc)
		return rc;
	if (!g->clean)
		g->clean = json_incref(now);
	else if (fingerprint_compare(g->clean, now, e))
		rc = -EAGAIN;
	return rc;
}

/* Checks all but the load, which the nodes measure in the meantime. */
static int check_state(struct gate *g, json_t *report, struct err *e)
{
	json_t *clocks = NULL;
	int rc = cluster_find_processes(g->cluster, e);

	if (!rc && g->unsettled)
		rc = cluster_wait_healthy(g->cluster, HEALTHY_S, e);
	if (rc == -ENOENT || rc == -ETIMEDOUT)
		return -EAGAIN;
	if (!rc)
		g->unsettled = false;
	rc = rc ?: check_fingerprint(g, e) ?: measure_clocks(g->cluster, &clocks, e);
	if (!rc)
		json_object_set_new(report, "clocks", clocks);
	return rc ?: check_clocks(g->limits, clocks, -EAGAIN, e);
}

/* Events of an attempt that has ended are dropped. */
static void gates_on_event(void *ctx, struct node *n, const json_t *event)
{
	(void)ctx;
	(void)n;
	(void)event;
}

static int wait_window(struct gate *g, double begin, struct err *e)
{
	double until = begin + limits_of(g->limits, false).window_s;

	for (double left; (left = until - clock_mono_s()) > 0;) {
		if (*g->interrupted ||
			node_events(g->cluster->set, left > 0.25 ? 0.25 : left, gates_on_event,
				NULL) == -EINTR)
			return signals_interrupted(e);
		if (cluster_lost(g->cluster, e))
			return -ENOTCONN;
	}
	return 0;
}

int gates_before(struct gate *g, json_t **out, struct err *e)
{
	json_t *report = json_object(), *ignored = NULL;
	double begin = clock_mono_s();
	struct load was, is;
	int rc = check_disk(g, e) ?: load_read(&was, e);

	if (!rc)
		rc = ask_load(g->cluster, &ignored, e); /* begins the nodes' measurement */
	json_decref(ignored);
	rc = rc ?: check_state(g, report, e)
		?: wait_window(g, begin, e)
		?: check_loads(g, report, "before", BEFORE, e)
		?: load_read(&is, e);
	if (rc) {
		json_decref(report);
		return rc;
	}
	json_object_set_new(report, "orchestrator", orchestrator_load(&was, &is));
	cluster_each(m, g->cluster) {
		const json_t *clock = jget(jget(report, "clocks"), m->name);

		m->offset_s = jget_real(clock, "offset_s");
		m->offset_error_s = jget_real(clock, "error_s");
	}
	*out = report;
	return 0;
}

void gates_explain(struct gate *g, struct err *why)
{
	const struct gates limits = limits_of(g->limits, false);
	json_auto_t *loads = NULL;
	char full[512];

	if (cluster_lost(g->cluster, NULL) || ask_load(g->cluster, &loads, NULL))
		return;
	cluster_each(m, g->cluster) {
		const size_t n = strlen(why->text);

		if (!host_too_full(&limits, jget(loads, m->name), full, sizeof(full)))
			continue;
		snprintf(why->text + n, sizeof(why->text) - n, "; %s: %s", m->name, full);
		return;
	}
}

int gates_during(struct gate *g, json_t *report, struct err *e)
{
	return check_loads(g, report, "during", DURING, e);
}

int gates_after(struct gate *g, json_t *report, double since_s, struct err *e)
{
	json_t *clocks = NULL;
	int rc = measure_clocks(g->cluster, &clocks, e);

	if (!rc) {
		json_object_set_new(report, "clocks_after", clocks);
		rc = check_drift(g->limits, jget(report, "clocks"), clocks, e);
	}
	return rc ?: wait_window(g, since_s, e) ?: check_loads(g, report, "after", AFTER, e);
}
