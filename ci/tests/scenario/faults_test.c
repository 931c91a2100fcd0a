/* What faults do with a victim that has several server processes. The victim is a table of Lua that
 * notes what it is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lauxlib.h>

#include "harness/lua/luax.h"

/* 'pids' are the victim's; its processes are 10 and 20. */
static const char victim[] =
	"local pids, gone = ...\n"
	"local log, lives = {}, { [10] = 1, [20] = 1 }\n"
	"for _, pid in ipairs(gone) do lives[pid] = nil end\n"
	"local function note(what) return function(_, with)\n"
	"  log[#log + 1] = what .. ' ' .. with.pid end end\n"
	"local v = { name = 's1', pids = pids, storage = '/b', kill_service = note 'kill',\n"
	"  limit_service = note 'limit', hold = note 'hold' }\n"
	"function v:can(what, with)\n"
	"  log[#log + 1] = 'can ' .. (with and with.pid or what) return true end\n"
	"function v:fs_info() return { point = '/b', inodes = 9, free_inodes = gone.free,\n"
	"  free_bytes = 0 } end\n"
	"function v:machine() return gone.machine end\n"
	"function v:limits() return { fsize = { soft = 7 } } end\n"
	"local function node(name, n)\n"
	"  n = n or { can = function() return true end }\n"
	"  n.name, n.address = name, name\n"
	"  function n:drop_packets(rule) log[#log + 1] = name .. ' ' .. rule.percent .. ' ' ..\n"
	"    rule.direction .. ' ' .. table.concat(rule.from, ',') end\n"
	"  function n:delay_packets(rule) log[#log + 1] = name .. ' ' .. rule.direction .. ' ' ..\n"
	"    (rule.latency_s or rule.rate) .. ' ' .. table.concat(rule.from or rule.to, ',')\n"
	"    return { delays = function() return table.remove(gone.delays or {}, 1) end } end\n"
	"  return n end\n"
	"node('s1', v)\n"
	"function v:processes() local list = {} for pid, parent in pairs(lives) do\n"
	"  list[#list + 1] = { pid = pid, ppid = parent, state = 'S' } end return list end\n"
	"return { victim = v, servers = { v, node 's2' }, clients = { node 'c1' },\n"
	"  params = gone.params or { limit = 7, size = 7 },\n"
	"  state = {}, log = log,\n"
	"  file_system = { empty_storage = { inodes_of_file = gone.of_file }, missing = {} } }\n";

/* Calls functions of a fault, one after the other, and compares what the victim was asked for, and
 * the reason that the last gave ("": none). */
static void expect(const char *fault, const char *pids, const char *gone, const char *functions,
	const char *asked, const char *reason)
{
	lua_State *L = luax_new();
	char path[64], chunk[3000], names[64], *save = NULL, *name, said[200] = "", log[200] = "";
	struct err e;

	snprintf(path, sizeof(path), "faults/%s.lua", fault);
	if (luax_load_file(L, path, NULL, &e))
		fail_msg("%s", e.text);
	snprintf(chunk, sizeof(chunk), "return (function(...) %s end)(%s, %s)", victim, pids, gone);
	assert_int_equal(luaL_dostring(L, chunk), LUA_OK);
	snprintf(names, sizeof(names), "%s", functions);
	for (name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		lua_getfield(L, 1, name);
		lua_pushvalue(L, 2);
		if (luax_call(L, 1, 2, &e))
			fail_msg("%s: %s: %s", fault, name, e.text);
		snprintf(said, sizeof(said), "%s",
			lua_toboolean(L, -2)          ? ""
				: lua_isstring(L, -1) ? lua_tostring(L, -1)
						      : "");
		lua_settop(L, 2);
	}
	lua_getfield(L, 2, "log");
	for (int i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++, lua_pop(L, 1))
		snprintf(log + strlen(log), sizeof(log) - strlen(log), "%s%s", i > 1 ? "; " : "",
			lua_tostring(L, -1));
	assert_string_equal(log, asked);
	assert_string_equal(said, reason);
	lua_close(L);
}

static void kill_and_limits_hit_all(void **unused)
{
	(void)unused;
	expect("kill", "{ 10, 20 }", "{}", "check", "can 10; can 20", "");
	/* Undone newest first, so that they start in their order. */
	expect("kill", "{ 10, 20 }", "{}", "inject", "kill 20; kill 10", "");
	expect("kill", "{ 10, 20 }", "{ 10, 20 }", "inject verify", "kill 20; kill 10", "");
	expect("kill", "{ 10, 20 }", "{ 20 }", "inject verify", "kill 20; kill 10",
		"process 10 is there");
	expect("hang", "{ 10, 20 }", "{}", "inject", "hold 10; hold 20", "");
	expect("err-fsize", "{ 10, 20 }", "{}", "check inject verify",
		"can 10; can 20; limit 10; limit 20", "");
	expect("err-fsize", "{ 10, 20 }", "{ 20 }", "inject verify", "limit 10; limit 20",
		"a server ended before it reached its limit");
}

