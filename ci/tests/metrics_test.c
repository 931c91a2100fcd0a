/* Metrics against synthetic logs whose truth is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "diag/log/log.h"
#include "diag/metrics/metrics.h"
#include "harness/base/home.h"

enum { PID = 50, US = 1000, MS = 1000 * US };

static const int64_t start_ns = 1700000000000000000;

/* A log under construction. */
struct maker {
	char dir[64], path[96];
	struct log_writer *log;
	int64_t now;
	uint64_t seq;
	uint32_t pid;
};

static void address(struct sockaddr_storage *out, const char *ip, unsigned port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (strchr(ip, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		assert_int_equal(inet_pton(AF_INET6, ip, &in6->sin6_addr), 1);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		assert_int_equal(inet_pton(AF_INET, ip, &in->sin_addr), 1);
	}
}

static void begin(struct maker *m)
{
	struct err e;

	*m = (struct maker){.dir = "/tmp/metrics_test.XXXXXX", .now = start_ns, .pid = PID};
	assert_non_null(mkdtemp(m->dir));
	snprintf(m->path, sizeof(m->path), "%s/log", m->dir);
	assert_int_equal(log_writer_new(m->path, "ptrace", &m->log, &e), 0);
}

static void finish(struct maker *m, uint64_t lost)
{
	struct err e;

	assert_int_equal(log_writer_end(m->log, lost, &e), 0);
}

static void discard(struct maker *m)
{
	unlink(m->path);
	rmdir(m->dir);
}

static void put(struct maker *m, struct record *r)
{
	struct err e;

	assert_int_equal(log_write(m->log, r, &e), 0);
}

/* A call that begins now and takes 'took_ns'. */
static void call_args(struct maker *m, uint32_t tid, const char *name, const uint64_t args[4], int64_t result,
		      int64_t took_ns)
{
	struct record r = {.type = RECORD_CALL};

	r.call.seq = ++m->seq;
	r.call.start_ns = m->now;
	r.call.service_ns = took_ns;
	r.call.pid = m->pid;
	r.call.tid = tid;
	r.call.nr = (uint32_t)call_number("x86_64", name);
	memcpy(r.call.args, args, 4 * sizeof(*args));
	r.call.result = result;
	r.call.offset = -1;
	put(m, &r);
	m->now += took_ns;
}

static void call(struct maker *m, uint32_t tid, const char *name, int fd, int64_t result, int64_t took_ns)
{
	const uint64_t args[4] = {(uint64_t)fd};

	call_args(m, tid, name, args, result, took_ns);
}

static void open_file(struct maker *m, int fd, const char *path)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = m->now;
	r.fd.pid = m->pid;
	r.fd.fd = fd;
	r.fd.open = true;
	r.fd.kind = FD_FILE;
	r.fd.path = path;
	put(m, &r);
}

static void open_socket(struct maker *m, int fd, const char *local, unsigned lport, const char *remote, unsigned rport)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = m->now;
	r.fd.pid = m->pid;
	r.fd.fd = fd;
	r.fd.open = true;
	r.fd.kind = FD_SOCKET;
	r.fd.path = "socket:[7]";
	r.fd.sock_type = SOCK_STREAM;
	address(&r.fd.local, local, lport);
	address(&r.fd.remote, remote, rport);
	put(m, &r);
}

static void close_fd(struct maker *m, int fd)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = m->now;
	r.fd.pid = m->pid;
	r.fd.fd = fd;
	put(m, &r);
}

static struct metrics_server servers[2] = {{.name = "s1", .storage = "/srv/brick/"}, {.name = "s2", .storage = "/srv/brick"}};

static struct metrics *new_metrics(int self, int seconds, int64_t offset_ns)
{
	struct metrics_spec spec = {servers, 2, start_ns, seconds, self, offset_ns};
	struct metrics *m;
	struct err e;

	address(&servers[0].address, "10.0.0.1", 24007);
	address(&servers[1].address, "10.0.0.2", 24007);
	assert_int_equal(metrics_new(&spec, &m, &e), 0);
	return m;
}

