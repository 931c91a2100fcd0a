/* The zone index: with it and without it the same records are read, and the same is known of them;
 * a stale, damaged or foreign index is not used. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "ci/tests/query/drawn.h"
#include "ci/tests/scratch.h"
#include "diag/query/scan.h"
#include "diag/record/describe.h"
#include "diag/record/layout.h"

enum { RECORDS = 40000 };

static char log_path[128], *index_path;
static const struct stream_spec nothing_known;

/* What a scan returned. */
struct told {
	uint64_t n, digest, read, passed;
	int rc;
	char why[1024];
};

static void mix(struct told *t, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		t->digest = (t->digest ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
}

static void mix_text(struct told *t, const char *s)
{
	mix(t, s ? s : "-", s ? strlen(s) + 1 : 1);
}

static void note(struct told *t, struct stream_item *item, const struct scan_spec *spec)
{
	const struct record *rec = item->record;
	const struct fd_state *fd;
	char text[20000];
	uint64_t always[] = {rec->number, rec->type, (uint64_t)record_start_ns(rec),
		(uint64_t)record_end_ns(rec), record_pid(rec), record_tid(rec)};

	t->n++;
	mix(t, always, sizeof(always));
	if (rec->type == RECORD_CALL)
		mix(t, &rec->call.result, sizeof(rec->call.result));
	if (spec->state)
		mix_text(t, stream_name(item->stream, record_pid(rec), record_tid(rec)));
	if (!spec->state || !spec->details || rec->type != RECORD_CALL)
		return;
	mix(t, rec->call.args, sizeof(rec->call.args));
	mix(t, &rec->call.offset, sizeof(rec->call.offset));
	mix_text(t, call_file(item, false, text, sizeof(text)));
	fd = item_fd(item);
	if (fd)
		mix(t, &fd->now.tag, sizeof(fd->now.tag));
	if (fd)
		mix_text(t, address_text(&fd->now.remote, text));
}

static struct told tell(const struct scan_spec *spec)
{
	struct told t = {.digest = 0xcbf29ce484222325};
	struct stream_item *item;
	struct scan *scan;
	struct err e = {.text = ""};

	t.rc = scan_open(log_path, &nothing_known, &scan, &e);
	assert_int_equal(t.rc, 0);
	t.rc = scan_begin(scan, spec, &e);
	while (!t.rc && (t.rc = scan_next(scan, &item, &e)) == 1) {
		note(&t, item, spec);
		t.rc = 0;
	}
	snprintf(t.why, sizeof(t.why), "%s", t.rc ? e.text : "");
	t.read = scan_counts(scan).read;
	t.passed = scan_counts(scan).passed;
	scan_close(scan);
	return t;
}

static int64_t moment(void)
{
	return 1700000000000000000 + (int64_t)draw(90) * 1000000000;
}

/* Conditions by chance. */
static struct scan_spec any_spec(void)
{
	struct scan_spec spec = {.details = draw(2), .state = draw(3), .index_least = 1};
	struct scan_filter *f = &spec.filter;

	scan_filter_all(f, draw(3) ? 1u << RECORD_CALL : ~0u);
	if (!draw(3))
		f->always = 1u << RECORD_END | 1u << RECORD_LOST;
	if (draw(2))
		f->from_ns = moment();
	if (draw(2))
		f->to_ns = f->from_ns == INT64_MIN ? moment()
						   : f->from_ns + (int64_t)draw(5000000000);
	if (!draw(4))
		f->pids = (struct scan_ids){.id = {100 + (uint32_t)draw(14)}, .n = 1};
	if (!draw(4))
		f->tids = (struct scan_ids){.id = {1100 + (uint32_t)draw(14), 2103}, .n = 2};
	f->either = draw(5) ? 0 : 2100 + (uint32_t)draw(12);
	f->failed = !draw(4);
	f->some_calls = !draw(3);
	zone_set_bit(f->calls, zone_call((uint32_t)draw(300)));
	zone_set_bit(f->calls, zone_call((uint32_t)call_number("x86_64", "fsync")));
	if (!draw(3))
		f->least_service_ns = (int64_t)draw(1 << 29);
	if (!draw(5))
		f->most_result = -1 - (int64_t)draw(20);
	return spec;
}

static void same_answers(void)
{
	uint64_t found = 0, passed = 0;

	for (int i = 0; i < 80; i++) {
		struct scan_spec spec = any_spec(), plain = spec;
		struct told with = tell(&spec), without;

		plain.no_index = true;
		without = tell(&plain);
		assert_int_equal(with.n, without.n);
		assert_int_equal(with.digest, without.digest);
		assert_int_equal(with.rc, without.rc);
		assert_string_equal(with.why, without.why);
		assert_int_equal(without.passed, 0);
		found += with.n;
		passed += with.passed;
	}
	assert_true(found > RECORDS);
	assert_true(passed > 500); /* the index is used */
}

static void make_index(void)
{
	struct zones *z;
	struct err e = {.text = ""};

	free(index_path);
	assert_int_equal(zones_path(log_path, &index_path, &e), 0);
	assert_int_equal(zones_make(index_path, log_path, 20000, NULL, &e), 0);
	assert_int_equal(zones_load(index_path, log_path, &z, &e), 0);
	assert_true(z->head.n_zones > 20);
	assert_true(z->head.n_checkpoints > 3);
	zones_free(z);
}

static void test_same_with_and_without(void **state)
{
	struct err e;

	(void)state;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	assert_int_equal(drawn_log(log_path, RECORDS, true, &e), 0);
	make_index();
	same_answers();
}

/* A damaged log is indexed up to the damage, which is told as without an index. */
static void test_damaged_log(void **state)
{
	struct stat st;
	uint8_t byte;
	int fd;

	(void)state;
	fd = open(log_path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &byte, 1, st.st_size * 3 / 4), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, st.st_size * 3 / 4), 1);
	close(fd);
	make_index();
	same_answers();
}

