/* Tests range queries: recorded answers, and other texts. 'prometheus_test ask URL QUERY FROM TO
 * STEP [token|password|ca|cert|key|member|timeout|group=VALUE ...]' queries a server and prints the
 * samples, for prometheus.t; 'prometheus_test read FILE METRIC' reads a file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ci/tests/import/noting.h"
#include "ci/tests/import/reading.h"
#include "diag/import/prometheus.h"
#include "diag/import/prometheus_answer.h"

static int read_answer(
	const char *text, struct noting *out, struct import_said *said, struct err *e)
{
	struct import_options how = {0};
	struct labels *l = labels_new(&how);
	struct import_sink sink = noting_open(out);
	struct reading r = {l, &sink, said};
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int rc = prometheus_answer_read(f, "http://p:1", NULL, l, see, &r, NULL, e);

	if (!rc)
		rc = labels_decide(l, said, e);
	rewind(f);
	if (!rc)
		rc = prometheus_answer_read(f, "http://p:1", NULL, l, give, &r, said, e);
	fclose(f);
	labels_free(l);
	fflush(out->f);
	return rc;
}

#define MATRIX "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["

static void test_answer(void **state)
{
	struct import_said said = {0};
	struct noting out;
	struct err e;

	(void)state;
	assert_int_equal(
		read_answer(MATRIX
			"{\"metric\":{\"__name__\":\"lat_bucket\",\"le\":\"0.5\",\"device\":\"a\"},"
			"\"values\":[[1795357180,\"3\"],[1795357195.25,\"NaN\"]]},"
			"{\"metric\":{\"__name__\":\"up\",\"device\":\"b\\u00fc\",\"job\":\"x\"},"
			"\"values\":[[1,\"+Inf\"]],\"histograms\":[[1,{\"count\":\"1\"}]]}]},"
			"\"warnings\":[\"slow\\n\"]}",
			&out, &said, &e),
		0);
	assert_string_equal(out.text,
		"lat{le=\"0.5\"} a 1795357180 3\nlat{le=\"0.5\"} a 1795357195.25 nan\n"
		"up bü 1 nan\n");
	assert_int_equal(said.samples, 3);
	assert_int_equal(said.missing, 2);
	assert_int_equal(said.n_notes, 3);
	assert_string_equal(said.notes[1], "the server warns: slow\\n");
	noting_close(&out);
	import_said_clear(&said);
}

/* Servers' reports of missing series. */
static void test_answer_partial(void **state)
{
	static const struct {
		const char *more, *partial;
		size_t notes; /* the first note is the guess of labels */
	} cases[] = {
		{"", NULL, 1},
		{",\"isPartial\":false,\"warnings\":null,\"infos\":[]", NULL, 1},
		{",\"isPartial\":true", "the server says that its answer is partial (isPartial)",
			2},
		{",\"warnings\":[\"store s1: down\",\"store s1: down\"]",
			"the server warns: store s1: down", 2},
		{",\"warnings\":\"a limit\"", "the server warns: a limit", 2},
		{",\"warnings\":[\"a\",\"b\"],\"infos\":[\"c\"]",
			"the server warns: a; the server warns: b", 4},
		{",\"infos\":[\"not a counter\"]", NULL, 2},
		{",\"warnings\":[\"PromQL info: not a counter\"]", NULL, 2},
		{",\"warnings\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\"]",
			"the server warns: 1; the server warns: 2; the server warns: 3; "
			"the server warns: 4; the server warns: 5; the server has more warnings",
			7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_said said = {0};
		char text[600];
		struct noting out;
		struct err e;

		snprintf(text, sizeof(text),
			MATRIX "{\"metric\":{\"device\":\"a\"},\"values\":[[1,\"2\"]]},"
			       "{\"metric\":{\"device\":\"b\"},\"values\":[[1,\"3\"]]}]}%s}",
			cases[i].more);
		assert_int_equal(read_answer(text, &out, &said, &e), 0);
		assert_string_equal(out.text, "value a 1 2\nvalue b 1 3\n");
		if (cases[i].partial)
			assert_string_equal(said.partial, cases[i].partial);
		else
			assert_null(said.partial);
		assert_int_equal(said.n_notes, cases[i].notes);
		noting_close(&out);
		import_said_clear(&said);
	}
}

static void test_answer_wrong(void **state)
{
	static const char *const wrong[] = {"", "<html>", "[]", "{}", "{\"status\":\"success\"}",
		MATRIX, MATRIX "5]}}", MATRIX "{\"values\":[[1,\"2\"]]}]}}",
		MATRIX "{\"metric\":{\"a\":5}}]}}", MATRIX "{\"metric\":{},\"values\":[[1,2]]}]}}",
		MATRIX "{\"metric\":{},\"values\":[[1,\"x\"]]}]}}",
		"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
		NULL};
	struct noting out;
	struct err e;

	(void)state;
	for (size_t i = 0; wrong[i]; i++) {
		int rc = read_answer(wrong[i], &out, NULL, &e);

		if (rc != -EPROTO ||
			strncmp(e.text, "http://p:1: the answer is not Prometheus's: line", 48))
			fail_msg("'%s': %d %s", wrong[i], rc, rc ? e.text : "");
		noting_close(&out);
	}
	assert_int_equal(
		read_answer("{\"status\":\"error\",\"error\":\"bad\\u001b[1m\"}", &out, NULL, &e),
		-EINVAL);
	assert_string_equal(e.text, "http://p:1: bad\\x1b[1m");
	noting_close(&out);
}

/* Labels named by the user: reads and writes of a disk are different series nevertheless, with a
 * note. */
static void test_answer_labels(void **state)
{
	static const char text[] = MATRIX
		"{\"metric\":{\"disk\":\"a\",\"op\":\"r\"},\"values\":[[1,\"2\"],[2,\"2\"]]},"
		"{\"metric\":{\"disk\":\"b\",\"op\":\"r\"},\"values\":[[1,\"3\"],[2,\"3\"]]},"
		"{\"metric\":{\"disk\":\"a\",\"op\":\"w\"},\"values\":[[1,\"8\"],[2,\"8\"]]}]}}";
	struct import_options how = {.member = "disk", .group = {"disk"}};
	struct labels *l = labels_new(&how);
	struct import_said said = {0};
	struct noting out;
	struct import_sink sink = noting_open(&out);
	struct reading r = {l, &sink, &said};
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct err e;

	(void)state;
	assert_int_equal(prometheus_answer_read(f, "p", NULL, l, see, &r, &said, &e), 0);
	assert_int_equal(labels_decide(l, &said, &e), 0);
	rewind(f);
	assert_int_equal(prometheus_answer_read(f, "p", NULL, l, give, &r, &said, &e), 0);
	fflush(out.f);
	assert_string_equal(out.text,
		"value a/r/a 1 2\nvalue a/r/a 2 2\nvalue b/r/b 1 3\nvalue b/r/b 2 3\n"
		"value a/w/a 1 8\nvalue a/w/a 2 8\n");
	assert_int_equal(said.n_notes, 1);
	fclose(f);
	labels_free(l);
	noting_close(&out);
	import_said_clear(&said);
}

static int try_url(const char *url, struct err *e)
{
	const char *query = "up";
	struct prometheus_options o = {.url = url, .queries = &query, .n_queries = 1};
	struct prometheus *p;
	int rc = prometheus_new(&o, &p, e);

	if (!rc)
		prometheus_free(p);
	return rc;
}

static void test_url(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(try_url("https://host:9090/prom/", &e), 0);
	assert_int_equal(try_url("http://[::1]:9090", &e), 0);
	assert_int_equal(try_url("file:///etc/passwd", &e), -EINVAL);
	assert_int_equal(try_url("ftp://host", &e), -EINVAL);
	assert_int_equal(try_url("host:9090", &e), -EINVAL);
	assert_int_equal(try_url("", &e), -EINVAL);
	assert_int_equal(try_url("http://host/?a=b", &e), -EINVAL);
	assert_int_equal(try_url("https://me:SECRET@host", &e), -EINVAL);
	assert_null(strstr(e.text, "SECRET"));
	assert_int_equal(e.class, ERR_USAGE);
}

static int ask(int argc, char **argv)
{
	const char *query = argv[3];
	struct prometheus_options o = {.url = argv[2], .queries = &query, .n_queries = 1};
	struct import_said said = {0};
	struct noting out;
	struct import_sink sink = noting_open(&out);
	struct prometheus *p;
	struct err e;
	double done = NAN;
	int rc;
	const struct {
		const char *name;
		const char **field;
	} fields[] = {{"token=", &o.token_file}, {"password=", &o.password_file},
		{"ca=", &o.ca_file}, {"cert=", &o.cert_file}, {"key=", &o.key_file},
		{"member=", &o.how.member}, {"group=", &o.how.group[0]}};

	o.step_s = atof(argv[6]);
	for (int i = 7; i < argc; i++) {
		if (!strncmp(argv[i], "timeout=", 8))
			o.timeout_s = atof(argv[i] + 8);
		for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
			if (!strncmp(argv[i], fields[k].name, strlen(fields[k].name)))
				*fields[k].field = argv[i] + strlen(fields[k].name);
	}
	rc = prometheus_new(&o, &p, &e);
	if (!rc) {
		rc = prometheus_query(p, atof(argv[4]), atof(argv[5]), &sink, &said, &done, &e);
		prometheus_free(p);
	}
	fflush(out.f);
	fputs(out.text, stdout);
	if (said.form)
		printf("form: %s\n", said.form);
	for (size_t i = 0; i < said.n_notes; i++)
		printf("note: %s\n", said.notes[i]);
	if (said.partial)
		printf("partial: %s\n", said.partial);
	if (rc)
		printf("error %s: %s\n", strerrorname_np(-rc), e.text);
	else
		printf("done %.15g\n", done);
	noting_close(&out);
	import_said_clear(&said);
	return rc ? 2 : 0;
}

/* read FILE METRIC [member=LABEL] */
static int read_named(int argc, char **argv)
{
	const char *metric = argv[3];
	struct import_options o = {.metrics = &metric, .n_metrics = 1};
	struct import_said said = {0};
	struct noting out;
	struct import_sink sink = noting_open(&out);
	struct err e;
	int rc;

	if (argc > 4)
		o.member = argv[4] + strlen("member=");
	rc = import_file(argv[2], &o, &sink, &said, &e);
	fflush(out.f);
	printf("%s%s\n", out.text, rc ? e.text : "done");
	noting_close(&out);
	import_said_clear(&said);
	return rc ? 2 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answer),
		cmocka_unit_test(test_answer_partial), cmocka_unit_test(test_answer_labels),
		cmocka_unit_test(test_answer_wrong), cmocka_unit_test(test_url)};

	if (argc > 6 && !strcmp(argv[1], "ask"))
		return ask(argc, argv);
	if (argc > 3 && !strcmp(argv[1], "read"))
		return read_named(argc, argv);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
