/* Tests metrics of messages (nsread, ncread) on synthetic logs with known messages, and on recorded
 * logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/derive/metrics_maker.h"

/* Reads like a GlusterFS brick: record mark, up to 1024 bytes, the rest; EAGAIN, re-arm, wait. */
static void a_message_is_its_reads_from_the_first_to_the_last(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	call(&k, 51, "epoll_wait", 3, 1, 1 * MS);
	call(&k, 51, "readv", 6, 4, 1 * MS);
	call(&k, 51, "futex", 0, 0, 1 * MS);
	call(&k, 51, "readv", 6, 1024, 1 * MS);
	call(&k, 51, "readv", 6, 2896, 1 * MS);
	call(&k, 51, "readv", 6, -EAGAIN, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 20 * MS);
	call(&k, 52, "readv", 6, 2896, 1 * MS); /* another thread continues the message */
	call(&k, 52, "readv", 6, -EAGAIN, 1 * MS);
	call(&k, 53, "writev", 6, 344, 1 * MS); /* the answer to an earlier request */
	call(&k, 51, "readv", 6, 25508, 3 * MS);
	call(&k, 51, "epoll_ctl", 3, 0, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 50 * MS);
	/* A wake-up without data must not join two messages. */
	call(&k, 51, "readv", 6, -EAGAIN, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 50 * MS);
	call(&k, 51, "readv", 6, 4, 1 * MS);
	call(&k, 51, "readv", 6, 140, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 50 * MS);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 2, 0.031 + 0.002);
	assert_int_equal(total(m, METRIC_NSREAD, 0).bytes, 4 + 1024 + 2896 + 2896 + 25508 + 144);
	metrics_free(m);
}

