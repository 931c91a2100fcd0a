/* Tests events derived from synthetic logs with known events. */
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
#include <signal.h>
#include <unistd.h>

#include "diag/record/log.h"
#include "diag/derive/derive.h"

enum { PID = 50, SERVERS = 3, SECONDS = 30 };

static const int64_t start_ns = 1700000000000000000;

static struct log {
	char path[64];
	struct log_writer *w;
	uint64_t seq;
} logs;

static struct stream_server servers[SERVERS];

static void address(struct sockaddr_storage *out, int host, unsigned port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	in->sin_addr.s_addr = htonl(0x0a000000u + (unsigned)host);
}

static struct events *new_table(void)
{
	struct events *s;
	struct err e;

	for (int i = 0; i < SERVERS; i++) {
		servers[i].name = "s";
		servers[i].storage = "/srv/brick/";
		address(&servers[i].address, i + 1, 24007);
	}
	assert_int_equal(events_new(SERVERS, start_ns, SECONDS, &s, &e), 0);
	return s;
}

static void begin(void)
{
	struct err e;

	snprintf(logs.path, sizeof(logs.path), "/tmp/events_test.%d", getpid());
	unlink(logs.path);
	assert_int_equal(log_writer_new(logs.path, "ptrace", &logs.w, &e), 0);
}

static void end(void)
{
	struct err e;

	assert_int_equal(log_writer_end(logs.w, 0, &e), 0);
}

static void put(struct record *r)
{
	struct err e;

	assert_int_equal(log_write(logs.w, r, &e), 0);
}

/* A call that ends 'end_s' after the start and took 'took_s'. */
static void call_by(uint32_t tid, double end_s, double took_s, const char *name, uint64_t a0,
	uint64_t a1, uint64_t a2, int64_t result)
{
	struct record r = {.type = RECORD_CALL};

	r.call.seq = ++logs.seq;
	r.call.start_ns = start_ns + (int64_t)((end_s - took_s) * 1e9);
	r.call.service_ns = (int64_t)(took_s * 1e9);
	r.call.pid = PID;
	r.call.tid = tid;
	r.call.nr = (uint32_t)call_number("x86_64", name);
	r.call.args[0] = a0;
	r.call.args[1] = a1;
	r.call.args[2] = a2;
	if (!strcmp(name, "mmap"))
		r.call.args[3] = 0x22; /* private, anonymous: the descriptor does not matter */
	r.call.result = result;
	r.call.offset = -1;
	put(&r);
}

static void call(double end_s, const char *name, uint64_t a0, int64_t result)
{
	call_by(PID, end_s, 0.001, name, a0, 0, 0, result);
}

static void hanging(double start_s, double until_s, const char *name, uint64_t a0)
{
	struct record r = {.type = RECORD_CALL};

	r.call.start_ns = start_ns + (int64_t)(start_s * 1e9);
	r.call.service_ns = (int64_t)((until_s - start_s) * 1e9);
	r.call.pid = r.call.tid = PID;
	r.call.nr = (uint32_t)call_number("x86_64", name);
	r.call.args[0] = a0;
	r.call.unfinished = true;
	r.call.offset = -1;
	put(&r);
}

static void descriptor(double at_s, int fd, const char *path)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = start_ns + (int64_t)(at_s * 1e9);
	r.fd.pid = PID;
	r.fd.fd = fd;
	r.fd.open = true;
	r.fd.kind = FD_FILE;
	r.fd.path = path;
	put(&r);
}

static void socket_to(double at_s, int fd, int host)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = start_ns + (int64_t)(at_s * 1e9);
	r.fd.pid = PID;
	r.fd.fd = fd;
	r.fd.open = true;
	r.fd.kind = FD_SOCKET;
	r.fd.path = "socket:[1]";
	r.fd.sock_type = SOCK_STREAM;
	address(&r.fd.local, 99, 49000);
	address(&r.fd.remote, host, 24007);
	put(&r);
}

static void closed(double at_s, int fd)
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = start_ns + (int64_t)(at_s * 1e9);
	r.fd.pid = PID;
	r.fd.fd = fd;
	put(&r);
}

