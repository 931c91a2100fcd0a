/* Findings: each one finds what was planted, and is silent about its twin, who does it right. */
#include "ci/tests/query/planted.h"

/* The old file is read to byte 26; then another takes its name, and perhaps its inode number. */
static void follow(const char *name, uint64_t new_inode)
{
	begin();
	opened(name, 12);
	moved("read", 0, 4096, 26);
	moved("read", 26, 4096, 0);
	opened(name, new_inode);
}

static void test_stale_offset(void **state)
{
	struct found f;

	(void)state;
	follow("/var/log/it's.log", 12);
	moved("read", 26, 4096, 0);
	moved("read", 26, 4096, 0);
	f = search_for(NULL);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.name, "stale-offset");
	assert_non_null(strstr(f.text, "(50) on s1 went on at byte 26 of a new /var/log/it's.log"));
}

static void sought(int64_t to)
{
	call((struct record_call){.args = {FD, (uint64_t)to}, .result = to, .offset = to}, "lseek");
}

/* ptrace does not tell where a read begins; the reader was started again. */
static void test_stale_offset_by_seeks(void **state)
{
	struct found f;

	(void)state;
	for (int stale = 0; stale < 2; stale++) {
		begin();
		named("follower");
		opened("/var/log/a", 12);
		moved("read", -1, 10, 10);
		moved("read", -1, 4096, 16);
		moved("read", -1, 4096, 0);
		who.pid = who.tid = PID + 1;
		named("follower");
		opened("/var/log/a", 13);
		if (stale)
			sought(26);
		moved("read", -1, 4096, stale ? 0 : 16);
		who.pid = who.tid = PID;
		f = search_for(NULL);
		assert_int_equal(f.n, stale);
	}
	assert_non_null(
		strstr(f.text, "follower (51) on s1 went on at byte 26 of a new /var/log/a"));
}

/* It looks at the new file's beginning, or reads all of it, and opens it again. */
static void test_follower_that_opens_again(void **state)
{
	int64_t first_ns;

	(void)state;
	for (int stale = 0; stale < 2; stale++) {
		follow("/var/log/a", 13);
		first_ns = now;
		moved("read", 0, 512, stale ? 16 : 26);
		opened_on("/var/log/a", 0x801, 13, first_ns);
		moved("read", 26, 4096, 0);
		assert_int_equal(search_for(NULL).n, stale);
	}
}

static void test_follower_that_begins_anew(void **state)
{
	(void)state;
	follow("/var/log/a", 12);
	moved("read", 0, 4096, 16);
	moved("read", 16, 4096, 0);
	assert_int_equal(search_for(NULL).n, 0);
}

/* One that reads from there on, as of a file that was copied and continues, loses nothing. */
static void test_follower_of_a_copy(void **state)
{
	(void)state;
	follow("/var/log/a", 13);
	moved("read", 26, 4096, 10);
	assert_int_equal(search_for(NULL).n, 0);
}

static void killed(void)
{
	now += who.pause_ns;
	put((struct record){.type = RECORD_SIGNAL,
		.signal = {.seq = ++seq,
			.start_ns = now,
			.pid = who.pid,
			.tid = who.tid,
			.signo = 2,
			.fatal = true}});
}

/* A signal that kills cuts a write short; but not one that the thread had long before. */
static void test_write_of_a_killed_process(void **state)
{
	(void)state;
	begin();
	opened("/data/a", 12);
	moved("pwrite64", 0, 4096, 1000);
	killed();
	finds_nothing();
	begin();
	opened("/data/a", 12);
	moved("pwrite64", 0, 4096, 1000);
	moved("pread64", 0, 4096, 1000);
	killed();
	finds("lost-write", "cut short, and the 3096 bytes");
	begin();
	opened("/data/a", 12);
	moved("pwrite64", 0, 4096, -ENOSPC);
	killed();
	finds("lost-write", "ENOSPC");
}

