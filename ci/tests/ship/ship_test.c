/* Logs cut into batches: whatever a sink refuses, and wherever it was left off, it gets each row
 * once and in order, with what the rows need from before. What a store answers is read, and what is
 * no answer is refused. Conditions become SQL that holds nothing but values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "ci/tests/query/drawn.h"
#include "ci/tests/scratch.h"
#include "diag/ship/rowbinary.h"
#include "diag/ship/ship.h"
#include "diag/ship/where.h"

enum { RECORDS = 6000 };

static char path[128];

/* A store that keeps a sum of the rows of committed batches. It fails at its 'fail_at'-th call. */
struct store {
	uint64_t committed, rows, sum; /* blocks; of committed batches */
	uint64_t new_rows, new_sum;
	uint64_t last; /* number of the last row of any kind */
	int calls, fail_at, batches;
	volatile sig_atomic_t *stop; /* set by the second batch */
	uint64_t lost, new_lost;     /* as the rows say */
	bool ended;
};

static int refuse(struct store *s, struct err *e)
{
	return ++s->calls == s->fail_at ? err_set(e, -EIO, "no") : 0;
}

static int begin(void *ctx, const struct ship_subject *of, uint64_t *from, struct err *e)
{
	struct store *s = ctx;

	assert_true(of->id > 0);
	s->new_rows = s->new_sum = s->new_lost = s->last = 0;
	*from = s->committed;
	return refuse(s, e);
}

static uint64_t mix(uint64_t sum, const char *text)
{
	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * 0x100000001b3;
	return sum;
}

static int row(void *ctx, const struct query_table *t, struct query_row *r, struct err *e)
{
	struct store *s = ctx;
	const uint64_t number = r->item->record->number;
	uint64_t sum = mix(number, t->name);

	assert_true(number > s->last);
	s->last = number;
	for (const struct column *c = t->columns; c->name; c++) {
		struct column_value v = {.type = VALUE_NULL};

		c->get(r, &v);
		if (v.type == VALUE_TEXT)
			sum = mix(sum, v.text);
		else if (v.type == VALUE_INT)
			sum = (sum ^ (uint64_t)v.number) * 0x100000001b3;
	}
	s->new_rows++;
	s->new_sum += sum;
	if (r->item->record->type == RECORD_LOST)
		s->new_lost += r->item->record->lost.count;
	(void)e;
	return 0;
}

static int batch(void *ctx, uint64_t to, struct err *e)
{
	struct store *s = ctx;
	int rc = refuse(s, e);

	if (rc)
		return rc;
	assert_true(to > s->committed);
	s->committed = to;
	s->rows += s->new_rows;
	s->sum += s->new_sum;
	s->lost += s->new_lost;
	s->new_rows = s->new_sum = s->new_lost = 0;
	if (++s->batches == 2 && s->stop)
		*s->stop = 1;
	return 0;
}

static int end(void *ctx, const struct ship_counts *c, struct err *e)
{
	struct store *s = ctx;

	assert_int_equal(c->records, c->before + c->sent + c->plain);
	assert_int_equal(s->new_rows, 0);
	s->ended = true;
	return refuse(s, e);
}

static int ship(struct store *s, uint64_t blocks, struct ship_counts *c, struct err *e)
{
	const struct query_log log = {.path = path, .name = "log"};
	const struct ship_spec spec = {.batch_blocks = blocks, .interrupted = s->stop};
	const struct ship_sink sink = {
		.ctx = s, .begin = begin, .row = row, .batch = batch, .end = end};

	return ship_log(&log, 0, &spec, &sink, c, e);
}

static void test_refused_at_each_call(void **state)
{
	struct store whole = {.fail_at = 0};
	struct ship_counts c;
	struct err e;

	(void)state;
	assert_int_equal(ship(&whole, 4096, &c, &e), 0);
	assert_true(c.whole && whole.rows == RECORDS && whole.batches == 1);
	assert_int_equal(whole.rows, c.sent);
	assert_true(c.lost > 10 && c.lost == whole.lost);
	for (uint64_t blocks = 1; blocks < 5; blocks++) {
		for (int k = 1;; k++) {
			struct store s = {.fail_at = k};
			int first = ship(&s, blocks, &c, &e), rc = first;

			if (rc)
				rc = ship(&s, blocks, &c, &e);
			assert_int_equal(rc, 0);
			assert_true(s.ended && s.rows == whole.rows && s.sum == whole.sum);
			if (!first)
				break;
		}
	}
}

/* So that each shipper is refused when it has got one batch further. */
static void test_refused_again_and_again(void **state)
{
	struct store whole = {.fail_at = 0}, s = {.fail_at = 0};
	struct ship_counts c;
	struct err e;
	int rounds = 0;

	(void)state;
	assert_int_equal(ship(&whole, 4096, &c, &e), 0);
	do {
		s.calls = 0;
		s.fail_at = 3;
		rounds++;
	} while (ship(&s, 1, &c, &e) && rounds < 1000);
	assert_true(rounds > 5 && s.rows == whole.rows && s.sum == whole.sum);
}

