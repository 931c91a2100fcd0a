/* The operation 'machine': the processors and memory that the node has, and whether they are its
 * own. */
#include <sys/stat.h>
#include <unistd.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/agent/handle.h"
#include "harness/agent/ops.h"
#include "harness/base/file.h"

#define FIRST_PID_SPACE 0xeffffffcu /* PROC_PID_INIT_INO, the machine's own */

static uint64_t value(const struct thing *t, enum reading r)
{
	return t->has >> r & 1 ? t->value[r] : 0;
}

/* Processor seconds of the node's group, or of the machine. */
static double busy_s(struct group *g, struct thing *node)
{
	struct sampler_snapshot s = {.mono_ns = 1};
	auto_free char *text = NULL;
	double sum = 0;

	if (!group_read_cpu(g, &s, node) && !file_read("/proc/stat", &text, NULL, NULL))
		text_cpus(text, &s);
	for (size_t i = 0; i < s.n; i++)
		sum += (double)value(&s.things[i], READING_CPU_BUSY) / 1e9;
	snapshot_free(&s);
	return sum;
}

int op_machine(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct cgroup_place places[CGROUP_CONTROLLERS];
	struct thing node = {.kind = THING_NODE}, host = {.kind = THING_NODE};
	auto_free char *info = NULL;
	struct group g;
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct stat space;
	double used_s, processors;
	bool first;
	int rc;

	(void)args;
	rc = file_read("/proc/meminfo", &info, NULL, e);
	if (rc)
		return rc;
	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		places[c] = cgroup_own(c);
	group_find(places, &g);
	text_meminfo(info, &host);
	if (!group_read_memory(&g, value(&host, READING_MEMORY_AVAILABLE), &node))
		text_meminfo(info, &node);
	used_s = busy_s(&g, &node);
	processors = g.cpu.version ? cgroup_processors(g.cpu.own, g.cpu.version) : 0;
	first = !stat("/proc/self/ns/pid", &space) && space.st_ino == FIRST_PID_SPACE;
	agent_answer(a, id,
		json_pack("{s:f, s:I, s:f, s:o, s:I, s:I, s:I, s:b, s:b}", "processors",
			processors > 0 ? processors : (double)online, "online", (json_int_t)online,
			"busy_s", used_s, "throttled_s",
			node.has >> READING_CPU_THROTTLED & 1
				? json_real((double)value(&node, READING_CPU_THROTTLED) / 1e9)
				: json_null(),
			"memory_bytes", (json_int_t)value(&node, READING_MEMORY_TOTAL),
			"available_bytes", (json_int_t)value(&node, READING_MEMORY_AVAILABLE),
			"host_available_bytes", (json_int_t)value(&host, READING_MEMORY_AVAILABLE),
			"own_processors", first || g.cpu.version, "own_memory",
			first || g.memory.version));
	return 0;
}
