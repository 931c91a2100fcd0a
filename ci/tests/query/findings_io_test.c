/* Findings about how applications use files: each one planted, and its twin that does it right. */
#include "ci/tests/query/planted.h"

static void test_unsynced_rename(void **state)
{
	(void)state;
	begin();
	opened("/data/a.conf.tmp", 12);
	moved("write", 0, 100, 100);
	renamed("/data/a.conf.tmp", "/data/a.conf");
	finds("unsynced-rename", "renamed /data/a.conf.tmp to /data/a.conf");
	/* It names the file as it sees it; a sync of another file or a later one does not help. */
	begin();
	opened("/data/a.conf.tmp", 12);
	moved("write", 0, 100, 100);
	renamed("./a.conf.tmp", "a.conf");
	synced();
	opened("/data/other", 13);
	synced();
	opened("/data/b.conf.tmp", 14);
	synced();
	moved("write", 0, 100, 100);
	renamed("b.conf.tmp", "b.conf");
	finds("unsynced-rename", "files so renamed: 2");
}

static void test_synced_rename(void **state)
{
	(void)state;
	begin();
	opened("/data/a.conf.tmp", 12);
	moved("write", 0, 100, 100);
	synced();
	renamed("/data/a.conf.tmp", "/data/a.conf");
	opened("/data/b.tmp", 13);
	moved("write", 0, 100, 100);
	call((struct record_call){.offset = -1}, "sync");
	renamed("/data/b.tmp", "/data/b");
	finds_nothing();
}

/* Logs that are put aside; names that were renamed before, read only, or written with O_SYNC. */
static void test_other_renames(void **state)
{
	(void)state;
	begin();
	opened("/var/log/app.log", 12);
	moved("write", 0, 100, 100);
	renamed("/var/log/app.log", "/var/log/app.log.1");
	opened("/data/read", 13);
	moved("read", 0, 100, 100);
	renamed("/data/read", "/data/moved");
	call((struct record_call){.path = "/data/s.tmp",
		     .args = {(uint64_t)-100, 0x1000, 010000 | 04000000 | 01},
		     .result = FD,
		     .offset = -1},
		"openat");
	opened("/data/s.tmp", 14);
	moved("write", 0, 100, 100);
	renamed("/data/s.tmp", "/data/s");
	finds_nothing();
}

static void small(const char *name, int n, int64_t size)
{
	for (int i = 0; i < n; i++)
		moved(name, i * size, (uint64_t)size, size);
}

static void test_small_io(void **state)
{
	(void)state;
	begin();
	opened("/data/a", 12);
	small("read", 2000, 100);
	finds("small-io", "1999 calls of 100 bytes in a row (read) on /data/a");
	/* A log in pieces is one finding. */
	begin();
	for (int i = 1; i <= 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "/data/log/%d", i);
		opened(name, (uint64_t)(20 + i));
		small("write", 2000, 100);
	}
	finds("small-io",
		"7996 calls of 100 bytes in a row (write) on 4 files in /data/log/, the first of "
		"them /data/log/1");
}

static void test_large_or_slow_io(void **state)
{
	(void)state;
	begin();
	opened("/data/large", 12);
	small("read", 2000, 4096);
	opened("/data/few", 13);
	small("read", 500, 100);
	/* A line of a log now and then. */
	opened("/data/log", 14);
	who.pause_ns = 5000000;
	small("write", 2000, 100);
	/* A line for each of many requests: what the program does is something else. */
	opened("/data/access", 16);
	who.pause_ns = 250000;
	small("write", 2000, 100);
	who.pause_ns = 1000;
	/* Each one is to survive a crash. */
	opened("/data/journal", 15);
	for (int i = 0; i < 2000; i++) {
		moved("write", i * 100, 100, 100);
		synced();
	}
	finds_nothing();
}

/* All pieces of 4 KiB of 4 MiB, by a step that is odd to their number: in order with 1. */
static void scattered(int step, int pieces)
{
	for (int i = 0; i < pieces; i++)
		moved("pread64", (int64_t)((i * step) % 1024) * 4096, 4096, 4096);
}

static void test_scattered_io(void **state)
{
	(void)state;
	begin();
	opened("/data/a", 12);
	who.service_ns = 80000; /* of a disk */
	scattered(383, 1024);
	finds("scattered-io", "went over 4194304 bytes of /data/a (read) in 1024 pieces");
	begin();
	opened("/data/a", 12);
	who.service_ns = 45000; /* of a virtual disk that its host caches */
	scattered(383, 1024);
	finds("scattered-io", "went over 4194304 bytes of /data/a (read) in 1024 pieces");
	/* The page cache, of small pieces with a slow tracer, of large ones with a fast one. */
	begin();
	opened("/data/in-memory", 12);
	who.service_ns = 14000;
	scattered(383, 1024);
	opened("/data/large", 13);
	who.service_ns = 25000;
	for (int i = 0; i < 1024; i++)
		moved("pread64", (int64_t)(i * 383 % 1024) * 122880, 122880, 122880);
	who.service_ns = 100;
	finds_nothing();
}

