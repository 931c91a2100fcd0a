/* Tests the flight recorder: it writes a complete log of the last seconds, with the processes and
 * descriptors of that time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "diag/record/ring.h"
#include "harness/base/file.h"

enum { SECONDS = 60, PER_S = 400, KEEP_S = 5, PIDS = 8, FDS = 20 };
#define SECOND 1000000000ll

static char dir[] = "/tmp/culprit-ring-test-XXXXXX";
static char path[64], dumped[64], whole[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/ring", dir);
	snprintf(dumped, sizeof(dumped), "%s/ring.1", dir);
	snprintf(whole, sizeof(whole), "%s/whole", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

static uint64_t rng;

static uint64_t draw(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static char text[64];
static bool alive[PIDS];

/* Record 'i': mostly calls; processes and threads that start, execute other programs, are named and
 * end; descriptors that open and close. */
static struct record make(unsigned i)
{
	int64_t now = SECOND * 1000 + (int64_t)i * SECOND / PER_S;
	uint32_t pid = 100 + (uint32_t)(draw() % PIDS) * 10;
	struct record rec = {.type = RECORD_CALL,
		.call = {.seq = i, .start_ns = now - 1000, .service_ns = 1000, .offset = -1}};
	unsigned kind = (unsigned)(draw() % 20);

	snprintf(text, sizeof(text), "name-%u", i);
	rec.call.pid = rec.call.tid = pid;
	if (!alive[(pid - 100) / 10] || kind == 0) {
		bool lives = alive[(pid - 100) / 10];

		alive[(pid - 100) / 10] = true;
		rec = (struct record){.type = RECORD_PROCESS};
		rec.process.pid = rec.process.tid = pid;
		rec.process.what = lives ? (int)(1 + draw() % 3) : PROCESS_START;
		if (rec.process.what == PROCESS_EXIT)
			alive[(pid - 100) / 10] = false;
		if (rec.process.what == PROCESS_NAME && draw() % 2)
			rec.process.tid = pid + 1; /* a thread */
		rec.process.start_ns = now;
		rec.process.name = text;
	} else if (kind < 4) {
		rec = (struct record){.type = RECORD_FD,
			.fd = {.start_ns = now,
				.pid = pid,
				.fd = (int32_t)(draw() % FDS),
				.open = draw() % 3 != 0,
				.kind = FD_FILE,
				.path = text}};
	} else if (kind == 5 && draw() % 50 == 0) {
		rec = (struct record){.type = RECORD_LOST, .lost = {.start_ns = now, .count = 1}};
	} else if (kind == 6 && draw() % 300 == 0) { /* rare: often the kept blocks have no mark */
		rec = (struct record){.type = RECORD_MARK, .mark = {.start_ns = now, .text = text}};
	}
	return rec;
}

/* The descriptors at a log's end, and its calls in order. */
struct story {
	struct fdtable *fds;
	uint64_t calls, first_seq, last_seq, lost, end_lost, records;
	int64_t first_ns;
	char name[PIDS][64]; /* of leaders; "": none */
	char mark[64];       /* the last mark */
	int64_t mark_ns;
	uint32_t how;
};

static struct story read_story(const char *file)
{
	struct story s = {.fds = fdtable_new()};
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(file, &r, &e), 0);
	s.how = log_reader_head(r)->how;
	while ((rc = log_next(r, &rec, &e)) == 1) {
		s.records++;
		assert_int_equal(rec->number, s.records);
		assert_int_equal(fdtable_feed(s.fds, rec), 0);
		if (rec->type == RECORD_PROCESS && rec->process.pid == rec->process.tid)
			snprintf(s.name[(rec->process.pid - 100) / 10], 64, "%s",
				rec->process.what == PROCESS_EXIT ? "" : rec->process.name);
		if (rec->type == RECORD_MARK) {
			snprintf(s.mark, sizeof(s.mark), "%s", rec->mark.text);
			s.mark_ns = rec->mark.start_ns;
		}
		s.lost += rec->type == RECORD_LOST ? rec->lost.count : 0;
		if (rec->type == RECORD_END)
			s.end_lost = rec->end.lost;
		if (rec->type != RECORD_CALL)
			continue;
		if (!s.calls++) {
			s.first_seq = rec->call.seq;
			s.first_ns = rec->call.start_ns;
		}
		assert_true(s.calls == 1 || rec->call.seq > s.last_seq);
		s.last_seq = rec->call.seq;
	}
	if (rc < 0)
		fail_msg("%s", e.text);
	log_reader_free(r);
	return s;
}

