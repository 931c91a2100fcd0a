/* Reads lines from a text of any size. */
#include "diag/import/lines.h"

#include <errno.h>
#include <string.h>

#include "diag/import/import.h"

int lines_next(struct lines *l, struct err *e)
{
	size_t n = 0;
	int c;

	l->n++;
	while ((c = getc_unlocked(l->f)) != EOF && c != '\n') {
		if (!c)
			return err_set(e, -EINVAL, "%lu: a NUL character: this is not text", l->n);
		if (n == LINES_MAX)
			return err_set(e, -EINVAL, "%lu: the line is longer than %d bytes", l->n,
				LINES_MAX);
		l->text[n++] = (char)c;
	}
	if (c == EOF && ferror(l->f))
		return err_errno(e, -EIO, "%lu: cannot read", l->n);
	if (c == EOF && !n)
		return 0;
	l->open = c == EOF;
	n -= n && l->text[n - 1] == '\r';
	l->text[n] = '\0';
	return 1;
}

int lines_where(struct err *e, const char *source, int code)
{
	char text[sizeof(e->text)];
	size_t digits;

	if (e) {
		snprintf(text, sizeof(text), "%s", e->text);
		digits = strspn(text, "0123456789");
		snprintf(e->text, sizeof(e->text),
			digits && text[digits] == ':' ? "%s:%s" : "%s: %s", source, text);
	}
	return code;
}

void lines_note_open(unsigned long line, struct import_said *said)
{
	char note[100];

	snprintf(note, sizeof(note), "the file ends in the middle of line %lu, which is left out",
		line);
	import_note_partial(said, note);
}
