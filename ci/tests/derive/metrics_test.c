/* Tests metrics derived from synthetic logs with known calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/derive/metrics_maker.h"

static void names_convert_both_ways(void **state)
{
	enum metric m;

	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		assert_int_equal(metric_from_name(metric_name((enum metric)i), &m), 0);
		assert_int_equal(m, i);
		assert_non_null(metric_definition(m));
		if (i < METRIC_SERVICE_TIMES)
			assert_string_equal(metric_unit(m), "s");
	}
	for (int i = 0; i < READING_TOTAL; i++) {
		assert_int_equal(metric_from_name(reading_name((enum reading)i), &m), 0);
		assert_int_equal(m, METRIC_SERVICE_TIMES + i);
		assert_string_equal(metric_unit(m), reading_unit((enum reading)i));
	}
	assert_string_equal(metric_name(METRIC_DISK_QUEUE), "disk_queue_s");
	assert_string_equal(
		metric_name(METRIC_CLIENT_TCP_RETRANSMITTED), "client_tcp_retransmitted_segments");
	assert_string_equal(metric_unit(METRIC_CLIENT_TCP_RETRANSMITTED), "segments");
	assert_int_equal(metric_from_name("any", &m), -ENOENT);
}

static void only_disk_calls_below_the_storage_count(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_file(&k, 3, "/srv/brick/a");
	open_file(&k, 4, "/srv/brick2/a");
	open_folder(&k, 5, "/srv/brick");
	open_file(&k, 6, "/srv/brick/b (deleted)");
	open_file(&k, 7, "/var/log/brick");
	for (int fd = 3; fd <= 7; fd++) {
		call(&k, 51, "pread64", fd, 4096, 1 * MS);
		call(&k, 51, "pwrite64", fd, 4096, 2 * MS);
	}
	for (const char *const *name =
			(const char *const[]){"read", "readv", "preadv", "preadv2", NULL};
		*name; name++)
		call(&k, 52, *name, 3, 0, 1 * MS);
	for (const char *const *name =
			(const char *const[]){"write", "writev", "pwritev", "pwritev2", NULL};
		*name; name++)
		call(&k, 52, *name, 3, 1, 1 * MS);
	call(&k, 51, "pread64", 3, -EIO, 5 * MS); /* failed: it moved no data */
	call(&k, 51, "pwrite64", 3, -EROFS, 5 * MS);
	call(&k, 51, "fsync", 3, 0, 5 * MS);
	call(&k, 51, "pread64", 99, 4096, 5 * MS); /* never opened */
	m = read_log(&k, 1, 10, 0);
	expect(m, METRIC_DREAD, 1, 2 + 4, 0.006);
	expect(m, METRIC_DWRITE, 1, 2 + 4, 0.008);
	expect(m, METRIC_DREAD, 0, 0, 0);
	metrics_free(m);

	/* A client's log has no storage. */
	begin(&k);
	open_file(&k, 3, "/srv/brick/a");
	call(&k, 51, "pread64", 3, 4096, 1 * MS);
	m = read_log(&k, -1, 10, 0);
	assert_int_equal(metrics_samples(m, &(const struct sample *){NULL}), 0);
	metrics_free(m);
}

static void events_count_in_the_second_they_end_in(void **state)
{
	const struct sample *s;
	struct metrics *m;
	struct maker k;

	(void)state;
	begin(&k);
	open_file(&k, 3, "/srv/brick/a");
	k.now = start_ns - 500 * MS;
	call(&k, 51, "pread64", 3, 1, 400 * MS); /* ends before the start */
	k.now = start_ns + 900 * MS;
	call(&k, 51, "pread64", 3, 10, 200 * MS); /* second 1 */
	call(&k, 51, "pread64", 3, 20, 100 * MS); /* second 1 */
	k.now = start_ns + 2 * 1000LL * MS;
	call(&k, 51, "pread64", 3, 30, 0); /* second 2 exactly */
	k.now = start_ns + 2999 * (int64_t)MS;
	call(&k, 51, "pread64", 3, 40, 1 * MS); /* second 3: outside */
	m = read_log(&k, 0, 3, 0);
	assert_int_equal(metrics_samples(m, &s), 2);
	assert_int_equal(s[0].second, 1);
	assert_int_equal(s[0].count, 2);
	assert_int_equal(s[0].bytes, 30);
	assert_float_equal(s[0].sum_s, 0.3, 1e-9);
	assert_float_equal(s[0].max_s, 0.2, 1e-9);
	assert_int_equal(s[1].second, 2);
	metrics_free(m);

	/* The node's clock is 2 s ahead of ours. */
	begin(&k);
	open_file(&k, 3, "/srv/brick/a");
	k.now = start_ns + 2500 * (int64_t)MS;
	call(&k, 51, "pread64", 3, 1, 1 * MS);
	m = read_log(&k, 0, 3, 2000 * (int64_t)MS);
	assert_int_equal(metrics_samples(m, &s), 1);
	assert_int_equal(s[0].second, 0);
	metrics_free(m);
}

