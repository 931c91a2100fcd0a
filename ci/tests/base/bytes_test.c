#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/base/bytes.h"

static const uint64_t numbers[] = {0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, 1ull + UINT32_MAX,
	INT64_MAX, 1ull + INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
enum { N = sizeof(numbers) / sizeof(*numbers) };

static void numbers_of_varying_length_come_back(void **state)
{
	uint8_t out[N * BYTES_VARINT], *end = out;
	const uint8_t *p = out;
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		uint8_t *at = end;

		end = bytes_put_varint(at, numbers[i]);
		assert_in_range(end - at, 1, BYTES_VARINT);
	}
	for (size_t i = 0; i < N; i++) {
		assert_true(bytes_get_varint(&p, end, &v));
		assert_true(v == numbers[i]);
	}
	assert_ptr_equal(p, end);
	assert_false(bytes_get_varint(&p, end, &v));
}

static void truncated_and_endless_numbers_are_refused(void **state)
{
	static const uint8_t endless[11] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01};
	uint64_t v = 42;

	(void)state;
	for (size_t n = 0; n <= sizeof(endless); n++) {
		const uint8_t *p = endless;

		assert_false(bytes_get_varint(&p, endless + n, &v));
		assert_true(p <= endless + n);
	}
	assert_true(v == 42);
}

static void the_bytes_are_those_of_the_formats(void **state)
{
	uint8_t out[BYTES_VARINT];

	(void)state;
	assert_int_equal(bytes_put_varint(out, 300) - out, 2);
	assert_int_equal(out[0], 0xac);
	assert_int_equal(out[1], 0x02);
	bytes_put32(out, 0x01020304);
	assert_int_equal(out[0], 4);
	assert_int_equal(out[3], 1);
	assert_true(bytes_get32(out) == 0x01020304);
	bytes_put64(out, 0x0102030405060708);
	assert_int_equal(out[0], 8);
	assert_int_equal(out[7], 1);
	assert_true(bytes_get64(out) == 0x0102030405060708);
}

static void small_numbers_stay_small_whatever_their_sign(void **state)
{
	static const int64_t signs[] = {0, -1, 1, -2, 2, INT64_MIN, INT64_MAX};

	(void)state;
	assert_true(bytes_zigzag(0) == 0);
	assert_true(bytes_zigzag(-1) == 1);
	assert_true(bytes_zigzag(1) == 2);
	assert_true(bytes_zigzag(INT64_MIN) == UINT64_MAX);
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		assert_true(bytes_unzigzag(bytes_zigzag(signs[i])) == signs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_varying_length_come_back),
		cmocka_unit_test(truncated_and_endless_numbers_are_refused),
		cmocka_unit_test(the_bytes_are_those_of_the_formats),
		cmocka_unit_test(small_numbers_stay_small_whatever_their_sign),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
