/* Tests readings of control groups: files of both versions as written by the kernel, in folders of
 * the test, and unusual or missing files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/scratch.h"
#include "diag/capture/sampler/sampler.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define MACHINE (64ull << 30)

/* Writes a file below 'dir', and makes its folders. */
static void put(const char *path, const char *text)
{
	char at[PATH_MAX], folder[PATH_MAX];
	struct err e;
	FILE *f;

	snprintf(at, sizeof(at), "%s/%s", dir, path);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(at, '/') - at), at);
	assert_int_equal(file_mkdirs(folder, 0755, &e), 0);
	f = fopen(at, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* 'lines' with the test's folder for each "@". */
static const char *mounts(const char *lines)
{
	static char text[4096];
	size_t n = 0;

	for (; *lines && n < sizeof(text) - sizeof(dir); lines++) {
		if (*lines == '@')
			n += (size_t)snprintf(text + n, sizeof(dir), "%s", dir);
		else
			text[n++] = *lines;
	}
	text[n] = '\0';
	return text;
}

static void find(const char *mountinfo, const char *groups, struct group *g)
{
	struct cgroup_place places[CGROUP_CONTROLLERS];

	for (int c = 0; c < CGROUP_CONTROLLERS; c++)
		places[c] = cgroup_place(mountinfo, groups, c);
	group_find(places, g);
}

static uint64_t value(const struct thing *t, enum reading r)
{
	assert_true(t->has >> r & 1);
	return t->value[r];
}

/* Reads both, a given time after the first reading. */
static void look(struct group *g, int64_t ns, struct sampler_snapshot *s, struct thing *node)
{
	snapshot_clear(s);
	s->mono_ns = 1000000000 + ns;
	*node = (struct thing){.kind = THING_NODE};
	assert_true(group_read_cpu(g, s, node));
	assert_true(group_read_memory(g, MACHINE, node));
}

static const char
	v1_mounts[] = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		      "30 20 0:30 / @/v1/cpu rw shared:3 master:1 - cgroup cgroup rw,cpu\n"
		      "31 20 0:31 / @/v1/cpuacct rw - cgroup cgroup rw,cpuacct\n"
		      "32 20 0:32 / @/v1/memory rw - cgroup cgroup rw,memory\n"
		      "33 20 0:33 / @/v2 rw - cgroup2 cgroup2 rw\n";
static const char v1_groups[] =
	"9:name=systemd:/\n4:memory:/lab/s1/session\n2:cpuacct:/lab/s1/session\n1:cpu:/lab/s1\n"
	"0::/other\n";

/* The controller of disks has another name in each version. */
static void the_group_of_disks_is_found(void **state)
{
	struct cgroup_place p = cgroup_place("33 20 0:33 / /c/v2 rw - cgroup2 cgroup2 rw\n"
					     "34 20 0:34 / /c/blkio rw - cgroup cgroup rw,blkio\n",
		"3:cpu:/x\n2:blkio:/lab/s1\n0::/other\n", CGROUP_IO);
	char line[PATH_MAX + 64];

	(void)state;
	assert_int_equal(p.version, 1);
	assert_string_equal(p.own, "/c/blkio/lab/s1");
	put("v2/cgroup.controllers", "cpu io\n");
	snprintf(line, sizeof(line), "33 20 0:33 / %s/v2 rw - cgroup2 cgroup2 rw\n", dir);
	p = cgroup_place(line, "0::/own\n", CGROUP_IO);
	assert_int_equal(p.version, 2);
	assert_string_equal(p.own + strlen(dir), "/v2/own");
}

static void version_one_is_read(void **state)
{
	struct sampler_snapshot s = {0};
	struct thing node;
	struct group g;

	(void)state;
	put("v2/cgroup.controllers", "hugetlb\n");
	put("v1/cpu/cpu.cfs_quota_us", "-1\n");
	put("v1/cpu/cpu.cfs_period_us", "100000\n");
	put("v1/cpu/lab/s1/cpu.cfs_quota_us", "10000\n");
	put("v1/cpu/lab/s1/cpu.cfs_period_us", "20000\n");
	put("v1/cpu/lab/s1/cpu.stat",
		"nr_periods 50\nnr_throttled 7\nthrottled_time 900000000\nnr_bursts 0\n");
	put("v1/cpuacct/lab/s1/cpuacct.usage_percpu", "3000000000 1000000000 \n");
	put("v1/memory/lab/s1/session/memory.limit_in_bytes", "9223372036854771712\n");
	put("v1/memory/lab/s1/memory.limit_in_bytes", "268435456\n");
	put("v1/memory/lab/s1/memory.usage_in_bytes", "201326592\n");
	put("v1/memory/lab/s1/memory.stat",
		"cache 1\nshmem 2\npgfault 3\ninactive_file 4\ntotal_cache 50331648\n"
		"total_shmem 4194304\ntotal_workingset_refault_anon 5\n"
		"total_workingset_refault_file 6\ntotal_pgfault 70\ntotal_pgmajfault 8\n"
		"total_inactive_file 33554432\ntotal_active_file 8388608\n");
	find(mounts(v1_mounts), v1_groups, &g);
	look(&g, 0, &s, &node);
	assert_int_equal(s.n, 2);
	assert_int_equal(value(&s.things[0], READING_CPU_BUSY), 3000000000);
	assert_string_equal(s.things[1].name, "cpu1");
	assert_int_equal(value(&node, READING_CPU_IDLE), 0);
	assert_int_equal(value(&node, READING_CPU_THROTTLINGS), 7);
	assert_int_equal(value(&node, READING_CPU_THROTTLED), 900000000);
	assert_int_equal(value(&node, READING_MEMORY_TOTAL), 256 << 20);
	assert_int_equal(value(&node, READING_MEMORY_USED), 192 << 20);
	assert_int_equal(value(&node, READING_MEMORY_FREE), 64 << 20);
	assert_int_equal(value(&node, READING_MEMORY_AVAILABLE), 104 << 20);
	assert_int_equal(value(&node, READING_MEMORY_CACHED), 48 << 20);
	assert_int_equal(value(&node, READING_MEMORY_SHARED), 4 << 20);
	assert_int_equal(node.has >> READING_MEMORY_BUFFERS & 1, 0);
	assert_int_equal(value(&node, READING_MEMORY_FAULTS), 70);
	assert_int_equal(value(&node, READING_MEMORY_MAJOR_FAULTS), 8);
	assert_int_equal(value(&node, READING_MEMORY_REFAULTS), 11);

	/* A second with half a processor: 0.2 s are used, then more than the quota. */
	put("v1/cpuacct/lab/s1/cpuacct.usage_percpu", "3150000000 1050000000 \n");
	look(&g, 1000000000, &s, &node);
	assert_int_equal(value(&node, READING_CPU_IDLE), 300000000);
	put("v1/cpuacct/lab/s1/cpuacct.usage_percpu", "3650000000 1100000000 \n");
	look(&g, 2000000000, &s, &node);
	assert_int_equal(value(&node, READING_CPU_IDLE), 300000000);
	snapshot_free(&s);
}

static const char
	v2_mounts[] = "33 20 0:33 /pod @/two\\040words rw,nosuid shared:9 - cgroup2 c rw\n";

static void version_two_is_read(void **state)
{
	struct sampler_snapshot s = {0};
	struct thing node;
	struct group g;

	(void)state;
	put("two words/cgroup.controllers", "cpuset cpu io memory pids\n");
	put("two words/cpu.max", "150000 100000\n");
	put("two words/cpu.stat",
		"usage_usec 4000000\nuser_usec 1\nnr_periods 5\n"
		"nr_throttled 7\nthrottled_usec 900000\n");
	put("two words/box/cpu.max", "max 100000\n");
	put("two words/box/memory.max", "1073741824\n");
	put("two words/box/memory.current", "1073745920\n"); /* a moment above it */
	put("two words/box/memory.stat",
		"anon 1\nfile 536870912\nshmem 4096\ninactive_file 1048576\n"
		"active_file 0\npgfault 70\npgmajfault 8\n");
	find(mounts(v2_mounts), "0::/pod/box\n", &g);
	look(&g, 0, &s, &node);
	assert_int_equal(s.n, 1);
	assert_int_equal(value(&s.things[0], READING_CPU_BUSY), 4000000000);
	assert_string_equal(s.things[0].name, "");
	assert_int_equal(value(&node, READING_CPU_THROTTLED), 900000000);
	assert_int_equal(value(&node, READING_MEMORY_USED), 1 << 30);
	assert_int_equal(value(&node, READING_MEMORY_FREE), 0);
	assert_int_equal(value(&node, READING_MEMORY_AVAILABLE), 1 << 20);
	assert_int_equal(value(&node, READING_MEMORY_CACHED), 512 << 20);
	assert_int_equal(node.has >> READING_MEMORY_REFAULTS & 1, 0);
	/* The machine has less memory left than the group may use. */
	assert_true(group_read_memory(&g, 4096, &node));
	assert_int_equal(value(&node, READING_MEMORY_AVAILABLE), 4096);
	/* The limit is lifted: the remaining part of it is unknown. */
	put("two words/cpu.max", "max 100000\n");
	look(&g, 1000000000, &s, &node);
	assert_int_equal(node.has >> READING_CPU_IDLE & 1, 0);
	snapshot_free(&s);
}

static void without_limits_the_machine_is_read(void **state)
{
	static const char *const groups[] = {"", "0::/\n", "0::/../neighbour\n", "0::/else/box\n",
		"0::/podium\n", "0::pod\n", "4:memory:/pod\n", "4:memory\n",
		"::\n0:", "0::/pod/none\n"};
	struct sampler_snapshot s = {0};
	struct thing node = {0};
	struct group g;

	(void)state;
	put("two words/cpu.max", "max 100000\n");
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		find(mounts(v2_mounts), groups[i], &g);
		assert_false(group_read_cpu(&g, &s, &node));
		assert_false(group_read_memory(&g, MACHINE, &node));
	}
	find("", "0::/pod\n", &g);
	assert_int_equal(g.cpu.version, 0);
	/* The group that counts the time is not the limited one: no reading. */
	find(mounts(v1_mounts), "2:cpuacct:/lab/s2\n1:cpu:/lab/s1\n", &g);
	assert_int_equal(g.cpu.version, 0);
	assert_int_equal(s.n, 0);
}

