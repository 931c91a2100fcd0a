/* Tests that metrics from a log of sums equal those from the calls that were summed up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ci/tests/built.h"
#include "diag/record/log.h"
#include "diag/derive/derive.h"

#define SECOND 1000000000LL

enum { PID = 50, SECONDS = 20 };

static const int64_t start_ns = 1700000000 * SECOND;
static char dir[] = "/tmp/culprit-metrics-sums-XXXXXX", calls_path[64], sums_path[64];
static struct stream_server servers[2];

static void address(struct sockaddr_storage *out, const char *ip, unsigned port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	assert_int_equal(inet_pton(AF_INET, ip, &in->sin_addr), 1);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(calls_path, sizeof(calls_path), "%s/calls", dir);
	snprintf(sums_path, sizeof(sums_path), "%s/sums", dir);
	servers[0] = (struct stream_server){.name = "s1", .storage = "/srv/brick"};
	servers[1] = (struct stream_server){.name = "s2", .storage = "/srv/brick"};
	address(&servers[0].address, "10.0.0.1", 24007);
	address(&servers[1].address, "10.0.0.2", 24007);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(calls_path);
	unlink(sums_path);
	return rmdir(dir);
}

static struct log_writer *begin(const char *path)
{
	struct log_writer *w;
	struct err e;

	unlink(path);
	assert_int_equal(log_writer_new(path, "ebpf", &w, &e), 0);
	return w;
}

static void put(struct log_writer *w, struct record rec)
{
	struct err e;

	if (log_write(w, &rec, &e))
		fail_msg("%s", e.text);
}

static void end(struct log_writer *w)
{
	struct err e;

	assert_int_equal(log_writer_end(w, 0, &e), 0);
}

/* Adds a log of server 'self', or of a client daemon (-1). */
static void add_log(
	struct metrics *m, struct events *ev, const char *path, int32_t self, int64_t offset_ns)
{
	const struct stream_spec spec = {.servers = servers,
		.n_servers = 2,
		.owner = self < 0 ? OWNER_DAEMON : OWNER_SERVER,
		.index = self < 0 ? 0 : self,
		.clock_offset_ns = offset_ns};
	struct err e;

	if (derive_log(path, &spec, m, ev, NULL, &e))
		fail_msg("%s", e.text);
}

static struct metrics *measure(const char *path, int32_t self, int64_t offset_ns, int64_t from_ns)
{
	struct metrics *m;
	struct err e;

	assert_int_equal(metrics_new(2, from_ns, SECONDS, &m, &e), 0);
	add_log(m, NULL, path, self, offset_ns);
	return m;
}

/* One sum, as a tracer writes it. */
static struct record sum(int second, enum call_class class, enum fd_class fd_class, uint64_t count)
{
	struct record r = {.type = RECORD_SUM};

	r.sum = (struct record_sum){
		.start_ns = start_ns + second * SECOND,
		.pid = PID,
		.class = (uint8_t) class,
		.fd_class = (uint8_t)fd_class,
		.selected = true,
		.count = count,
		.bytes = count * 100,
		.total_ns = count * 2000000,
		.max_ns = 3000000,
	};
	r.sum.histogram[20] = (uint32_t)count;
	return r;
}

static void open_file(struct log_writer *w)
{
	struct record r = {.type = RECORD_FD,
		.fd = {.start_ns = start_ns,
			.pid = PID,
			.fd = 3,
			.open = true,
			.kind = FD_FILE,
			.path = "/srv/brick/x"}};

	put(w, r);
}

static struct record call(int64_t end_ns, const char *name, int64_t result, int64_t took_ns)
{
	struct record r = {.type = RECORD_CALL};

	r.call = (struct record_call){
		.start_ns = end_ns - took_ns,
		.service_ns = took_ns,
		.pid = PID,
		.tid = PID,
		.nr = (uint32_t)call_number("x86_64", name),
		.args = {3},
		.result = result,
		.offset = -1,
	};
	return r;
}

static uint64_t dice(uint64_t n)
{
	static uint64_t v = 4242;

	v ^= v << 13;
	v ^= v >> 7;
	v ^= v << 17;
	return v % n;
}

/* Adds a call to the sum of its class, as the kernel program does. */
static void add(struct record_sum *s, int64_t result, uint64_t took_ns)
{
	s->count++;
	s->total_ns += took_ns;
	if (result < 0) {
		s->failed++;
		s->failed_ns += took_ns;
		s->errors += result != -EAGAIN;
		return;
	}
	s->bytes += (uint64_t)result;
	if (took_ns > s->max_ns)
		s->max_ns = took_ns;
}

