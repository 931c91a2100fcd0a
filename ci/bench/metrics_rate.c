/*
 * Rate at which one core reads a log, and peak memory: for metrics alone, and with every consumer
 * of a run attached (metrics and events).
 *
 *     metrics_rate FILE RECORDS
 *
 * writes FILE, a log like that of a GlusterFS brick under dd, reads it as a server's and as a
 * client daemon's, and removes it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "diag/derive/derive.h"

enum { CLIENTS = 10, POLLERS = 2, PID = 100 };

static const int64_t start_ns = 1700000000000000000;

static void fail(const struct err *e)
{
	fprintf(stderr, "metrics_rate: %s\n", e->text);
	exit(1);
}

/* Processor time, so that other programs on the machine do not count. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void address(struct sockaddr_storage *out, const char *ip, unsigned port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, ip, &in->sin_addr);
}

struct maker {
	struct log_writer *log;
	uint64_t seq;
	int64_t now;
};

static void put(struct maker *m, const char *name, uint32_t tid, int fd, int64_t result)
{
	struct record r = {.type = RECORD_CALL};
	struct err e;

	m->now += 700;
	r.call.seq = ++m->seq;
	r.call.start_ns = m->now;
	r.call.service_ns = 500 + (int64_t)(m->seq * 7919 % 4000);
	r.call.pid = PID;
	r.call.tid = tid;
	r.call.nr = (uint32_t)call_number("x86_64", name);
	r.call.args[0] = (uint64_t)fd;
	r.call.args[1] = 0x7f687c01bb44;
	r.call.args[2] = 1;
	r.call.result = result;
	r.call.offset = -1;
	if (log_write(m->log, &r, &e))
		fail(&e);
}

static void open_fds(struct maker *m)
{
	struct err e;

	for (int fd = 10; fd < 10 + CLIENTS + 1; fd++) {
		struct record r = {.type = RECORD_FD};

		r.fd.start_ns = m->now;
		r.fd.pid = PID;
		r.fd.fd = fd;
		r.fd.open = true;
		r.fd.kind = fd < 10 + CLIENTS ? FD_SOCKET : FD_FILE;
		r.fd.path = fd < 10 + CLIENTS ? "socket:[1]" : "/srv/brick/.glusterfs/aa/bb/file";
		if (r.fd.kind == FD_SOCKET) {
			address(&r.fd.local, "10.77.0.11", 24007);
			address(&r.fd.remote, "10.77.0.31", 40000 + (unsigned)fd);
			r.fd.sock_type = SOCK_STREAM;
		}
		if (log_write(m->log, &r, &e))
			fail(&e);
	}
}

static void make_log(const char *path, uint64_t records)
{
	struct maker m = {.now = start_ns};
	struct err e;

	if (log_writer_new(path, "ptrace", &m.log, &e))
		fail(&e);
	open_fds(&m);
	while (m.seq < records) {
		int fd = 10 + (int)(m.seq / 20 % CLIENTS);
		uint32_t tid = PID + 1 + (uint32_t)(m.seq / 7 % POLLERS);

		put(&m, "epoll_wait", tid, 3, 1);
		put(&m, "readv", tid, fd, 4);
		put(&m, "readv", tid, fd, 1024);
		for (int i = 0; i < 4; i++) {
			put(&m, "readv", tid, fd, 2896);
			put(&m, "readv", tid, fd, 1448);
			put(&m, "readv", tid, fd, -11);
			put(&m, "epoll_ctl", tid, 3, 0);
			put(&m, "epoll_wait", tid, 3, 1);
		}
		put(&m, "readv", tid, fd, 25508);
		put(&m, "epoll_ctl", tid, 3, 0);
		put(&m, "futex", tid, 0, 0);
		put(&m, "pwrite64", PID + 9, 10 + CLIENTS, 131072);
		put(&m, "writev", PID + 9, fd, 344);
	}
	if (log_writer_end(m.log, 0, &e))
		fail(&e);
}

/* Reads the log once, as that of the server or of a client's daemon, and prints the rate. */
static void measure(const char *path, uint64_t records, enum stream_owner owner, bool with_events)
{
	struct stream_server server = {.name = "s1", .storage = "/srv/brick"};
	struct stream_spec spec = {.servers = &server, .n_servers = 1, .owner = owner};
	enum metric messages = owner == OWNER_SERVER ? METRIC_NSREAD : METRIC_NCREAD;
	const struct sample *samples;
	struct rusage before, after;
	struct events *ev = NULL;
	uint64_t n_messages = 0;
	struct metrics *m;
	double took;
	struct err e;

	address(&server.address, owner == OWNER_SERVER ? "10.77.0.11" : "10.77.0.31", 24007);
	if (owner == OWNER_DAEMON)
		((struct sockaddr_in *)&server.address)->sin_port = 0;
	getrusage(RUSAGE_SELF, &before);
	if (metrics_new(1, start_ns, 600, &m, &e) ||
		(with_events && events_new(1, start_ns, 600, &ev, &e)))
		fail(&e);
	took = -cpu_s();
	if (derive_log(path, &spec, m, ev, NULL, &e))
		fail(&e);
	took += cpu_s();
	getrusage(RUSAGE_SELF, &after);
	for (size_t i = 0, n = metrics_samples(m, &samples); i < n; i++)
		if (samples[i].metric == messages)
			n_messages += samples[i].count;
	printf("%s log, %s: %llu records in %.3f s: %.2f million a second; %llu messages; "
	       "%ld KiB more at the peak\n",
		owner == OWNER_SERVER ? "server" : "client",
		with_events ? "metrics and events" : "metrics", (unsigned long long)records, took,
		(double)records / took / 1e6, (unsigned long long)n_messages,
		after.ru_maxrss - before.ru_maxrss);
	metrics_free(m);
	events_free(ev);
}

int main(int argc, char **argv)
{
	uint64_t records;

	if (argc != 3) {
		fprintf(stderr, "usage: metrics_rate FILE RECORDS\n");
		return 2;
	}
	records = strtoull(argv[2], NULL, 10);
	make_log(argv[1], records);
	measure(argv[1], records, OWNER_SERVER, false);
	measure(argv[1], records, OWNER_SERVER, true);
	measure(argv[1], records, OWNER_DAEMON, true);
	unlink(argv[1]);
	return 0;
}