/* Every file with every unusual content: unreadable values are left out, and levels stay below the
 * total. */
static void odd_files_are_left_out(void **state)
{
	static const char *const odd[] = {"", "\n", "max", "max max\n", "-5 100000\n", "0 0\n", "1",
		"99999999999999999999999 1\n", "18446744073709551615\n", "usage_usec -1\n",
		"usage_usec\nnr_throttled x\ntotal_cache 1 2 3\nfile \n", "\xff\xfe 7\n"};
	static const char *const files[] = {
		"cpu.max", "cpu.stat", "memory.max", "memory.current", "memory.stat"};
	struct sampler_snapshot s = {0};
	struct thing node;
	struct group g;

	(void)state;
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		char path[64];

		put("odd/cgroup.controllers", "cpu memory");
		put("odd/cpu.max", "1000 100000\n");
		put("odd/cpu.stat", "usage_usec 5\n");
		put("odd/memory.max", "8192\n");
		put("odd/memory.current", "4096\n");
		put("odd/memory.stat", "file 1\n");
		find(mounts("33 20 0:33 / @/odd rw - cgroup2 c rw\n"), "0::/\n", &g);
		snprintf(path, sizeof(path), "odd/%s", files[f]);
		for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
			put(path, odd[i]);
			look(&g, (int64_t)i * 1000000000, &s, &node);
			if (node.has >> READING_MEMORY_FREE & 1)
				assert_true(value(&node, READING_MEMORY_FREE) +
						value(&node, READING_MEMORY_USED) ==
					value(&node, READING_MEMORY_TOTAL));
			assert_true(s.n <= 1);
		}
		snprintf(path, sizeof(path), "%s/odd/%s", dir, files[f]);
		assert_return_code(unlink(path), errno);
		look(&g, 0, &s, &node);
	}
	snapshot_free(&s);
}