static void logs_add_up_and_nodes_stay_separate(void **state)
{
	struct maker a, b;
	struct metrics *m = new_metrics(10);
	uint64_t lost;
	struct err e;

	(void)state;
	begin(&a);
	open_file(&a, 3, "/srv/brick/a");
	call(&a, 51, "pread64", 3, 1, 1 * MS);
	put(&a, &(struct record){.type = RECORD_LOST, .lost = {.start_ns = a.now, .count = 5}});
	finish(&a, 5);
	begin(&b);
	call(&b, 51, "pread64", 3, 1, 1 * MS); /* fd 3 of the other log is unknown here */
	open_file(&b, 3, "/srv/brick/a");
	call(&b, 51, "pread64", 3, 1, 4 * MS);
	finish(&b, 0);
	assert_int_equal(add_log(m, a.path, 0, 0, &lost, &e), 0);
	assert_int_equal(lost, 5);
	assert_int_equal(add_log(m, b.path, 1, 0, &lost, &e), 0);
	assert_int_equal(lost, 0);
	expect(m, METRIC_DREAD, 0, 1, 0.001);
	expect(m, METRIC_DREAD, 1, 1, 0.004);
	assert_int_equal(add_log(m, b.path, 2, 0, &lost, &e), -EINVAL);
	assert_non_null(strstr(e.text, "no server 2 of 2"));
	metrics_free(m);
	discard(&a);
	discard(&b);
}

static void memory_does_not_grow_with_connections(void **state)
{
	struct rusage before, after;
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	for (int i = 0; i < 300000; i++) {
		open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
		call(&k, 51, "readv", 6, 4, 1 * US);
		call(&k, 51, "epoll_wait", 3, 1, 1 * US);
		close_fd(&k, 6);
	}
	getrusage(RUSAGE_SELF, &before);
	m = read_log(&k, 0, 10, 0);
	getrusage(RUSAGE_SELF, &after);
	expect(m, METRIC_NSREAD, 0, 300000, 0.3);
#ifndef __SANITIZE_ADDRESS__                                    /* it keeps freed memory */
	assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
#endif
	metrics_free(m);
}

static void a_log_cut_short_is_an_error(void **state)
{
	struct maker k;
	struct metrics *m = new_metrics(10);
	uint64_t lost = 77;
	struct err e;
	FILE *f;
	long size;

	(void)state;
	begin(&k);
	open_file(&k, 3, "/srv/brick/a");
	for (int i = 0; i < 1000; i++)
		call(&k, 51, "pread64", 3, 1, 1 * US);
	finish(&k, 0);
	f = fopen(k.path, "r+");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	fclose(f);
	assert_int_equal(truncate(k.path, size - 7), 0);
	assert_int_equal(add_log(m, k.path, 0, 0, &lost, &e), -EBADMSG);
	assert_int_equal(lost, 77);
	metrics_free(m);
	discard(&k);

	m = new_metrics(10);
	assert_int_equal(add_log(m, "/nonexistent/log", 0, 0, &lost, &e), -ENOENT);
	metrics_free(m);
}

static void no_servers_and_no_seconds_are_refused(void **state)
{
	struct metrics *m = NULL;
	struct err e;

	(void)state;
	assert_int_equal(metrics_new(0, start_ns, 10, &m, &e), -EINVAL);
	assert_int_equal(metrics_new(2, start_ns, 0, &m, &e), -EINVAL);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_convert_both_ways),
		cmocka_unit_test(only_disk_calls_below_the_storage_count),
		cmocka_unit_test(events_count_in_the_second_they_end_in),
		cmocka_unit_test(logs_add_up_and_nodes_stay_separate),
		cmocka_unit_test(memory_does_not_grow_with_connections),
		cmocka_unit_test(a_log_cut_short_is_an_error),
		cmocka_unit_test(no_servers_and_no_seconds_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
