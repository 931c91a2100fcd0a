/* Encodes and decodes Base64. */
#include "harness/base/base64.h"

#include <errno.h>
#include <stdbool.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *data, size_t size, char *text)
{
	size_t i;

	for (i = 0; i + 2 < size; i += 3) {
		const uint32_t v = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 |
			data[i + 2];

		*text++ = digits[v >> 18];
		*text++ = digits[v >> 12 & 63];
		*text++ = digits[v >> 6 & 63];
		*text++ = digits[v & 63];
	}
	if (i < size) {
		const bool two = i + 1 < size;
		const uint32_t v = (uint32_t)data[i] << 16 | (two ? (uint32_t)data[i + 1] << 8 : 0);

		*text++ = digits[v >> 18];
		*text++ = digits[v >> 12 & 63];
		*text++ = two ? digits[v >> 6 & 63] : '=';
		*text++ = '=';
	}
	*text = '\0';
}

/* 0 to 63; 64: not a Base64 digit. */
static uint32_t value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Decodes the last four characters, which may be padded. Returns the number of bytes or -EINVAL. */
static int decode_last(const char *text, uint8_t *data)
{
	const uint32_t a = value(text[0]), b = value(text[1]), c = value(text[2]),
		       d = value(text[3]);

	if ((a | b) & 64)
		return -EINVAL;
	if (text[2] == '=' && text[3] == '=' && !(b & 15)) {
		data[0] = (uint8_t)(a << 2 | b >> 4);
		return 1;
	}
	if (c & 64)
		return -EINVAL;
	if (text[3] == '=' && !(c & 3)) {
		data[0] = (uint8_t)(a << 2 | b >> 4);
		data[1] = (uint8_t)(b << 4 | c >> 2);
		return 2;
	}
	if (d & 64)
		return -EINVAL;
	data[0] = (uint8_t)(a << 2 | b >> 4);
	data[1] = (uint8_t)(b << 4 | c >> 2);
	data[2] = (uint8_t)(c << 6 | d);
	return 3;
}

int64_t base64_decode(const char *text, size_t n, uint8_t *data)
{
	size_t at = 0;
	int last = 0;

	if (n % 4)
		return -EINVAL;
	for (size_t i = 0; i < n; i += 4) {
		last = decode_last(text + i, data + at);
		if (last < 0 || (last < 3 && i + 4 < n))
			return -EINVAL;
		at += (size_t)last;
	}
	return (int64_t)at;
}
