/* A command's text split into words, without a shell. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/base/words.h"

static void assert_words(const char *text, const char *const *want)
{
	char **words = NULL;
	struct err e;
	size_t n = 0;

	if (words_split(text, &words, &e))
		fail_msg("%s: %s", text, e.text);
	for (; want[n]; n++) {
		assert_non_null(words[n]);
		assert_string_equal(words[n], want[n]);
	}
	assert_null(words[n]);
	free(words);
}

#define WORDS(text, ...) assert_words(text, (const char *const[]){__VA_ARGS__, NULL})

static void blanks_separate_and_quotes_keep_together(void **state)
{
	(void)state;
	WORDS("a", "a");
	WORDS("  a\tb \n c ", "a", "b", "c");
	WORDS("mail -s 'the run has ended' me@x", "mail", "-s", "the run has ended", "me@x");
	WORDS("a 'b c'd\"e f\"", "a", "b cde f");
	WORDS("a '' \"\"", "a", "", "");
	WORDS("\"a\\\"b\\\\c\\n\"", "a\"b\\c\\n");
	WORDS("'a\\'", "a\\");
	WORDS("a\\ b \\'c", "a b", "'c");
	WORDS("a'b\"c'", "ab\"c");
}

static void nothing_else_is_special(void **state)
{
	(void)state;
	WORDS("sh $HOME `id` $(id) ; rm * | x > y & ~ #z", "sh", "$HOME", "`id`", "$(id)", ";",
		"rm", "*", "|", "x", ">", "y", "&", "~", "#z");
}

static void open_quotes_and_escapes_are_refused(void **state)
{
	static const char *const wrong[] = {
		"", " \t\n", "'", "\"", "a 'b", "a \"b\\\"", "a\\", "a '", "x\"y'"};
	char **words = (char **)1;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(words_split(wrong[i], &words, &e), -EINVAL);
	assert_ptr_equal(words, (char **)1);
}

/* All texts of these characters up to a length: writes stay within the block (checked by the
 * sanitizers), and every word ends within it. */
static void short_texts_of_every_kind(void **state)
{
	static const char kinds[] = "a '\"\\";
	char text[8], **words;
	struct err e;

	(void)state;
	for (unsigned n = 0; n < 5 * 5 * 5 * 5 * 5 * 5 * 5; n++) {
		unsigned rest = n;
		size_t length = 0;

		for (int i = 0; i < 7; i++, rest /= 5)
			text[i] = kinds[rest % 5];
		text[7] = '\0';
		if (words_split(text, &words, &e))
			continue;
		for (size_t i = 0; words[i]; i++)
			length += strlen(words[i]);
		assert_true(length <= 7);
		free(words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blanks_separate_and_quotes_keep_together),
		cmocka_unit_test(nothing_else_is_special),
		cmocka_unit_test(open_quotes_and_escapes_are_refused),
		cmocka_unit_test(short_texts_of_every_kind),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
