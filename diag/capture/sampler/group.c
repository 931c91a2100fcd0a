/* Reads processors and memory of a node that is a control group, and the groups of its
 * processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"

/* The folder in hierarchy 'counting' of the group that 'limiting' limits: both must have the same
 * path, and this process must be in both. */
static bool same_group(const struct cgroup_place *limiting, const struct cgroup_place *counting,
	char *out, size_t size)
{
	const char *below = limiting->own + strlen(limiting->root);
	size_t n;

	if (counting->version != limiting->version)
		return false;
	n = (size_t)snprintf(out, size, "%s%s", counting->root, below);
	return n < size && !strncmp(counting->own, out, n) &&
		(!counting->own[n] || counting->own[n] == '/');
}

void group_find(const struct cgroup_place places[CGROUP_CONTROLLERS], struct group *out)
{
	*out = (struct group){.cpu = places[CGROUP_CPU], .memory = places[CGROUP_MEMORY]};
	if (!cgroup_limited(&out->memory, CGROUP_MEMORY))
		out->memory.version = 0;
	if (!cgroup_limited(&out->cpu, CGROUP_CPU) ||
		!same_group(&out->cpu, &places[out->cpu.version == 1 ? CGROUP_CPUACCT : CGROUP_CPU],
			out->usage, sizeof(out->usage)))
		out->cpu.version = 0;
}

/* Processor time in ns used by the group; false: not readable. */
static bool read_usage(const struct group *g, struct sampler_snapshot *s, uint64_t *ns)
{
	auto_free char *each = NULL, *stat = NULL;
	const size_t first = s->n;
	struct thing *t;

	*ns = 0;
	if (g->cpu.version == 1) {
		each = cgroup_read(g->usage, "cpuacct.usage_percpu");
		if (each)
			text_usage_percpu(each, s);
		for (size_t i = first; i < s->n; i++)
			*ns += s->things[i].value[READING_CPU_BUSY];
		return s->n > first;
	}
	stat = cgroup_read(g->usage, "cpu.stat");
	t = stat && text_named(stat, "usage_usec", ns) ? snapshot_add(s, THING_CPU, 0) : NULL;
	*ns *= 1000;
	if (t)
		thing_set(t, READING_CPU_BUSY, *ns);
	return t;
}

/* Adds the time that the quota allowed, minus the used time. */
static void add_idle(
	struct group *g, uint64_t used_ns, const struct sampler_snapshot *s, struct thing *node)
{
	const double processors = cgroup_processors(g->cpu.own, g->cpu.version);

	if (processors <= 0)
		return;
	if (g->looked_ns && used_ns >= g->used_ns) {
		double left = processors * (double)(s->mono_ns - g->looked_ns) -
			(double)(used_ns - g->used_ns);

		g->idle_ns += left > 0 ? (uint64_t)left : 0;
	}
	g->looked_ns = s->mono_ns;
	g->used_ns = used_ns;
	thing_set(node, READING_CPU_IDLE, g->idle_ns);
}

static void set_throttled(const char *stat, enum reading r, struct thing *t)
{
	uint64_t v;

	if (text_named(stat, "throttled_time", &v))
		thing_set(t, r, v);
	else if (text_named(stat, "throttled_usec", &v))
		thing_set(t, r, v * 1000);
}

bool group_read_cpu(struct group *g, struct sampler_snapshot *s, struct thing *node)
{
	auto_free char *stat = NULL;
	uint64_t used_ns, v;

	if (!g->cpu.version)
		return false;
	if (read_usage(g, s, &used_ns))
		add_idle(g, used_ns, s, node);
	stat = cgroup_read(g->cpu.own, "cpu.stat");
	if (!stat)
		return true;
	if (text_named(stat, "nr_throttled", &v))
		thing_set(node, READING_CPU_THROTTLINGS, v);
	set_throttled(stat, READING_CPU_THROTTLED, node);
	return true;
}

