/* A failing store is distinguished from a missing fact; judging refuses without its key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "harness/judging/judge.h"

static char folder[128], db[160];

static struct store *new_store(const char *name)
{
	struct store *s;
	struct err e;

	snprintf(folder, sizeof(folder), "%s/%s", dir, name);
	snprintf(db, sizeof(db), "%s/run.db", folder);
	if (store_create(folder, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static void sql(const char *text)
{
	char *why = NULL;
	sqlite3 *other;

	assert_int_equal(sqlite3_open(db, &other), SQLITE_OK);
	if (sqlite3_exec(other, text, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	sqlite3_close(other);
}

static void overwrite(off_t at, size_t size)
{
	char junk[4096];
	int fd = open(db, O_WRONLY | O_CLOEXEC);

	memset(junk, 0xa5, sizeof(junk));
	assert_true(size <= sizeof(junk));
	assert_int_equal(pwrite(fd, junk, size, at), size);
	close(fd);
}

static int try_judge(struct store *s, struct err *e)
{
	json_t *detectors = json_array(), *servers = json_pack("[s, s]", "s1", "s2");
	struct judge *j = NULL;
	int rc = judge_new(detectors, servers, s, &j, e);

	judge_free(j);
	json_decref(detectors);
	json_decref(servers);
	return rc;
}

/* Private data: hosts, keys of the draw, traces with paths and sizes of contents. */
static void a_run_belongs_to_its_user_only(void **state)
{
	mode_t was = umask(0);
	struct store *s = new_store("private");
	struct stat st;

	(void)state;
	umask(was);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	store_close(s);
}

static void absent_is_no_error(void **state)
{
	struct store *s = new_store("absent");
	char *value = (char *)"untouched";
	json_t *json;
	struct err e;

	(void)state;
	assert_int_equal(store_get(s, "nothing", &value, &e), 0);
	assert_null(value);
	assert_int_equal(store_get_json(s, "nothing", &json, &e), 0);
	assert_null(json);
	assert_int_equal(store_set(s, "list", "[1, 2]", &e), 0);
	assert_int_equal(store_get_json(s, "list", &json, &e), 1);
	assert_int_equal(json_array_size(json), 2);
	json_decref(json);
	assert_int_equal(store_set(s, "list", "[1, ", &e), 0);
	assert_int_equal(store_get_json(s, "list", &json, &e), -EBADMSG);
	assert_int_equal(e.class, ERR_DAMAGED);
	assert_int_equal(store_has_runtimes(s, &e), 0);
	assert_int_equal(store_set(s, "measure", "runtime", &e), 0);
	assert_int_equal(store_has_runtimes(s, &e), 1);
	assert_int_equal(try_judge(s, &e), 0);
	store_close(s);
}

static void judging_refuses_without_the_key(void **state)
{
	struct store *s = new_store("no-key");
	char *value, key[80];
	struct err e;

	(void)state;
	sql("DELETE FROM fact WHERE key = 'blind_key'");
	assert_int_equal(try_judge(s, &e), -EBADMSG);
	assert_int_equal(e.class, ERR_DAMAGED);
	sql("DROP TABLE fact");
	assert_true(store_get(s, "seed", &value, &e) < 0);
	assert_null(value);
	assert_true(store_blind_key(s, key, &e) < 0);
	assert_true(try_judge(s, &e) < 0);
	assert_true(store_has_runtimes(s, &e) < 0);
	store_close(s);
}

/* The pages are damaged while the store is open. */
static void judging_refuses_a_database_that_fails(void **state)
{
	struct store *s = new_store("fails");
	char *value;
	struct err e;

	(void)state;
	overwrite(0, 4096);
	assert_int_equal(store_get(s, "blind_key", &value, &e), -EBADMSG);
	assert_null(value);
	assert_int_equal(e.class, ERR_DAMAGED);
	assert_int_equal(try_judge(s, &e), -EBADMSG);
	store_close(s);
}

static void damage_is_reported_at_opening(void **state)
{
	struct store *s = new_store("damaged");
	struct stat st;
	struct err e;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		char key[32];

		snprintf(key, sizeof(key), "fact %d", i);
		assert_int_equal(store_set(s, key, "some text that takes room in a page", &e), 0);
		if (i == 0)
			assert_int_equal(store_begin(s, &e), 0);
	}
	assert_int_equal(store_end(s, 0, &e), 0);
	store_close(s);
	assert_int_equal(stat(db, &st), 0);
	overwrite(st.st_size - 8192, 4096);
	assert_int_equal(store_open(folder, &s, &e), -EBADMSG);
	assert_int_equal(e.class, ERR_DAMAGED);
	assert_int_equal(err_exit_code(&e), 2);
	assert_non_null(strstr(e.text, "run.db' is damaged"));
}

