#include <stdlib.h>
#include <string.h>

#include "harness/agent/agent.h"

/* Length of the valid UTF-8 sequence at 'p', or 0. */
static size_t sequence(const unsigned char *p, size_t left)
{
	size_t n = *p < 0x80              ? 1
		: *p >= 0xc2 && *p < 0xe0 ? 2
		: *p >= 0xe0 && *p < 0xf0 ? 3
		: *p >= 0xf0 && *p < 0xf5 ? 4
					  : 0;

	if (n == 0 || n > left || *p == 0)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((n == 3 && ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f))) ||
		(n == 4 && ((*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))))
		return 0;
	return n;
}

json_t *text_json(const char *text, size_t size)
{
	unsigned char *copy = malloc(size + 1);
	json_t *value;

	if (!copy)
		return NULL;
	if (size)
		memcpy(copy, text, size);
	for (size_t i = 0; i < size;) {
		size_t n = sequence(copy + i, size - i);

		if (n == 0)
			copy[i++] = '?';
		i += n;
	}
	value = json_stringn((char *)copy, size);
	free(copy);
	return value;
}