static void check_same(const struct story *a, const struct story *b)
{
	assert_int_equal(a->last_seq, b->last_seq);
	assert_string_equal(a->mark, b->mark);
	assert_int_equal(a->mark_ns, b->mark_ns);
	for (uint32_t p = 0; p < PIDS; p++) {
		assert_string_equal(a->name[p], b->name[p]);
		for (int fd = 0; fd < FDS; fd++) {
			const struct fd_state *x = fdtable_get(a->fds, 100 + p * 10, fd);
			const struct fd_state *y = fdtable_get(b->fds, 100 + p * 10, fd);

			assert_int_equal(!x, !y);
			if (!x)
				continue;
			assert_string_equal(x->now.path, y->now.path);
			assert_int_equal(x->now.start_ns, y->now.start_ns);
		}
	}
}

static struct log_writer *begin(const char *file, size_t keep_bytes)
{
	struct log_writer *w;
	struct err e;

	unlink(file);
	assert_int_equal(log_writer_new(file, "ebpf", &w, &e), 0);
	log_writer_how(w, LOG_FLOW | LOG_HEADS);
	if (keep_bytes)
		assert_int_equal(log_writer_keep(w, KEEP_S * SECOND, keep_bytes, &e), 0);
	return w;
}

static void write_records(struct log_writer *w, unsigned from, unsigned to)
{
	struct err e;

	for (unsigned i = from; i < to; i++) {
		struct record rec = make(i);

		assert_int_equal(log_write(w, &rec, &e), 0);
	}
}

static void restart(uint64_t seed)
{
	rng = seed;
	memset(alive, 0, sizeof(alive));
}

static void test_the_last_seconds_are_kept_with_their_state(void **state)
{
	const unsigned half = SECONDS / 2 * PER_S, all = SECONDS * PER_S;
	struct log_writer *w;
	struct err e;

	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct story kept, full;

		restart(seed);
		w = begin(path, 64 << 20);
		unlink(dumped);
		write_records(w, 0, half);
		assert_int_equal(log_writer_dump(w, dumped, &e), 0);
		assert_int_equal(log_writer_dump(w, dumped, &e), -EEXIST);
		write_records(w, half, all);
		assert_int_equal(log_writer_end(w, 12345, &e), 0);
		for (int part = 0; part < 2; part++) {
			unsigned n = part ? all : half;
			int64_t end_ns = SECOND * 1000 + (int64_t)n * SECOND / PER_S;

			restart(seed);
			w = begin(whole, 0);
			write_records(w, 0, n);
			assert_int_equal(log_writer_end(w, 0, &e), 0);
			full = read_story(whole);
			kept = read_story(part ? path : dumped);
			check_same(&kept, &full);
			assert_int_equal(kept.how, LOG_FLOW | LOG_HEADS | LOG_RING);
			assert_int_equal(full.how, LOG_FLOW | LOG_HEADS);
			/* Blocks are kept whole, and each covers at most a second. */
			assert_true(kept.first_ns < end_ns - (KEEP_S - 1) * SECOND);
			assert_true(kept.first_ns > end_ns - (KEEP_S + 2) * SECOND);
			assert_int_equal(kept.end_lost, kept.lost);
			assert_true(kept.calls < full.calls / 4);
			fdtable_free(kept.fds);
			fdtable_free(full.fds);
		}
	}
}

static void test_memory_is_bounded(void **state)
{
	const size_t most = 1 << 20;
	struct log_ring *r = log_ring_new(INT64_MAX, most);
	struct record rec = {.type = RECORD_FD, .fd = {.open = true, .path = "/some/path"}};
	static uint8_t payload[60000];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		for (int k = 0; k < 100; k++) {
			rec.fd.fd = k;
			rec.fd.start_ns++;
			log_ring_note(r, &rec);
		}
		log_ring_take(r, payload, sizeof(payload), 100);
		assert_true(log_ring_bytes(r) <= most);
	}
	assert_true(log_ring_bytes(r) > most / 2);
	log_ring_free(r);
}

static void test_an_empty_ring_is_a_whole_log(void **state)
{
	struct log_writer *w = begin(path, 1 << 20);
	struct story s;
	struct err e;

	(void)state;
	unlink(dumped);
	assert_int_equal(log_writer_dump(w, dumped, &e), 0);
	s = read_story(dumped);
	assert_int_equal(s.records, 1);
	fdtable_free(s.fds);
	assert_int_equal(log_writer_dump(w, "/nonexistent/log", &e), -ENOENT);
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	s = read_story(path);
	assert_int_equal(s.records, 1);
	fdtable_free(s.fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_seconds_are_kept_with_their_state),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_an_empty_ring_is_a_whole_log),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