static void an_old_version_is_refused(void **state)
{
	struct store *s = new_store("old");
	struct err e;

	(void)state;
	assert_int_equal(store_set(s, "store_version", "6", &e), 0);
	store_close(s);
	assert_int_equal(store_open(folder, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "version 6"));
	assert_int_equal(err_exit_code(&e), 2);
	sql("DROP TABLE fact");
	assert_int_equal(store_open(folder, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not a run store"));
}

static void a_missing_run_is_refused_by_name(void **state)
{
	struct store *s = NULL;
	char path[128];
	struct err e;

	(void)state;
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(store_open(path, &s, &e), -ENOENT);
	assert_null(s);
	assert_int_equal(err_exit_code(&e), 2);
	assert_non_null(strstr(e.text, "/none' is not a run: it has no run.db"));
	/* A folder without a database. */
	assert_int_equal(store_open(dir, &s, &e), -ENOENT);
	assert_null(s);
	assert_non_null(strstr(e.text, "is not a run: it has no run.db"));
	/* Missing folders above it are made. */
	snprintf(path, sizeof(path), "%s/a//b/run", dir);
	assert_int_equal(store_create(path, &s, &e), 0);
	store_close(s);
	s = NULL;
	assert_return_code(access(path, F_OK), errno);
	/* ... unless a file is in the way. */
	snprintf(path, sizeof(path), "%s/a/b/run/run.db/c/run", dir);
	assert_int_equal(store_create(path, &s, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "cannot make the folder '"));
	/* An existing store is not overwritten. */
	assert_int_equal(store_create(dir, &s, &e), -EEXIST);
	assert_null(s);
	assert_non_null(strstr(e.text, "cannot make the run's folder '"));
	assert_int_equal(access(dir, F_OK), 0);
}

static void put_attempt(struct store *s, const char *data)
{
	struct attempt_row row = {.cell = 1, .number = 1, .outcome = OUTCOME_CONFIRMED};
	struct err e;

	assert_int_equal(store_put_cell(s, 1, "w", &e), 0);
	assert_int_equal(store_put_attempt(s, &row, &e), 0);
	assert_int_equal(row.id, 1);
	assert_int_equal(store_has_requests(s, 1, &e), 0);
	assert_int_equal(store_drop_requests(s, 1, -1, &e), 0);
	assert_int_equal(store_put_requests(s, 1, 0, 0, data, strlen(data), &e), 0);
	assert_int_equal(store_put_requests(s, 1, 2, 0, "of 2", 4, &e), 0);
	assert_int_equal(store_put_requests(s, 1, 2, 1, "", 0, &e), 0);
}

static void expect(struct store *s, int64_t attempt, int64_t recording, uint32_t block, int found,
	const char *data)
{
	unsigned char *got;
	size_t size;
	struct err e;

	assert_int_equal(store_get_requests(s, attempt, recording, block, &got, &size, &e), found);
	if (!found)
		return;
	assert_int_equal(size, strlen(data));
	assert_memory_equal(got, data, size);
	free(got);
}

static void requests_belong_to_an_attempt_and_a_recording(void **state)
{
	struct store *s = new_store("requests");
	struct err e;

	(void)state;
	put_attempt(s, "of 0");
	assert_int_equal(store_has_requests(s, 1, &e), 1);
	assert_int_equal(store_has_requests(s, 0, &e), 1);
	assert_int_equal(store_has_requests(s, 2, &e), 0);
	expect(s, 1, 0, 0, 1, "of 0");
	expect(s, 1, 0, 1, 0, NULL);
	expect(s, 1, 2, 0, 1, "of 2");
	expect(s, 1, 2, 1, 1, "");
	assert_int_equal(store_drop_requests(s, 1, 2, &e), 0);
	expect(s, 1, 2, 0, 0, NULL);
	expect(s, 1, 0, 0, 1, "of 0");
	assert_int_equal(store_drop_attempt(s, 1, &e), 0);
	assert_int_equal(store_has_requests(s, 0, &e), 0);
	store_close(s);
}

static void requests_of_shards_are_joined_and_packed(void **state)
{
	static const char *const names[] = {"shard1", "shard2"};
	struct store *shards[2], *joined, *packed;
	char path[160];
	struct err e;

	(void)state;
	for (int i = 0; i < 2; i++) {
		shards[i] = new_store(names[i]);
		put_attempt(shards[i], names[i]);
		assert_int_equal(store_set(shards[i], "shard",
					 i ? "{\"index\":2,\"of\":2,\"cells\":2}"
					   : "{\"index\":1,\"of\":2,\"cells\":2}",
					 &e),
			0);
		assert_int_equal(store_set(shards[i], "servers", "[\"s1\"]", &e), 0);
	}
	sql("UPDATE cell SET number = 2; UPDATE attempt SET cell = 2");
	if (store_join(shards, 2, &joined, &e))
		fail_msg("%s", e.text);
	expect(joined, 1, 0, 0, 1, "shard1");
	expect(joined, 2, 0, 0, 1, "shard2");
	expect(joined, 2, 2, 0, 1, "of 2");
	for (int whole = 0; whole < 2; whole++) {
		snprintf(path, sizeof(path), "%s/packed%d", dir, whole);
		assert_int_equal(store_pack(joined, path, whole, &e), 0);
		assert_int_equal(store_open(path, &packed, &e), 0);
		assert_int_equal(store_has_requests(packed, 0, &e), whole);
		expect(packed, 2, 0, 0, whole, "shard2");
		store_close(packed);
	}
	store_close(joined);
	store_close(shards[0]);
	store_close(shards[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_belongs_to_its_user_only),
		cmocka_unit_test(absent_is_no_error),
		cmocka_unit_test(judging_refuses_without_the_key),
		cmocka_unit_test(judging_refuses_a_database_that_fails),
		cmocka_unit_test(damage_is_reported_at_opening),
		cmocka_unit_test(an_old_version_is_refused),
		cmocka_unit_test(a_missing_run_is_refused_by_name),
		cmocka_unit_test(requests_belong_to_an_attempt_and_a_recording),
		cmocka_unit_test(requests_of_shards_are_joined_and_packed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
