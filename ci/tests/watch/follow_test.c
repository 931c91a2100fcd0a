/* A growing file is followed through rotation, truncation and partial lines; CSV in pieces;
 * polling a server. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "harness/live/follow.h"
#include "harness/live/chunks.h"
#include "harness/live/poll.h"

static char path[128];

static void put(const char *flags, const char *text)
{
	FILE *f = fopen(path, flags);

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* All new lines, with "<why>" where another file begins. */
static const char *all(struct follow *f)
{
	static char text[1 << 16];
	struct follow_piece piece;
	struct err e;
	size_t n = 0;

	do {
		assert_int_equal(follow_next(f, 1 << 20, &piece, &e), 0);
		if (piece.state == FOLLOW_LINES)
			n += (size_t)sprintf(text + n, "%.*s", (int)piece.size, piece.text);
		if (piece.state == FOLLOW_NEW)
			n += (size_t)sprintf(text + n, "<%s>", piece.why);
	} while (piece.state == FOLLOW_LINES || piece.state == FOLLOW_NEW);
	text[n] = '\0';
	return text;
}

static struct follow *open_it(void)
{
	struct follow *f = NULL;
	struct err e;

	assert_int_equal(follow_open(path, &f, &e), 0);
	assert_int_equal(follow_fd(f), -1);
	return f;
}

static int fresh(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/log", dir);
	unlink(path);
	return 0;
}

static void lines_come_whole(void **state)
{
	struct follow *f;

	(void)state;
	put("w", "a\nb");
	f = open_it();
	assert_string_equal(all(f), "a\n");
	assert_string_equal(all(f), "");
	put("a", "b");
	assert_string_equal(all(f), "");
	put("a", "b\nc\n\nd");
	assert_string_equal(all(f), "bbb\nc\n\n");
	follow_close(f);
}

static void small_pieces_hold_one_line_at_least(void **state)
{
	struct follow_piece piece;
	struct follow *f;
	struct err e;

	(void)state;
	put("w", "first line\nsecond\nthird\n");
	f = open_it();
	assert_int_equal(follow_next(f, 4, &piece, &e), 0);
	assert_int_equal(piece.size, 11);
	assert_int_equal(follow_next(f, 14, &piece, &e), 0);
	assert_int_equal(piece.size, 13);
	follow_close(f);
}

static void rotation_loses_nothing(void **state)
{
	char old[160];
	struct follow *f;
	FILE *writer;

	(void)state;
	snprintf(old, sizeof(old), "%s.1", path);
	put("w", "1\n2\n");
	f = open_it();
	assert_string_equal(all(f), "1\n2\n");
	writer = fopen(path, "a");
	assert_int_equal(rename(path, old), 0);
	assert_string_equal(all(f), ""); /* the file is still empty */
	fputs("3\n", writer);
	fflush(writer);
	assert_string_equal(all(f), "3\n");
	fputs("4", writer);
	fclose(writer);
	put("w", "5\n");
	assert_string_equal(all(f), "4\n<was replaced by another file>5\n");
	put("a", "6\n");
	assert_string_equal(all(f), "6\n");
	follow_close(f);
}

static void truncation_is_noticed(void **state)
{
	struct follow *f;

	(void)state;
	put("w", "1,a\n2,b\n");
	f = open_it();
	assert_string_equal(all(f), "1,a\n2,b\n");
	put("w", "3,c\n");
	assert_string_equal(all(f), "<was truncated>3,c\n");
	/* It has grown beyond its old size in the meantime. */
	put("w", "4,d\n5,e\n6,f\n");
	assert_string_equal(all(f), "<was rewritten>4,d\n5,e\n6,f\n");
	follow_close(f);
}

static void unusable_sources_are_refused(void **state)
{
	struct follow *f = NULL;
	struct err e;

	(void)state;
	assert_int_equal(follow_open(path, &f, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(follow_open(dir, &f, &e), -EISDIR);
	assert_null(f);
}

/* --- pieces --- */

static char seen[4096], said[4096];

static int take_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	(void)ctx;
	(void)e;
	*id = (uint32_t)atoi(key->member + 1);
	return 0;
}

static int take_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	size_t n = strlen(seen);

	(void)ctx;
	(void)e;
	snprintf(seen + n, sizeof(seen) - n, "%u@%.0f=%g ", id, time_s, value);
	return 0;
}

