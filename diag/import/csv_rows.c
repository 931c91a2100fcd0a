/* Splits CSV text into rows and fields, with quotes and separators. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "diag/import/csv_impl.h"
#include "diag/import/lines.h"
#include "harness/base/alloc.h"

/* PAD: bytes after the text that may be read. */
enum { ROOM = 256 * 1024, PAD = 64 };

enum split { ROW, MORE, WRONG };

void csv_rows_init(struct csv_rows *r, FILE *f)
{
	*r = (struct csv_rows){.f = f, .room = ROOM};
	r->buffer = alloc_zero(r->room + PAD, 1);
	r->next = r->end = r->buffer;
	csv_rows_separator(r, ',');
}

void csv_rows_clear(struct csv_rows *r)
{
	free(r->buffer);
	free(r->fields);
}

void csv_rows_separator(struct csv_rows *r, char separator)
{
	r->separator = separator;
	memset(r->stop, 0, sizeof(r->stop));
	r->stop[(unsigned char)separator] = true;
	r->stop['\n'] = r->stop['"'] = r->stop['\0'] = true;
}

/* Reads more data after the unused part. The buffer grows with the rows, so that few bytes are
 * examined twice. False: the row is too long. */
static bool csv_rows_fill(struct csv_rows *r)
{
	size_t left = (size_t)(r->end - r->next), n, ask;

	if (left >= CSV_ROW_MAX) {
		r->wrong = "the line is longer than 64 MiB; is a quote not closed?";
		return false;
	}
	memmove(r->buffer, r->next, left);
	if (left > r->room / 4) {
		r->room *= 2;
		r->buffer = alloc_resize(r->buffer, r->room + PAD, 1);
	}
	r->next = r->buffer;
	/* A buffer filled by csv_rows_ahead is larger than a cache. */
	ask = left < ROOM ? ROOM : left < CSV_ROW_MAX / 2 ? left : CSV_ROW_MAX - left + ROOM;
	ask = ask < r->room - left ? ask : r->room - left;
	n = fread_unlocked(r->buffer + left, 1, ask, r->f);
	r->eof = n < ask;
	r->failed = r->eof && ferror(r->f);
	r->end = r->buffer + left + n;
	memset(r->end, 0, PAD);
	return true;
}

void csv_rows_ahead(struct csv_rows *r, size_t n)
{
	while (!r->eof && (size_t)(r->end - r->next) < n && csv_rows_fill(r))
		;
}

const char *csv_rows_line(struct csv_rows *r, size_t *n)
{
	for (;;) {
		char *end = memchr(r->next, '\n', (size_t)(r->end - r->next));

		if (!end && r->eof)
			end = r->end;
		if (end) {
			*n = (size_t)(end - r->next);
			return end == r->next && end == r->end ? NULL : r->next;
		}
		if (!csv_rows_fill(r))
			return NULL;
	}
}

void csv_rows_skip_line(struct csv_rows *r)
{
	size_t n;

	if (csv_rows_line(r, &n))
		r->next += n + (r->next + n < r->end);
	r->lines++;
}

/* 'p' is after the opening quote; moves it after the closing one. */
static enum split skip_quoted(struct csv_rows *r, const char **p, unsigned long *lines)
{
	const char *at = *p;

	for (;; at++) {
		if (*at == '\n') {
			++*lines;
		} else if (*at == '"' && at[1] == '"') {
			at++;
		} else if (*at == '"') {
			/* The next byte shows whether this is an escaped quote. */
			if (at + 1 == r->end && !r->eof)
				return MORE;
			*p = at + 1;
			return ROW;
		} else if (!*at && at == r->end) {
			r->wrong = "a quote is not closed";
			return r->eof ? WRONG : MORE;
		} else if (!*at) {
			r->wrong = "the row has a zero byte";
			return WRONG;
		}
	}
}

static inline bool blank(const struct csv_rows *r, char c)
{
	return c == ' ' || (c == '\t' && r->separator != '\t');
}

#ifdef __SSE2__
static inline uint64_t stops_in_16(const char *p, char separator)
{
	__m128i text = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i these = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8(separator)),
		_mm_cmpeq_epi8(text, _mm_set1_epi8('\n')));
	__m128i those = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')),
		_mm_cmpeq_epi8(text, _mm_setzero_si128()));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(these, those));
}
#endif

