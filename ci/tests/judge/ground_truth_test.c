/* Tests files of labels and the members that they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/judge/ground_truth.h"

static char path[] = "/tmp/labels_test.XXXXXX";

static int read_text(const char *text, size_t size, struct ground_truth *l, struct err *e)
{
	FILE *f = fopen(path, "w");

	assert_int_equal(fwrite(text, 1, size, f), size);
	fclose(f);
	*e = (struct err){0};
	return ground_truth_read(path, l, e);
}

static struct ground_truth good(const char *text)
{
	struct ground_truth l = {0};
	struct err e;

	if (read_text(text, strlen(text), &l, &e))
		fail_msg("%s", e.text);
	return l;
}

enum { MEMBERS = 5 };
static const char *const paths[MEMBERS] = {
	"r1/h1/sda", "r1/h1/sdb", "r1/h2/sda", "r2/h3/sdc", "r2/h3/nvme0"};

/* One letter for each member: i, h, u; or the error. */
static const char *truth(const char *text, double from_s, double to_s)
{
	static char out[1100];
	struct ranked members[MEMBERS] = {{0}};
	struct ground_truth l = good(text);
	struct err e = {0};
	int rc;

	for (int i = 0; i < MEMBERS; i++)
		members[i].path = paths[i];
	rc = ground_truth_apply(&l, from_s, to_s, members, MEMBERS, &e);
	ground_truth_clear(&l);
	if (rc) {
		assert_int_equal(rc, -EINVAL);
		assert_int_equal(err_exit_code(&e), 2);
		assert_memory_equal(e.text, path, strlen(path));
		snprintf(out, sizeof(out), "%s", e.text + strlen(path));
		return out;
	}
	for (int i = 0; i < MEMBERS; i++)
		out[i] = "uhi"[members[i].truth];
	out[MEMBERS] = '\0';
	return out;
}

static void lists_name_ill_members(void **state)
{
	(void)state;
	assert_string_equal(truth("sdb\n", 0, 0), "hihhh");
	assert_string_equal(truth("# known\n\n h1/sda  # since May\r\nr2/h3/nvme0", 0, 0), "ihhhi");
	assert_string_equal(truth("", 0, 0), "hhhhh");
	assert_string_equal(truth("\xef\xbb\xbfsdb\nsdb\n", 0, 0), "hihhh");
}

static void csv_has_groups_and_ill(void **state)
{
	(void)state;
	assert_string_equal(truth("member\nsdc\n", 0, 0), "hhhih");
	assert_string_equal(truth("host,disk\nh1,sda\nh3,sdc\n", 0, 0), "ihhih");
	assert_string_equal(truth("rack,host,disk,why\nr1,h2,sda,\"a, b\"\n", 0, 0), "hhihh");
	assert_string_equal(truth("host,disk,ill\nh1,sda,1\nh1,sdb,0\nh2,sda,no\n", 0, 0), "ihhuu");
	assert_string_equal(truth("ill,Host,Member\n1,,sdb\n0,h3,sdc\n", 0, 0), "uiuhu");
}

static void times_bound_a_label(void **state)
{
	const char *text = "member,from,to\nsdb,100,200\nsdc,1970-01-01T00:05:00Z,\n";

	(void)state;
	assert_string_equal(truth(text, 0, 0), "hihih");
	assert_string_equal(truth(text, 0, 100), "hhhhh");
	assert_string_equal(truth(text, 0, 101), "hihhh");
	assert_string_equal(truth(text, 201, 300), "hhhhh");
	assert_string_equal(truth(text, 201, 301), "hhhih");
	assert_string_equal(
		truth("member,from,to,ill\nsdb,0,99,0\nsdb,100,200,1\n", 0, 150), "uiuuu");
	assert_string_equal(
		truth("member,from,to,ill\nsdb,0,99,0\nsdb,100,200,1\n", 0, 50), "uhuuu");
}

