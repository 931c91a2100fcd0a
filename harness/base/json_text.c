/* Writes untrusted text as JSON. */
#include "harness/base/json_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"

json_t *json_text(const char *s)
{
	json_t *value = json_string(s);
	char *latin, *out;

	if (value)
		return value;
	out = latin = alloc_zero(2 * strlen(s) + 1, 1);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= 0x80)
			*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	value = json_string(latin);
	free(latin);
	return value;
}

void json_line(const json_t *value)
{
	static int ascii = -1;

	if (ascii < 0)
		ascii = isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0;
	json_dumpf(value, stdout, JSON_COMPACT | (size_t)ascii);
	putchar('\n');
}
