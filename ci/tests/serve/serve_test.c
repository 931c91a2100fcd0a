/* The server of culprit serve: access only with the token and under its own name, limits,
 * cancelled queries, hostile names, and answers that agree with the logs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants those first */
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "ci/tests/query/drawn.h"
#include "ci/tests/scratch.h"
#include "diag/record/layout.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/web/serve/serve.h"
#include "harness/web/serve/serve_impl.h"

enum { RECORDS = 5000 };

static char log_path[128];
static struct page_subject *session;
static struct serve *server;
static char token[64];
static int port;

/* ---- a client ---- */

static int dial(void)
{
	const struct timeval limit = {.tv_sec = 60};
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void send_request(int fd, const char *method, const char *target, const char *host,
	const char *body, size_t size)
{
	auto_free char *head = alloc_format(
		"%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		method, target, host, size);

	assert_int_equal(fd_write_all(fd, head, strlen(head)), 0);
	if (size)
		fd_write_all(fd, body, size); /* the server may have refused it already */
}

/* Everything up to the end of the connection; the caller frees. */
static char *receive(int fd)
{
	char *all = alloc_zero(1, 1);
	size_t n = 0;
	ssize_t got;

	for (;;) {
		all = alloc_resize(all, n + 65536, 1);
		got = recv(fd, all + n, 65535, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	all[n] = '\0';
	close(fd);
	return all;
}

static char *exchange(const char *method, const char *target, const char *host, const char *body)
{
	int fd = dial();

	send_request(fd, method, target, host, body, strlen(body));
	return receive(fd);
}

static char *own_host(void)
{
	static char host[32];

	snprintf(host, sizeof(host), "127.0.0.1:%d", port);
	return host;
}

static int status_of(const char *answer)
{
	return strncmp(answer, "HTTP/1.1 ", 9) ? 0 : atoi(answer + 9);
}

static int status(const char *method, const char *target, const char *host, const char *body)
{
	auto_free char *answer = exchange(method, target, host, body);

	return status_of(answer);
}

/* "path?token=...&rest" */
static char *with_token(const char *path, const char *rest)
{
	return alloc_format("%s?token=%s%s%s", path, token, *rest ? "&" : "", rest);
}

static json_t *ask(const char *path, const char *rest, const char *body)
{
	auto_free char *target = with_token(path, rest);
	auto_free char *answer = exchange(*body ? "POST" : "GET", target, own_host(), body);
	const char *text = strstr(answer, "\r\n\r\n");
	json_error_t why;
	json_t *v;

	assert_non_null(text);
	v = json_loads(text + 4, 0, &why);
	if (!v)
		fail_msg("%s: %s: %.200s", target, why.text, answer);
	return v;
}

static const char *error_of(const json_t *v)
{
	return jget_text(v, "error") ? jget_text(v, "error") : "";
}

static double at(const json_t *rows, size_t row, size_t column)
{
	return json_number_value(json_array_get(json_array_get(rows, row), column));
}

/* ---- who may ask ---- */

static void test_only_with_the_token(void **state)
{
	auto_free char *good = with_token("/", ""), *data = with_token("/state", "");
	auto_free char *wrong = alloc_copy(good), *local = alloc_format("localhost:%d", port);
	auto_free char *no_port = alloc_copy("127.0.0.1");

	(void)state;
	wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == 'a' ? 'b' : 'a';
	assert_int_equal(status("GET", good, own_host(), ""), 200);
	assert_int_equal(status("GET", data, own_host(), ""), 200);
	assert_int_equal(status("GET", good, local, ""), 200);
	assert_int_equal(status("GET", wrong, own_host(), ""), 403);
	for (const char *const *path = (const char *const[]){"/", "/state", "/panel?view=calls",
		     "/events", "/compare", "/query", "/?token=", "/nothing", NULL};
		*path; path++)
		assert_int_equal(status("GET", *path, own_host(), ""), 403);
	assert_int_equal(status("POST", "/query?chart=table", own_host(), "select 1"), 403);
	/* A foreign name that a DNS server maps to this address. */
	assert_int_equal(status("GET", good, "example.org", ""), 403);
	assert_int_equal(status("GET", good, "127.0.0.1.example.org", ""), 403);
	assert_int_equal(status("GET", good, no_port, ""), 403);
	assert_int_equal(status("GET", good, "", ""), 403);
	assert_int_equal(status("PUT", good, own_host(), ""), 405);
	assert_int_equal(status("DELETE", good, own_host(), ""), 405);
}

static void test_other_paths_are_not_found(void **state)
{
	auto_free char *other = with_token("/etc/passwd", ""), *up = with_token("/../state", "");

	(void)state;
	assert_int_equal(status("GET", other, own_host(), ""), 404);
	assert_int_equal(status("GET", up, own_host(), ""), 404);
}

static void test_headers(void **state)
{
	static const char *const wanted[] = {"Content-Security-Policy: frame-ancestors 'none'",
		"X-Content-Type-Options: nosniff", "Cache-Control: no-store",
		"Referrer-Policy: no-referrer", "Cross-Origin-Resource-Policy: same-origin"};
	auto_free char *target = with_token("/", "");
	auto_free char *page = exchange("GET", target, own_host(), "");

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!strstr(page, wanted[i]))
			fail_msg("no %s", wanted[i]);
	assert_non_null(strstr(page, "content=\"default-src 'none'; style-src 'sha256-"));
	assert_null(strstr(page, "unsafe-inline"));
	assert_null(strstr(page, "https://"));
}

/* ---- limits ---- */

static void test_limits(void **state)
{
	auto_free char *long_text = alloc_zero(SERVE_SQL_MAX + 2, 1);
	auto_free char *query = with_token("/query", "chart=table");
	auto_free char *endless = NULL, *long_name = NULL;

	(void)state;
	memset(long_text, ' ', SERVE_SQL_MAX + 1);
	assert_int_equal(status("POST", query, own_host(), long_text), 413);
	long_text[SERVE_SQL_MAX] = '\0';
	memcpy(long_text, "select 1", 8);
	assert_int_equal(status("POST", query, own_host(), long_text), 200);
	memset(long_text, 'x', SERVE_SQL_MAX);
	long_text[2000] = '\0';
	long_name = with_token("/panel", long_text);
	assert_int_equal(status("GET", long_name, own_host(), ""), 200); /* no such view */
	endless = alloc_format("/?token=%s&path=%0*d", token, 60000, 0);
	assert_in_range(status("GET", endless, own_host(), ""), 400, 499);
}

static void test_wrong_arguments(void **state)
{
	static const struct {
		const char *rest, *said;
	} cases[] = {
		{"from=x", "'from'"},
		{"from=1&to=99999999999999999999", "'to'"},
		{"from=5&to=4", "'from' lies behind 'to'"},
		{"attempt=-1", "'attempt'"},
		{"id=4294967296", "'id'"},
		{"failed=2", "'failed'"},
		{"points=1", "'points'"},
		{"limit=100000", "'limit'"},
	};
	auto_free char *path = alloc_format("path=%0*d", 1001, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_json json_t *v = ask("/events", cases[i].rest, "");

		if (!strstr(error_of(v), cases[i].said))
			fail_msg("%s: %s", cases[i].rest, error_of(v));
	}
	{
		auto_json json_t *v = ask("/events", path, "");

		assert_non_null(strstr(error_of(v), "'path' is longer than"));
	}
}

#define ENDLESS                                                                                    \
	"with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

static void test_queries(void **state)
{
	static const struct {
		const char *chart, *sql, *said;
	} cases[] = {
		{"table", ENDLESS, "did not end within"},
		{"table", "delete from events", "only SELECT is allowed"},
		{"table", "select nowhere from events", "no such column"},
		{"table", "select :other", "':other'"},
		{"line", "select 'x', 1", "the first column of a line is t, a number"},
		{"area", "select 1", "needs t and a number"},
		{"cake", "select 1", "'chart' must be"},
		{"", "select 1", "'chart' must be"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_free char *rest = alloc_format("chart=%s", cases[i].chart);
		auto_json json_t *v = ask("/query", rest, cases[i].sql);

		if (!strstr(error_of(v), cases[i].said))
			fail_msg("%s: %s", cases[i].sql, error_of(v));
	}
}

/* Rows beyond the limit are not sent, which is reported. */
static void test_rows_are_limited(void **state)
{
	auto_json json_t *v = ask("/query", "chart=table",
		"with recursive n(i) as (select 1 union all select i + 1 from n limit 5000) "
		"select i from n");

	(void)state;
	assert_int_equal(json_array_size(jget(v, "rows")), 1000);
	assert_true(jget_true(v, "more"));
}

/* Closing the page cancels its queries, so that they do not delay others. */
static void test_nobody_waits(void **state)
{
	const struct serve_spec spec = {.session = session, .timeout_s = 3000};
	struct serve *patient;
	char own_token[64];
	const int own_port = port;
	int fds[6];
	struct err e;

	(void)state;
	assert_int_equal(serve_open(&spec, &patient, &e), 0);
	memcpy(own_token, token, sizeof(token));
	assert_int_equal(
		sscanf(serve_url(patient), "http://127.0.0.1:%d/?token=%63s", &port, token), 2);
	for (int i = 0; i < 6; i++) {
		auto_free char *target = with_token("/query", "chart=table");

		fds[i] = dial();
		send_request(fds[i], "POST", target, own_host(), ENDLESS, strlen(ENDLESS));
	}
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	{
		auto_json json_t *v = ask("/query", "chart=table", "select 7");

		assert_int_equal((int)at(jget(v, "rows"), 0, 0), 7);
	}
	/* Closing the server ends running queries. */
	{
		auto_free char *target = with_token("/query", "chart=table");
		int fd = dial();

		send_request(fd, "POST", target, own_host(), ENDLESS, strlen(ENDLESS));
		serve_close(patient);
		close(fd);
	}
	port = own_port;
	memcpy(token, own_token, sizeof(token));
}

/* ---- what is answered ---- */

static double first_number(const char *sql)
{
	auto_json json_t *v = ask("/query", "chart=table", sql);

	assert_string_equal(error_of(v), "");
	return at(jget(v, "rows"), 0, 0);
}

static void test_panels_hold_what_logs_hold(void **state)
{
	auto_json json_t *v = ask("/panel", "view=calls", "");
	const json_t *rows = jget(v, "rows");
	double calls = 0;

	(void)state;
	assert_string_equal(error_of(v), "");
	for (size_t i = 0; i < json_array_size(rows); i++)
		calls += at(rows, i, 2) * jget_real(v, "slot");
	assert_int_equal((int)(calls + .5),
		(int)first_number("select count(*) from events where class <> 'poll'"));
	assert_true(json_array_size(rows) > 100);
}

static void test_focus_reaches_panels(void **state)
{
	auto_json json_t *v = ask(
		"/panel", "view=calls&from=2000000000&to=4000000000&call=read", "");
	const json_t *rows = jget(v, "rows");
	double calls = 0;

	(void)state;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		calls += at(rows, i, 2) * jget_real(v, "slot");
		assert_true(at(rows, i, 0) > 1.9 && at(rows, i, 0) < 4);
	}
	assert_int_equal((int)(calls + .5),
		(int)first_number("select count(*) from events where call = 'read' and "
				  "time_ns - 1700000000000000000 >= 2000000000 and "
				  "time_ns - 1700000000000000000 < 4000000000"));
}

/* Page by page, every event appears exactly once. */
static void test_events_page_by_page(void **state)
{
	const int all = (int)first_number("select count(*) from events");
	auto_free char *rest = alloc_copy("limit=97");
	double last = -1e9, numbers = 0;
	int n = 0;

	(void)state;
	for (int page = 0; rest; page++) {
		auto_json json_t *v = ask("/events", rest, "");
		const json_t *rows = jget(v, "rows"), *next = jget(v, "next");

		assert_string_equal(error_of(v), "");
		assert_true(page <= all / 97 + 1);
		for (size_t i = 0; i < json_array_size(rows); i++, n++) {
			assert_true(at(rows, i, 0) >= last);
			last = at(rows, i, 0);
			numbers += at(rows, i, 14);
		}
		free(rest);
		rest = json_is_object(next)
			? alloc_format("limit=97&from=%lld&to=99000000000&skip=%lld",
				  (long long)jget_int(next, "from"),
				  (long long)jget_int(next, "skip"))
			: NULL;
	}
	assert_int_equal(n, all);
	assert_true(numbers == first_number("select sum(number) from events"));
}

/* Names of threads and paths can be anything. */
static void test_hostile_names(void **state)
{
	auto_json json_t *v = ask("/query", "chart=table",
		"select '<script>alert(1)</script>', char(27) || ']0;x' || char(7), "
		"cast(x'ff41' as text)");
	const json_t *row = json_array_get(jget(v, "rows"), 0);
	auto_free char *target = with_token("/", "");
	auto_free char *page = exchange("GET", target, own_host(), "");

	(void)state;
	assert_string_equal(json_string_value(json_array_get(row, 0)), "<script>alert(1)</script>");
	assert_string_equal(json_string_value(json_array_get(row, 1)), "\\x1b]0;x\\x07");
	assert_string_equal(json_string_value(json_array_get(row, 2)), "\\xffA");
	/* The log is called so; its name is the page's title. */
	assert_non_null(strstr(page, "&#60;script&#62;boom"));
	assert_null(strstr(page, "<script>boom"));
}

static void test_answers_are_no_markup(void **state)
{
	auto_free char *target = with_token("/state", "");
	auto_free char *answer = exchange("GET", target, own_host(), "");

	(void)state;
	assert_non_null(strstr(answer, "Content-Type: application/json"));
	assert_non_null(strstr(answer, "\"title\":\"<script>boom"));
}

static void test_compares_with_itself(void **state)
{
	auto_json json_t *v = ask("/compare", "", "");
	const json_t *table;
	size_t i;

	(void)state;
	assert_string_equal(error_of(v), "");
	json_array_foreach(jget(v, "tables"), i, table) {
		const json_t *row;
		size_t k;

		json_array_foreach(jget(table, "rows"), k, row)
			assert_true(json_equal(json_array_get(row, 1), json_array_get(row, 2)));
	}
	assert_true(i >= 5);
}

/* A repeated request gets the cached answer; a different one does not. */
static void test_the_same_question(void **state)
{
	auto_json json_t *one = ask("/panel", "view=calls", ""),
			 *again = ask("/panel", "view=calls", "");
	auto_json json_t *other = ask("/panel", "view=bytes", "");
	auto_json json_t *focused = ask("/panel", "view=calls&call=read", "");
	auto_json json_t *x = ask("/query", "chart=table", "select random()");
	auto_json json_t *y = ask("/query", "chart=table", "select random()");
	auto_json json_t *z = ask("/query", "chart=table", "select  random()");

	(void)state;
	assert_true(json_equal(one, again) && !json_equal(one, other) && !json_equal(one, focused));
	assert_true(json_equal(x, y) && !json_equal(x, z));
}

/* A log that is being written: the page sees new data. */
static void test_a_log_that_grows(void **state)
{
	auto_free char *path = alloc_format("%s/grows", dir);
	struct serve_spec spec = {.timeout_s = 60};
	const int own_port = port;
	char own_token[64], *args[] = {path};
	struct log_writer *w;
	struct serve *growing;
	struct err e;

	(void)state;
	memcpy(own_token, token, sizeof(token));
	assert_int_equal(log_writer_new(path, "test", &w, &e), 0);
	for (int part = 1; part <= 2; part++) {
		for (int i = 0; i < 100; i++) {
			struct record r = drawn_call(1700000000000000000 + i, (uint64_t)i);

			assert_int_equal(log_write(w, &r, &e), 0);
		}
		assert_int_equal(log_flush(w, &e), 0);
		if (part == 1) {
			assert_int_equal(page_subject_open(1, args, 0, &spec.session, &e), 0);
			assert_int_equal(serve_open(&spec, &growing, &e), 0);
			assert_int_equal(sscanf(serve_url(growing),
						 "http://127.0.0.1:%d/?token=%63s", &port, token),
				2);
		}
		{
			auto_json json_t *v = ask("/state", "", "");

			assert_string_equal(error_of(v), "");
			assert_int_equal(jget_int(v, "generation"), part);
			assert_true(jget_true(v, "goes_on"));
			assert_int_equal(jget_int(jget(v, "extent"), "records"), 100 * part);
		}
		assert_int_equal((int)first_number("select count(*) from events"), 100 * part);
	}
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	{
		auto_json json_t *v = ask("/state", "", "");

		assert_false(jget_true(v, "goes_on"));
		assert_int_equal(jget_int(v, "generation"), 3);
	}
	serve_close(growing);
	page_subject_close(spec.session);
	port = own_port;
	memcpy(token, own_token, sizeof(token));
}

static void test_slots_are_round(void **state)
{
	(void)state;
	assert_int_equal(serve_slot(0, 300), 1000);
	assert_int_equal(serve_slot(300 * 999, 300), 1000);
	assert_int_equal(serve_slot(10000000000, 300), 50000000);
	assert_int_equal(serve_slot(INT64_C(86400000000000), 300), INT64_C(500000000000));
	for (int64_t span = 1; span < INT64_MAX / 16; span = span * 3 + 1) {
		const int64_t slot = serve_slot(span, 300);

		assert_true(span / slot <= 300);
		assert_true(slot == 1000 || span / slot >= 300 / 3);
	}
}

/* The log's head has the time of the test; its records have another date. */
static int begin_at(const char *path, int64_t ns)
{
	const int fd = open(path, O_RDWR);
	unsigned char head[LAYOUT_HEAD];
	uint32_t crc;
	int rc = -1;

	if (pread(fd, head, sizeof(head), 0) == sizeof(head)) {
		memcpy(head + 16, &ns, sizeof(ns));
		crc = (uint32_t)crc32(0, head + 16, sizeof(head) - 16);
		memcpy(head + 12, &crc, sizeof(crc));
		rc = pwrite(fd, head, sizeof(head), 0) == sizeof(head) ? 0 : -1;
	}
	close(fd);
	return rc;
}

static int setup(void **state)
{
	struct serve_spec spec = {.timeout_s = .5};
	char *args[] = {log_path};
	struct err e;

	if (make_dir(state))
		return -1;
	setenv("XDG_CACHE_HOME", dir, 1);
	setenv("XDG_CONFIG_HOME", dir, 1);
	snprintf(log_path, sizeof(log_path), "%s/<script>boom", dir);
	if (drawn_log(log_path, RECORDS, true, &e) || begin_at(log_path, 1700000000000000000) ||
		page_subject_open(1, args, 0, &session, &e))
		return -1;
	spec.session = session;
	if (serve_open(&spec, &server, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	return sscanf(serve_url(server), "http://127.0.0.1:%d/?token=%63s", &port, token) == 2 ? 0
											       : -1;
}

static int teardown(void **state)
{
	serve_close(server);
	page_subject_close(session);
	return remove_dir(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_with_the_token),
		cmocka_unit_test(test_other_paths_are_not_found),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_wrong_arguments),
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_rows_are_limited),
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_panels_hold_what_logs_hold),
		cmocka_unit_test(test_focus_reaches_panels),
		cmocka_unit_test(test_events_page_by_page),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_answers_are_no_markup),
		cmocka_unit_test(test_compares_with_itself),
		cmocka_unit_test(test_the_same_question),
		cmocka_unit_test(test_a_log_that_grows),
		cmocka_unit_test(test_slots_are_round),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