static void tell(void *ctx, const char *sentence)
{
	size_t n = strlen(said);

	(void)ctx;
	snprintf(said + n, sizeof(said) - n, "%s|", sentence);
}

static const struct import_sink sink = {NULL, take_series, take_sample, NULL};

static int feed(struct chunks *p, const char *text)
{
	static const bool failed;
	struct err e;
	int rc = chunks_feed(p, text, strlen(text), &failed, &e);

	if (rc)
		tell(NULL, e.text);
	return rc;
}

static void expect(char *text, const char *what)
{
	assert_string_equal(text, what);
	*text = '\0';
}

static struct chunks csv(void)
{
	const struct import_format *f = import_formats;

	while (strcmp(f->name, "csv"))
		f++;
	*seen = *said = '\0';
	return (struct chunks){.source = "log", .format = f, .sink = sink, .tell = tell};
}

static void the_head_applies_to_every_piece(void **state)
{
	struct chunks p = csv();

	(void)state;
	assert_int_equal(feed(&p, "# made by hand\n"), 0);
	assert_int_equal(feed(&p, "time,disk,metric,value\n"), 0);
	expect(seen, "");
	assert_int_equal(feed(&p, "1700000000,d1,x,1\n1700000001,d2,x,2\n"), 0);
	assert_int_equal(feed(&p, "1700000002,d1,x,3\n"), 0);
	expect(seen, "1@1700000000=1 2@1700000001=2 1@1700000002=3 ");
	/* Another file with another order of columns, then one without a head. */
	chunks_new_file(&p);
	assert_int_equal(feed(&p, "value,time,disk,metric\n4,1700000003,d1,x\n"), 0);
	chunks_new_file(&p);
	assert_int_equal(feed(&p, "5,1700000004,d1,x\n"), 0);
	chunks_new_file(&p);
	assert_int_equal(feed(&p, "value,time,disk,metric\n6,1700000005,d1,x\n"), 0);
	expect(seen, "1@1700000003=4 1@1700000004=5 1@1700000005=6 ");
	chunks_clear(&p);
}

static void the_first_piece_determines_the_key(void **state)
{
	struct chunks p = csv();

	(void)state;
	assert_int_equal(feed(&p,
				 "time,host,name,ms\n1700000000,h1,d1,1\n1700000000,h1,d2,2\n"
				 "1700000001,h1,d1,3\n1700000001,h1,d2,4\n"),
		0);
	expect(seen, "1@1700000000=1 2@1700000000=2 1@1700000001=3 2@1700000001=4 ");
	assert_non_null(strstr(said, "member in 'name', groups in 'host'"));
	assert_non_null(
		strstr(said, "|2 of 4 rows repeat a time of their series; 'name' separates"));
	*said = '\0';
	assert_int_equal(feed(&p, "1700000002,h1,d1,5\n"), 0);
	assert_int_equal(feed(&p, "1700000002,h1,d2,6\n"), 0);
	expect(seen, "1@1700000002=5 2@1700000002=6 ");
	expect(said, "");
	chunks_clear(&p);
}

static void a_key_that_fails_later_is_an_error(void **state)
{
	struct chunks p = csv();
	char text[2000] = "";

	(void)state;
	assert_int_equal(feed(&p, "time,host,name,ms\n1700000000,h1,d1,1\n"), 0);
	/* A corrected sample is not a new sample. */
	assert_int_equal(feed(&p, "1700000001,h1,d1,1\n1700000001,h1,d1,2\n"), 0);
	for (int i = 0; i < 20; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "17000000%d,h1,d%d,1\n",
			10 + i / 2, i % 2);
	*said = '\0';
	assert_int_equal(feed(&p, text), -EINVAL);
	expect(said,
		"log:1: 10 of 20 rows repeat a time of their series, separated by 'name': add it "
		"by --group, or name it by --member|");
	chunks_clear(&p);
}

static void column_names_in_a_comment_apply_to_every_piece(void **state)
{
	struct chunks p = csv();

	(void)state;
	assert_int_equal(feed(&p, "#UTC,[DSK:d1]RdWait,[DSK:d2]RdWait\n1700000000,1,2\n"), 0);
	assert_int_equal(feed(&p, "1700000001,3,4\n"), 0);
	expect(seen, "1@1700000000=1 2@1700000000=2 1@1700000001=3 2@1700000001=4 ");
	chunks_clear(&p);
}