/* One whole answer: a wake-up, the record mark and the body. */
static void answer(uint32_t tid, double at_s, int fd)
{
	call_by(tid, at_s, 0.0001, "epoll_wait", 3, 0, 0, 1);
	call_by(tid, at_s + 0.0001, 0.0001, "readv", (uint64_t)fd, 0x5000, 1, 4);
	call_by(tid, at_s + 0.0002, 0.0001, "readv", (uint64_t)fd, 0x6000, 1, 488);
}

static void request(uint32_t tid, double at_s, int fd, uint64_t at, int64_t bytes)
{
	call_by(tid, at_s, 0.0001, "writev", (uint64_t)fd, at, 3, bytes);
	call_by(tid, at_s + 0.0001, 0.0001, "futex", 0x7000, 0, 0, 0);
}

/* The n-th event of a kind, or NULL. */
static const struct event *find(struct events *s, enum event_kind kind, size_t n)
{
	const struct event *ev;
	size_t count = events_list(s, &ev);

	for (size_t i = 0; i < count; i++)
		if (ev[i].kind == kind && !n--)
			return &ev[i];
	return NULL;
}

static size_t count(struct events *s, enum event_kind kind)
{
	size_t n = 0;

	while (find(s, kind, n))
		n++;
	return n;
}

/* The state of a link at a moment, from the interval that covers it; or LINK_NONE. */
static enum link_state state_at(struct events *s, int server, double at_s, uint32_t *waiting)
{
	const struct event *ev;

	for (size_t i = 0; (ev = find(s, EVENT_LINK_QUIET, i)); i++)
		if (ev->server == server && ev->first_s <= at_s && at_s <= ev->last_s) {
			*waiting = ev->waiting;
			return ev->state;
		}
	return LINK_NONE;
}

static int add_log(
	struct events *s, enum stream_owner owner, int32_t index, int64_t offset_ns, struct err *e)
{
	const struct stream_spec spec = {.servers = servers,
		.n_servers = SERVERS,
		.owner = owner,
		.index = index,
		.mount = "/mnt/fs",
		.clock_offset_ns = offset_ns};

	return derive_log(logs.path, &spec, NULL, s, NULL, e);
}

static struct events *read_server(int64_t offset_ns)
{
	struct events *s = new_table();
	struct err e;

	end();
	assert_int_equal(add_log(s, OWNER_SERVER, 1, offset_ns, &e), 0);
	unlink(logs.path);
	return s;
}

static struct events *read_app(void)
{
	struct events *s = new_table();
	struct err e;

	end();
	assert_int_equal(add_log(s, OWNER_APP, 4, 0, &e), 0);
	unlink(logs.path);
	return s;
}

static struct events *read_daemon(void)
{
	struct events *s = new_table();
	struct err e;

	end();
	assert_int_equal(add_log(s, OWNER_DAEMON, 0, 0, &e), 0);
	unlink(logs.path);
	return s;
}

static void failures_within_a_second_are_one_event(void **state)
{
	struct events *s;
	const struct event *ev;

	(void)state;
	begin();
	for (int i = 0; i < 100; i++)
		call(5 + 0.99 * i / 10, "openat", (uint64_t)-100, -EMFILE);
	call(20, "openat", (uint64_t)-100, -EMFILE);
	call(20.5, "openat", (uint64_t)-100, -ENFILE);
	s = read_server(0);
	assert_int_equal(count(s, EVENT_SERVER_ERROR), 3);
	ev = find(s, EVENT_SERVER_ERROR, 0);
	assert_string_equal(ev->call, "openat");
	assert_string_equal(ev->error, "EMFILE");
	assert_int_equal(ev->server, 1);
	assert_int_equal(ev->count, 100);
	assert_true(fabs(ev->first_s - 5) < 1e-6 && fabs(ev->last_s - (5 + 0.99 * 9.9)) < 1e-6);
	assert_int_equal(find(s, EVENT_SERVER_ERROR, 1)->count, 1);
	assert_string_equal(find(s, EVENT_SERVER_ERROR, 2)->error, "ENFILE");
	events_free(s);
}