static void test_cut_log(void **state)
{
	/* Long enough ago that its tracer is not still writing. */
	const struct timespec times[2] = {{.tv_sec = 1600000000}, {.tv_sec = 1600000000}};
	struct err e;
	struct stat st;

	(void)state;
	assert_int_equal(drawn_log(log_path, RECORDS, false, &e), 0);
	assert_int_equal(stat(log_path, &st), 0);
	assert_int_equal(truncate(log_path, st.st_size - 1000), 0);
	assert_int_equal(utimensat(AT_FDCWD, log_path, times, 0), 0);
	make_index();
	same_answers();
}

/* A log that its tracer still writes gets no index. */
static void test_growing_log(void **state)
{
	struct zones *z;
	struct err e;

	(void)state;
	assert_int_equal(drawn_log(log_path, 1000, false, &e), 0);
	free(index_path);
	assert_int_equal(zones_path(log_path, &index_path, &e), 0);
	unlink(index_path);
	assert_int_equal(zones_get(log_path, 1, NULL, &z, &e), 0);
	assert_null(z);
	assert_int_equal(access(index_path, F_OK), -1);
}

static void put_calls(struct log_writer *w, uint64_t from, uint64_t to)
{
	struct err e;

	for (uint64_t i = from; i < to; i++) {
		struct record rec = {.type = RECORD_CALL,
			.call = {.start_ns = (int64_t)i * 1000,
				.pid = 1,
				.tid = (uint32_t)(7 + i / 50000),
				.nr = 1,
				.seq = i,
				.offset = -1,
				.args = {i * 0x9e3779b97f4a7c15u, ~i * 0x9e3779b97f4a7c15u, i}}};

		assert_int_equal(log_write(w, &rec, &e), 0);
	}
	assert_int_equal(log_flush(w, &e), 0);
}

/* The calls of one thread; 'passed': blocks that the index left out. */
static uint64_t calls_of(uint32_t tid, bool no_index, uint64_t *passed)
{
	struct scan_spec spec = {.no_index = no_index, .index_least = 1};
	struct stream_item *item;
	struct scan *s;
	struct err e = {""};
	uint64_t n = 0;
	int rc;

	scan_filter_all(&spec.filter, 1u << RECORD_CALL);
	spec.filter.tids.id[spec.filter.tids.n++] = tid;
	assert_int_equal(scan_open(log_path, &nothing_known, &s, &e), 0);
	rc = scan_begin(s, &spec, &e);
	while (!rc && (rc = scan_next(s, &item, &e)) == 1) {
		n++;
		rc = 0;
	}
	if (rc)
		fail_msg("%s", e.text);
	*passed = scan_counts(s).passed;
	scan_close(s);
	return n;
}

