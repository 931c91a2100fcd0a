/* Reads a text of any size by lines, with a limit on one line. */
#ifndef CULPRIT_DIAG_IMPORT_LINES_H
#define CULPRIT_DIAG_IMPORT_LINES_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/base/err.h"

enum { LINES_MAX = 64 * 1024 };

struct import_said;

struct lines {
	FILE *f;
	unsigned long n;          /* number of the line, from 1 */
	char text[LINES_MAX + 1]; /* without its end (LF or CRLF) */
	bool open;                /* the text ends without a newline after this line */
};

/* Reads a line into l->text: 1; 0 at the end. -EINVAL with "LINE: sentence" if it is too long or
 * has a NUL, -EIO. */
int lines_next(struct lines *l, struct err *e);

/* Puts "SOURCE:" before "LINE: sentence"; returns 'code'. */
int lines_where(struct err *e, const char *source, int code);

/* Notes that the text ends in the middle of this line, which is left out: the data is partial. */
void lines_note_open(unsigned long line, struct import_said *said);

#endif