static void test_io_in_order_or_of_lookups(void **state)
{
	(void)state;
	begin();
	who.service_ns = 80000;
	opened("/data/in-order", 12);
	scattered(1, 1024);
	/* Two threads, each in order through its half. */
	opened("/data/halves", 13);
	for (int i = 0; i < 1024; i++) {
		who.tid = PID + (uint32_t)i % 2;
		moved("pread64", (int64_t)(i % 2 * 512 + i / 2) * 4096, 4096, 4096);
	}
	/* Many threads that take the next piece each. */
	opened("/data/shared", 14);
	for (int i = 0; i < 1024; i++) {
		who.tid = PID + (uint32_t)(i * 7 % 13);
		moved("pread64", (int64_t)i * 4096, 4096, 4096);
	}
	who.tid = PID;
	/* Some bytes often, others never; nearly all of them twice; a few. */
	opened("/data/lookups", 15);
	for (int i = 0; i < 1024; i++)
		moved("pread64", (int64_t)(i * i % 1021) * 4096, 4096, 4096);
	opened("/data/twice", 16);
	scattered(383, 2048);
	opened("/data/few", 17);
	scattered(383, 200);
	who.service_ns = 100;
	finds_nothing();
}

static void test_repeated_open(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 150; i++)
		opened_on("/data/a", 0x801, 12, START_NS);
	finds("repeated-open", "/data/a was opened 149 times");
	begin();
	for (int i = 0; i < 150; i++)
		call((struct record_call){.path = "/etc/localtime", .offset = -1}, "stat");
	finds("repeated-open", "/etc/localtime was asked for its attributes 149 times");
	begin(); /* among other work, they cost nothing */
	who.pause_ns = 100000;
	for (int i = 0; i < 1500; i++)
		call((struct record_call){.path = "/etc/localtime", .offset = -1}, "stat");
	who.pause_ns = 1000;
	finds_nothing();
}

/* A server looks at names because clients ask; what it opens again it could have kept. */
static void test_lookups_of_a_server(void **state)
{
	static const struct stream_server servers[1];

	(void)state;
	who.service_ns = 1000; /* a good part of the time */
	for (int opens = 0; opens < 2; opens++) {
		begin();
		for (int i = 0; i < 150; i++) {
			if (opens)
				opened_on("/brick/a", 0x801, 12, START_NS);
			call((struct record_call){.path = "/brick/a", .offset = -1}, "stat");
		}
		place = (struct stream_spec){
			.servers = servers, .n_servers = 1, .owner = OWNER_SERVER};
		if (opens)
			finds("repeated-open", "/brick/a was opened 149 times");
		else
			finds_nothing();
		place = (struct stream_spec){.owner = OWNER_APP};
		assert_int_equal(search_for(NULL).n, opens + 1);
		place = (struct stream_spec){0};
	}
	who.service_ns = 100;
}

static void test_opens_for_a_reason(void **state)
{
	char name[32];

	(void)state;
	begin();
	/* Each time a new file; many files; one that is examined now and then; fstat. */
	for (uint64_t i = 0; i < 150; i++) {
		opened("/data/lock", 100 + i);
		snprintf(name, sizeof(name), "/data/%llu", (unsigned long long)i);
		opened(name, 1000 + i);
		call((struct record_call){.path = name, .offset = -1}, "stat");
		call((struct record_call){.args = {FD}, .offset = -1}, "fstat");
		call((struct record_call){.args = {FD, 1, 2, 0x1000}, .path = "", .offset = -1},
			"newfstatat");
	}
	/* Twice a second, for minutes: as many become of it in the end. */
	for (int i = 0; i < 300; i++) {
		who.pause_ns = i % 2 ? 1000 : 1000000000;
		opened_on("/data/now-and-then", 0x801, 13, START_NS);
	}
	who.pause_ns = 20000000;
	for (int i = 0; i < 150; i++) {
		opened_on("/data/watched", 0x801, 12, START_NS);
		call((struct record_call){.path = "/data/watched", .offset = -1}, "stat");
	}
	who.pause_ns = 1000;
	finds_nothing();
}

/* Writes and syncs for so long; what a sync takes. */
static void storm(int n, int64_t size, int64_t sync_ns, int64_t pause_ns)
{
	begin();
	opened("/data/journal", 12);
	for (int i = 0; i < n; i++) {
		who.service_ns = 10000;
		moved("write", i * size, (uint64_t)size, size);
		who.service_ns = sync_ns;
		synced();
		now += pause_ns;
	}
	who.service_ns = 100;
}

static void test_sync_storm(void **state)
{
	(void)state;
	storm(3000, 100, 6000000, 1000000);
	finds("sync-storm", "syncs of about 100 written bytes each, from 0 s on");
}

static void test_fair_syncs(void **state)
{
	(void)state;
	storm(3000, 16384, 6000000, 1000000); /* much data */
	finds_nothing();
	storm(300, 100, 6000000, 30000000); /* now and then */
	finds_nothing();
	storm(20, 100, 900000000, 1000000); /* a slow disk */
	finds_nothing();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsynced_rename),
		cmocka_unit_test(test_synced_rename),
		cmocka_unit_test(test_other_renames),
		cmocka_unit_test(test_small_io),
		cmocka_unit_test(test_large_or_slow_io),
		cmocka_unit_test(test_scattered_io),
		cmocka_unit_test(test_io_in_order_or_of_lookups),
		cmocka_unit_test(test_repeated_open),
		cmocka_unit_test(test_lookups_of_a_server),
		cmocka_unit_test(test_opens_for_a_reason),
		cmocka_unit_test(test_sync_storm),
		cmocka_unit_test(test_fair_syncs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