static void places_name_the_object_of_a_call(void **state)
{
	static const struct {
		const char *call;
		uint64_t a0;
		enum event_place place;
	} cases[] = {
		{"pwrite64", 7, PLACE_STORAGE},
		{"pwrite64", 8, PLACE_OTHER},
		{"mmap", 0, PLACE_MEMORY},
		{"openat", (uint64_t)-100, PLACE_PATH},
		{"openat", 7, PLACE_STORAGE},
		{"lsetxattr", 1, PLACE_PATH},
		{"clone", 0, PLACE_PROCESS},
		{"accept4", 9, PLACE_SOCKET},
		{"futex", 1, PLACE_OTHER},
	};
	struct events *s;

	(void)state;
	begin();
	descriptor(0, 7, "/srv/brick/.shard/x");
	descriptor(0, 8, "/srv/brick2/x");
	descriptor(0, 0, "/dev/null");
	socket_to(0, 9, 7);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		call((double)i + 1, cases[i].call, cases[i].a0, -EIO);
	s = read_server(0);
	assert_int_equal(count(s, EVENT_SERVER_ERROR), sizeof(cases) / sizeof(cases[0]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(find(s, EVENT_SERVER_ERROR, i)->place, cases[i].place);
	events_free(s);
}

/* A write of 'bytes' at 'offset' of descriptor 7. */
static void pwrite_at(double at_s, int64_t offset, uint64_t bytes, int64_t result)
{
	struct record r = {.type = RECORD_CALL};

	r.call.seq = ++logs.seq;
	r.call.start_ns = start_ns + (int64_t)(at_s * 1e9);
	r.call.pid = r.call.tid = PID;
	r.call.nr = (uint32_t)call_number("x86_64", "pwrite64");
	r.call.args[0] = 7;
	r.call.args[2] = bytes;
	r.call.args[3] = (uint64_t)offset;
	r.call.result = result;
	r.call.offset = offset;
	put(&r);
}

static void calls_that_a_server_repeats_are_counted(void **state)
{
	struct events *s;
	const struct event *ev;

	(void)state;
	begin();
	descriptor(0, 7, "/srv/brick/a");
	pwrite_at(1, 0, 4096, -EINVAL);
	pwrite_at(1.1, 8192, 4096, -EINVAL);
	pwrite_at(1.2, 1 << 20, 1 << 20, -EINVAL);
	pwrite_at(1.3, 0, 4096, 4096);    /* repeated whole */
	pwrite_at(1.4, 8192, 1000, 1000); /* repeated in pieces, the second too short at first */
	pwrite_at(1.5, 9192, 3096, 3000);
	pwrite_at(1.6, 12192, 96, 96);
	/* without the beginning of the failed range */
	pwrite_at(1.7, (1 << 20) + 4096, 1 << 20, 1 << 20);
	call_by(PID, 5, 0.001, "ftruncate", 7, 500, 0, -EFBIG);
	call_by(PID, 5.5, 0.001, "ftruncate", 7, 400, 0, 0); /* another length */
	call_by(PID, 8, 0.001, "fdatasync", 7, 0, 0, -EIO);
	call_by(PID, 8.1, 0.001, "fdatasync", 7, 0, 0, 0); /* does not bring the data back */
	pwrite_at(9, 0, 4096, -EIO);
	descriptor(10, 7, "/srv/brick/b");
	pwrite_at(11, 0, 4096, 4096); /* another file */
	pwrite_at(12, 4096, 4096, -EIO);
	pwrite_at(23, 4096, 4096, 4096); /* too late for a repetition */
	call_by(PID, 24, 0.001, "writev", 7, 0x1000, 3, -EIO);
	s = read_server(0);
	ev = find(s, EVENT_SERVER_ERROR, 0);
	assert_int_equal(ev->count, 3);
	assert_int_equal(ev->redone, 2);
	assert_int_equal(ev->bytes, 1 << 20);
	for (size_t i = 1; (ev = find(s, EVENT_SERVER_ERROR, i)); i++)
		assert_int_equal(ev->redone, 0);
	assert_int_equal(count(s, EVENT_SERVER_ERROR), 6);
	assert_int_equal(find(s, EVENT_SERVER_ERROR, 3)->bytes, 4096);
	assert_int_equal(find(s, EVENT_SERVER_ERROR, 5)->bytes, 0);
	assert_int_equal(count(s, EVENT_APP_DONE), 0);
	events_free(s);
}

static void many_failures_take_little_memory(void **state)
{
	struct events *s;

	(void)state;
	begin();
	descriptor(0, 7, "/srv/brick/a");
	for (int i = 0; i < 20000; i++)
		pwrite_at(1 + i * 1e-4, (int64_t)i * 4096, 4096, -EIO);
	for (int i = 0; i < 20000; i++)
		pwrite_at(4 + i * 1e-4, (int64_t)i * 4096, 4096, 4096);
	s = read_server(0);
	assert_int_equal(count(s, EVENT_SERVER_ERROR), 1);
	assert_int_equal(find(s, EVENT_SERVER_ERROR, 0)->count, 20000);
	assert_int_equal(find(s, EVENT_SERVER_ERROR, 0)->redone, 1024); /* the newest are kept */
	events_free(s);
}

static void successful_calls_of_applications_are_kept(void **state)
{
	struct events *s;
	const struct event *ev;

	(void)state;
	begin();
	descriptor(0, 7, "/mnt/fs/a");
	descriptor(0, 8, "/tmp/a");
	pwrite_at(1, 0, 4096, 4096);
	pwrite_at(1.5, 4096, 4096, 100); /* less than it asked for */
	call(2, "write", 8, 10);
	call(2.1, "read", 7, 10);
	call(2.2, "fsync", 7, 0);
	pwrite_at(3, 4096, 4096, -EIO);
	call(4, "close", 7, 0);
	s = read_app();
	assert_int_equal(count(s, EVENT_APP_DONE), 3);
	ev = find(s, EVENT_APP_DONE, 0);
	assert_string_equal(ev->call, "pwrite64");
	assert_int_equal(ev->client, 4);
	assert_int_equal(ev->count, 2);
	assert_int_equal(ev->bytes, 4196);
	assert_true(!ev->error);
	assert_string_equal(find(s, EVENT_APP_DONE, 1)->call, "fsync");
	assert_string_equal(find(s, EVENT_APP_DONE, 2)->call, "close");
	assert_int_equal(count(s, EVENT_APP_ERROR), 1);
	events_free(s);
}

static void interrupted_calls_have_not_failed(void **state)
{
	struct events *s;

	(void)state;
	begin();
	call(1, "read", 3, -EINTR);
	call(2, "read", 3, -512);
	call(3, "read", 3, -516);
	hanging(1, 9, "read", 3);
	s = read_server(0);
	assert_int_equal(count(s, EVENT_SERVER_ERROR), 0);
	events_free(s);
}

static void clocks_are_corrected_and_events_outside_left_out(void **state)
{
	struct events *s;

	(void)state;
	begin();
	call(2.5, "openat", (uint64_t)-100, -EROFS);
	call(2.5 + SECONDS, "openat", (uint64_t)-100, -EIO);
	call(3.5 + SECONDS, "openat", (uint64_t)-100, -ENOSPC);
	s = read_server(3000000000);
	assert_int_equal(count(s, EVENT_SERVER_ERROR), 1);
	assert_string_equal(find(s, EVENT_SERVER_ERROR, 0)->error, "EIO");
	assert_true(fabs(find(s, EVENT_SERVER_ERROR, 0)->first_s - (SECONDS - 0.5)) < 1e-6);
	events_free(s);
}

static void ends_of_servers_are_events(void **state)
{
	struct record sig = {.type = RECORD_SIGNAL}, gone = {.type = RECORD_PROCESS};
	struct events *s;

	(void)state;
	sig.signal.start_ns = start_ns + 4000000000;
	sig.signal.pid = sig.signal.tid = PID;
	sig.signal.signo = SIGXFSZ;
	gone.process.start_ns = start_ns + 4000000001;
	gone.process.pid = PID;
	gone.process.tid = PID + 1;
	gone.process.what = PROCESS_EXIT;
	gone.process.status = SIGXFSZ;
	gone.process.name = "";
	begin();
	put(&sig);
	put(&gone);
	gone.process.tid = PID;
	put(&gone);
	gone.process.status = 3 << 8;
	gone.process.start_ns++;
	put(&gone);
	s = read_server(0);
	assert_string_equal(find(s, EVENT_SERVER_SIGNAL, 0)->signal, "XFSZ");
	assert_int_equal(count(s, EVENT_SERVER_END), 2);
	assert_string_equal(find(s, EVENT_SERVER_END, 0)->signal, "XFSZ");
	assert_null(find(s, EVENT_SERVER_END, 1)->signal);
	assert_int_equal(find(s, EVENT_SERVER_END, 1)->status, 3);
	events_free(s);
}

static void applications_fail_and_wait_on_the_mount(void **state)
{
	const struct event *ev;
	struct events *s;

	(void)state;
	begin();
	descriptor(0, 1, "/mnt/fs/run/dd.c1");
	descriptor(0, 2, "/tmp/out");
	descriptor(0, 3, "/mnt/fs2/x");
	call(1, "write", 1, -EROFS);
	call(1, "write", 2, -EIO);
	call(1, "write", 3, -EIO);
	call(2, "openat", (uint64_t)-100, -ENOTCONN);
	call_by(PID, 6, 2.5, "write", 1, 0, 0, 4096);
	call_by(PID, 7, 2.5, "wait4", 1, 0, 0, 4096);
	call_by(PID, 7, 0.9, "write", 1, 0, 0, 4096);
	call_by(PID, 9, 1.5, "fsync", 1, 0, 0, -EIO);
	hanging(12, 40, "write", 1);
	hanging(12, 40, "wait4", 1);
	s = read_app();
	assert_int_equal(count(s, EVENT_APP_ERROR), 3);
	assert_int_equal(find(s, EVENT_APP_ERROR, 0)->place, PLACE_MOUNT);
	assert_int_equal(find(s, EVENT_APP_ERROR, 0)->client, 4);
	assert_int_equal(find(s, EVENT_APP_ERROR, 1)->place, PLACE_PATH);
	assert_int_equal(count(s, EVENT_APP_SLOW), 3);
	ev = find(s, EVENT_APP_SLOW, 0);
	assert_true(fabs(ev->first_s - 3.5) < 1e-6 && fabs(ev->last_s - 6) < 1e-6 && !ev->open &&
		!ev->error);
	assert_string_equal(find(s, EVENT_APP_SLOW, 1)->error, "EIO");
	ev = find(s, EVENT_APP_SLOW, 2);
	assert_true(ev->open && fabs(ev->longest_s - 28) < 1e-6);
	events_free(s);
}

static void only_the_longest_calls_are_kept(void **state)
{
	struct events *s;
	const struct event *ev;
	bool longest = false, unfinished = false;

	(void)state;
	begin();
	descriptor(0, 1, "/mnt/fs/x");
	hanging(1, 1.5 + 1, "write", 1);
	for (int i = 0; i < 500; i++)
		call_by(PID, 20, 1 + (i * 37 % 500) / 100.0, "write", 1, 0, 0, 1);
	s = read_app();
	assert_int_equal(count(s, EVENT_APP_SLOW), 64);
	for (size_t i = 0; (ev = find(s, EVENT_APP_SLOW, i)); i++) {
		longest |= fabs(ev->longest_s - 5.99) < 1e-6;
		unfinished |= ev->open;
		assert_true(ev->open || ev->longest_s > 5.3);
	}
	assert_true(longest && unfinished);
	events_free(s);
}

static void a_request_without_answer_waits(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	for (int i = 0; i < SERVERS; i++)
		socket_to(0, 10 + i, i + 1);
	for (int i = 0; i < SERVERS; i++) {
		request(PID, 1 + 0.01 * i, 10 + i, 0x1000, 436);
		answer(PID + 1, 1.005 + 0.01 * i, 10 + i);
	}
	request(PID, 8, 11, 0x1000, 436);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 10, &waiting), LINK_ANSWERED);
	assert_int_equal(state_at(s, 2, 10, &waiting), LINK_ANSWERED);
	assert_int_equal(state_at(s, 1, 3, &waiting), LINK_ANSWERED);
	assert_int_equal(state_at(s, 1, 10, &waiting), LINK_WAITING);
	assert_int_equal(waiting, 1);
	events_free(s);
}