static struct metrics *read_log(struct maker *m, int self, int seconds, int64_t offset_ns)
{
	struct metrics *metrics = new_metrics(self, seconds, offset_ns);
	uint64_t lost = 99;
	struct err e;

	finish(m, 0);
	assert_int_equal(metrics_add_log(metrics, m->path, &lost, &e), 0);
	assert_int_equal(lost, 0);
	discard(m);
	return metrics;
}

/* All samples of a metric and server together. */
static struct sample total(struct metrics *m, enum metric metric, uint32_t server)
{
	struct sample sum = {.metric = metric, .server = server};
	const struct sample *s;

	for (size_t i = 0, n = metrics_samples(m, &s); i < n; i++)
		if (s[i].metric == metric && s[i].server == server) {
			sum.count += s[i].count;
			sum.sum_s += s[i].sum_s;
			sum.bytes += s[i].bytes;
			sum.max_s = fmax(sum.max_s, s[i].max_s);
		}
	return sum;
}

static void expect(struct metrics *m, enum metric metric, uint32_t server, uint64_t count, double sum_s)
{
	struct sample t = total(m, metric, server);

	assert_int_equal(t.count, count);
	assert_float_equal(t.sum_s, sum_s, 1e-8);
}

static void names_go_both_ways(void **state)
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
	assert_string_equal(metric_name(METRIC_CLIENT_TCP_RETRANSMITTED), "client_tcp_retransmitted_segments");
	assert_string_equal(metric_unit(METRIC_CLIENT_TCP_RETRANSMITTED), "segments");
	assert_int_equal(metric_from_name("any", &m), -ENOENT);
}

