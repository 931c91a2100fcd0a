/* Tokenises JSON of any size in constant memory. */
#include "diag/import/json_scan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct json_scan *s, struct err *e, const char *what)
{
	if (ferror(s->f))
		return err_errno(e, -EIO, "%lu: cannot read", s->line);
	return err_set(
		e, -EINVAL, "%lu: the JSON %s", s->line, feof(s->f) ? "ends too early" : what);
}

/* The next character except white space, or EOF. */
static int next_character(struct json_scan *s)
{
	int c;

	while ((c = getc_unlocked(s->f)) == ' ' || c == '\n' || c == '\t' || c == '\r')
		s->line += c == '\n';
	return c;
}

static void json_scan_put(struct json_scan *s, int c)
{
	if (s->length + 1 < sizeof(s->text))
		s->text[s->length++] = (char)c;
	else
		s->cut = true;
}

static void put_utf8(struct json_scan *s, unsigned u)
{
	if (u < 0x80) {
		json_scan_put(s, (int)u);
	} else if (u < 0x800) {
		json_scan_put(s, (int)(0xc0 | u >> 6));
		json_scan_put(s, (int)(0x80 | (u & 0x3f)));
	} else if (u < 0x10000) {
		json_scan_put(s, (int)(0xe0 | u >> 12));
		json_scan_put(s, (int)(0x80 | (u >> 6 & 0x3f)));
		json_scan_put(s, (int)(0x80 | (u & 0x3f)));
	} else {
		json_scan_put(s, (int)(0xf0 | u >> 18));
		json_scan_put(s, (int)(0x80 | (u >> 12 & 0x3f)));
		json_scan_put(s, (int)(0x80 | (u >> 6 & 0x3f)));
		json_scan_put(s, (int)(0x80 | (u & 0x3f)));
	}
}

/* Four hexadecimal digits, or -1. */
static int hex4(struct json_scan *s)
{
	int u = 0;

	for (int i = 0; i < 4; i++) {
		int c = getc_unlocked(s->f);

		if (!isxdigit(c))
			return -1;
		u = u * 16 + (isdigit(c) ? c - '0' : (c | 32) - 'a' + 10);
	}
	return u;
}

/* Reads the digits after "\u". Lone surrogates become U+FFFD. */
static int read_unicode(struct json_scan *s)
{
	int u = hex4(s), low;

	if (u >= 0xd800 && u < 0xdc00) {
		if (getc_unlocked(s->f) != '\\' || getc_unlocked(s->f) != 'u')
			return -1;
		low = hex4(s);
		if (low < 0)
			return -1;
		u = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((u & 0x3ff) << 10 | (low & 0x3ff))
						  : 0xfffd;
	} else if (u >= 0xdc00 && u < 0xe000) {
		u = 0xfffd;
	}
	if (u <= 0)
		return -1;
	put_utf8(s, (unsigned)u);
	return 0;
}

/* Reads a string after the opening quote. */
static int read_string(struct json_scan *s, struct err *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	int c;

	s->length = 0;
	s->cut = false;
	while ((c = getc_unlocked(s->f)) != '"') {
		if (c == EOF || c < ' ')
			return fail(s, e, "has a control character in a text");
		if (c != '\\') {
			json_scan_put(s, c);
			continue;
		}
		c = getc_unlocked(s->f);
		at = c > 0 ? strchr(from, c) : NULL;
		if (at)
			json_scan_put(s, to[at - from]);
		else if (c != 'u' || read_unicode(s))
			return fail(s, e, "has a bad escape in a text");
	}
	s->text[s->length] = '\0';
	return 0;
}

static int read_number(struct json_scan *s, int c, struct err *e)
{
	char *end;

	s->length = 0;
	s->cut = false;
	for (; isdigit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
		c = getc_unlocked(s->f))
		json_scan_put(s, c);
	if (c != EOF)
		ungetc(c, s->f);
	s->text[s->length] = '\0';
	s->number = strtod(s->text, &end);
	if (s->cut || *end || !isfinite(s->number))
		return fail(s, e, "has a malformed number");
	return JSON_SCAN_NUMBER;
}

static int read_word(struct json_scan *s, int c, struct err *e)
{
	s->length = 0;
	for (; c >= 'a' && c <= 'z' && s->length < 6; c = getc_unlocked(s->f))
		s->text[s->length++] = (char)c;
	if (c != EOF)
		ungetc(c, s->f);
	s->text[s->length] = '\0';
	if (strcmp(s->text, "true") && strcmp(s->text, "false") && strcmp(s->text, "null"))
		return fail(s, e, "is not well-formed");
	return JSON_SCAN_WORD;
}

static int open_one(struct json_scan *s, bool object, struct err *e)
{
	if (s->depth == JSON_SCAN_DEPTH)
		return fail(s, e, "is nested too deeply");
	s->object[s->depth++] = object;
	s->some = false;
	return object ? JSON_SCAN_OBJECT : JSON_SCAN_ARRAY;
}

static int close_one(struct json_scan *s)
{
	bool object = s->object[--s->depth];

	s->some = true;
	return object ? JSON_SCAN_OBJECT_END : JSON_SCAN_ARRAY_END;
}

/* Reads a value that begins with 'c'. */
static int read_value(struct json_scan *s, int c, struct err *e)
{
	s->key = false;
	if (c == '{' || c == '[')
		return open_one(s, c == '{', e);
	s->some = true;
	if (c == '"')
		return read_string(s, e) ?: JSON_SCAN_STRING;
	if (c == '-' || isdigit(c))
		return read_number(s, c, e);
	return read_word(s, c, e);
}

static int read_key(struct json_scan *s, int c, struct err *e)
{
	int rc = c == '"' ? read_string(s, e) : fail(s, e, "lacks the name of a value");

	if (rc)
		return rc;
	if (next_character(s) != ':')
		return fail(s, e, "has a name without a colon");
	s->key = true;
	return JSON_SCAN_KEY;
}

int json_scan(struct json_scan *s, struct err *e)
{
	int c = next_character(s);
	bool object = s->depth && s->object[s->depth - 1];

	if (!s->depth && c == EOF && !ferror(s->f))
		return JSON_SCAN_END;
	if (!s->depth || s->key)
		return read_value(s, c, e);
	if (c == (object ? '}' : ']'))
		return close_one(s);
	if (s->some) {
		if (c != ',')
			return fail(s, e, "is not well-formed");
		c = next_character(s);
	}
	return object ? read_key(s, c, e) : read_value(s, c, e);
}

int json_scan_skip(struct json_scan *s, int token, struct err *e)
{
	unsigned depth;

	if (token == JSON_SCAN_KEY)
		token = json_scan(s, e);
	if (token != JSON_SCAN_OBJECT && token != JSON_SCAN_ARRAY)
		return token < 0 ? token : 0;
	depth = s->depth - 1;
	while (token >= 0 && s->depth > depth)
		token = json_scan(s, e);
	return token < 0 ? token : 0;
}

int json_scan_want(struct json_scan *s, enum json_token token, const char *what, struct err *e)
{
	static const char *const names[] = {"the end", "an object", "the end of an object",
		"an array", "the end of an array", "a name", "a text", "a number", "a word"};
	int rc = json_scan(s, e);

	if (rc >= 0 && rc != (int)token)
		return err_set(e, -EINVAL, "%lu: %s is not %s", s->line, what, names[token]);
	return rc;
}