/* Its index grows with it: what is behind the index is read as it is. */
static void test_followed_log(void **state)
{
	struct zones_follow *f;
	struct log_writer *w;
	uint64_t passed, none;
	struct err e;

	(void)state;
	unlink(log_path);
	assert_int_equal(log_writer_new(log_path, "test", &w, &e), 0);
	put_calls(w, 0, 10);
	free(index_path);
	assert_int_equal(zones_path(log_path, &index_path, &e), 0);
	unlink(index_path);
	assert_int_equal(zones_follow_new(index_path, log_path, &f, &e), 0);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(zones_follow_step(f, &e), 0);
		put_calls(w, i ? i * 100000 : 10, (i + 1) * 100000);
		assert_int_equal(calls_of(7, false, &passed), 50000);
		assert_int_equal(calls_of(7, true, &none), 50000);
		assert_int_equal(none, 0);
		assert_int_equal(passed > 0, i > 0);
		/* The last thread is in what the index does not know yet. */
		assert_int_equal(calls_of((uint32_t)(8 + 2 * i), false, &passed), 50000);
	}
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	assert_int_equal(zones_follow_step(f, &e), 0);
	zones_follow_free(f);
	assert_int_equal(calls_of(14, false, &passed), 50000);
	assert_true(passed > 0);
	/* Without its writer, the index of a part would be stale. */
	unlink(log_path);
	assert_int_equal(log_writer_new(log_path, "test", &w, &e), 0);
	put_calls(w, 0, 100000);
	assert_int_equal(zones_follow_new(index_path, log_path, &f, &e), 0);
	assert_int_equal(zones_follow_step(f, &e), 0);
	zones_follow_free(f);
	put_calls(w, 100000, 100010);
	assert_int_equal(calls_of(9, false, &passed), 10);
	log_writer_free(w);
	{
		struct zones *z;

		assert_int_equal(zones_load(index_path, log_path, &z, &e), -ESTALE);
	}
}

static int load(void)
{
	struct zones *z;
	struct err e;
	int rc = zones_load(index_path, log_path, &z, &e);

	if (!rc)
		zones_free(z);
	return rc;
}

static void test_stale(void **state)
{
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 7}};
	struct zones *z;
	struct stat st;
	struct err e;

	(void)state;
	assert_int_equal(drawn_log(log_path, 5000, true, &e), 0);
	assert_int_equal(zones_get(log_path, 1, NULL, &z, &e), 0);
	assert_non_null(z);
	zones_free(z);
	assert_int_equal(load(), 0);
	assert_int_equal(stat(index_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(utimensat(AT_FDCWD, log_path, times, 0), 0);
	assert_int_equal(load(), -ESTALE);
	assert_int_equal(zones_get(log_path, 1, NULL, &z, &e), 0); /* it is made anew */
	assert_non_null(z);
	zones_free(z);
	assert_int_equal(load(), 0);
	assert_int_equal(chmod(index_path, 0666), 0);
	assert_int_equal(load(), -EPERM);
	assert_int_equal(chmod(index_path, 0600), 0);
	assert_int_equal(zones_get(log_path, 1 << 30, NULL, &z, &e), 0);
	assert_null(z); /* too short to need one */
}

/* Each byte of the parts that are read at once is covered by the check, or by the file's
 * identity. */
static void test_damaged_index(void **state)
{
	struct stat st;
	uint8_t byte, other;
	int fd;

	(void)state;
	assert_int_equal(load(), 0);
	fd = open(index_path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 0; at < 400; at += 3) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = byte ^ 0x10;
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		assert_int_not_equal(load(), 0);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_int_equal(load(), 0);
	assert_int_equal(ftruncate(fd, 200), 0);
	assert_int_equal(load(), -EBADMSG);
	close(fd);
	assert_int_equal(unlink(index_path), 0);
	assert_int_equal(load(), -ENOENT);
}

static bool stop_now(void *ctx, struct err *e)
{
	(void)ctx;
	err_set(e, -EINTR, "stopped");
	return true;
}

static void test_stopped(void **state)
{
	const struct zones_stop stop = {.fn = stop_now};
	struct zones *z;
	struct err e;

	(void)state;
	assert_int_equal(zones_get(log_path, 1, &stop, &z, &e), -EINTR);
	assert_int_equal(access(index_path, F_OK), -1);
}

static int setup(void **state)
{
	if (make_dir(state))
		return -1;
	return setenv("XDG_CACHE_HOME", dir, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_with_and_without),
		cmocka_unit_test(test_damaged_log),
		cmocka_unit_test(test_cut_log),
		cmocka_unit_test(test_growing_log),
		cmocka_unit_test(test_followed_log),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_damaged_index),
		cmocka_unit_test(test_stopped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
