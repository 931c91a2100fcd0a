#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/hash.h"
#include "harness/base/map.h"

enum { PAIRS = 600, KEYS = 97 };

/* Pairs that should be in the table, in any order. */
struct plain {
	struct map_slot pair[PAIRS];
	size_t n;
};

static size_t in_plain(const struct plain *p, uint64_t key, uint64_t value)
{
	size_t i = 0;

	while (i < p->n && (p->pair[i].key != key || p->pair[i].value != value))
		i++;
	return i;
}

static void check_same(const struct map *m, const struct plain *p)
{
	size_t found = 0;

	assert_int_equal(m->n, p->n);
	for (uint64_t key = 0; key < KEYS; key++) {
		uint64_t v, spread = key << 40;
		size_t at = 0, n = 0;

		while ((v = map_next(m, spread, &at))) {
			assert_true(in_plain(p, spread, v) < p->n);
			n++;
		}
		assert_int_equal(!map_get(m, spread), !n);
		found += n;
	}
	assert_int_equal(found, p->n);
	for (size_t i = 0; i < map_room(m); i++)
		found -= m->slot[i].value != 0;
	assert_int_equal(found, 0);
}

/* Few keys have many values each, so that removing one moves others up. */
static void it_agrees_with_a_plain_list(void **state)
{
	struct map m = {0};
	struct plain p = {.n = 0};
	uint64_t value = 0;

	(void)state;
	srand(11);
	for (int i = 0; i < 20000; i++) {
		uint64_t key = (uint64_t)(rand() % KEYS) << 40;

		if (p.n < PAIRS && (i / 1000 % 2 ? rand() % 4 == 0 : rand() % 4)) {
			assert_true(map_add(&m, key, ++value));
			p.pair[p.n++] = (struct map_slot){key, value};
		} else if (p.n) {
			size_t at = (size_t)rand() % p.n;

			map_remove(&m, p.pair[at].key, p.pair[at].value);
			p.pair[at] = p.pair[--p.n];
		}
		map_remove(&m, key, value + 1); /* which is not there */
		if (i % 50 == 0)
			check_same(&m, &p);
	}
	map_clear(&m);
	assert_null(m.slot);
}

static void a_put_replaces(void **state)
{
	struct map m = {0};

	(void)state;
	assert_int_equal(map_get(&m, 7), 0);
	map_remove(&m, 7, 1);
	for (uint64_t k = 0; k < 5000; k++)
		map_put(&m, k, k + 1);
	for (uint64_t k = 0; k < 5000; k += 2)
		map_put(&m, k, k + 2);
	assert_int_equal(m.n, 5000);
	assert_true(3 * m.n <= 2 * map_room(&m));
	for (uint64_t k = 0; k < 5000; k++)
		assert_int_equal(map_get(&m, k), k % 2 ? k + 1 : k + 2);
	assert_int_equal(map_get(&m, 5000), 0);
	map_clear(&m);
}

static void keys_may_be_hashes_of_texts(void **state)
{
	static const char *const names[] = {"s1", "s2", "c1"};
	struct map m = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		map_keep(&m, hash_text(names[i]), i + 1);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(map_get(&m, hash_text(names[i])), i + 1);
	assert_int_equal(map_get(&m, hash_text("c2")), 0);
	map_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_agrees_with_a_plain_list),
		cmocka_unit_test(a_put_replaces),
		cmocka_unit_test(keys_may_be_hashes_of_texts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
