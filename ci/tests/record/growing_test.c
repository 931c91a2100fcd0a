/* Tests logs that are read while they are written: they are complete up to their last whole block
 * and stay below their bound; dropped records are counted exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/record/growing.h"
#include "diag/record/layout.h"
#include "harness/base/base64.h"
#include "harness/base/file.h"

static char dir[] = "/var/tmp/culprit-growing-test-XXXXXX";
static char path[64], copied[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(copied, sizeof(copied), "%s/copy", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

static struct log_writer *start(uint64_t bound)
{
	struct log_writer *w;
	struct err e;

	unlink(path);
	assert_int_equal(log_writer_new(path, "test", &w, &e), 0);
	log_writer_bound(w, bound);
	assert_int_equal(log_flush(w, &e), 0);
	return w;
}

/* Calls whose arguments do not repeat, about 70 bytes each. */
static struct record call(uint64_t i)
{
	struct record rec = {.type = RECORD_CALL,
		.call = {.start_ns = (int64_t)(i * 1000),
			.service_ns = 500,
			.pid = 7,
			.tid = 7,
			.nr = 1,
			.seq = i,
			.offset = -1}};

	for (int k = 0; k < 6; k++)
		rec.call.args[k] = (i + 1) * 0x9e3779b97f4a7c15u * (uint64_t)(2 * k + 1);
	return rec;
}

static void put(struct log_writer *w, uint64_t from, uint64_t to)
{
	struct err e;

	for (uint64_t i = from; i < to; i++) {
		struct record rec = call(i);

		assert_int_equal(log_write(w, &rec, &e), 0);
	}
	assert_int_equal(log_flush(w, &e), 0);
}

/* Reads the records available now. */
static uint64_t read_more(struct log_reader *r, int wanted)
{
	const struct record *rec;
	uint64_t n = 0;
	struct err e = {""};
	int rc;

	while ((rc = log_next(r, &rec, &e)) == 1)
		n++;
	if (rc != wanted)
		fail_msg("%d, not %d: %s", rc, wanted, e.text);
	return n;
}

static void test_a_growing_log_ends_at_its_last_block(void **state)
{
	struct log_writer *w = start(0);
	struct log_reader *r;
	struct err e;

	(void)state;
	assert_true(log_is_growing(path));
	assert_int_equal(log_reader_new(path, &r, &e), 0);
	assert_int_equal(read_more(r, 0), 0);
	put(w, 0, 3000);
	assert_int_equal(read_more(r, 0), 3000);
	assert_false(log_reader_ended(r));
	put(w, 3000, 3010);
	assert_int_equal(read_more(r, 0), 10);
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	assert_int_equal(read_more(r, 0), 1); /* END */
	assert_true(log_reader_ended(r));
	assert_int_equal(read_more(r, 0), 0);
	assert_false(log_is_growing(path));
	log_reader_free(r);
}

/* A block may arrive in parts, cut at any byte. */
static void test_a_partial_block_is_not_read(void **state)
{
	struct log_writer *w = start(0);
	struct log_reader *r;
	char *data;
	size_t size, first;
	struct stat st;
	struct err e;
	int fd;

	(void)state;
	put(w, 0, 100);
	stat(path, &st);
	first = (size_t)st.st_size;
	put(w, 100, 150);
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	assert_int_equal(file_read(path, &data, &size, &e), 0);
	for (size_t cut = first; cut < size; cut += 7) {
		unlink(copied);
		fd = open(copied, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		log_hold(fd);
		assert_int_equal(fd_write_all(fd, data, cut), 0);
		assert_int_equal(log_reader_new(copied, &r, &e), 0);
		assert_in_range(read_more(r, 0), 100, 150);
		assert_int_equal(fd_write_all(fd, data + cut, size - cut), 0);
		read_more(r, 0);
		assert_true(log_reader_ended(r));
		log_reader_free(r);
		close(fd);
	}
	free(data);
}

/* A killed writer holds no lock. */
static void test_a_log_without_its_writer_is_cut_short(void **state)
{
	struct log_writer *w = start(0);
	struct log_reader *r;
	struct err e;

	(void)state;
	put(w, 0, 100);
	assert_int_equal(log_reader_new(path, &r, &e), 0);
	assert_int_equal(read_more(r, 0), 100);
	log_writer_free(w);
	read_more(r, -EBADMSG);
	log_reader_free(r);
}

/* Damage is distinguished from growth. */
static void test_damage_is_found_in_a_growing_log(void **state)
{
	struct log_writer *w = start(0);
	struct log_reader *r;
	struct err e;
	int fd;

	(void)state;
	put(w, 0, 100);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, LAYOUT_HEAD + 40), 1);
	close(fd);
	assert_int_equal(log_reader_new(path, &r, &e), 0);
	read_more(r, -EBADMSG);
	log_reader_free(r);
	log_writer_free(w);
}

static int64_t data_begins(int fd)
{
	return lseek(fd, LOG_KEPT, SEEK_DATA);
}

struct seen {
	uint64_t calls, lost, descriptors;
	struct record_end end;
};