static void blocking_and_alternating_readers_are_understood(void **state)
{
	const uint64_t peek[4] = {6, 0, 4, MSG_PEEK};
	struct maker k;
	struct metrics *m;

	(void)state;
	/* One blocking thread for each connection, which answers on the same socket. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	for (int i = 0; i < 3; i++) {
		call_args(&k, 51, "recvfrom", peek, 4, 9 * MS);
		call(&k, 51, "recvfrom", 6, 4, 1 * MS);
		call(&k, 51, "recvfrom", 6, 100, 1 * MS);
		call(&k, 51, "sendto", 6, 8, 5 * MS);
	}
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 3, 0.006);
	metrics_free(m);

	/* Threads that take turns, one message each, without waiting in between. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	call(&k, 51, "read", 6, 4, 1 * MS);
	call(&k, 51, "read", 6, 100, 1 * MS);
	call(&k, 52, "read", 6, 4, 1 * MS);
	call(&k, 52, "read", 6, 100, 1 * MS);
	call(&k, 51, "poll", 0, 1, 1 * MS);
	call(&k, 52, "poll", 0, 1, 1 * MS);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 2, 0.004);
	metrics_free(m);
}

/* A read that asks for 'asked' bytes. */
static void ask(struct maker *m, uint32_t tid, const char *name, int fd, uint64_t asked,
	int64_t result, int64_t took_ns)
{
	const bool vector = !strcmp(name, "readv") || !strcmp(name, "recvmsg");
	struct record r = {.type = RECORD_CALL};

	r.call = (struct record_call){.seq = ++m->seq,
		.start_ns = m->now,
		.service_ns = took_ns,
		.pid = m->pid,
		.tid = tid,
		.nr = (uint32_t)call_number("x86_64", name),
		.args = {(uint64_t)fd, 0x1000, vector ? 1 : asked},
		.asked = vector ? (uint32_t)asked : 0,
		.result = result,
		.offset = -1};
	put(m, &r);
	m->now += took_ns;
}

static void wait_for_data(struct maker *m, uint32_t tid)
{
	call(m, tid, "epoll_wait", 3, 1, 1 * MS);
}

static const struct flow_field word = {.size = 4, .mask = 0xffffffff};

/* A header of 8 bytes: a mark and a kind; kind 8 is bulk data. */
static struct bulk_rule bulk_rule(void)
{
	struct bulk_rule r = {.above = 16000,
		.header = 8,
		.check = {.field = word, .values = {0xcabf}, .n = 1},
		.kind = {.field = word, .values = {8}, .n = 1}};

	r.kind.field.offset = 4;
	return r;
}

/* One message, whose header is read by a separate call. 'head': the head in the log, or NULL. */
static void message(struct maker *k, const uint32_t *head, int64_t body, int64_t took_ns)
{
	struct record r = {.type = RECORD_CALL};

	wait_for_data(k, 51);
	r.call = (struct record_call){.seq = ++k->seq,
		.start_ns = k->now,
		.service_ns = took_ns,
		.pid = k->pid,
		.tid = 51,
		.nr = (uint32_t)call_number("x86_64", "read"),
		.args = {6, 0x1000, 8},
		.result = 8,
		.offset = -1,
		.head_size = head ? 8 : 0,
		.head = (const uint8_t *)head};
	put(k, &r);
	k->now += took_ns;
	if (body)
		ask(k, 51, "read", 6, (uint64_t)body, body, took_ns);
}

static struct metrics *read_bulk(struct maker *k, const struct bulk_rule *rule, int self)
{
	struct metrics *m = new_metrics(10);
	struct err e;

	wait_for_data(k, 51);
	finish(k, 0);
	metrics_bulk(m, rule);
	assert_int_equal(add_log(m, k->path, self, 0, NULL, &e), 0);
	discard(k);
	return m;
}

/* Without heads in the log the size decides: the largest request is a request, one byte more is
 * bulk data, and a bare header does not count. */
static void bulk_data_is_recognised_by_size(void **state)
{
	const struct bulk_rule rule = bulk_rule();
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	message(&k, NULL, 15992, 1 * MS);
	message(&k, NULL, 15993, 2 * MS);
	message(&k, NULL, 0, 50 * MS);
	message(&k, NULL, 1, 3 * MS);
	m = read_bulk(&k, &rule, 0);
	expect(m, METRIC_NSREAD, 0, 2, 0.002 + 0.006);
	expect(m, METRIC_NSBULK, 0, 1, 0.004);
	assert_int_equal(total(m, METRIC_NSBULK, 0).bytes, 16001);
	metrics_free(m);
}

/* A head in the log decides, regardless of size; bytes that are no header do not. */
static void bulk_data_is_recognised_by_its_head(void **state)
{
	const struct bulk_rule rule = bulk_rule();
	const uint32_t bulk[] = {0xcabf, 8}, answer[] = {0xcabf, 4}, data[] = {0x1234, 8};
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 6, "10.0.0.9", 1000, "10.0.0.2", 24007);
	message(&k, bulk, 100, 1 * MS);
	message(&k, answer, 20000, 2 * MS);
	message(&k, data, 100, 3 * MS);
	message(&k, data, 20000, 4 * MS);
	m = read_bulk(&k, &rule, -1);
	expect(m, METRIC_NCREAD, 1, 2, 0.004 + 0.006);
	expect(m, METRIC_NCBULK, 1, 2, 0.002 + 0.008);
	metrics_free(m);
}