static const struct thing *with(const struct sampler_snapshot *s, enum reading r)
{
	const struct thing *found = NULL;

	for (size_t i = 0; i < s->n; i++)
		if (s->things[i].has >> r & 1) {
			assert_null(found);
			found = &s->things[i];
		}
	return found;
}

static void see(struct process_groups *g, const char *groups, struct sampler_snapshot *s)
{
	snapshot_clear(s);
	process_groups_see(g, groups);
	process_groups_read(g, s);
	snapshot_sort(s);
}

/* A service with limits on a node without limits. */
static void limits_of_a_service_are_read(void **state)
{
	struct process_groups g = {.mountinfo = strdup(mounts(v2_mounts))};
	struct sampler_snapshot s = {0};
	const struct thing *t;

	(void)state;
	put("two words/cgroup.controllers", "cpuset cpu io memory pids\n");
	put("two words/srv/cpu.max", "50000 100000\n");
	put("two words/srv/cpu.stat", "usage_usec 4000000\nnr_throttled 7\nthrottled_usec 12\n");
	put("two words/srv/d/cpu.max", "max 100000\n");
	put("two words/srv/d/cpu.stat", "usage_usec 4000000\nnr_throttled 0\nthrottled_usec 0\n");
	put("two words/srv/d/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
	see(&g, "0::/pod/srv/d\n", &s);
	t = with(&s, READING_PROCESS_THROTTLED);
	assert_non_null(t);
	assert_int_equal(value(t, READING_PROCESS_THROTTLED), 12000);
	t = with(&s, READING_PROCESS_IO_PRESSURE);
	assert_non_null(t);
	assert_int_equal(value(t, READING_PROCESS_IO_PRESSURE), 99);
	assert_null(with(&s, READING_PROCESS_MEMORY_PRESSURE));

	/* Its processes are in two groups below one quota, which counts once. */
	put("two words/srv/e/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
	process_groups_see(&g, "0::/pod/srv/e\n");
	see(&g, "0::/pod/srv/d\n", &s);
	assert_int_equal(g.n, 2);
	assert_int_equal(
		value(with(&s, READING_PROCESS_THROTTLED), READING_PROCESS_THROTTLED), 12000);
	assert_int_equal(
		value(with(&s, READING_PROCESS_MEMORY_PRESSURE), READING_PROCESS_MEMORY_PRESSURE),
		5);

	/* The quota is removed, and set at the group itself: noticed without a new search for the
	 * group. */
	put("two words/srv/cpu.max", "max 100000\n");
	see(&g, "0::/pod/srv/d\n", &s);
	assert_int_equal(g.n, 1);
	assert_null(with(&s, READING_PROCESS_THROTTLED));
	put("two words/srv/d/cpu.max", "1000 100000\n");
	see(&g, "0::/pod/srv/d\n", &s);
	assert_int_equal(value(with(&s, READING_PROCESS_THROTTLED), READING_PROCESS_THROTTLED), 0);
	process_groups_clear(&g);
	snapshot_free(&s);
}

/* Version 1 has the quota; version 2, mounted as well without any controller, has the pressure. */
static void both_versions_are_read(void **state)
{
	struct process_groups g = {.mountinfo = strdup(mounts(v1_mounts))};
	struct sampler_snapshot s = {0};

	(void)state;
	put("v2/cgroup.controllers", "hugetlb\n");
	put("v2/other/io.pressure",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull total=1\n");
	put("v1/cpu/lab/s1/cpu.cfs_quota_us", "10000\n");
	put("v1/cpu/lab/s1/cpu.cfs_period_us", "20000\n");
	put("v1/cpu/lab/s1/cpu.stat", "nr_throttled 7\nthrottled_time 900000000\n");
	see(&g, v1_groups, &s);
	assert_int_equal(
		value(with(&s, READING_PROCESS_IO_PRESSURE), READING_PROCESS_IO_PRESSURE), 7);
	assert_int_equal(
		value(with(&s, READING_PROCESS_THROTTLED), READING_PROCESS_THROTTLED), 900000000);
	process_groups_clear(&g);
	snapshot_free(&s);
}

static void groups_without_readings_are_left_out(void **state)
{
	static const char *const groups[] = {"", "0::/\n", "0::/../neighbour\n", "0::/else/box\n",
		"0::pod\n", "4:memory\n", "0::/pod/none\n"};
	struct process_groups g = {.mountinfo = strdup(mounts(v2_mounts))};
	struct sampler_snapshot s = {0};
	char many[64];

	(void)state;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		see(&g, groups[i], &s);
		for (size_t k = 0; k < s.n; k++)
			assert_int_equal(s.things[k].has, 0);
	}
	for (int i = 0; i < 2 * PROCESS_GROUPS; i++) {
		snprintf(many, sizeof(many), "0::/pod/%d\n", i);
		process_groups_see(&g, many);
	}
	assert_int_equal(g.n, PROCESS_GROUPS);
	process_groups_clear(&g);
	snapshot_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_group_of_disks_is_found),
		cmocka_unit_test(version_one_is_read),
		cmocka_unit_test(version_two_is_read),
		cmocka_unit_test(without_limits_the_machine_is_read),
		cmocka_unit_test(odd_files_are_left_out),
		cmocka_unit_test(limits_of_a_service_are_read),
		cmocka_unit_test(both_versions_are_read),
		cmocka_unit_test(groups_without_readings_are_left_out),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
