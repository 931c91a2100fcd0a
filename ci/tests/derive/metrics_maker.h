/* Builds logs and their metrics for tests. Include it after cmocka.h; not every test uses all of
 * it. */
#ifndef CULPRIT_CI_TESTS_DERIVE_METRICS_MAKER_H
#define CULPRIT_CI_TESTS_DERIVE_METRICS_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "diag/record/log.h"
#include "diag/derive/derive.h"
#include "diag/derive/message.h"
#include "harness/base/home.h"

#pragma GCC diagnostic ignored "-Wunused-function"

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
static void call_args(struct maker *m, uint32_t tid, const char *name, const uint64_t args[4],
	int64_t result, int64_t took_ns)
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

static void call(
	struct maker *m, uint32_t tid, const char *name, int fd, int64_t result, int64_t took_ns)
{
	const uint64_t args[4] = {(uint64_t)fd};

	call_args(m, tid, name, args, result, took_ns);
}

static void open_kind(struct maker *m, int fd, enum fd_kind kind, const char *path)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = m->now;
	r.fd.pid = m->pid;
	r.fd.fd = fd;
	r.fd.open = true;
	r.fd.kind = kind;
	r.fd.path = path;
	put(m, &r);
}

static void open_file(struct maker *m, int fd, const char *path)
{
	open_kind(m, fd, FD_FILE, path);
}

static inline void open_folder(struct maker *m, int fd, const char *path)
{
	open_kind(m, fd, FD_DIR, path);
}

static void open_socket(struct maker *m, int fd, const char *local, unsigned lport,
	const char *remote, unsigned rport)
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

static struct stream_server servers[2] = {
	{.name = "s1", .storage = "/srv/brick/"}, {.name = "s2", .storage = "/srv/brick"}};

static struct metrics *new_metrics(int seconds)
{
	struct metrics *m;
	struct err e;

	address(&servers[0].address, "10.0.0.1", 24007);
	address(&servers[1].address, "10.0.0.2", 24007);
	assert_int_equal(metrics_new(2, start_ns, seconds, &m, &e), 0);
	return m;
}

/* Adds a log of server 'self', or of a client daemon (-1). */
static int add_log(struct metrics *m, const char *path, int self, int64_t offset_ns, uint64_t *lost,
	struct err *e)
{
	const struct stream_spec spec = {.servers = servers,
		.n_servers = 2,
		.owner = self < 0 ? OWNER_DAEMON : OWNER_SERVER,
		.index = self < 0 ? 0 : self,
		.clock_offset_ns = offset_ns};

	return derive_log(path, &spec, m, NULL, lost, e);
}

static struct metrics *read_log(struct maker *m, int self, int seconds, int64_t offset_ns)
{
	struct metrics *metrics = new_metrics(seconds);
	uint64_t lost = 99;
	struct err e;

	finish(m, 0);
	assert_int_equal(add_log(metrics, m->path, self, offset_ns, &lost, &e), 0);
	assert_int_equal(lost, 0);
	discard(m);
	return metrics;
}

/* Sums all samples of a metric and server. */
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

static void expect(
	struct metrics *m, enum metric metric, uint32_t server, uint64_t count, double sum_s)
{
	struct sample t = total(m, metric, server);

	assert_int_equal(t.count, count);
	assert_float_equal(t.sum_s, sum_s, 1e-8);
}

#endif