/* Reads like OrangeFS: a peek, the header, one try for the body, and back to epoll_wait. */
static void a_read_for_the_remainder_continues_the_message(void **state)
{
	const uint64_t peek[4] = {6, 0, 24, MSG_PEEK};
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	for (int i = 0; i < 2; i++) {
		wait_for_data(&k, 51);
		call_args(&k, 51, "recvfrom", peek, 24, 1 * MS);
		ask(&k, 51, "recvfrom", 6, 24, 24, 1 * MS);
		ask(&k, 51, "readv", 6, 32768, 2896, 1 * MS);
		wait_for_data(&k, 51);
		call(&k, 51, "writev", 6, 256, 1 * MS); /* the answer to an earlier request */
		ask(&k, 51, "readv", 6, 29872, 20000, 1 * MS);
		wait_for_data(&k, 51);
		ask(&k, 52, "recvmsg", 6, 9872, 9872, 1 * MS); /* another thread reads the rest */
	}
	wait_for_data(&k, 52);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 2, 2 * 0.007);
	assert_int_equal(total(m, METRIC_NSREAD, 0).bytes, 2 * (24 + 32768));
	metrics_free(m);

	/* A body without a posted buffer is a separate message; its EAGAIN wants more. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	ask(&k, 51, "read", 6, 24, 24, 1 * MS);
	wait_for_data(&k, 51);
	ask(&k, 51, "readv", 6, 1000, 400, 1 * MS);
	ask(&k, 51, "readv", 6, 600, -EAGAIN, 1 * MS);
	wait_for_data(&k, 51);
	ask(&k, 51, "readv", 6, 600, 600, 1 * MS);
	wait_for_data(&k, 51);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 2, 0.001 + 0.004);
	metrics_free(m);
}

/* Readers with a buffer take what has arrived: a short read is no piece of a message. */
static void readers_with_buffers_are_understood(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	/* Reads like Ceph, until EAGAIN: into a buffer of 4096 bytes, or directly if more is
	 * wanted. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	for (int i = 0; i < 2; i++) {
		wait_for_data(&k, 51);
		ask(&k, 51, "read", 6, 4096, 4096, 1 * MS);
		ask(&k, 51, "read", 6, 60000, 20000, 1 * MS);
		ask(&k, 51, "read", 6, 40000, -EAGAIN, 1 * MS);
		wait_for_data(&k, 51);
		ask(&k, 51, "read", 6, 40000, 40000, 1 * MS);
		ask(&k, 51, "read", 6, 4096, 17, 1 * MS);
		ask(&k, 51, "read", 6, 4096, -EAGAIN, 1 * MS);
		wait_for_data(&k, 51);
		ask(&k, 51, "read", 6, 4096, 300, 2 * MS); /* a small message */
		ask(&k, 51, "read", 6, 4096, -EAGAIN, 1 * MS);
	}
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 4, 2 * 0.006 + 2 * 0.002);
	metrics_free(m);

	/* The last 4 KiB also come through the buffer, although some wanted bytes are still
	 * missing. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	for (int i = 0; i < 2; i++) {
		wait_for_data(&k, 51);
		ask(&k, 51, "read", 6, 4096, 4096, 1 * MS);
		ask(&k, 51, "read", 6, 60000, 56000, 1 * MS);
		ask(&k, 51, "read", 6, 4000, -EAGAIN, 1 * MS);
		for (int piece = 0; piece < 2; piece++) {
			wait_for_data(&k, 51);
			ask(&k, 51, "read", 6, 4096, 1448, 1 * MS);
			ask(&k, 51, "read", 6, 4096, -EAGAIN, 1 * MS);
		}
		wait_for_data(&k, 51);
		ask(&k, 51, "read", 6, 4096, 1104 + 13, 1 * MS);
		ask(&k, 51, "read", 6, 4096, -EAGAIN, 1 * MS);
	}
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 2, 2 * 0.011);
	assert_int_equal(total(m, METRIC_NSREAD, 0).bytes, 2 * (4096 + 60000 + 13));
	metrics_free(m);

	/* The remainder of a buffer is not wanted if no data came for it. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	ask(&k, 51, "read", 6, 4096, 700, 1 * MS);
	ask(&k, 51, "read", 6, 3396, -EAGAIN, 1 * MS);
	wait_for_data(&k, 51);
	ask(&k, 51, "read", 6, 3396, 100, 1 * MS);
	wait_for_data(&k, 51);
	ask(&k, 51, "read", 6, 4096, 50, 1 * MS);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 1, 0.004);
	metrics_free(m);

	/* 64 KiB at a time; the second message arrives later and is appended. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	ask(&k, 51, "recvfrom", 6, 65536, 700, 1 * MS);
	call(&k, 51, "sendto", 6, 8, 1 * MS);
	wait_for_data(&k, 51);
	ask(&k, 51, "recvfrom", 6, 65536, 500, 1 * MS);
	wait_for_data(&k, 51);
	ask(&k, 51, "recvfrom", 6, 65036, 200, 1 * MS);
	call(&k, 51, "sendto", 6, 8, 1 * MS); /* the last event of the log */
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 2, 0.001 + 0.003);
	metrics_free(m);

	/* A short read without a later event may be a piece, so it does not count. */
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	ask(&k, 51, "readv", 6, 65536, 700, 1 * MS);
	wait_for_data(&k, 51);
	close_fd(&k, 6);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 0, 0);
	metrics_free(m);
}

