/* Reads CSV that arrives in pieces. */
#include "harness/live/chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

enum { TOLD_MAX = 5 };

void chunks_clear(struct chunks *p)
{
	free(p->head);
	p->head = NULL;
	free(p->member);
	p->member = NULL;
	for (size_t g = 0; g < IMPORT_GROUPS_MAX; g++) {
		free(p->group[g]);
		p->group[g] = NULL;
	}
}

void chunks_new_file(struct chunks *p)
{
	p->head_done = false;
	p->head_kept = p->head_size;
	p->line = 0;
}

static size_t count_lines(const char *text, size_t size)
{
	size_t n = 0;

	for (const char *at = text, *end = text + size; (at = memchr(at, '\n', (size_t)(end - at)));
		at++)
		n++;
	return n;
}

/* Is one of its fields a number? Then it is not a line of column names. */
static bool has_number(const char *line, size_t size)
{
	char *copy = alloc_zero(size + 1, 1), *rest = copy, *field, *end;
	bool number = false;

	memcpy(copy, line, size);
	while (!number && (field = strsep(&rest, ",;\t\r\n"))) {
		strtod(field, &end);
		number = end != field && !*end;
	}
	free(copy);
	return number;
}

static void add_head(struct chunks *p, const char *line, size_t size)
{
	p->head = alloc_resize(p->head, p->head_size + size + 1, 1);
	memcpy(p->head + p->head_size, line, size);
	p->head_size += size;
}

static bool is_comment(const char *line, size_t size)
{
	size_t mark = size >= 3 && !memcmp(line, "\xef\xbb\xbf", 3) ? 3 : 0;

	return line[mark] == '#' || mark + strspn(line + mark, " \t\r\n") == size;
}

/* Does the head of the previous file end with this line? */
static bool is_old_head(const struct chunks *p, const char *line, size_t size)
{
	return size <= p->head_kept && !memcmp(p->head + p->head_kept - size, line, size);
}

/* Is the last line of the head, a comment, the header of the rows from here on? */
static bool is_commented_head(const struct chunks *p, size_t begun, const char *line, size_t size)
{
	size_t at = p->head_size;

	if (at == begun)
		return false;
	for (at--; at > begun && p->head[at - 1] != '\n'; at--)
		;
	return p->head[at] == '#' &&
		csv_head_in_comment(p->head + at, p->head_size - at, line, size);
}

/* Takes lines into the head until it is complete; returns the number of bytes taken. */
static size_t take_head(struct chunks *p, const char *text, size_t size)
{
	size_t at = 0, begun = p->head_kept;

	while (!p->head_done && at < size) {
		size_t n = (size_t)((char *)memchr(text + at, '\n', size - at) + 1 - (text + at));
		bool comment = is_comment(text + at, n);

		if (!comment && is_commented_head(p, begun, text + at, n)) {
			p->head_done = true;
			break;
		}
		if (!comment && begun && !is_old_head(p, text + at, n) &&
			has_number(text + at, n)) {
			/* The file has no column names: keep those of the previous file. */
			p->head_size = begun;
			p->head_done = true;
			break;
		}
		add_head(p, text + at, n);
		at += n;
		p->head_done = !comment;
	}
	if (p->head_done) {
		/* A new head replaces the previous one. */
		if (begun && p->head_size > begun) {
			memmove(p->head, p->head + begun, p->head_size - begun);
			p->head_size -= begun;
		}
		p->head_lines = count_lines(p->head, p->head_size);
		p->head_kept = 0;
	}
	return at;
}

/* The first rows determine the key for all rows. */
static void chunks_settle(struct chunks *p, struct import_said *said)
{
	if (said->member && !p->how.settled) {
		p->how.member = p->member = said->member;
		said->member = NULL;
		for (size_t g = 0; g < IMPORT_GROUPS_MAX; g++) {
			p->how.group[g] = p->group[g] = said->group[g];
			said->group[g] = NULL;
		}
	}
	p->how.settled |= said->samples > 0;
}

static int read_piece(
	struct chunks *p, const char *text, size_t size, uint64_t *samples, struct err *e)
{
	struct import_said said = {0};
	char *whole = alloc_zero(p->head_size + size + 1, 1);
	FILE *f;
	int rc;

	memcpy(whole, p->head, p->head_size);
	memcpy(whole + p->head_size, text, size);
	f = fmemopen(whole, p->head_size + size, "r");
	if (!f)
		alloc_end();
	rc = p->format->read(f, p->source, &p->how, &p->sink, &said, e);
	fclose(f);
	free(whole);
	if (!p->samples && !rc && said.form) {
		p->tell(p->ctx, said.form);
		for (size_t i = 0; i < said.n_notes; i++)
			p->tell(p->ctx, said.notes[i]);
	}
	chunks_settle(p, &said);
	*samples = said.samples;
	import_said_clear(&said);
	return rc;
}

/* Splits "SOURCE:LINE: sentence" of an error into the line number (0: none) and the sentence. */
static size_t line_of(const struct chunks *p, const struct err *e, const char **sentence)
{
	size_t n = strlen(p->source);
	char *end;
	size_t line;

	if (strncmp(e->text, p->source, n) || e->text[n] != ':')
		return 0;
	line = strtoul(e->text + n + 1, &end, 10);
	*sentence = end + strspn(end, ": ");
	return line;
}

static void tell_skipped(struct chunks *p, uint64_t line, const char *sentence)
{
	char *text;

	p->skipped++;
	if (p->told++ >= TOLD_MAX)
		return;
	text = alloc_format("%s:%llu: %s; the line is skipped%s", p->source,
		(unsigned long long)line, sentence,
		p->told == TOLD_MAX ? "; further bad lines are not reported" : "");
	p->tell(p->ctx, text);
	free(text);
}

static size_t end_of_line(const char *text, size_t size, size_t lines)
{
	size_t at = 0;

	for (; lines && at < size; lines--)
		at = (size_t)((char *)memchr(text + at, '\n', size - at) + 1 - text);
	return at;
}

int chunks_feed(
	struct chunks *p, const char *text, size_t size, const bool *sink_failed, struct err *e)
{
	size_t at = take_head(p, text, size);
	uint64_t line = p->line + count_lines(text, at);
	int rc = 0;

	p->line += count_lines(text, size);
	while (at < size) {
		const char *sentence = "not readable";
		uint64_t samples = 0;
		size_t bad, skip;

		rc = read_piece(p, text + at, size - at, &samples, e);
		p->samples += samples;
		if (!rc || *sink_failed)
			break;
		bad = line_of(p, e, &sentence);
		/* If nothing can be read from the start, the file is of another kind. */
		if (rc != -EINVAL || bad <= p->head_lines || !p->samples)
			break;
		bad -= p->head_lines;
		tell_skipped(p, line + bad, sentence);
		skip = end_of_line(text + at, size - at, bad);
		line += bad;
		at += skip;
		rc = 0;
	}
	return rc;
}
