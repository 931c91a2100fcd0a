/* Findings about who slows whom: threads at one disk, a file on one server. */
#include "ci/tests/query/planted.h"

enum { SECONDS = 120, CLIENTS = 4, WORKERS = 7 };

/* What the load is like: workers at the disk, what a client's call takes, by second. */
struct load {
	int (*workers)(int second);
	int64_t (*call_ns)(int second);
	uint64_t workers_device;
};

static void act(uint32_t tid, int fd, int64_t at_ns, int64_t service_ns)
{
	who.tid = tid;
	who.fd = fd;
	who.service_ns = service_ns;
	now = at_ns - who.pause_ns;
	moved("pread64", (int64_t)((uint64_t)at_ns * 7919) % 1000 * 1000000, 4096, 4096);
}

static void make_load(const struct load *m)
{
	begin();
	for (uint32_t i = 0; i < CLIENTS + WORKERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), i < CLIENTS ? "app" : "work:low%u", i);
		who.tid = PID + i;
		named(name);
	}
	who.fd = FD;
	opened_on("/data/a", 0x801, 12, 0);
	who.fd = FD + 1;
	opened_on("/data/b", m->workers_device, 13, 0);
	for (int s = 0; s < SECONDS; s++)
		for (uint32_t i = 0; i < 20; i++) {
			int64_t at = START_NS + s * 1000000000ll + i * 40000000ll;

			act(PID + i % CLIENTS, FD, at,
				m->call_ns(s) + (i + (uint32_t)s) % 7 * 10000);
			if ((int)i < m->workers(s))
				act(PID + CLIENTS + i, FD + 1, at + 1000000, 20000000);
		}
	who.tid = PID;
	who.fd = FD;
	who.service_ns = 100;
}

static bool is_crowded(int second)
{
	return second / 5 % 2;
}

static int in_turns(int second)
{
	return is_crowded(second) ? 5 + second % 3 : second % 3;
}

/* On a disk that one worker keeps busy. */
static int seldom_two(int second)
{
	return is_crowded(second) ? 1 + (second == 7) : 0;
}

static int in_one_phase(int second)
{
	return second >= 60 ? 6 : 1;
}

static int64_t as_workers(int second)
{
	return is_crowded(second) ? 5000000 : 1000000;
}

static int64_t as_phase(int second)
{
	return second >= 60 ? 5000000 : 1000000;
}

static int64_t on_its_own(int second)
{
	return second * 7 % 3 ? 1000000 : 3000000;
}

static int64_t a_little(int second)
{
	return is_crowded(second) ? 1400000 : 1000000;
}

static int64_t in_memory(int second)
{
	return is_crowded(second) ? 20000 : 4000;
}

static void test_contention(void **state)
{
	(void)state;
	make_load(&(struct load){in_turns, as_workers, 0x801});
	finds("threads-contend",
		"ms a call in the 60 s in which 4 or more of 7 work:low threads used device 8:1");
	finds("threads-contend", "slower than just before in 12 of 12 periods");
	make_load(&(struct load){seldom_two, as_workers, 0x801});
	finds("threads-contend",
		"ms a call in the 60 s in which 1 or more of 2 work:low threads used device 8:1");
}

/* Other disks, other times, hardly any slower, no disk at all: none of it is contention. */
static void test_no_contention(void **state)
{
	const struct load loads[] = {{in_turns, as_workers, 0x811}, {in_turns, on_its_own, 0x801},
		{in_turns, a_little, 0x801}, {in_turns, in_memory, 0x801},
		{seldom_two, as_workers, 0x811}, {seldom_two, on_its_own, 0x801},
		{in_one_phase, as_phase, 0x801}};

	(void)state;
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		make_load(&loads[i]);
		finds_nothing();
	}
}

static uint64_t drawn = 88172645463325252u;

static int draw(int n)
{
	drawn ^= drawn << 13;
	drawn ^= drawn >> 7;
	drawn ^= drawn << 17;
	return (int)(drawn % (unsigned)n);
}

