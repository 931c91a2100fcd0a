#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/name.h"
#include "harness/base/sha256.h"
#include "harness/base/text.h"

static void names_are_refused(void **state)
{
	static const char *const bad[] = {"", ".", "..", ".hidden", "-o", "../../etc", "a/b", "a b",
		"a\nok 1 - forged", "\x1b[2J", "caf\xc3\xa9", "a\x7f",
		"12345678901234567890123456789012345678901234567890123456789012345"};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(name_check("fault", bad[i], &e), -EINVAL);
		assert_int_equal(strncmp(e.text, "fault name ", 11), 0);
		for (const char *p = e.text; *p; p++)
			assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
	}
}

static void names_are_accepted(void **state)
{
	static const char *const good[] = {"a", "peer-robust", "_x", "3", "host.example.org",
		"1234567890123456789012345678901234567890123456789012345678901234"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(name_check("fault", good[i], NULL), 0);
}

static const struct {
	const char *dirty, *clean;
} texts[] = {
	{"", ""},
	{"plain \\ text", "plain \\ text"},
	{"disk\nok 2 - forged", "disk\\nok 2 - forged"},
	{"\x1b[31mred\x07\r\t\x7f", "\\x1b[31mred\\x07\\x0d\\x09\\x7f"},
	{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
	{"\xc2\x9b[2J", "\\xc2\\x9b[2J"}, /* C1: an escape sequence in one character */
	{"\x9b"
	 "2J \xc3",
		"\\x9b"
		"2J \\xc3"},
	{"\xc0\xaf \xe0\x80\xaf \xed\xa0\x80", "\\xc0\\xaf \\xe0\\x80\\xaf \\xed\\xa0\\x80"},
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
	{"\xe2\x80\xaetxt.exe \xe2\x81\xa7",
		"\\xe2\\x80\\xaetxt.exe \\xe2\\x81\\xa7"}, /* turned around */
	{"\xe2\x80\xa9 \xe2\x80\xaf", "\xe2\x80\xa9 \xe2\x80\xaf"},
};

static void text_is_cleaned(void **state)
{
	char out[200], *printed;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		FILE *f = open_memstream(&printed, &size);

		assert_int_equal(
			text_clean(texts[i].dirty, out, sizeof(out)), strlen(texts[i].clean));
		assert_string_equal(out, texts[i].clean);
		text_print_clean(f, texts[i].dirty);
		fclose(f);
		assert_string_equal(printed, texts[i].clean);
		free(printed);
	}
}

static void no_escape_is_cut_in_two(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(text_clean("abcde\x1bz", out, sizeof(out)), 10);
	assert_string_equal(out, "abcde");
	assert_int_equal(text_clean("\x1b", out, 1), 4);
	assert_string_equal(out, "");
}

static void paths_are_tidied(void **state)
{
	static const char *const pairs[][2] = {{"/", ""}, {"//a///b/", "/a/b"},
		{"/a/./b/.", "/a/b"}, {"/a/b/../c", "/a/c"}, {"/a/../../b", "/b"}, {"/..", ""},
		{"/...", "/..."}, {"/.a/..b", "/.a/..b"}};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		char path[32];

		snprintf(path, sizeof(path), "%s", pairs[i][0]);
		text_tidy_path(path);
		assert_string_equal(path, pairs[i][1]);
	}
}

static void bytes_are_digits(void **state)
{
	static const unsigned char bytes[] = {0, 0x0f, 0xa0, 0xff};
	char text[SHA256_HEX] = "untouched";

	(void)state;
	text_hex(bytes, sizeof(bytes), text);
	assert_string_equal(text, "000fa0ff");
	text_hex(bytes, 0, text);
	assert_string_equal(text, "");
	/* FIPS 180-4, example of one block. */
	sha256_hex("abc", 3, text);
	assert_string_equal(
		text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_refused),
		cmocka_unit_test(names_are_accepted),
		cmocka_unit_test(bytes_are_digits),
		cmocka_unit_test(text_is_cleaned),
		cmocka_unit_test(paths_are_tidied),
		cmocka_unit_test(no_escape_is_cut_in_two),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