static void sums_give_the_metrics_of_their_calls(void **state)
{
	struct log_writer *calls = begin(calls_path), *sums = begin(sums_path);
	const struct sample *a, *b;
	struct metrics *m, *n;
	size_t samples;

	(void)state;
	open_file(calls);
	for (int second = 0; second < SECONDS; second++) {
		struct record read = sum(second, CALL_READ, FD_CLASS_DISK, 0),
			      write = sum(second, CALL_WRITE, FD_CLASS_DISK, 0);
		int64_t ns = start_ns + second * SECOND;

		read.sum.max_ns = write.sum.max_ns = 0;
		for (uint64_t i = dice(50); i && second != 7; i--) {
			bool reads = dice(2);
			int64_t result = dice(5) ? (int64_t)dice(100000) : dice(2) ? -EAGAIN : -EIO;
			uint64_t took_ns = 1 + dice(SECOND / 100);

			ns += (int64_t)dice(SECOND / 50);
			put(calls,
				call(ns, reads ? "preadv" : "pwrite64", result, (int64_t)took_ns));
			add(reads ? &read.sum : &write.sum, result, took_ns);
		}
		put(sums, read);
		put(sums, write);
	}
	end(calls);
	end(sums);
	m = measure(calls_path, 0, 0, start_ns);
	n = measure(sums_path, 0, 0, start_ns);
	samples = metrics_samples(m, &a);
	assert_true(samples > SECONDS);
	assert_int_equal(metrics_samples(n, &b), samples);
	for (size_t i = 0; i < samples; i++) {
		assert_int_equal(a[i].metric, b[i].metric);
		assert_int_equal(a[i].second, b[i].second);
		assert_int_equal(a[i].count, b[i].count);
		assert_int_equal(a[i].bytes, b[i].bytes);
		assert_float_equal(a[i].sum_s, b[i].sum_s, 1e-9);
		assert_float_equal(a[i].max_s, b[i].max_s, 1e-12);
	}
	metrics_free(m);
	metrics_free(n);
}

/* The only sample of a metric; fails if there are several. */
static struct sample only(struct metrics *m, enum metric metric)
{
	struct sample found = {0};
	const struct sample *s;

	for (size_t i = 0, n = metrics_samples(m, &s); i < n; i++)
		if (s[i].metric == metric) {
			assert_int_equal(found.count, 0);
			found = s[i];
		}
	return found;
}

static void files_count_if_they_are_selected(void **state)
{
	struct log_writer *w = begin(sums_path);
	struct record r = sum(3, CALL_READ, FD_CLASS_DISK, 5);
	struct metrics *m;

	(void)state;
	put(w, r);
	r.sum.selected = false;
	put(w, r);
	put(w, sum(3, CALL_READ, FD_CLASS_OTHER, 7));
	put(w, sum(3, CALL_READ, FD_CLASS_NONE, 7));
	put(w, sum(3, CALL_SYNC, FD_CLASS_DISK, 7));
	put(w, sum(3, CALL_READ, FD_CLASS_SERVER, 7));
	end(w);
	m = measure(sums_path, 0, 0, start_ns);
	assert_int_equal(only(m, METRIC_DREAD).count, 5);
	assert_int_equal(only(m, METRIC_DREAD).bytes, 500);
	assert_int_equal(only(m, METRIC_DREAD).second, 3);
	assert_float_equal(only(m, METRIC_DREAD).sum_s, 0.010, 1e-12);
	assert_float_equal(only(m, METRIC_DREAD).max_s, 0.003, 1e-12);
	assert_int_equal(only(m, METRIC_DWRITE).count, 0);
	assert_int_equal(only(m, METRIC_NSREAD).count, 0);
	metrics_free(m);
	m = measure(sums_path, -1, 0, start_ns);
	assert_int_equal(only(m, METRIC_DREAD).count, 0);
	metrics_free(m);
}

static void a_sum_of_failed_calls_is_no_sample(void **state)
{
	struct log_writer *w = begin(sums_path);
	struct record r = sum(3, CALL_WRITE, FD_CLASS_DISK, 5);
	const struct sample *s;
	struct metrics *m;

	(void)state;
	r.sum.failed = r.sum.errors = 5;
	r.sum.failed_ns = r.sum.total_ns;
	put(w, r);
	end(w);
	m = measure(sums_path, 0, 0, start_ns);
	assert_int_equal(metrics_samples(m, &s), 0);
	metrics_free(m);
}