static void messages_without_an_end_do_not_count(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	call(&k, 51, "readv", 6, 4, 1 * MS);
	call(&k, 51, "readv", 6, -EAGAIN, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 1 * MS);
	call(&k, 51, "readv", 6, 0, 1 * MS); /* end of stream inside a message */
	call(&k, 51, "readv", 6, 4, 1 * MS);
	call(&k, 51, "readv", 6, -EAGAIN, 1 * MS);
	close_fd(&k, 6); /* closed inside a message */
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1001);
	call(&k, 51, "readv", 6, 50, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 1 * MS);
	close_fd(&k, 6);                  /* closed after a message: it counts */
	open_file(&k, 6, "/srv/brick/a"); /* the number now means a file */
	call(&k, 51, "readv", 6, 50, 2 * MS);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9",
		1002); /* and a socket again, without a close in between */
	/* the log ends before the message is known to be whole */
	call(&k, 51, "readv", 6, 7, 1 * MS);
	m = read_log(&k, 0, 10, 0);
	expect(m, METRIC_NSREAD, 0, 1, 0.001);
	assert_int_equal(total(m, METRIC_NSREAD, 0).bytes, 50);
	expect(m, METRIC_DREAD, 0, 1, 0.002);
	metrics_free(m);
}

static void sockets_belong_to_servers_by_address(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 5, "10.0.0.9", 999, "10.0.0.1", 24007);
	open_socket(&k, 6, "::ffff:10.0.0.9", 998, "::ffff:10.0.0.2", 24007);
	open_socket(&k, 7, "10.0.0.9", 997, "10.0.0.2", 24008); /* another service */
	open_socket(&k, 8, "10.0.0.2", 24007, "10.0.0.9", 996); /* our own end has the address */
	for (int fd = 5; fd <= 8; fd++) {
		call(&k, 51, "readv", fd, 10, fd * MS);
		call(&k, 51, "epoll_wait", 3, 1, 1 * MS);
	}
	m = read_log(&k, -1, 10, 0);
	expect(m, METRIC_NCREAD, 0, 1, 0.005);
	expect(m, METRIC_NCREAD, 1, 1, 0.006);
	expect(m, METRIC_NSREAD, 1, 0, 0);
	metrics_free(m);
}

static uint64_t random_state;

static unsigned dice(unsigned sides)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % sides;
}

enum { STREAMS = 8, THREADS = 3 };