static void disk_calls_below_the_storage_alone_count(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_file(&k, 3, "/srv/brick/a");
	open_file(&k, 4, "/srv/brick2/a");
	open_file(&k, 5, "/srv/brick");
	open_file(&k, 6, "/srv/brick/b (deleted)");
	open_file(&k, 7, "/var/log/brick");
	for (int fd = 3; fd <= 7; fd++) {
		call(&k, 51, "pread64", fd, 4096, 1 * MS);
		call(&k, 51, "pwrite64", fd, 4096, 2 * MS);
	}
	for (const char *const *name = (const char *const[]){"read", "readv", "preadv", "preadv2", NULL}; *name; name++)
		call(&k, 52, *name, 3, 0, 1 * MS);
	for (const char *const *name = (const char *const[]){"write", "writev", "pwritev", "pwritev2", NULL}; *name; name++)
		call(&k, 52, *name, 3, 1, 1 * MS);
	call(&k, 51, "pread64", 3, -EIO, 5 * MS);   /* failed: moved nothing */
	call(&k, 51, "pwrite64", 3, -EROFS, 5 * MS);
	call(&k, 51, "fsync", 3, 0, 5 * MS);
	call(&k, 51, "pread64", 99, 4096, 5 * MS);  /* never opened */
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
	call(&k, 51, "pread64", 3, 1, 400 * MS);  /* ends before the start */
	k.now = start_ns + 900 * MS;
	call(&k, 51, "pread64", 3, 10, 200 * MS); /* second 1 */
	call(&k, 51, "pread64", 3, 20, 100 * MS); /* second 1 */
	k.now = start_ns + 2 * 1000LL * MS;
	call(&k, 51, "pread64", 3, 30, 0);        /* second 2 exactly */
	k.now = start_ns + 2999 * (int64_t)MS;
	call(&k, 51, "pread64", 3, 40, 1 * MS);   /* second 3: outside */
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

/* As a GlusterFS brick reads: record mark, up to 1024, the rest; EAGAIN, re-arm, wait. */
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
	call(&k, 52, "readv", 6, 2896, 1 * MS); /* another thread goes on with it */
	call(&k, 52, "readv", 6, -EAGAIN, 1 * MS);
	call(&k, 53, "writev", 6, 344, 1 * MS); /* the answer to an earlier request, meanwhile */
	call(&k, 51, "readv", 6, 25508, 3 * MS);
	call(&k, 51, "epoll_ctl", 3, 0, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 50 * MS);
	/* A wake-up for nothing must not glue two messages together. */
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

static void other_readers_are_understood(void **state)
{
	const uint64_t peek[4] = {6, 0, 4, MSG_PEEK};
	struct maker k;
	struct metrics *m;

	(void)state;
	/* A thread a connection, blocking, that answers on the same socket. */
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

	/* Threads that take turns, one message a turn, without waiting in between. */
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

static void messages_without_an_end_are_left_out(void **state)
{
	struct maker k;
	struct metrics *m;

	(void)state;
	begin(&k);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1000);
	call(&k, 51, "readv", 6, 4, 1 * MS);
	call(&k, 51, "readv", 6, -EAGAIN, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 1 * MS);
	call(&k, 51, "readv", 6, 0, 1 * MS); /* end of stream in a message */
	call(&k, 51, "readv", 6, 4, 1 * MS);
	call(&k, 51, "readv", 6, -EAGAIN, 1 * MS);
	close_fd(&k, 6);                     /* closed in a message */
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1001);
	call(&k, 51, "readv", 6, 50, 1 * MS);
	call(&k, 51, "epoll_wait", 3, 1, 1 * MS);
	close_fd(&k, 6);                     /* closed after one: it counts */
	open_file(&k, 6, "/srv/brick/a");    /* the number means a file now */
	call(&k, 51, "readv", 6, 50, 2 * MS);
	open_socket(&k, 6, "10.0.0.1", 24007, "10.0.0.9", 1002); /* and a socket again, no close in between */
	call(&k, 51, "readv", 6, 7, 1 * MS); /* the log ends before it is known to be whole */
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

/* Many connections, several threads, messages split at random: what comes out is what went in. */
static void interleaved_streams_come_apart_again(void **state)
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
			if (!dice(10)) { /* a wake-up for nothing */
				call(&k, tid, "readv", fd, -EAGAIN, 5 * US);
				continue;
			}
			if (!s[i].begun)
				s[i].left = 5 + (int)dice(200);
			while (s[i].left) {
				int part = 1 + (int)dice((unsigned)s[i].left), took = (1 + (int)dice(50)) * US;

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
				if (!dice(5)) /* another thread answers somewhere */
					call(&k, 60, "writev", 10 + (int)dice(STREAMS), 344, 7 * US);
				if (s[i].left && !dice(3)) {
					call(&k, tid, "readv", fd, -EAGAIN, 5 * US);
					break;
				}
			}
			if (!s[i].left)
				s[i].begun = 0;
		}
		/* Finish what is under way, and let every thread wait once more. */
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
		/* Time between reads of one message belongs to it, so sums tell wrong cuts as well. */
		expect(m, METRIC_NSREAD, 0, messages, (double)sum / 1e9);
		assert_true(messages > 1000);
		metrics_free(m);
		random_state = seed;
	}
}

static void logs_add_up_and_nodes_keep_apart(void **state)
{
	struct maker a, b;
	struct metrics *m = new_metrics(0, 10, 0);
	uint64_t lost;
	struct err e;

	(void)state;
	begin(&a);
	open_file(&a, 3, "/srv/brick/a");
	call(&a, 51, "pread64", 3, 1, 1 * MS);
	put(&a, &(struct record){.type = RECORD_LOST, .lost = {.start_ns = a.now, .count = 5}});
	finish(&a, 5);
	begin(&b);
	call(&b, 51, "pread64", 3, 1, 1 * MS); /* fd 3 of the other log means nothing here */
	open_file(&b, 3, "/srv/brick/a");
	call(&b, 51, "pread64", 3, 1, 4 * MS);
	finish(&b, 0);
	assert_int_equal(metrics_add_log(m, a.path, &lost, &e), 0);
	assert_int_equal(lost, 5);
	assert_int_equal(metrics_node(m, 1, 0, &e), 0);
	assert_int_equal(metrics_add_log(m, b.path, &lost, &e), 0);
	assert_int_equal(lost, 0);
	expect(m, METRIC_DREAD, 0, 1, 0.001);
	expect(m, METRIC_DREAD, 1, 1, 0.004);
	assert_int_equal(metrics_node(m, 2, 0, &e), -EINVAL);
	assert_non_null(strstr(e.text, "2"));
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
#ifndef __SANITIZE_ADDRESS__ /* it keeps what is freed */
	assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
#endif
	metrics_free(m);
}