static void messages_belong_to_servers_by_address(void **state)
{
	struct log_writer *w = begin(sums_path);
	struct record r = sum(1, CALL_READ, FD_CLASS_SERVER, 4);
	struct metrics *m;

	(void)state;
	address(&r.sum.local, "10.0.0.1", 24007);
	address(&r.sum.remote, "10.0.0.9", 0);
	put(w, r); /* reads, not messages */
	r.sum.messages = true;
	put(w, r);
	address(&r.sum.local, "10.0.0.1", 22);
	put(w, r);
	r = sum(1, CALL_READ, FD_CLASS_CLIENT, 6);
	r.sum.messages = true;
	address(&r.sum.remote, "10.0.0.2", 24007);
	put(w, r);
	address(&r.sum.remote, "10.0.0.3", 24007);
	put(w, r);
	end(w);
	m = measure(sums_path, 0, 0, start_ns);
	assert_int_equal(only(m, METRIC_NSREAD).count, 4);
	assert_int_equal(only(m, METRIC_NSREAD).server, 0);
	assert_int_equal(only(m, METRIC_NCREAD).count, 0);
	metrics_free(m);
	m = measure(sums_path, -1, 0, start_ns);
	assert_int_equal(only(m, METRIC_NCREAD).count, 6);
	assert_int_equal(only(m, METRIC_NCREAD).server, 1);
	assert_int_equal(only(m, METRIC_NSREAD).count, 0);
	metrics_free(m);
}

/* The tracer has classified the messages; the reader need not know its rule. */
static void bulk_data_is_measured_separately(void **state)
{
	struct log_writer *w = begin(sums_path);
	struct record r = sum(1, CALL_READ, FD_CLASS_SERVER, 4);
	struct metrics *m;

	(void)state;
	r.sum.messages = true;
	address(&r.sum.local, "10.0.0.1", 24007);
	address(&r.sum.remote, "10.0.0.9", 0);
	put(w, r);
	r.sum.bulk = true;
	r.sum.count = 3;
	put(w, r);
	r = sum(1, CALL_READ, FD_CLASS_CLIENT, 6);
	r.sum.messages = r.sum.bulk = true;
	address(&r.sum.remote, "10.0.0.2", 24007);
	put(w, r);
	end(w);
	m = measure(sums_path, 0, 0, start_ns);
	assert_int_equal(only(m, METRIC_NSREAD).count, 4);
	assert_int_equal(only(m, METRIC_NSBULK).count, 3);
	assert_int_equal(only(m, METRIC_NCBULK).count, 0);
	metrics_free(m);
	m = measure(sums_path, -1, 0, start_ns);
	assert_int_equal(only(m, METRIC_NCREAD).count, 0);
	assert_int_equal(only(m, METRIC_NCBULK).count, 6);
	metrics_free(m);
}

/* The second in which second 5 of a node counts, if the node's clock is ahead and the run began
 * then. */
static int32_t second_of(int64_t ahead_ns, int64_t began_ns)
{
	struct log_writer *w = begin(sums_path);
	struct metrics *m;
	struct sample s;

	put(w, sum(5, CALL_READ, FD_CLASS_DISK, 1));
	end(w);
	m = measure(sums_path, 0, ahead_ns, began_ns);
	s = only(m, METRIC_DREAD);
	metrics_free(m);
	return s.count ? s.second : -1;
}

static void a_sum_counts_in_the_nearest_second(void **state)
{
	(void)state;
	assert_int_equal(second_of(0, start_ns), 5);
	assert_int_equal(second_of(400000000, start_ns), 5);
	assert_int_equal(second_of(-400000000, start_ns), 5);
	assert_int_equal(second_of(600000000, start_ns), 4);
	assert_int_equal(second_of(3 * SECOND + 1000, start_ns), 2);
	assert_int_equal(second_of(0, start_ns + 5 * SECOND + 400000000), 0);
	assert_int_equal(second_of(0, start_ns + 5 * SECOND + 600000000), -1);
	assert_int_equal(second_of(0, start_ns - (SECONDS - 6) * SECOND), SECONDS - 1);
	assert_int_equal(second_of(0, start_ns - (SECONDS - 5) * SECOND), -1);
}

static void calls_in_a_log_of_sums_do_not_count(void **state)
{
	struct log_writer *w = begin(sums_path);
	struct metrics *m;

	(void)state;
	open_file(w);
	put(w, call(start_ns + 2 * SECOND + 1, "pread64", 77, 1000));
	put(w, sum(2, CALL_READ, FD_CLASS_DISK, 3));
	put(w, call(start_ns + 2 * SECOND + 2, "pread64", 77, 1000));
	end(w);
	w = begin(calls_path);
	open_file(w);
	put(w, call(start_ns + 2 * SECOND + 1, "pread64", 77, 1000));
	end(w);
	m = measure(sums_path, 0, 0, start_ns);
	assert_int_equal(only(m, METRIC_DREAD).count, 3);
	/* A log of another node or time is added as usual. */
	add_log(m, NULL, calls_path, 0, 0);
	assert_int_equal(only(m, METRIC_DREAD).count, 4);
	add_log(m, NULL, sums_path, 0, 0);
	assert_int_equal(only(m, METRIC_DREAD).count, 7);
	metrics_free(m);
}

