/* Tests metrics from samplers' logs: a server's own readings, and those of its clients about it. */
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
#include <sys/un.h>
#include <unistd.h>

#include "diag/record/log.h"
#include "diag/derive/derive.h"

#define SECOND 1000000000LL
#define MS 1000000LL

enum { SECONDS = 10 };

static const int64_t start_ns = 1700000000 * SECOND + 400 * MS;
static char dir[] = "/tmp/culprit-readings-XXXXXX", path[64];
static struct stream_server servers[2];

static struct sockaddr_storage address(const char *ip, unsigned port)
{
	struct sockaddr_storage out;
	struct sockaddr_in *in = (struct sockaddr_in *)&out;

	memset(&out, 0, sizeof(out));
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	assert_int_equal(inet_pton(AF_INET, ip, &in->sin_addr), 1);
	return out;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/samples", dir);
	servers[0] = (struct stream_server){
		.name = "s1", .address = address("10.0.0.1", 24007), .storage = "/srv/brick"};
	servers[1] = (struct stream_server){
		.name = "s2", .address = address("10.0.0.2", 24007), .storage = "/srv/brick"};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static struct log_writer *begin(void)
{
	struct log_writer *w;
	struct err e;

	unlink(path);
	if (log_writer_new(path, "sampler", &w, &e))
		fail_msg("%s", e.text);
	return w;
}

/* A reading of the node's second that begins 'ms' after start_ns. */
static void put(
	struct log_writer *w, int64_t ms, enum reading what, uint32_t count, double sum, double max)
{
	struct record r = {.type = RECORD_READING,
		.reading = {.start_ns = start_ns + ms * MS,
			.what = (uint16_t)what,
			.count = count,
			.sum = sum,
			.max = max}};
	struct err e;

	assert_int_equal(log_write(w, &r, &e), 0);
}

static void put_peer(struct log_writer *w, int64_t ms, enum reading what, const char *ip,
	unsigned port, uint32_t sockets, double sum)
{
	struct record r = {.type = RECORD_READING,
		.reading = {.start_ns = start_ns + ms * MS,
			.what = (uint16_t)what,
			.count = sockets,
			.sum = sum,
			.max = sum,
			.peer = address(ip, port),
			.accepted = !port}};
	struct err e;

	assert_int_equal(log_write(w, &r, &e), 0);
}

/* Of one processor or interface. */
static void put_thing(struct log_writer *w, enum reading what, const char *name, double sum)
{
	struct record r = {.type = RECORD_READING,
		.reading = {.start_ns = start_ns,
			.what = (uint16_t)what,
			.count = 1,
			.sum = sum,
			.max = sum,
			.peer.ss_family = AF_UNIX}};
	struct sockaddr_un *un = (void *)&r.reading.peer;
	struct err e;

	snprintf(un->sun_path, sizeof(un->sun_path), "%s", name);
	assert_int_equal(log_write(w, &r, &e), 0);
}

static struct metrics *measure_new(void)
{
	struct metrics *m;
	struct err e;

	assert_int_equal(metrics_new(2, start_ns, SECONDS, &m, &e), 0);
	return m;
}

/* Adds the log of server 'self' of 'list', or of a client (-1). */
static void add_to(struct metrics *m, struct log_writer *w, const struct stream_server *list,
	size_t n, int32_t self, int64_t offset_ms)
{
	const struct stream_spec spec = {.servers = list,
		.n_servers = n,
		.owner = self < 0 ? OWNER_DAEMON : OWNER_SERVER,
		.index = self < 0 ? 0 : self,
		.clock_offset_ns = offset_ms * MS};
	struct err e;

	if (log_writer_end(w, 0, &e) || derive_log(path, &spec, m, NULL, NULL, &e))
		fail_msg("%s", e.text);
}

static void add(struct metrics *m, struct log_writer *w, int32_t self, int64_t offset_ms)
{
	add_to(m, w, servers, 2, self, offset_ms);
}

static const struct sample *find(
	struct metrics *m, enum metric metric, uint32_t server, int32_t second)
{
	const struct sample *s;
	size_t n = metrics_samples(m, &s);