static void unknown_and_ambiguous_names_are_refused(void **state)
{
	(void)state;
	assert_string_equal(truth("sdb\nsdd\n", 0, 0), ":2: no member 'sdd'; did you mean 'sda'?");
	assert_string_equal(truth("host,disk\nh4,nvme0\n", 0, 0),
		":2: no member 'h4/nvme0'; did you mean 'h3/nvme0'?");
	assert_non_null(strstr(truth("sda\n", 0, 0),
		":1: 'sda' may be 'r1/h1/sda' or 'r1/h2/sda': add its groups"));
	assert_non_null(strstr(truth("something-else\n", 0, 0), ":1: no member 'something-else'"));
}

static void malformed_files_are_refused_with_their_line(void **state)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{"time,value\n1,2\n", ":1: the head has no column of members"},
		{"member,ill\nsda,2\n", ":2: '2' in column 'ill' is neither 1 nor 0"},
		{"member,ill\nsda\n", ":2: 1 columns; the head has 2"},
		{"member,from\nsda,yesterday\n", ":2: 'yesterday' is not a time"},
		{"member,from,to\nsda,5,4\n", ":2: 'from' is later than 'to'"},
		{"host,member\n\nh1,\n", ":3: no member"},
		{"sda\nsdb,1\n", ":2: a comma in a list"},
		{"member,ill\nsd\"a,1\n", ":2: a quote inside an unquoted field"},
		{"member,ill\n\"sda,1\n", ":2: a quote is not closed"},
	};
	struct ground_truth l = {0};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(read_text(bad[i].text, strlen(bad[i].text), &l, &e), -EINVAL);
		if (!strstr(e.text, bad[i].error))
			fail_msg("'%s', not '%s'", e.text, bad[i].error);
		assert_int_equal(err_exit_code(&e), 2);
		assert_null(l.v);
	}
	assert_int_equal(read_text("sda\nb\0c\n", 8, &l, &e), -EINVAL);
	assert_non_null(strstr(e.text, ":2: a zero byte"));
	assert_int_equal(ground_truth_read("/tmp/no/such/labels", &l, &e), -ENOENT);
}

/* Truncated and changed files give labels or an error, never anything else. */
static void damaged_files_do_no_harm(void **state)
{
	const char text[] =
		"rack,host,disk,from,to,ill\nr1,h1,\"sda\",100,2026-11-22,1\n,h2,sda,,,0\n";
	char copy[sizeof(text)];
	struct ground_truth l = {0};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		for (int byte = 0; byte < 256; byte += 5) {
			memcpy(copy, text, sizeof(text));
			copy[i] = (char)byte;
			if (read_text(copy, byte % 2 ? i : sizeof(text) - 1, &l, &e))
				assert_true(*e.text);
			ground_truth_clear(&l);
		}
}

static void many_members_are_found_fast(void **state)
{
	enum { N = 20000 };
	struct ranked *members = calloc(N, sizeof(*members));
	char *text = NULL, (*names)[32] = calloc(N, sizeof(*names));
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct ground_truth l;
	struct err e;

	(void)state;
	fprintf(f, "host,disk,ill\n");
	for (int i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "h%d/d%d", i / 10, i % 10);
		members[i].path = names[i];
		fprintf(f, "h%d,d%d,%d\n", i / 10, i % 10, i % 7 == 0);
	}
	fclose(f);
	l = good(text);
	assert_int_equal(ground_truth_apply(&l, 0, 0, members, N, &e), 0);
	for (int i = 0; i < N; i++)
		assert_int_equal(members[i].truth, i % 7 ? TRUTH_HEALTHY : TRUTH_ILL);
	ground_truth_clear(&l);
	free(text);
	free(names);
	free(members);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_name_ill_members),
		cmocka_unit_test(csv_has_groups_and_ill),
		cmocka_unit_test(times_bound_a_label),
		cmocka_unit_test(unknown_and_ambiguous_names_are_refused),
		cmocka_unit_test(malformed_files_are_refused_with_their_line),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(many_members_are_found_fast),
	};
	int fd = mkstemp(path), rc;

	close(fd);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rc = cmocka_run_group_tests_name("labels", tests, NULL, NULL);
	unlink(path);
	return rc;
}
