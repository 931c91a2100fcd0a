/* Splits a command into words without a shell. */
#include "harness/base/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Appends the quoted text after '*p' to 'to', and advances '*p' past the closing quote. */
static char *take_quoted(const char **p, char *to)
{
	const char quote = *(*p)++;

	while (**p && **p != quote) {
		if (quote == '"' && **p == '\\' && ((*p)[1] == '"' || (*p)[1] == '\\'))
			++*p;
		*to++ = *(*p)++;
	}
	if (!**p)
		return NULL;
	++*p;
	return to;
}

/* Copies one word, NUL-terminated, to 'to'. Returns the position after it, or NULL if a quote or
 * an escape is not closed. */
static char *take_word(const char **p, char *to)
{
	while (to && **p && !is_blank(**p)) {
		if (**p == '\'' || **p == '"') {
			to = take_quoted(p, to);
			continue;
		}
		if (**p == '\\' && !*++*p)
			return NULL;
		*to++ = *(*p)++;
	}
	if (to)
		*to++ = '\0';
	return to;
}

int words_split(const char *text, char ***words, struct err *e)
{
	/* There are no more words than characters, and the words are no longer than the text. */
	size_t most = strlen(text) / 2 + 2, n = 0;
	char **list = alloc_zero(most * sizeof(*list) + strlen(text) + 1, 1);
	char *to = (char *)(list + most);

	for (const char *p = text;;) {
		while (is_blank(*p))
			p++;
		if (!*p)
			break;
		list[n++] = to;
		to = take_word(&p, to);
		if (!to) {
			free(list);
			return err_set(e, -EINVAL,
				"needs a command with closed quotes, not '%.200s'", text);
		}
	}
	if (!n) {
		free(list);
		return err_set(e, -EINVAL, "needs a command, but is empty");
	}
	*words = list;
	return 0;
}