static void sums_make_no_events(void **state)
{
	struct record gone = {.type = RECORD_PROCESS,
		.process = {.start_ns = start_ns + 4 * SECOND,
			.pid = PID,
			.tid = PID,
			.what = PROCESS_EXIT,
			.status = 9,
			.name = ""}};
	struct record socket = {.type = RECORD_FD,
		.fd = {.start_ns = start_ns,
			.pid = PID,
			.fd = 4,
			.open = true,
			.kind = FD_SOCKET,
			.path = "socket:[1]",
			.sock_type = SOCK_STREAM}};
	struct log_writer *w = begin(sums_path);
	const struct event *ev;
	struct events *s;
	struct err e;

	(void)state;
	address(&socket.fd.remote, "10.0.0.1", 24007);
	put(w, socket);
	for (int second = 0; second < SECONDS; second++) {
		struct record r = sum(second, CALL_READ, FD_CLASS_CLIENT, 6);

		r.sum.errors = r.sum.failed = 3;
		address(&r.sum.remote, "10.0.0.1", 24007);
		put(w, r);
	}
	socket.fd.open = false;
	put(w, socket);
	put(w, gone);
	end(w);
	assert_int_equal(events_new(2, start_ns, SECONDS, &s, &e), 0);
	add_log(NULL, s, sums_path, -1, 0);
	assert_int_equal(events_list(s, &ev), 0);
	add_log(NULL, s, sums_path, 0, 0);
	assert_int_equal(events_list(s, &ev), 1);
	assert_int_equal(ev[0].kind, EVENT_SERVER_END);
	assert_string_equal(ev[0].signal, "KILL");
	events_free(s);
}

/* Runs culprit log on the sums. True if one line of its output has all of 'words' in this order. */
static bool log_prints(const char *options, const char *const words[])
{
	char culprit[4096], command[4500], line[1024];
	bool found = false;
	FILE *f;

	assert_non_null(built("culprit", culprit));
	snprintf(command, sizeof(command), "%s log %s %s", culprit, options, sums_path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const char *at = line;
		int i;

		for (i = 0; words[i] && at; i++)
			at = strstr(at, words[i]);
		found |= at != NULL;
	}
	assert_int_equal(pclose(f), 0);
	return found;
}

static void sums_are_printed(void **state)
{
	struct log_writer *w = begin(sums_path);
	struct record r = sum(0, CALL_READ, FD_CLASS_DISK, 5);

	(void)state;
	r.sum.device = 0x720;
	r.sum.errors = r.sum.failed = 1;
	put(w, r);
	r = sum(0, CALL_READ, FD_CLASS_SERVER, 4);
	address(&r.sum.local, "10.0.0.1", 24007);
	address(&r.sum.remote, "10.0.0.9", 0);
	r.sum.messages = true;
	put(w, r);
	end(w);
	assert_true(log_prints("",
		(const char *[]){"22:13:20.000000 50",
			"read on disk 7:32: n=5 errors=1 bytes=500 <0.010", "max=3000.0us", NULL}));
	assert_true(log_prints("",
		(const char *[]){
			"read messages on server socket 10.0.0.1:24007 -> 10.0.0.9: n=4", NULL}));
	assert_true(log_prints("--json",
		(const char *[]){"\"fd_class\":\"disk\"", "\"failed\":1", "0,0,5]", NULL}));
	assert_true(log_prints("-c",
		(const char *[]){" 100.00", "0.010000", " 5 ", " 1 ", " 500  read  disk", NULL}));
	/* Messages consist of reads: they are shown, but not counted among the calls. */
	assert_true(
		log_prints("-c", (const char *[]){" 4 ", "read  server socket  messages", NULL}));
	assert_true(log_prints("-c", (const char *[]){" 5 ", " 500  total", NULL}));
	assert_true(log_prints(
		"-c --by path", (const char *[]){"messages  10.0.0.1:24007 -> 10.0.0.9", NULL}));
	assert_false(log_prints("--errors", (const char *[]){"messages", NULL}));
	assert_false(log_prints("--pid 51", (const char *[]){"===", NULL}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_give_the_metrics_of_their_calls),
		cmocka_unit_test(files_count_if_they_are_selected),
		cmocka_unit_test(a_sum_of_failed_calls_is_no_sample),
		cmocka_unit_test(messages_belong_to_servers_by_address),
		cmocka_unit_test(bulk_data_is_measured_separately),
		cmocka_unit_test(a_sum_counts_in_the_nearest_second),
		cmocka_unit_test(calls_in_a_log_of_sums_do_not_count),
		cmocka_unit_test(sums_make_no_events),
		cmocka_unit_test(sums_are_printed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