static void test_lost_write(void **state)
{
	struct found f;

	(void)state;
	begin();
	opened("/data/a", 12);
	moved("pwrite64", 0, 4096, 4096);
	moved("pwrite64", 4096, 4096, 1000);
	moved("pwrite64", 8192, 4096, 4096);
	f = search_for(NULL);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.name, "lost-write");
	assert_non_null(strstr(
		f.text, "at byte 5096: cut short, and the 3096 bytes were not written again"));
	begin();
	opened("/data/a", 12);
	moved("pwrite64", 4096, 4096, -ENOSPC);
	f = search_for(NULL);
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(f.text, "at byte 4096: ENOSPC, and the 4096 bytes"));
}

static void test_write_that_is_repeated(void **state)
{
	(void)state;
	begin();
	opened("/data/a", 12);
	moved("pwrite64", 4096, 4096, 1000);
	moved("pwrite64", 5096, 3096, 3096);
	moved("pwrite64", 8192, 4096, -EIO);
	moved("pwrite64", 8192, 4096, 4096);
	moved("pwrite64", 0, 4096, -EINTR);
	assert_int_equal(search_for(NULL).n, 0);
}

static void recorded(const char *name)
{
	char command[400];

	snprintf(path, sizeof(path), "%s/recorded", dir);
	snprintf(command, sizeof(command), "zcat ci/tests/data/%s.log.gz >%s", name, path);
	assert_int_equal(system(command), 0);
}

enum { LOST, GOES_BACK, COPIED };

/* As follow; then another process has written 326 bytes into the new file, from the old one or
 * not. */
static void follow_written(const char *name, bool copied)
{
	int64_t old_ns, new_ns;

	begin();
	opened(name, 12);
	old_ns = now;
	moved("read", 0, 4096, 26);
	opened(name, 13);
	new_ns = now;
	who.pid = who.tid = PID + 1;
	named("writer");
	if (copied) {
		opened_on(name, 0x801, 12, old_ns);
		moved("read", 0, 4096, 26);
	}
	opened_on(name, 0x801, 13, new_ns);
	moved("write", 0, 326, 326);
	who.pid = who.tid = PID;
}

/* The new file is longer: there is data where it continues, and what lies before is lost all the
 * same. */
static void test_follower_in_a_longer_file(void **state)
{
	struct found f;

	(void)state;
	for (int case_ = LOST; case_ <= COPIED; case_++) {
		follow_written("/var/log/a", case_ == COPIED);
		moved("read", 26, 4096, 300);
		if (case_ == GOES_BACK)
			moved("read", 0, 26, 26);
		f = search_for(NULL);
		assert_int_equal(f.n, case_ == LOST);
		if (case_ == LOST)
			assert_non_null(strstr(
				f.text, "where the old one ended: what lies before was not read"));
	}
}

/* Replaced again and again: one finding. */
static void test_follower_of_many_files(void **state)
{
	struct found f;

	(void)state;
	follow("/var/log/a", 13);
	moved("read", 26, 4096, 0);
	for (uint64_t inode = 14; inode < 17; inode++) {
		moved("read", 0, 4096, 26);
		opened("/var/log/a", inode);
		moved("read", 26, 4096, 0);
	}
	f = search_for(NULL);
	assert_int_equal(f.n, 1);
	assert_non_null(
		strstr(f.text, "of a new /var/log/a, and of 3 more, where the old one ended"));
}

/* SQLite makes its journal anew for each transaction, and asks at its end whether there is more. */
static void test_a_journal_is_no_log(void **state)
{
	(void)state;
	for (int writes = 0; writes < 2; writes++) {
		begin();
		opened("/srv/q.db-journal", 12);
		moved("write", 0, 512, 512);
		moved("read", 512, 8, 0);
		for (uint64_t inode = 13; inode < 16; inode++) {
			opened("/srv/q.db-journal", inode);
			if (writes)
				moved("write", 0, 512, 512);
			moved("read", 512, 8, 0);
		}
		assert_int_equal(search_for(NULL).n, 0);
	}
	/* Also if it has read the old one. */
	follow("/srv/q.db-journal", 13);
	moved("write", 0, 26, 26);
	moved("read", 26, 8, 0);
	assert_int_equal(search_for(NULL).n, 0);
}