/* Adds the values of memory.stat; returns the part of the page cache that could be dropped. */
static uint64_t read_stat(const struct group *g, struct thing *node)
{
	/* In version 1 the prefix "total_" includes the groups below. */
	static const struct {
		const char *prefix, *cached, *shared;
	} names[] = {{"total_", "cache", "shmem"}, {"", "file", "shmem"}};
	const int k = g->memory.version == 2;
	auto_free char *stat = cgroup_read(g->memory.own, "memory.stat");
	uint64_t bytes, inactive = 0, active = 0;
	char name[64];

	if (!stat)
		return 0;
#define NAMED(word, into)                                                                          \
	(snprintf(name, sizeof(name), "%s%s", names[k].prefix, word), text_named(stat, name, into))
	if (NAMED(names[k].cached, &bytes))
		thing_set(node, READING_MEMORY_CACHED, bytes);
	if (NAMED(names[k].shared, &bytes))
		thing_set(node, READING_MEMORY_SHARED, bytes);
	NAMED("inactive_file", &inactive);
	NAMED("active_file", &active);
#undef NAMED
	text_faults(stat, names[k].prefix, node);
	return inactive + active;
}

bool group_read_memory(const struct group *g, uint64_t machine_bytes, struct thing *node)
{
	const bool two = g->memory.version == 2;
	uint64_t total, used, left, available;
	auto_free char *usage = NULL;

	if (!g->memory.version)
		return false;
	total = cgroup_memory(g->memory.own, g->memory.version);
	usage = cgroup_read(g->memory.own, two ? "memory.current" : "memory.usage_in_bytes");
	available = read_stat(g, node);
	if (!total || !usage || sscanf(usage, "%" SCNu64, &used) != 1)
		return true;
	left = used < total ? total - used : 0;
	available = available < used ? left + available : total;
	thing_set(node, READING_MEMORY_TOTAL, total);
	thing_set(node, READING_MEMORY_USED, total - left);
	thing_set(node, READING_MEMORY_FREE, left);
	thing_set(node, READING_MEMORY_AVAILABLE,
		available < machine_bytes ? available : machine_bytes);
	return true;
}

void group_read_pressure(const char *folder, const char *file, enum reading r, struct thing *t)
{
	auto_free char *text = cgroup_read(folder, file);
	uint64_t us;

	if (text && text_pressure(text, &us))
		thing_set(t, r, us);
}

/* ---- the sampled processes ---- */

void process_groups_see(struct process_groups *g, const char *groups)
{
	struct process_group *one;

	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->list[i]->groups, groups)) {
			g->list[i]->seen = true;
			return;
		}
	if (g->n == PROCESS_GROUPS)
		return;
	if (!g->mountinfo && file_read("/proc/self/mountinfo", &g->mountinfo, NULL, NULL))
		return;
	one = calloc(1, sizeof(*one));
	if (one)
		one->groups = strdup(groups);
	if (!one || !one->groups) {
		free(one);
		return;
	}
	one->seen = true;
	one->cpu = cgroup_place(g->mountinfo, groups, CGROUP_CPU);
	one->pressure = cgroup_place(g->mountinfo, groups, CGROUP_PRESSURE);
	g->list[g->n++] = one;
}

/* Groups below one quota are one thing, and so are processes of several groups whose pressure is
 * kept together. */
static void read_process_group(const struct process_group *one, struct sampler_snapshot *s)
{
	struct cgroup_place limited = one->cpu;
	auto_free char *stat = NULL;
	struct thing *t;

	if (one->pressure.version &&
		(t = snapshot_add(s, THING_PRESSURE_GROUP, hash_text(one->pressure.own)))) {
		group_read_pressure(
			one->pressure.own, "io.pressure", READING_PROCESS_IO_PRESSURE, t);
		group_read_pressure(
			one->pressure.own, "memory.pressure", READING_PROCESS_MEMORY_PRESSURE, t);
	}
	/* Checked each time: a quota may be set while the processes run. */
	if (!cgroup_limited(&limited, CGROUP_CPU))
		return;
	stat = cgroup_read(limited.own, "cpu.stat");
	t = stat ? snapshot_add(s, THING_CPU_GROUP, hash_text(limited.own)) : NULL;
	if (t)
		set_throttled(stat, READING_PROCESS_THROTTLED, t);
}

static void group_drop(struct process_group *one)
{
	free(one->groups);
	free(one);
}

void process_groups_read(struct process_groups *g, struct sampler_snapshot *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct process_group *one = g->list[i];

		if (!one->seen) {
			group_drop(one);
			continue;
		}
		read_process_group(one, s);
		one->seen = false;
		g->list[kept++] = one;
	}
	g->n = kept;
}

void process_groups_clear(struct process_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		group_drop(g->list[i]);
	free(g->mountinfo);
	*g = (struct process_groups){0};
}