/* The last call alone misjudges this case: it is a read, and requests are still open. */
static void requests_sent_ahead_are_counted(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	for (int i = 0; i < 5; i++)
		request(PID, 1 + 0.001 * i, 10, 0x1000 + 0x100 * (uint64_t)i, 436);
	answer(PID + 1, 1.1, 10);
	answer(PID + 2, 1.2, 10);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 10, &waiting), LINK_WAITING);
	assert_int_equal(waiting, 3);
	events_free(s);
}

/* Several whole requests in a row count separately; pieces of one request do not, whether the
 * socket has room at once or later. */
static void pieces_of_a_request_are_one(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	call_by(PID, 1.000, 0.0001, "writev", 10, 0x1000, 4, 131260);
	call_by(PID, 1.001, 0.0001, "writev", 10, 0x2000, 4, 131260);
	call_by(PID, 1.002, 0.0001, "writev", 10, 0x3000, 4, 40000);
	call_by(PID, 1.003, 0.0001, "writev", 10, 0x3030, 1, 20000);
	call_by(PID, 1.004, 0.0001, "writev", 10, 0x3030, 1, -EAGAIN);
	call_by(PID, 1.005, 0.0001, "futex", 0, 0, 0, 0);
	call_by(PID + 1, 1.006, 0.0001, "writev", 10, 0x3030, 1, 71260);
	/* No room for even the first byte: the request has not begun. */
	call_by(PID + 1, 1.007, 0.0001, "writev", 10, 0x4000, 4, -EAGAIN);
	call_by(PID + 1, 1.008, 0.0001, "epoll_wait", 3, 0, 0, 1);
	call_by(PID + 1, 1.009, 0.0001, "writev", 10, 0x4000, 4, 131260);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 10, &waiting), LINK_WAITING);
	assert_int_equal(waiting, 4);
	events_free(s);
}

