/* Makes untrusted text safe for a terminal. */
#include "harness/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is it one of Unicode's explicit formatting characters, which change the text direction? */
static bool turns_text(uint32_t code)
{
	return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Length of the UTF-8 character at 's'; 0 for a control character or invalid UTF-8. */
static size_t printable_length(const unsigned char *s)
{
	size_t n = *s < 0x80 ? 1
		: *s < 0xc2  ? 0
		: *s < 0xe0  ? 2
		: *s < 0xf0  ? 3
		: *s < 0xf5  ? 4
			     : 0;
	uint32_t code = n == 1 ? *s : *s & (0x7fu >> n);

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < 0x20 || (code >= 0x7f && code < 0xa0) || turns_text(code)) /* C0, DEL, C1 */
		return 0;
	if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000) || code > 0x10ffff ||
		(code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

/* Writes the next character of '*s', or its escape, to 'piece'; advances '*s'. */
static size_t next_piece(const char **s, char piece[5])
{
	size_t n = printable_length((const unsigned char *)*s);

	if (n) {
		memcpy(piece, *s, n);
		piece[n] = '\0';
		*s += n;
		return n;
	}
	if (**s == '\n')
		n = (size_t)snprintf(piece, 5, "\\n");
	else
		n = (size_t)snprintf(piece, 5, "\\x%02x", (unsigned char)**s);
	++*s;
	return n;
}

void text_print_csv(FILE *f, const char *s, bool always)
{
	const bool quote = always || s[strcspn(s, ",\"\r\n")];

	if (quote)
		fputc('"', f);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', f);
		fputc(*s, f);
	}
	if (quote)
		fputc('"', f);
}

void text_hex(const void *data, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[p[i] >> 4];
		*out++ = digits[p[i] & 15];
	}
	*out = '\0';
}

size_t text_clean(const char *s, char *out, size_t size)
{
	size_t total = 0, n;
	char piece[5];

	*out = '\0';
	while (*s) {
		n = next_piece(&s, piece);
		if (total + n < size)
			memcpy(out + total, piece, n + 1);
		else if (total < size)
			size = total; /* drop the rest, even if a shorter piece would fit */
		total += n;
	}
	return total;
}

void text_print_clean(FILE *f, const char *s)
{
	char piece[5];

	while (*s) {
		next_piece(&s, piece);
		fputs(piece, f);
	}
}

void text_tidy_path(char *path)
{
	char *in = path, *out = path;

	while (*in) {
		size_t n;

		while (*in == '/')
			in++;
		n = strcspn(in, "/");
		if (n == 2 && in[0] == '.' && in[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (n && !(n == 1 && *in == '.')) {
			*out++ = '/';
			memmove(out, in, n);
			out += n;
		}
		in += n;
	}
	*out = '\0';
}

bool text_is_choice(const char *choices, const char *text)
{
	size_t n = strlen(text);

	for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
		if (!strncmp(p, text, n) && (!p[n] || p[n] == '|'))
			return true;
	return false;
}