/* Many connections, several threads, messages split at random: all messages are found again. */
static void interleaved_streams_are_separated(void **state)
{
	struct {
		int left, begun;
		int64_t first;
	} s[STREAMS] = {0};
	uint64_t messages = 0, bytes = 0;
	struct maker k;
	struct metrics *m;
	int64_t sum = 0;

	(void)state;
	for (random_state = 1; random_state < 6; random_state++) {
		uint64_t seed = random_state;

		memset(s, 0, sizeof(s));
		messages = bytes = 0;
		sum = 0;
		begin(&k);
		for (int i = 0; i < STREAMS; i++)
			open_socket(&k, 10 + i, "10.0.0.1", 24007, "10.0.0.9", 100 + (unsigned)i);
		for (int turn = 0; turn < 4000; turn++) {
			int i = (int)dice(STREAMS), fd = 10 + i;
			uint32_t tid = 51 + dice(THREADS);

			call(&k, tid, "epoll_wait", 3, 1, dice(500) * US);
			if (!dice(10)) { /* a wake-up without data */
				call(&k, tid, "readv", fd, -EAGAIN, 5 * US);
				continue;
			}
			if (!s[i].begun)
				s[i].left = 5 + (int)dice(200);
			while (s[i].left) {
				int part = 1 + (int)dice((unsigned)s[i].left),
				    took = (1 + (int)dice(50)) * US;

				if (!s[i].begun)
					s[i].first = k.now;
				s[i].begun = 1;
				call(&k, tid, "readv", fd, part, took);
				s[i].left -= part;
				bytes += (unsigned)part;
				if (!s[i].left) {
					sum += k.now - s[i].first;
					messages++;
				}
				if (!dice(4))
					call(&k, tid, "futex", 0, 0, 3 * US);
				if (!dice(5)) /* another thread answers on some socket */
					call(&k, 60, "writev", 10 + (int)dice(STREAMS), 344,
						7 * US);
				if (s[i].left && !dice(3)) {
					call(&k, tid, "readv", fd, -EAGAIN, 5 * US);
					break;
				}
			}
			if (!s[i].left)
				s[i].begun = 0;
		}
		/* Finish open messages, and let every thread wait once more. */
		for (int i = 0; i < STREAMS; i++) {
			if (!s[i].begun)
				continue;
			call(&k, 51, "epoll_wait", 3, 1, 1 * US);
			call(&k, 51, "readv", 10 + i, s[i].left, 1 * US);
			sum += k.now - s[i].first;
			bytes += (unsigned)s[i].left;
			messages++;
		}
		for (uint32_t tid = 51; tid < 51 + THREADS; tid++)
			call(&k, tid, "epoll_wait", 3, 1, 1 * US);
		m = read_log(&k, 0, 1000, 0);
		assert_int_equal(total(m, METRIC_NSREAD, 0).bytes, bytes);
		/* The time between reads of a message belongs to it, so the sums also show wrong
		 * cuts. */
		expect(m, METRIC_NSREAD, 0, messages, (double)sum / 1e9);
		assert_true(messages > 1000);
		metrics_free(m);
		random_state = seed;
	}
}

/* Unpacks a recorded log into k->path. */
static void unpack(struct maker *k, const char *name)
{
	char sub[96], *file, buf[65536];
	struct err e;
	gzFile in;
	FILE *out;
	int n;

	*k = (struct maker){.dir = "/tmp/metrics_test.XXXXXX"};
	assert_non_null(mkdtemp(k->dir));
	snprintf(k->path, sizeof(k->path), "%s/log", k->dir);
	snprintf(sub, sizeof(sub), "ci/tests/data/%s", name);
	assert_int_equal(home_path(sub, &file, &e), 0);
	in = gzopen(file, "rb");
	out = fopen(k->path, "w");
	assert_non_null(in);
	assert_non_null(out);
	while ((n = gzread(in, buf, sizeof(buf))) > 0)
		assert_int_equal(fwrite(buf, 1, (size_t)n, out), n);
	gzclose(in);
	fclose(out);
	free(file);
}

/* Measures the unpacked log; of server 'server' if 'self' is 0. */
static struct metrics *measure(struct maker *k, struct stream_server server, int self)
{
	struct stream_spec spec = {.servers = &server,
		.n_servers = 1,
		.owner = self < 0 ? OWNER_DAEMON : OWNER_SERVER};
	int64_t from_ns;
	struct log_reader *r;
	struct metrics *m;
	uint64_t lost;
	struct err e;

	assert_int_equal(log_reader_new(k->path, &r, &e), 0);
	from_ns = log_reader_head(r)->start_ns;
	log_reader_free(r);
	assert_int_equal(metrics_new(1, from_ns, 100, &m, &e), 0);
	if (derive_log(k->path, &spec, m, NULL, &lost, &e))
		fail_msg("%s", e.text);
	assert_int_equal(lost, 0);
	discard(k);
	return m;
}

static struct metrics *recorded(struct maker *k, const char *name, int self)
{
	struct stream_server server = {"s1", .storage = "/tmp/diagx/brick"};

	unpack(k, name);
	address(&server.address, "10.199.7.1", 24007);
	return measure(k, server, self);
}

/* A real brick and its client: the metrics equal what dd moved, and every request has its response.
 * See ci/tests/data/README.md. */