/* An answer may precede its request in the log, and a log may begin in the middle of an
 * exchange. */
static void answers_without_request_do_not_count(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	answer(PID + 1, 0.5, 10);
	answer(PID + 2, 0.6, 10);
	answer(PID + 1, 1.0, 10);
	call_by(PID, 1.001, 0.01, "writev", 10, 0x1000, 3, 436);
	call(5, "futex", 0, 0);
	request(PID, 7, 10, 0x1000, 436);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 3, &waiting), LINK_ANSWERED);
	assert_int_equal(state_at(s, 0, 10, &waiting), LINK_WAITING);
	assert_int_equal(waiting, 1);
	events_free(s);
}

/* One write of several requests from a queue; the socket takes only a part of them. */
static void batch(double at_s, int64_t bytes)
{
	call_by(PID, at_s, 0.0001, "sendmsg", 10, 0x1000, 0, bytes);
}

/* Ceph's messenger sends several requests in one write and takes several answers in one read, so
 * their numbers mean nothing. */
static void answers_in_one_read_leave_no_open_requests(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	for (int round = 0; round < 3; round++) {
		double at = 1 + 6 * round;

		for (int i = 0; i < 4; i++) {
			batch(at + 0.1 * i, 131391);
			call_by(PID, at + 0.1 * i + 0.01, 0.0001, "futex", 0, 0, 0, 0);
		}
		call_by(PID + 1, at + 0.5, 0.0001, "epoll_wait", 3, 0, 0, 1);
		call_by(PID + 1, at + 0.501, 0.0001, "read", 10, 0x5000, 4096, 1016);
	}
	call(28, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 4, &waiting), LINK_ANSWERED);
	assert_int_equal(state_at(s, 0, 10, &waiting), LINK_ANSWERED);
	assert_int_equal(state_at(s, 0, 20, &waiting), LINK_ANSWERED);
	events_free(s);
}

