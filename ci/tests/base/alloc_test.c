/* Arrays that grow. Under AddressSanitizer, which sees an element beyond an array's room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <stdlib.h>

#include "harness/base/alloc.h"

static void push(unsigned **array, size_t *n, unsigned value)
{
	*array = alloc_room(*array, *n, sizeof(**array));
	(*array)[(*n)++] = value;
}

static void an_array_has_room_for_one_more(void **state)
{
	unsigned *array = NULL;
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		push(&array, &n, i);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(array[i], i);
	free(array);
}

static void elements_may_be_removed(void **state)
{
	unsigned *array = NULL;
	size_t n = 0;

	(void)state;
	srand(7);
	for (int round = 0; round < 300; round++) {
		for (int more = rand() % 50; more; more--)
			push(&array, &n, (unsigned)n);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(array[i], i);
		n = n ? (size_t)rand() % (n + 1) : 0;
	}
	free(array);
}

static void an_array_of_one_may_grow(void **state)
{
	unsigned *array = alloc_zero(1, sizeof(*array));
	size_t n = 1;

	(void)state;
	for (unsigned i = 1; i < 20; i++)
		push(&array, &n, i);
	assert_int_equal(array[19], 19);
	free(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_has_room_for_one_more),
		cmocka_unit_test(elements_may_be_removed),
		cmocka_unit_test(an_array_of_one_may_grow),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
