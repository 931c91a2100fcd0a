/* An attempt in which a server answered, and its trace has no call, was traced in the wrong
 * processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "diag/record/log.h"
#include "harness/run/executor.h"
#include "harness/run/trial_impl.h"

#define SECOND 1000000000LL

static const int64_t start_ns = 1700000000 * SECOND;

static struct log_writer *begin(const char *name, const char *tracer)
{
	struct log_writer *w;
	char path[192];
	struct err e;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	if (log_writer_new(path, tracer, &w, &e))
		fail_msg("%s", e.text);
	return w;
}

static void end(struct log_writer *w)
{
	struct err e;

	assert_int_equal(log_writer_end(w, 0, &e), 0);
}

/* The client's end of the connections to 10.0.0.1 and 10.0.0.2, which received so much. */
static void write_readings(const double received[2])
{
	struct log_writer *w = begin("c1.fs.samples", "sampler");
	struct err e;

	for (int second = 0; second < 4; second++)
		for (int i = 0; i < 2; i++) {
			struct record r = {.type = RECORD_READING,
				.reading = {.start_ns = start_ns + second * SECOND,
					.what = READING_TCP_RECEIVED,
					.count = 1,
					.sum = received[i] / 4,
					.max = received[i] / 4}};
			struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(24007)};

			at.sin_addr.s_addr = htonl(0x0a000001 + (uint32_t)i);
			memcpy(&r.reading.peer, &at, sizeof(at));
			assert_int_equal(log_write(w, &r, &e), 0);
		}
	end(w);
}

/* '*cluster' is the caller's, and outlives the result. */
static struct reduction *reduce(const double received[2], json_t **cluster)
{
	static const char *const empty[][2] = {{"s1.fs.trace", "ebpf"}, {"s2.fs.trace", "ebpf"},
		{"c1.fs.trace", "ebpf"}, {"c1.app.trace", "ptrace"}};
	struct reduce_spec spec = {.folder = dir, .start_ns = start_ns, .seconds = 4};
	struct reduction *r;
	struct err e;

	*cluster = json_pack("{s:[{s:s, s:s, s:i, s:s, s:i, s:b}, {s:s, s:s, s:i, s:s, s:i, s:b}],"
			     " s:[{s:s, s:s, s:i, s:b}]}",
		"servers", "name", "s1", "address", "10.0.0.1", "port", 24007, "storage", "/b",
		"clock_offset_ns", 0, "sampled", 0, "name", "s2", "address", "10.0.0.2", "port",
		24007, "storage", "/b", "clock_offset_ns", 0, "sampled", 0, "clients", "name", "c1",
		"mount", "/mnt", "clock_offset_ns", 0, "sampled", 1);
	spec.cluster = *cluster;
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		end(begin(empty[i][0], empty[i][1]));
	write_readings(received);
	if (reduce_traces(&spec, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

/* The second server's trace has 'calls' (-1: that is not known). */
static void expect(double received, int calls, const struct part *fault, const char *reason)
{
	struct member members[2] = {{.name = "s1"}, {.name = "s2"}};
	struct member *servers[2] = {&members[0], &members[1]};
	struct cluster c = {.servers = servers, .n_servers = 2};
	struct executor x = {.cluster = &c};
	struct trial t = {.x = &x, .fault = fault, .victims = {servers[1]}, .n_victims = !!fault};
	json_t *cluster;
	struct reduction *r = reduce((const double[2]){1e6, received}, &cluster);
	struct err e = {""};

	t.detail = json_pack("{s:{s:{s:i}, s:{s:o}}}", "traces", "s1", "calls", 10, "s2", "calls",
		calls < 0 ? json_null() : json_integer(calls));
	assert_int_equal(measure_check_served(&t, r, &e), reason ? -ENODATA : 0);
	if (reason && !strstr(e.text, reason))
		fail_msg("'%s' is not in '%s'", reason, e.text);
	json_decref(t.detail);
	reduce_free(r);
	json_decref(cluster);
}

static void a_server_that_answered_has_calls(void **state)
{
	static const struct part from_start = {.from_start = true}, later = {.from_start = false};

	(void)state;
	expect(2e6, 0, NULL, "s2 sent 2000000 bytes to the clients, but its trace has no call");
	expect(2e6, 0, &later, "s2 sent");
	expect(2e6, 1, NULL, NULL);
	/* A tracer that does not count calls; a server that nobody used; one that hung before. */
	expect(2e6, -1, NULL, NULL);
	expect(2e3, 0, NULL, NULL);
	expect(2e6, 0, &from_start, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_answered_has_calls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