/* The reverse: more answers than writes of requests, and then silence after a request. An
 * unanswered ping in between does not mean that the link is idle. */
static void a_last_request_is_open_with_any_count(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	batch(1, 586440);
	for (int i = 0; i < 4; i++)
		answer(PID + 1, 1.1 + 0.01 * i, 10);
	batch(1.141, 260640);
	call(1.15, "futex", 0, 0);
	batch(11, 77);
	answer(PID + 1, 14, 10);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 5, &waiting), LINK_WAITING);
	assert_int_equal(state_at(s, 0, 13, &waiting), LINK_WAITING);
	assert_int_equal(state_at(s, 0, 19, &waiting), LINK_ANSWERED);
	events_free(s);
}

/* The last transfer and the next one are reads: the server owed something, although as many answers
 * as requests were counted. */
static void unrequested_data_was_owed(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	batch(1, 586440);
	answer(PID + 1, 1.1, 10);
	answer(PID + 1, 9, 10);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 5, &waiting), LINK_WAITING);
	assert_int_equal(state_at(s, 0, 15, &waiting), LINK_ANSWERED);
	events_free(s);
}

/* Idle, busy and soon answered links leave no event. */
static void only_long_intervals_are_kept(void **state)
{
	struct events *s;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	for (int i = 0; i < 6; i++) {
		request(PID, 4.0 * i, 10, 0x1000, 436);
		answer(PID + 1, 4.0 * i + 0.4, 10);
	}
	request(PID, 24, 10, 0x1000, 436);
	answer(PID + 1, 24.7, 10);
	call(26, "futex", 0, 0);
	s = read_daemon();
	/* The links of the other two servers, which were silent; the one that owed an answer for
	 * 0.7 s; and that one again until the log's end, whose record has today's time. */
	assert_int_equal(count(s, EVENT_LINK_QUIET), 4);
	assert_int_equal(find(s, EVENT_LINK_QUIET, 2)->state, LINK_WAITING);
	assert_true(fabs(find(s, EVENT_LINK_QUIET, 2)->first_s - 24) < 1e-6);
	events_free(s);
}