static void a_log_cut_short_is_an_error(void **state)
{
	struct maker k;
	struct metrics *m = new_metrics(0, 10, 0);
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
	assert_int_equal(metrics_add_log(m, k.path, &lost, &e), -EBADMSG);
	assert_int_equal(lost, 77);
	metrics_free(m);
	discard(&k);

	m = new_metrics(0, 10, 0);
	assert_int_equal(metrics_add_log(m, "/nonexistent/log", &lost, &e), -ENOENT);
	metrics_free(m);
}

/* A recorded log unpacked into 'k'; the servers' one is where the record was taken. */
static struct metrics *recorded(struct maker *k, const char *name, int self)
{
	struct metrics_server server = {"s1", .storage = "/tmp/diagx/brick"};
	struct metrics_spec spec = {&server, 1, 0, 100, self, 0};
	struct log_reader *r;
	struct metrics *m;
	char sub[96], *file, buf[65536];
	uint64_t lost;
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
	assert_int_equal(log_reader_new(k->path, &r, &e), 0);
	spec.start_ns = log_reader_head(r)->start_ns;
	log_reader_free(r);
	address(&server.address, "10.199.7.1", 24007);
	assert_int_equal(metrics_new(&spec, &m, &e), 0);
	if (metrics_add_log(m, k->path, &lost, &e))
		fail_msg("%s", e.text);
	assert_int_equal(lost, 0);
	discard(k);
	return m;
}

/* A real brick and its real client: what dd moved is what is measured, and every request has its
 * response. See ci/tests/data/README.md. */
static void recorded_glusterfs_logs_give_what_was_done(void **state)
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
	/* 128 KiB at 100 Mbit/s take 10.5 ms at least; what lay in the socket's buffer already is not waited for. */
	assert_true(requests.max_s > 0.002 && requests.max_s < 0.1);
	assert_int_equal(total(client, METRIC_DWRITE, 0).count, 0);
	metrics_free(brick);
	metrics_free(client);
}

static void a_spec_without_sense_is_refused(void **state)
{
	struct metrics_spec spec = {servers, 0, start_ns, 10, -1, 0};
	struct metrics *m = NULL;
	struct err e;

	(void)state;
	assert_int_equal(metrics_new(&spec, &m, &e), -EINVAL);
	spec = (struct metrics_spec){servers, 2, start_ns, 10, 2, 0};
	assert_int_equal(metrics_new(&spec, &m, &e), -EINVAL);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(disk_calls_below_the_storage_alone_count),
		cmocka_unit_test(events_count_in_the_second_they_end_in),
		cmocka_unit_test(a_message_is_its_reads_from_the_first_to_the_last),
		cmocka_unit_test(other_readers_are_understood),
		cmocka_unit_test(messages_without_an_end_are_left_out),
		cmocka_unit_test(sockets_belong_to_servers_by_address),
		cmocka_unit_test(interleaved_streams_come_apart_again),
		cmocka_unit_test(logs_add_up_and_nodes_keep_apart),
		cmocka_unit_test(memory_does_not_grow_with_connections),
		cmocka_unit_test(a_log_cut_short_is_an_error),
		cmocka_unit_test(recorded_glusterfs_logs_give_what_was_done),
		cmocka_unit_test(a_spec_without_sense_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