/* Returns one bit for each of the 64 bytes at 'p' that may end a field. All at once: with short
 * fields of varying length, a loop over bytes would suffer from mispredicted branches. */
static inline uint64_t stops_in(const struct csv_rows *r, const char *p, char separator)
{
#ifdef __SSE2__
	(void)r;
	return stops_in_16(p, separator) | stops_in_16(p + 16, separator) << 16 |
		stops_in_16(p + 32, separator) << 32 | stops_in_16(p + 48, separator) << 48;
#else
	uint64_t stops = 0;

	(void)separator;
	for (int i = 0; i < 64; i++)
		stops |= (uint64_t)r->stop[(unsigned char)p[i]] << i;
	return stops;
#endif
}

/* Finds the fields of the row at 'next'; moves 'next' after it. */
static enum split csv_rows_split(struct csv_rows *r)
{
	const char *row = r->next, *p = row, *first, *last, *block = row;
	const char separator = r->separator;
	uint64_t stops = stops_in(r, block, separator); /* of the 64 bytes at 'block' */
	unsigned long lines = 1;
	size_t n = 0;
	char c;

	do {
		if (n == r->fields_room) {
			if (n >= CSV_COLUMNS_MAX) {
				r->wrong = "the row has more than two million fields";
				return WRONG;
			}
			r->fields_room = n ? n * 2 : 64;
			r->fields = alloc_resize(r->fields, r->fields_room, sizeof(*r->fields));
		}
		while (blank(r, *p))
			p++;
		first = p;
		if (*p == '"') {
			enum split s;

			p++;
			s = skip_quoted(r, &p, &lines);
			if (s != ROW)
				return s;
			last = p;
			while (blank(r, *p))
				p++;
			p += *p == '\r' && (p[1] == '\n' || p + 1 == r->end);
			block = p;
			stops = stops_in(r, block, separator);
		} else {
			while (!stops) {
				block += 64;
				stops = stops_in(r, block, separator);
			}
			p = block + __builtin_ctzll(stops);
			last = p;
			if (*p != separator && last > first && last[-1] == '\r')
				last--;
			while (last > first && blank(r, last[-1]))
				last--;
		}
		c = *p;
		stops &= stops - 1;
		if (c != separator && c != '\n') {
			if (!c && p == r->end && !r->eof)
				return MORE;
			if (c || p != r->end) {
				r->wrong = c ? "a misplaced quote" : "the row has a zero byte";
				return WRONG;
			}
		}
		r->fields[n++] = (struct csv_field){
			(uint32_t)(first - row), (uint32_t)(last - first)};
		p++;
	} while (c == separator);
	r->row = row;
	r->n_fields = n;
	r->next += (c ? p : r->end) - row;
	r->line = r->lines + 1;
	r->lines += lines;
	return ROW;
}

bool csv_rows_next(struct csv_rows *r)
{
	for (;;) {
		enum split s;

		if (r->next == r->end && r->eof)
			return false;
		r->wrong = NULL;
		s = r->next == r->end ? MORE : csv_rows_split(r);
		if (s == ROW && (r->n_fields > 1 || r->fields[0].n))
			return true;
		if (s == WRONG || (s == MORE && (r->ahead || !csv_rows_fill(r)))) {
			r->line = r->lines + 1;
			return false;
		}
	}
}

bool csv_rows_cut_off(const struct csv_rows *r, struct import_said *said)
{
	if (!r->eof || r->next != r->end || r->end[-1] == '\n' || r->end[-1] == '\r')
		return false;
	lines_note_open(r->line, said);
	return true;
}

size_t csv_unquote(const struct csv_rows *r, size_t field, char *out, size_t size)
{
	const char *p = csv_text(r, field), *end = p + r->fields[field].n;
	bool quoted = p < end && *p == '"';
	size_t n = 0;

	if (quoted) {
		p++;
		end--;
	}
	for (; p < end; p++, n++) {
		if (n + 1 < size)
			out[n] = *p;
		p += quoted && *p == '"';
	}
	out[n < size ? n : size - 1] = '\0';
	return n;
}