static void a_lost_connection_has_ended_until_data_moves(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	request(PID, 1, 10, 0x1000, 436);
	call(2, "readv", 10, -ECONNRESET);
	call(2.001, "close", 10, 0);
	closed(2.001, 10);
	for (int i = 0; i < 4; i++) {
		socket_to(5 + 3 * i, 12, 1);
		closed(5.01 + 3 * i, 12);
	}
	socket_to(17, 12, 1);
	request(PID, 17.1, 12, 0x1000, 148);
	answer(PID, 17.2, 12);
	call(25, "futex", 0, 0);
	s = read_daemon();
	assert_string_equal(find(s, EVENT_LINK_END, 0)->error, "ECONNRESET");
	assert_int_equal(state_at(s, 0, 2.0001, &waiting), LINK_ENDED);
	assert_int_equal(state_at(s, 0, 15, &waiting), LINK_ENDED);
	assert_int_equal(state_at(s, 0, 19, &waiting), LINK_ANSWERED);
	assert_int_equal(waiting, 0);
	events_free(s);
}

static void the_end_of_a_stream_and_refused_connections_are_ends(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	socket_to(0, 10, 1);
	socket_to(0, 11, 2);
	socket_to(0, 12, 3);
	call(3, "readv", 10, 0);
	call(3, "connect", 11, -ECONNREFUSED);
	call(3, "connect", 12, -EINPROGRESS);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(count(s, EVENT_LINK_END), 2);
	assert_int_equal(state_at(s, 0, 4, &waiting), LINK_ENDED);
	assert_int_equal(state_at(s, 1, 4, &waiting), LINK_ENDED);
	assert_int_equal(state_at(s, 2, 4, &waiting), LINK_ANSWERED);
	events_free(s);
}

