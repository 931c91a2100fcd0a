/* Tests series that the reader of CSV separates although no time repeats, and repeats that begin
 * after the part that it examines ahead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ci/tests/import/noting.h"
#include "diag/import/formats.h"

struct table {
	char *text;
	size_t size;
	FILE *f;
};

static void begin(struct table *t, const char *head)
{
	t->f = alloc_text(&t->text, &t->size);
	fprintf(t->f, "%s\n", head);
}

/* Reads the table. Expects the error 'wrong', or samples that begin with 'want' and a note that
 * contains 'note'; NULL: no note. */
static void gives(struct table *t, const char *want, const char *note, const char *wrong)
{
	struct noting x;
	const struct import_sink sink = noting_open(&x);
	const struct import_options find_out = {0};
	struct import_said said = {0};
	struct err e = {0};
	FILE *f;
	int rc;

	fclose(t->f);
	f = fmemopen(t->text, t->size, "r");
	rc = csv_read(f, "x.csv", &find_out, &sink, &said, &e);
	fclose(f);
	fflush(x.f);
	if (wrong ? !rc || !strstr(e.text, wrong) : rc)
		fail_msg("%d '%s', not '%s'", rc, e.text, wrong ? wrong : "");
	if (want && strncmp(x.text, want, strlen(want)) != 0)
		fail_msg("'%.200s' does not begin with '%s'", x.text, want);
	if (note && (!said.n_notes || !strstr(said.notes[0], note)))
		fail_msg("'%s' is not in '%s'", note, said.n_notes ? said.notes[0] : "");
	if (!note && !wrong && said.n_notes)
		fail_msg("unexpected note: '%s'", said.notes[0]);
	noting_close(&x);
	free(t->text);
	import_said_clear(&said);
}

static const char taken[] = "the values of column 'box' take turns in time, each at its own step";

static void hosts_that_are_polled_in_turn(void **state)
{
	struct table t;

	(void)state;
	begin(&t, "time,device,box,ms");
	for (int i = 0; i < 20; i++)
		fprintf(t.f, "%d,sda,a,2\n%d,sda,b,20\n", 10 * i, 10 * i + 4);
	gives(&t, "ms a/sda 0 2\nms b/sda 4 20\nms a/sda 10 2\n", taken, NULL);
	/* The second host's rows after the first's, with a different step. */
	begin(&t, "time,device,box,ms");
	for (int i = 0; i < 30; i++)
		fprintf(t.f, "2026-11-22T14:%02d:%02dZ,sda,a,2\n", i / 6, i % 6 * 10);
	for (int i = 0; i < 20; i++)
		fprintf(t.f, "2026-11-22T14:%02d:%02dZ,sda,b,20\n", i / 4, i % 4 * 15 + 4);
	gives(&t, "ms a/sda 1795356000 2\n", taken, NULL);
	/* A wide table has no key of rows. */
	begin(&t, "time,box,ms");
	for (int i = 0; i < 20; i++)
		fprintf(t.f, "%d,a,2\n%d,b,20\n", 10 * i, 10 * i + 4);
	gives(&t, NULL, NULL, "give --member 'box'");
}

/* States of one host: their rows have the host's step, or none. */
static void states_of_one_host(void **state)
{
	static const char *const states[] = {"idle", "busy", "idle", "full"};
	unsigned long drawn = 7;
	struct table t;

	(void)state;
	begin(&t, "time,host,state,ms");
	for (int i = 0; i < 200; i++)
		fprintf(t.f, "%d,h1,%s,%d\n", 10 * i, states[i / 10 % 4], i % 7);
	gives(&t, "ms h1 0 0\nms h1 10 1\nms h1 20 2\n", "column 'state' is not read", NULL);
	/* Each row several times: most steps are 0. */
	begin(&t, "time,host,state,ms");
	for (int i = 0; i < 1000; i++)
		fprintf(t.f, "%d,h1,%s,%d\n", i / 20 * 10, states[i / 20 % 4], i / 20 % 7);
	gives(&t, "ms h1 0 0\n", "column 'state' is not read", NULL);
	begin(&t, "time,host,state,ms");
	for (int i = 0; i < 200; i++) {
		drawn = drawn * 6364136223846793005 + 1442695040888963407;
		fprintf(t.f, "%d,h1,%s,%d\n", 10 * i, states[drawn >> 62], i % 7);
	}
	gives(&t, "ms h1 0 0\nms h1 10 1\nms h1 20 2\n", "column 'state' is not read", NULL);
}

enum { ROWS = 100000, AHEAD_ROWS = 75000 }; /* 16 MiB end before AHEAD_ROWS */

static void row(FILE *f, int time, const char *ms)
{
	fprintf(f, "%d,h1,%*s,%s\n", time, 240, "nothing", ms);
}

static void repeats_after_the_examined_part(void **state)
{
	struct table t;

	(void)state;
	begin(&t, "time,host,comment,ms");
	for (int i = 0; i < ROWS; i++) {
		row(t.f, i, "0.5");
		if (i > AHEAD_ROWS)
			row(t.f, i, "1.5");
	}
	gives(&t, NULL, NULL, "% of the rows repeat a time of their series");
	/* Later, and of the previous time. */
	begin(&t, "time,host,comment,ms");
	for (int i = 0; i < ROWS; i++)
		row(t.f, i, "0.5");
	for (int i = 0; i < ROWS / 4; i++)
		row(t.f, i, "1.5");
	gives(&t, NULL, NULL, "20% of the rows repeat a time of their series");
}

static void long_tables_without_repeats(void **state)
{
	struct table t;

	(void)state;
	begin(&t, "time,host,comment,ms");
	/* In random order; and identical rows count once. */
	for (int i = 0; i < ROWS; i++)
		row(t.f, (int)(i * 7919L % ROWS), "0.5");
	for (int i = 0; i < ROWS / 4; i++)
		row(t.f, i, "0.5");
	gives(&t, NULL, "column 'comment' is not read", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_that_are_polled_in_turn),
		cmocka_unit_test(states_of_one_host),
		cmocka_unit_test(repeats_after_the_examined_part),
		cmocka_unit_test(long_tables_without_repeats),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