/* A log follower in earnest, which was started again after its file had been replaced. */
static void test_rsyslog(void **state)
{
	struct found f;

	(void)state;
	recorded("rsyslog-replaced");
	f = search_for("stale-offset");
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(f.text, "rsyslogd (4328) on s1 went on at byte 26 of a new /tmp/"));
}

/* Recorded logs of healthy applications and servers. */
/* What a tracer says that it cannot record; changes of descriptors it could. */
static void test_blind_spots(void **state)
{
	struct record r = {.type = RECORD_UNSEEN, .unseen = {.start_ns = START_NS}};

	(void)state;
	begin();
	r.unseen.what = UNSEEN_CHANGES;
	r.unseen.count = 9;
	put(r);
	finds_nothing();
	begin();
	r.unseen.what = UNSEEN_MAPPINGS;
	r.unseen.count = 2;
	put(r);
	r.unseen.count = 3;
	put(r);
	finds("blind-spots",
		"not seen on s1: shared mappings of files, "
		"which are read and written without calls: 5");
}

static void test_healthy(void **state)
{
	static const char *const names[] = {"glusterfs-brick", "glusterfs-client",
		"orangefs-server", "lab-none.s1.fs", "lab-none.s2.fs", "lab-none.c1.app",
		"lab-none.c1.fs", "lab-none.c2.app", "lab-none.c2.fs"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		recorded(names[i]);
		assert_int_equal(search_for(NULL).n, 0);
	}
}

static int wrong(const char *lua, char why[1024])
{
	const struct query_log log = {.path = path, .name = "log"};
	const struct query_spec spec = {.logs = &log, .n_logs = 1};
	char file[160];
	struct found found = {0};
	struct err e = {.text = ""};
	struct query *q;
	int rc;

	snprintf(file, sizeof(file), "%s/mine.lua", dir);
	assert_int_equal(file_write_atomic(file, 0600, lua, strlen(lua), &e), 0);
	assert_int_equal(query_new(&spec, &q, &e), 0);
	rc = findings_search(q, file, take, &found, &e);
	snprintf(why, 1024, "%s", e.text);
	query_free(q);
	return rc;
}

/* What a user gets wrong is said with the file. */
static void test_wrong_files(void **state)
{
	char why[1024];

	(void)state;
	assert_int_equal(
		wrong("return { about = 'x', severity = 'bad', sql = 'select 1', text = '', "
		      "todo = '' }",
			why),
		-EINVAL);
	assert_non_null(strstr(why, "mine.lua:1: 'severity' must be error, warning or note"));
	assert_int_equal(
		wrong("return { about = 'x', severity = 'note', sql = 'select nix', text = "
		      "'', todo = '' }",
			why),
		-EINVAL);
	assert_non_null(strstr(why, "mine.lua: wrong SQL at character 8"));
	assert_int_equal(
		wrong("return { about = 'x', severity = 'note', sql = 'select 1 a', text = "
		      "'{b}', todo = '' }",
			why),
		-EINVAL);
	assert_non_null(strstr(why, "'b' is not a column"));
	assert_int_equal(wrong("return { about = 'x' }", why), -EINVAL);
	assert_int_equal(wrong("return { about = 'x', severity = 'note', sql = 'select 1 a, 2 b', "
			       "text = '{a} {b} {', todo = '' }",
				 why),
		0);
}

static void test_template(void **state)
{
	(void)state;
	begin();
	opened("/data/a", 12);
	moved("read", 0, 4096, 26);
	assert_int_equal(search_for("harness/lua/templates/finding.lua").n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stale_offset),
		cmocka_unit_test(test_stale_offset_by_seeks),
		cmocka_unit_test(test_follower_in_a_longer_file),
		cmocka_unit_test(test_follower_of_many_files),
		cmocka_unit_test(test_a_journal_is_no_log),
		cmocka_unit_test(test_follower_that_opens_again),
		cmocka_unit_test(test_follower_that_begins_anew),
		cmocka_unit_test(test_follower_of_a_copy),
		cmocka_unit_test(test_rsyslog),
		cmocka_unit_test(test_lost_write),
		cmocka_unit_test(test_write_of_a_killed_process),
		cmocka_unit_test(test_write_that_is_repeated),
		cmocka_unit_test(test_blind_spots),
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_template),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