static void test_interrupted(void **state)
{
	volatile sig_atomic_t stop = 0;
	struct store whole = {.fail_at = 0}, s = {.stop = &stop};
	struct ship_counts c;
	struct err e;

	(void)state;
	assert_int_equal(ship(&whole, 4096, &c, &e), 0);
	assert_int_equal(ship(&s, 1, &c, &e), -EINTR);
	assert_true(e.class == ERR_INTERRUPTED && s.batches == 2 && s.rows < whole.rows);
	stop = 0;
	assert_int_equal(ship(&s, 1, &c, &e), 0);
	assert_true(s.rows == whole.rows && s.sum == whole.sum && s.lost == whole.lost);
}

static void test_cut(void **state)
{
	struct store s = {.fail_at = 0}, again = {.fail_at = 0};
	struct ship_counts c;
	struct err e;
	char copy[200], *text;
	int64_t id, cut_id;
	size_t size;
	uint64_t before;

	(void)state;
	snprintf(copy, sizeof(copy), "%s.whole", path);
	assert_int_equal(rename(path, copy), 0);
	assert_int_equal(file_read(copy, &text, &size, &e), 0);
	assert_true(size > 20000);
	assert_int_equal(file_write_atomic(path, 0600, text, 20000, &e), 0);
	free(text);
	assert_int_equal(ship(&s, 2, &c, &e), 0);
	assert_false(c.whole);
	assert_non_null(strstr(c.problem, "is cut short at byte 20000"));
	before = s.rows;
	assert_true(before > 100);
	assert_int_equal(ship_log_id(path, &cut_id, &e), 0);
	assert_int_equal(rename(copy, path), 0);
	assert_int_equal(ship_log_id(path, &id, &e), 0);
	assert_true(id == cut_id);
	assert_int_equal(ship(&s, 2, &c, &e), 0);
	assert_true(c.whole && c.before > 0);
	assert_int_equal(ship(&again, 4096, &c, &e), 0);
	assert_true(s.rows == again.rows && s.sum == again.sum && s.rows > before);
}

/* Of 'size' bytes: how many rows, then 0 or an error. */
static int read_rows(const void *data, size_t size, int *rows)
{
	struct rowbinary r = {.n = 3};
	struct err e = {.text = ""};
	FILE *f = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "r");
	int rc;

	r.column[0].type = COLUMN_INT;
	r.column[1].type = COLUMN_TEXT;
	r.column[1].nullable = true;
	r.column[2].type = COLUMN_REAL;
	*rows = 0;
	while ((rc = rowbinary_next(&r, f, &e)) == 1) {
		assert_int_equal(r.value[0].number, 42 + *rows);
		if (*rows == 1)
			assert_int_equal(r.value[1].type, VALUE_NULL);
		else
			assert_string_equal(r.value[1].text, "read");
		assert_true(r.value[2].real == 0.5);
		++*rows;
	}
	fclose(f);
	rowbinary_clear(&r);
	return rc;
}

static void test_rowbinary(void **state)
{
	uint8_t two[64] = {42, 0, 0, 0, 0, 0, 0, 0, 0, 4, 'r', 'e', 'a', 'd'}, *p = two + 14;
	const double half = 0.5;
	int rows;

	(void)state;
	memcpy(p, &half, 8);
	p += 8;
	*p = 43;
	p[8] = 1;
	memcpy(p + 9, &half, 8);
	p += 17;
	for (size_t size = 0; size <= (size_t)(p - two); size++) {
		const bool whole = size == 0 || size == 22 || size == (size_t)(p - two);

		assert_int_equal(read_rows(two, size, &rows), whole ? 0 : -EPROTO);
		assert_int_equal(rows, size == (size_t)(p - two) ? 2 : size >= 22);
	}
	two[8] = 2; /* neither null nor not */
	assert_int_equal(read_rows(two, 22, &rows), -EPROTO);
	two[8] = 0;
	memset(two + 9, 0xff, 5); /* a text of 32 GiB */
	assert_int_equal(read_rows(two, 22, &rows), -EPROTO);
}

static void test_hostile_text(void **state)
{
	struct push_value value = {.type = PUSH_TEXT, .text = (char *)"a' OR 1=1 -- \\' \n"};
	const struct query_table *t = query_tables;
	struct push p = {.op = PUSH_EQ, .values = &value, .n = 1};
	struct query_ask ask = {.table = t, .pushes = &p, .n_pushes = 1};
	struct scan_filter f;
	char *sql = NULL;
	size_t size;
	FILE *out;

	(void)state;
	while (strcmp(t->columns[p.column].name, "path") != 0)
		p.column++;
	where_filter(&f);
	out = open_memstream(&sql, &size);
	where_conditions(&ask, &f, out);
	fclose(out);
	assert_string_equal(sql, " AND `path` IN ('a\\' OR 1=1 -- \\\\\\' \n')");
	free(sql);
}

static int set_up(void **state)
{
	if (make_dir(state))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	return drawn_log(path, RECORDS, true, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_at_each_call),
		cmocka_unit_test(test_refused_again_and_again),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_rowbinary),
		cmocka_unit_test(test_hostile_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