static void recorded_glusterfs_logs_give_their_calls(void **state)
{
	struct metrics *brick, *client;
	struct sample requests, responses;
	struct maker k;

	(void)state;
	brick = recorded(&k, "glusterfs-brick.log.gz", 0);
	client = recorded(&k, "glusterfs-client.log.gz", -1);
	assert_int_equal(total(brick, METRIC_DWRITE, 0).count, 48);
	assert_int_equal(total(brick, METRIC_DWRITE, 0).bytes, 6 << 20);
	assert_int_equal(total(brick, METRIC_DREAD, 0).count, 32);
	assert_int_equal(total(brick, METRIC_DREAD, 0).bytes, 4 << 20);
	requests = total(brick, METRIC_NSREAD, 0);
	responses = total(client, METRIC_NCREAD, 0);
	assert_int_equal(requests.count, responses.count);
	assert_in_range(requests.count, 48 + 32, 48 + 32 + 30);
	assert_in_range(requests.bytes, 6 << 20, (6 << 20) + 300 * requests.count);
	assert_in_range(responses.bytes, 4 << 20, (4 << 20) + 600 * responses.count);
	/* 128 KiB at 100 Mbit/s take at least 10.5 ms; bytes already in the socket's buffer are
	 * read at once. */
	assert_true(requests.max_s > 0.002 && requests.max_s < 0.1);
	assert_int_equal(total(client, METRIC_DWRITE, 0).count, 0);
	metrics_free(brick);
	metrics_free(client);
}

/* A real OrangeFS server with receive loss: each message begins with a header of 24 bytes, and only
 * headers are read by recvfrom. A body that another thread reads had no buffer when its header was
 * read, so it is a separate message. See ci/tests/data/README.md. */
static void a_recorded_orangefs_log_gives_its_messages(void **state)
{
	struct stream_server server = {"s1"};
	uint64_t messages = 0, pieces = 0, bytes = 0, body = 0;
	int64_t sum_ns = 0, start = 0, end = 0;
	const struct record *rec;
	struct log_reader *r;
	struct metrics *m;
	struct sample t;
	struct maker k;
	uint32_t tid = 0;
	bool header = false; /* the last read was a header */
	struct err e;

	(void)state;
	unpack(&k, "orangefs-server.log.gz");
	assert_int_equal(log_reader_new(k.path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		const struct record_call *c = &rec->call;
		const char *name = rec->type == RECORD_CALL ? call_name("x86_64", c->nr) : "";

		if (c->result <= 0 || (strcmp(name, "recvfrom") && strcmp(name, "readv")) ||
			(*name == 'r' && name[3] == 'v' && c->args[3] & MSG_PEEK))
			continue;
		if (!strcmp(name, "recvfrom"))
			assert_int_equal(c->result, 24);
		if (!strcmp(name, "recvfrom") || (header && c->tid != tid)) {
			sum_ns += end - start;
			start = c->start_ns;
			messages++;
			pieces = 0;
		}
		header = !strcmp(name, "recvfrom");
		tid = c->tid;
		end = c->start_ns + c->service_ns;
		bytes += (uint64_t)c->result;
		body = ++pieces > body ? pieces : body;
	}
	log_reader_free(r);
	sum_ns += end - start;
	address(&server.address, "10.84.9.1", 3334);
	m = measure(&k, server, 0);
	t = total(m, METRIC_NSREAD, 0);
	assert_int_equal(t.count, messages);
	assert_int_equal(t.bytes, bytes);
	assert_float_equal(t.sum_s, (double)sum_ns / 1e9, 1e-6);
	assert_true(messages > 50 && body > 5);
	metrics_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_its_reads_from_the_first_to_the_last),
		cmocka_unit_test(blocking_and_alternating_readers_are_understood),
		cmocka_unit_test(bulk_data_is_recognised_by_size),
		cmocka_unit_test(bulk_data_is_recognised_by_its_head),
		cmocka_unit_test(a_read_for_the_remainder_continues_the_message),
		cmocka_unit_test(readers_with_buffers_are_understood),
		cmocka_unit_test(messages_without_an_end_do_not_count),
		cmocka_unit_test(sockets_belong_to_servers_by_address),
		cmocka_unit_test(interleaved_streams_are_separated),
		cmocka_unit_test(recorded_glusterfs_logs_give_their_calls),
		cmocka_unit_test(a_recorded_orangefs_log_gives_its_messages),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("metrics-messages", tests, NULL, NULL);
}