/* The error of a link's interval at a moment; "" if it has none. */
static const char *error_at(struct events *s, int server, double at_s)
{
	const struct event *ev;

	for (size_t i = 0; (ev = find(s, EVENT_LINK_QUIET, i)); i++)
		if (ev->server == server && ev->first_s <= at_s && at_s <= ev->last_s)
			return ev->error ? ev->error : "";
	return "none";
}

static void a_connection_closed_by_the_client_is_not_lost(void **state)
{
	struct events *s;
	uint32_t waiting;

	(void)state;
	begin();
	/* One connection is closed while idle, and its server then refuses another; one is closed
	 * with an open request. */
	socket_to(0, 10, 1);
	request(PID, 1, 10, 0x1000, 436);
	answer(PID, 1.1, 10);
	socket_to(0, 11, 2);
	request(PID, 2, 11, 0x1000, 436);
	call(3, "close", 10, 0);
	closed(3, 10);
	call(3.1, "close", 11, 0);
	closed(3.1, 11);
	socket_to(5, 10, 1);
	call(6, "connect", 10, -ECONNREFUSED);
	call(20, "futex", 0, 0);
	s = read_daemon();
	assert_int_equal(state_at(s, 0, 4, &waiting), LINK_ENDED);
	assert_int_equal(waiting, 0);
	assert_string_equal(error_at(s, 0, 4), "");
	assert_string_equal(error_at(s, 0, 10), "ECONNREFUSED");
	assert_int_equal(state_at(s, 1, 4, &waiting), LINK_ENDED);
	assert_int_equal(waiting, 1);
	events_free(s);
}

static void a_log_cut_short_is_refused(void **state)
{
	struct events *s = new_table();
	struct err e;

	(void)state;
	begin();
	call(1, "openat", (uint64_t)-100, -EIO);
	assert_int_equal(log_flush(logs.w, &e), 0);
	log_writer_free(logs.w);
	assert_int_equal(add_log(s, OWNER_SERVER, 0, 0, &e), -EBADMSG);
	unlink(logs.path);
	assert_int_equal(add_log(s, OWNER_SERVER, SERVERS, 0, &e), -EINVAL);
	assert_int_equal(add_log(s, OWNER_DAEMON, 0, 0, &e), -ENOENT);
	events_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_within_a_second_are_one_event),
		cmocka_unit_test(places_name_the_object_of_a_call),
		cmocka_unit_test(calls_that_a_server_repeats_are_counted),
		cmocka_unit_test(many_failures_take_little_memory),
		cmocka_unit_test(successful_calls_of_applications_are_kept),
		cmocka_unit_test(interrupted_calls_have_not_failed),
		cmocka_unit_test(clocks_are_corrected_and_events_outside_left_out),
		cmocka_unit_test(ends_of_servers_are_events),
		cmocka_unit_test(applications_fail_and_wait_on_the_mount),
		cmocka_unit_test(only_the_longest_calls_are_kept),
		cmocka_unit_test(a_request_without_answer_waits),
		cmocka_unit_test(requests_sent_ahead_are_counted),
		cmocka_unit_test(pieces_of_a_request_are_one),
		cmocka_unit_test(answers_without_request_do_not_count),
		cmocka_unit_test(answers_in_one_read_leave_no_open_requests),
		cmocka_unit_test(a_last_request_is_open_with_any_count),
		cmocka_unit_test(unrequested_data_was_owed),
		cmocka_unit_test(only_long_intervals_are_kept),
		cmocka_unit_test(a_lost_connection_has_ended_until_data_moves),
		cmocka_unit_test(the_end_of_a_stream_and_refused_connections_are_ends),
		cmocka_unit_test(a_connection_closed_by_the_client_is_not_lost),
		cmocka_unit_test(a_log_cut_short_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