static void look(const char *file, struct seen *s)
{
	const struct record *rec;
	struct log_reader *r;
	struct err e;

	*s = (struct seen){.calls = 0};
	assert_int_equal(log_reader_new(file, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		s->calls += rec->type == RECORD_CALL;
		s->descriptors += rec->type == RECORD_FD;
		if (rec->type == RECORD_LOST)
			s->lost += rec->lost.count;
		if (rec->type == RECORD_END)
			s->end = rec->end;
	}
	assert_true(log_reader_ended(r));
	log_reader_free(r);
}

enum { BOUND = 1 << 20, CALLS = 100000 };

/* Without a reader, calls beyond the bound are dropped, descriptors are not. */
static void test_every_dropped_record_is_counted(void **state)
{
	struct log_writer *w = start(BOUND);
	struct seen s;
	struct stat st;
	struct err e;

	(void)state;
	for (uint64_t i = 0; i < CALLS; i++) {
		struct record rec = call(i), fd = {.type = RECORD_FD};

		fd.fd = (struct record_fd){.start_ns = (int64_t)i * 1000, .pid = 7, .path = ""};
		assert_int_equal(log_write(w, &rec, &e), 0);
		if (i % 100 == 0)
			assert_int_equal(log_write(w, &fd, &e), 0);
	}
	assert_int_equal(log_writer_end(w, 5, &e), 0);
	stat(path, &st);
	assert_in_range(st.st_size, BOUND / 2, BOUND + LAYOUT_PAYLOAD);
	look(path, &s);
	assert_true(s.lost > CALLS / 2);
	assert_int_equal(s.calls + s.lost, CALLS);
	assert_int_equal(s.descriptors, CALLS / 100);
	assert_int_equal(s.end.lost, s.lost + 5);
}

/* A reader takes data and punches holes, more slowly than the log grows: the file stays near its
 * bound, the taken data are one whole log, and every lost record is counted. */
static void test_taking_data_makes_room(void **state)
{
	struct log_writer *w = start(BOUND);
	const int from = open(path, O_RDWR | O_CLOEXEC),
		  to = open(copied, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	static char part[48 << 10];
	int64_t got = 0, most = 0;
	struct seen s;
	struct stat st;
	struct err e;
	ssize_t n;

	(void)state;
	for (uint64_t i = 0; i < CALLS; i += 1000) {
		put(w, i, i + 1000);
		n = pread(from, part, sizeof(part), got);
		assert_true(n >= 0);
		assert_int_equal(fd_write_all(to, part, (size_t)n), 0);
		got += n;
		if (got >= 2 * LOG_KEPT &&
			fallocate(from, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, LOG_KEPT,
				got / LOG_KEPT * LOG_KEPT - LOG_KEPT)) {
			print_message("# this file system makes no holes: %s\n", strerror(errno));
			skip();
		}
		fstat(from, &st);
		most = st.st_size - data_begins(from) > most ? st.st_size - data_begins(from)
							     : most;
	}
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	while ((n = pread(from, part, sizeof(part), got)) > 0) {
		assert_int_equal(fd_write_all(to, part, (size_t)n), 0);
		got += n;
	}
	close(from);
	close(to);
	look(copied, &s);
	assert_in_range(most, BOUND / 2, BOUND + LAYOUT_PAYLOAD);
	assert_true(s.lost > 0);
	assert_true(s.calls > BOUND / 64);
	assert_int_equal(s.calls + s.lost, CALLS);
	assert_int_equal(s.end.lost, s.lost);
}

/* Descriptors alone fill it to twice the bound: an error, since names would be wrong afterwards. */
static void test_twice_the_bound_is_an_error(void **state)
{
	struct log_writer *w = start(BOUND);
	static char name[4000];
	struct err e;
	int rc = 0;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	for (int i = 0; i < 1000 && !rc; i++) {
		struct record fd = {.type = RECORD_FD};

		fd.fd = (struct record_fd){.start_ns = i, .pid = 7, .open = true, .path = name};
		rc = log_write(w, &fd, &e);
	}
	assert_int_equal(rc, -ENOBUFS);
	log_writer_free(w);
}

static void test_base64(void **state)
{
	uint8_t data[300], back[300];
	char text[404];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(data); n++) {
		base64_encode(data, n, text);
		assert_int_equal(strlen(text), base64_length(n));
		assert_int_equal(base64_decode(text, strlen(text), back), (int64_t)n);
		assert_memory_equal(data, back, n);
	}
	base64_encode((const uint8_t *)"any carnal pleas", 16, text);
	assert_string_equal(text, "YW55IGNhcm5hbCBwbGVhcw==");
	for (const char *const *bad = (const char *const[]){"YQ",
		     "YQ=", "Y===", "Y=Q=", "YQ==YQ==", "YW5*", "YR==", "YW6=", NULL};
		*bad; bad++)
		assert_int_equal(base64_decode(*bad, strlen(*bad), back), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_growing_log_ends_at_its_last_block),
		cmocka_unit_test(test_a_partial_block_is_not_read),
		cmocka_unit_test(test_a_log_without_its_writer_is_cut_short),
		cmocka_unit_test(test_damage_is_found_in_a_growing_log),
		cmocka_unit_test(test_every_dropped_record_is_counted),
		cmocka_unit_test(test_taking_data_makes_room),
		cmocka_unit_test(test_twice_the_bound_is_an_error),
		cmocka_unit_test(test_base64),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