static void a_partition_is_made_where_packets_arrive(void **unused)
{
	static const char *const cases[][3] = {
		{"all", "both", "s1 100 in s2,c1; s2 100 in s1; c1 100 in s1"},
		{"clients", "both", "s1 100 in c1; c1 100 in s1"},
		{"all", "in", "s1 100 in s2,c1"},
		{"servers", "out", "s2 100 in s1"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char with[100];

		snprintf(with, sizeof(with), "{ params = { peers = '%s', direction = '%s' } }",
			cases[i][0], cases[i][1]);
		expect("net-partition", "{ 10 }", with, "inject", cases[i][2], "");
	}
}

/* One reading of a slow link. */
#define DELAYS(running, seconds, packets, bytes, waited_s)                                         \
	"{ running = " #running ", seconds = " #seconds ", packets = " #packets                    \
	", bytes = " #bytes ", waited_s = " #waited_s ", dropped = 0 }, "
#define AT_FIRST DELAYS(true, 0, 0, 0, 0)
#define LATENCY(direction) "latency = 0.02, jitter = 0, direction = '" direction "'"
#define RATE "rate = 1000000, buffer = 0.05, direction = 'in'"

static void a_slow_link_is_seen_by_its_figures(void **unused)
{
	static const struct {
		const char *fault, *params, *delays, *asked, *reason;
	} cases[] = {
		/* One of the two peers got nothing. */
		{"net-delay", LATENCY("out"),
			AT_FIRST AT_FIRST DELAYS(true, 1, 100, 9000, 2.001) AT_FIRST,
			"s2 in 0.02 s1; c1 in 0.02 s1", ""},
		{"net-delay", LATENCY("both"),
			AT_FIRST AT_FIRST AT_FIRST DELAYS(true, 1, 9, 9000, 0.2)
				DELAYS(true, 1, 9, 9000, 0.2) DELAYS(true, 1, 100, 9000, 1.9),
			"s2 in 0.02 s1; c1 in 0.02 s1; s1 in 0.02 s2,c1",
			"direction 'in': 100 packets waited 0.019000 s on average, not 0.020000 s"},
		{"net-delay", "latency = 0.02, jitter = 0.01, direction = 'in'",
			AT_FIRST DELAYS(true, 1, 100, 9000, 1.1), "s1 in 0.02 s2,c1", ""},
		{"net-delay", LATENCY("in"), AT_FIRST AT_FIRST, "s1 in 0.02 s2,c1",
			"direction 'in': no packets were delayed since the last look"},
		{"net-delay", LATENCY("out"),
			AT_FIRST AT_FIRST AT_FIRST DELAYS(false, 1, 9, 9000, 3),
			"s2 in 0.02 s1; c1 in 0.02 s1",
			"direction 'out': c1: the program that delays packets has ended"},
		{"net-rate", RATE, AT_FIRST DELAYS(true, 2, 2000, 1900000, 20),
			"s1 in 1000000 s2,c1", ""},
		{"net-rate", RATE, AT_FIRST DELAYS(true, 2, 2000, 3000000, 20),
			"s1 in 1000000 s2,c1",
			"direction 'in': 1500000 bytes a second passed, 1000000 are the limit"},
		{"net-rate", RATE, AT_FIRST DELAYS(true, 2, 1000, 1000000, 0.5),
			"s1 in 1000000 s2,c1",
			"direction 'in': 1000 packets waited 0.000500 s on average, not 0.001000 "
			"s"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char with[800];

		snprintf(with, sizeof(with), "{ params = { %s }, delays = { %s } }",
			cases[i].params, cases[i].delays);
		expect(cases[i].fault, "{ 10 }", with, "inject verify", cases[i].asked,
			cases[i].reason);
	}
	expect("net-delay", "{ 10 }", "{ params = { " LATENCY("both") " } }", "check",
		"can packets.delay", "");
	expect("net-rate", "{ 10 }",
		"{ params = { rate = 1e6, buffer = 0.1, direction = 'both' } }", "inject",
		"s1 out 1000000.0 s2,c1; s1 in 1000000.0 s2,c1", "");
}

static void a_server_is_paused_for_a_part_of_the_time(void **unused)
{
	(void)unused;
	expect("server-pause", "{ 10 }", "{ params = { pause = 0.3, every = 1 } }", "check",
		"can signal.pause", "");
	expect("server-pause", "{ 10 }", "{ params = { pause = 1, every = 0 } }", "check",
		"can signal.pause", "");
	expect("server-pause", "{ 10 }", "{ params = { pause = 1, every = 1 } }", "check", "",
		"'every' (1 s) must be 50 ms above 'pause' (1 s); 'hang' stops a server all the "
		"time");
}

static void faults_on_storage_need_one(void **unused)
{
	static const char *const faults[] = {"err-space", "err-inodes", "err-remount"};

	(void)unused;
	for (size_t i = 0; i < 3; i++) {
		expect(faults[i], "{ 10 }", "{}", "check", "can 10", "");
		expect(faults[i], "{ 10, 20 }", "{}", "check", "",
			"s1: 2 server processes share the storage, but the fault needs one");
	}
}

/* The inodes have run out when no file can be made of what is left. */
static void inodes_have_run_out(void **state)
{
	static const struct {
		int of_file, free;
		const char *reason;
	} cases[] = {
		{1, 0, ""},
		{1, 1,
			"inodes that are still free: 1; the workload made too few files; use a "
			"smaller 'spare' or a longer phase"},
		{2, 1, ""},
		{2, 2,
			"inodes that are still free: 2; the workload made too few files; use a "
			"smaller 'spare' or a longer phase"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char with[300];

		snprintf(with, sizeof(with),
			"{ params = { spare = 4, size = 7 }, free = %d, of_file = %d }",
			cases[i].free, cases[i].of_file);
		expect("err-inodes", "{ 10 }", with, "verify", "", "");
		expect("err-inodes", "{ 10 }", with, "verify verify", "", cases[i].reason);
	}
}

/* memory-hog takes nothing that others need. */
static void memory_is_taken_where_it_is_the_victims(void **state)
{
	static const struct {
		const char *params, *available, *host, *own, *asked, *reason;
	} cases[] = {
		{"bytes = 0, leave = 200e6", "500e6", "9e9", "true", "", ""},
		{"bytes = 0, leave = 200e6", "200e6", "9e9", "true", "",
			"s1: has 200 MB of memory available, not enough to take some and leave 200 "
			"MB"},
		{"bytes = 400e6, leave = 200e6", "500e6", "9e9", "true", "",
			"s1: has 500 MB of memory available, not enough to take 400 MB and leave "
			"200 MB"},
		{"bytes = 0, leave = 200e6", "9e9", "9e9", "false", "",
			"s1: shares its memory with other nodes: set 'bytes', "
			"or limit its memory ('culprit lab up --memory')"},
		{"bytes = 100e6, leave = 200e6", "9e9", "9e9", "false", "", ""},
		/* Nodes that were promised more than the machine has; and a whole machine. */
		{"bytes = 0, leave = 20e6", "500e6", "540e6", "true", "",
			"s1: its machine has 540 MB available and must keep 100 MB"},
		{"bytes = 0, leave = 20e6", "500e6", "500e6", "true", "",
			"s1: its machine has 500 MB available and must keep 100 MB"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char with[300];

		snprintf(with, sizeof(with),
			"{ params = { %s }, machine = { available_bytes = %s, host_available_bytes "
			"= %s, own_memory = %s } }",
			cases[i].params, cases[i].available, cases[i].host, cases[i].own);
		expect("memory-hog", "{ 10 }", with, "check", cases[i].asked, cases[i].reason);
	}
}

/* What a slow disk cannot be is rejected before the node is asked. */
static void slow_disks_have_limits(void **state)
{
	static const struct {
		const char *fault, *params, *asked, *reason;
	} cases[] = {
		{"disk-slow", "latency = 0, rate = 0, factor = 0", "can disk.degrade", ""},
		{"disk-slow", "latency = 0, rate = 65536, factor = 0", "can disk.degrade", ""},
		{"disk-slow", "latency = 0, rate = 65535, factor = 0", "",
			"a 'rate' below 64KiB/s is too low: one request takes seconds"},
		{"disk-slow", "latency = 0, rate = 0, factor = 0.5", "",
			"a 'factor' below 1 would make the disk faster"},
		{"disk-stall", "stall = 2, every = 0", "can disk.degrade", ""},
		{"disk-stall", "stall = 2, every = 2", "",
			"'every' must be longer than 'stall', by 100ms at least"},
		{"disk-errors", "share = 10", "can 10", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char with[100];

		snprintf(with, sizeof(with), "{ params = { %s } }", cases[i].params);
		expect(cases[i].fault, "{ 10 }", with, "check", cases[i].asked, cases[i].reason);
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(kill_and_limits_hit_all),
		cmocka_unit_test(a_slow_link_is_seen_by_its_figures),
		cmocka_unit_test(a_partition_is_made_where_packets_arrive),
		cmocka_unit_test(a_server_is_paused_for_a_part_of_the_time),
		cmocka_unit_test(faults_on_storage_need_one),
		cmocka_unit_test(inodes_have_run_out),
		cmocka_unit_test(memory_is_taken_where_it_is_the_victims),
		cmocka_unit_test(slow_disks_have_limits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("faults", all, NULL, NULL);
}