	for (size_t i = 0; i < n; i++)
		if (s[i].metric == metric && s[i].server == server && s[i].second == second)
			return &s[i];
	return NULL;
}

static void expect(struct metrics *m, enum metric metric, uint32_t server, int32_t second,
	uint64_t count, double sum, double max)
{
	const struct sample *s = find(m, metric, server, second);

	if (!s)
		fail_msg("no %s of server %u in second %d", metric_name(metric), server, second);
	assert_int_equal(s->count, count);
	assert_true(s->sum_s == sum);
	assert_true(s->max_s == max);
	assert_int_equal(s->bytes, 0);
}

static void a_servers_readings_are_its_metrics(void **state)
{
	struct metrics *m = measure_new();
	struct log_writer *w = begin();
	const struct sample *s;

	(void)state;
	put(w, 0, READING_DISK_QUEUE, 1, 0.25, 0.25);
	put(w, 0, READING_CPU_BUSY, 2, 1.25, 0.75);
	put_thing(w, READING_CPU_BUSY, "cpu0", 0.75); /* already in the sum */
	put_thing(w, READING_CPU_BUSY, "cpu1", 0.5);
	put_thing(w, READING_NIC_SENT, "eth0", 0.5);
	put(w, 0, READING_NIC_DROPPED, 1, 0, 0);
	put(w, 2000, READING_DISK_QUEUE, 1, 4, 4);
	add(m, w, 1, 0);
	expect(m, METRIC_DISK_QUEUE, 1, 0, 1, 0.25, 0.25);
	expect(m, METRIC_CPU_BUSY, 1, 0, 2, 1.25, 0.75);
	expect(m, METRIC_NIC_DROPPED, 1, 0, 1, 0, 0); /* no drops: a sample of 0 */
	expect(m, METRIC_DISK_QUEUE, 1, 2, 1, 4, 4);
	/* a second without a reading has no sample */
	assert_null(find(m, METRIC_DISK_QUEUE, 1, 1));
	assert_int_equal(metrics_samples(m, &s), 4); /* and the other server has no sample */
	metrics_free(m);
}

static void clients_are_counted_and_the_largest_is_kept(void **state)
{
	struct metrics *m = measure_new();
	struct log_writer *w = begin();

	(void)state;
	put_peer(w, 0, READING_TCP_RETRANSMITTED, "10.0.0.31", 0, 1, 1);
	put_peer(w, 0, READING_TCP_RETRANSMITTED, "10.0.0.32", 0, 2, 9);
	put_peer(w, 0, READING_TCP_RETRANSMITTED, "10.0.0.33", 0, 1, 2);
	put_peer(w, 0, READING_TCP_RTT, "10.0.0.31", 0, 1, 0.001);
	put_peer(w, 0, READING_TCP_RTT, "10.0.0.32", 0, 2, 0.006);
	/* A connection made by the server does not count among its clients. */
	put_peer(w, 0, READING_TCP_RETRANSMITTED, "10.0.0.2", 24007, 1, 100);
	add(m, w, 0, 0);
	expect(m, METRIC_TCP_RETRANSMITTED, 0, 0, 3, 12, 9);
	expect(m, METRIC_TCP_RTT, 0, 0, 2, 0.004, 0.003); /* the mean of two sockets */
	assert_null(find(m, METRIC_CLIENT_TCP_RETRANSMITTED, 1, 0));
	metrics_free(m);
}

static void clients_logs_add_up_at_their_server(void **state)
{
	struct metrics *m = measure_new();
	struct log_writer *w;
	const struct sample *s;

	(void)state;
	w = begin();
	put(w, 0, READING_CPU_BUSY, 2, 2, 1); /* the client's own state is in no metric */
	put_peer(w, 0, READING_TCP_OUT_OF_ORDER, "10.0.0.1", 24007, 1, 5);
	put_peer(w, 0, READING_TCP_OUT_OF_ORDER, "10.0.0.2", 24007, 1, 0);
	put_peer(w, 0, READING_TCP_OUT_OF_ORDER, "10.0.0.1", 22, 1, 1000); /* another service */
	put_peer(
		/* not a server of the run */
		w, 0, READING_TCP_OUT_OF_ORDER, "10.0.0.9", 24007, 1, 1000);
	put_peer(w, 0, READING_TCP_OUT_OF_ORDER, "10.0.0.1", 0, 1,
		1000); /* a connection to this client */
	add(m, w, -1, 0);
	w = begin();
	put_peer(w, 0, READING_TCP_OUT_OF_ORDER, "10.0.0.1", 24007, 3, 7);
	add(m, w, -1, 0);
	expect(m, METRIC_CLIENT_TCP_OUT_OF_ORDER, 0, 0, 2, 12, 7);
	expect(m, METRIC_CLIENT_TCP_OUT_OF_ORDER, 1, 0, 1, 0, 0);
	assert_int_equal(metrics_samples(m, &s), 2);
	metrics_free(m);
}

static void a_reading_counts_in_the_second_it_overlaps_most(void **state)
{
	static const struct {
		int64_t ms, offset_ms;
		int32_t second;
	} cases[] = {{1400, 0, 1}, {1600, 0, 2}, {-400, 0, 0}, {-600, 0, -1}, {9400, 0, 9},
		{9600, 0, -1}, {1000, 3000, -1}, {4000, 3000, 1}, {0, -2600, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct metrics *m = measure_new();
		struct log_writer *w = begin();
		const struct sample *s;

		put(w, cases[i].ms, READING_DISK_READS, 1, 3, 3);
		add(m, w, 0, cases[i].offset_ms);
		assert_int_equal(metrics_samples(m, &s), cases[i].second < 0 ? 0 : 1);
		if (cases[i].second >= 0)
			assert_int_equal(s->second, cases[i].second);
		metrics_free(m);
	}
}

/* Sums of decimal fractions are rounded to decimal fractions; whole numbers stay unchanged. */
static void readings_are_rounded_to_a_billionth(void **state)
{
	struct metrics *m = measure_new();
	struct log_writer *w = begin();

	(void)state;
	put_peer(w, 0, READING_TCP_RTT, "10.0.0.31", 0, 1, 0.1);
	put_peer(w, 0, READING_TCP_RTT, "10.0.0.32", 0, 1, 0.2);
	put(w, 0, READING_MEMORY_AVAILABLE, 1, 22581444611.0, 22581444611.0);
	add(m, w, 0, 0);
	assert_true(0.1 + 0.2 != 0.3);
	expect(m, METRIC_TCP_RTT, 0, 0, 2, 0.3, 0.2);
	expect(m, METRIC_MEMORY_AVAILABLE, 0, 0, 1, 22581444611.0, 22581444611.0);
	metrics_free(m);
}

/* Every reading passes through the log and back. */
static void every_reading_arrives(void **state)
{
	struct metrics *m = measure_new();
	struct log_writer *w = begin();

	(void)state;
	for (int i = 0; i < READING_TOTAL; i++) {
		if (!reading_is_tcp((enum reading)i))
			put(w, 0, (enum reading)i, 1, i, i);
		else
			put_peer(w, 0, (enum reading)i, "10.0.0.31", 0, 1, i);
	}
	add(m, w, 0, 0);
	w = begin();
	for (int i = READING_TCP_FIRST; i < READING_TCP_END; i++)
		put_peer(w, 0, (enum reading)i, "10.0.0.1", 24007, 1, 1000 + i);
	add(m, w, -1, 0);
	for (int i = 0; i < READING_TOTAL; i++)
		expect(m, (enum metric)(METRIC_SERVICE_TIMES + i), 0, 0, 1, i, i);
	for (int i = READING_TCP_FIRST; i < READING_TCP_END; i++) {
		enum metric metric;
		char name[80];

		snprintf(name, sizeof(name), "client_%s", reading_name((enum reading)i));
		assert_int_equal(metric_from_name(name, &metric), 0);
		expect(m, metric, 0, 0, 1, 1000 + i, 1000 + i);
	}
	metrics_free(m);
}

/* Metrics and servers without readings cost no memory. */
static void memory_grows_only_with_readings(void **state)
{
	enum { MANY = 1000, HOUR = 3600 };
	struct stream_server *many = calloc(MANY, sizeof(*many));
	struct metrics *m;
	struct log_writer *w = begin();
	const struct sample *s;
	struct err e;
	FILE *f;
	long kib = 0;
	char line[128];

	(void)state;
	assert_non_null(many);
	for (int i = 0; i < MANY; i++)
		many[i].name = "s";
	put(w, 0, READING_DISK_READS, 1, 3, 3);
	assert_int_equal(metrics_new(MANY, start_ns, HOUR, &m, &e), 0);
	add_to(m, w, many, MANY, 999, 0);
	assert_int_equal(metrics_samples(m, &s), 1);
	f = fopen("/proc/self/status", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kib = atol(line + 6);
	fclose(f);
	print_message("# %ld MiB resident\n", kib >> 10);
#ifndef __SANITIZE_ADDRESS__
	/* Room for all would be 7 GiB. */
	assert_in_range(kib, 1, 100 << 10);
#endif
	metrics_free(m);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_servers_readings_are_its_metrics),
		cmocka_unit_test(clients_are_counted_and_the_largest_is_kept),
		cmocka_unit_test(clients_logs_add_up_at_their_server),
		cmocka_unit_test(a_reading_counts_in_the_second_it_overlaps_most),
		cmocka_unit_test(readings_are_rounded_to_a_billionth),
		cmocka_unit_test(every_reading_arrives),
		cmocka_unit_test(memory_grows_only_with_readings),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