static void wrong_lines_are_skipped_and_reported_by_number(void **state)
{
	struct chunks p = csv();

	(void)state;
	assert_int_equal(feed(&p, "time,disk,metric,value\n1700000000,d1,x,1\n"), 0);
	*said = '\0';
	assert_int_equal(
		feed(&p, "1700000001,d1,x\n1700000002,d1,x,2\nnever,d1,x,2\n1700000003,d1,x,3\n"),
		0);
	expect(seen, "1@1700000000=1 1@1700000002=2 1@1700000003=3 ");
	assert_non_null(strstr(said, "log:3: "));
	assert_non_null(strstr(said, "log:5: "));
	assert_int_equal(p.skipped, 2);
	for (int i = 0; i < 50; i++)
		assert_int_equal(feed(&p, "x\n"), 0);
	assert_int_equal(p.skipped, 52);
	assert_true(strlen(said) < 1000);
	chunks_clear(&p);
}

static void another_kind_of_file_is_refused(void **state)
{
	struct chunks p = csv();

	(void)state;
	assert_int_equal(feed(&p, "no,such,columns\n1,2,3\n"), -EINVAL);
	assert_non_null(strstr(said, "log:1: "));
	chunks_clear(&p);
	p = csv();
	assert_int_equal(feed(&p, "time,disk,metric,value\n1,2\n"), -EINVAL);
	chunks_clear(&p);
}

/* --- a server --- */

struct server {
	double from_s, to_s;
	int calls, rc;
	bool late; /* series 1 has no sample at the newest step, as yet */
};

static int query(void *ctx, double from_s, double to_s, const struct import_sink *to,
	double *done_s, struct err *e)
{
	struct server *s = ctx;
	int rc = 0;

	s->calls++;
	s->from_s = from_s;
	s->to_s = to_s;
	if (s->rc)
		return err_set(e, s->rc, "no answer");
	for (uint32_t id = 0; id < 2; id++)
		for (double t = from_s; t <= to_s + 1e-9 && !rc; t += 10)
			if (!(s->late && id == 1 && t > to_s - 5))
				rc = to->sample(to->ctx, id, t, id, e);
	*done_s = to_s;
	return rc;
}

static void polls_overlap_and_repeat_nothing(void **state)
{
	struct server s = {0};
	struct poll p = {.query = query, .ctx = &s, .sink = sink, .step_s = 10, .history_s = 20};
	struct err e;

	(void)state;
	*seen = '\0';
	assert_int_equal(poll_once(&p, 1007, &e), 0);
	expect(seen, "0@970=0 0@980=0 0@990=0 1@970=1 1@980=1 1@990=1 ");
	assert_int_equal(poll_once(&p, 1009, &e), 0); /* there cannot be new samples */
	assert_int_equal(s.calls, 1);
	s.late = true;
	assert_int_equal(poll_once(&p, 1011, &e), 0);
	expect(seen, "0@1000=0 ");
	s.late = false;
	assert_int_equal(poll_once(&p, 1021, &e), 0);
	expect(seen, "0@1010=0 1@1000=1 1@1010=1 ");
	/* An outage: missed samples are fetched, but no more than the history. */
	s.rc = -ECONNREFUSED;
	assert_int_equal(poll_once(&p, 1031, &e), -ECONNREFUSED);
	s.rc = 0;
	assert_int_equal(poll_once(&p, 1041, &e), 0);
	assert_true(s.from_s == 1010 && s.to_s == 1030);
	assert_int_equal(poll_once(&p, 9001, &e), 0);
	assert_true(s.from_s == 8970 && s.to_s == 8990);
	poll_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lines_come_whole, fresh),
		cmocka_unit_test_setup(small_pieces_hold_one_line_at_least, fresh),
		cmocka_unit_test_setup(rotation_loses_nothing, fresh),
		cmocka_unit_test_setup(truncation_is_noticed, fresh),
		cmocka_unit_test_setup(unusable_sources_are_refused, fresh),
		cmocka_unit_test(the_head_applies_to_every_piece),
		cmocka_unit_test(the_first_piece_determines_the_key),
		cmocka_unit_test(a_key_that_fails_later_is_an_error),
		cmocka_unit_test(column_names_in_a_comment_apply_to_every_piece),
		cmocka_unit_test(wrong_lines_are_skipped_and_reported_by_number),
		cmocka_unit_test(another_kind_of_file_is_refused),
		cmocka_unit_test(polls_overlap_and_repeat_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