static int workers_at[SECONDS];
static int64_t call_ns_at[SECONDS];

static int drawn_workers(int second)
{
	return workers_at[second];
}

static int64_t drawn_call_ns(int second)
{
	return call_ns_at[second];
}

/* Workers in spells of 3 to 10 seconds; so are calls' times, which differ by up to eight times and
 * know nothing of the workers. */
static void draw_load(void)
{
	for (int s = 0, left = 0, n = 0; s < SECONDS; s++, left--) {
		if (left <= 0) {
			left = 3 + draw(8);
			n = draw(WORKERS + 1);
		}
		workers_at[s] = n;
	}
	for (int s = 0, left = 0, power = 0; s < SECONDS; s++, left--) {
		if (left <= 0) {
			left = 3 + draw(8);
			power = draw(31);
		}
		call_ns_at[s] = 500000ll << power / 10;
		call_ns_at[s] += call_ns_at[s] * (power % 10) / 10;
	}
}

static void test_hundred_times_chance(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		draw_load();
		make_load(&(struct load){drawn_workers, drawn_call_ns, 0x801});
		assert_int_equal(search_for("threads-contend").n, 0);
	}
}

/* A server's log: of each of 20 files so many calls. */
static struct query_log server(const char *name, int64_t attempt, int calls, int calls_of_first)
{
	static const struct stream_server servers[3];
	static char names[8][16], paths[8][128];
	static int n;
	struct query_log log;

	n %= 8;
	snprintf(names[n], sizeof(names[n]), "%s", name);
	begin_as(name);
	snprintf(paths[n], sizeof(paths[n]), "%s", path);
	for (uint64_t f = 0; f < 20; f++) {
		char file[32];

		snprintf(file, sizeof(file), "/brick/%llu", (unsigned long long)f);
		opened(file, 100 + f);
		for (int i = 0; i < (f ? calls : calls_of_first); i++)
			moved("pread64", i * 8192ll, 8192, 8192);
	}
	end_log();
	log = (struct query_log){.path = paths[n],
		.name = names[n],
		.node = names[n],
		.spec = {.servers = servers, .n_servers = 3, .owner = OWNER_SERVER},
		.in_attempt = true,
		.cell = 1,
		.attempt = attempt,
		.start_ns = START_NS};
	n++;
	return log;
}

static void test_hot_file(void **state)
{
	const struct query_log logs[] = {
		server("s1", 1, 20, 20), server("s2", 1, 20, 900), server("s3", 1, 20, 20)};
	struct found f = search_in(logs, 3, NULL);

	(void)state;
	assert_int_equal(f.n, 1);
	assert_string_equal(f.name, "hot-file");
	assert_non_null(strstr(f.text,
		"cell 1: s2 moved 10.5 MB, the median server 3.3 MB; 70 % of it are /brick/0"));
}

/* A server that is busier with all its files; one file that all servers have much of; two servers;
 * little of everything. */
static void test_no_hot_file(void **state)
{
	const struct query_log busy[] = {
		server("s1", 1, 20, 20), server("s2", 1, 60, 60), server("s3", 1, 20, 20)};
	struct query_log logs[3];

	(void)state;
	assert_int_equal(search_in(busy, 3, NULL).n, 0);
	logs[0] = server("s1", 1, 2, 500);
	logs[1] = server("s2", 1, 2, 600);
	logs[2] = server("s3", 1, 2, 500);
	assert_int_equal(search_in(logs, 3, NULL).n, 0);
	logs[0] = server("s1", 1, 1, 1);
	logs[1] = server("s2", 1, 1, 900);
	assert_int_equal(search_in(logs, 2, NULL).n, 0);
	logs[1] = server("s2", 1, 1, 100);
	logs[2] = server("s3", 1, 1, 1);
	assert_int_equal(search_in(logs, 3, NULL).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contention),
		cmocka_unit_test(test_no_contention),
		cmocka_unit_test(test_hundred_times_chance),
		cmocka_unit_test(test_hot_file),
		cmocka_unit_test(test_no_hot_file),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
