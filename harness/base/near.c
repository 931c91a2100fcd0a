/* Suggests the known name that is closest to a mistyped one. */
#include "harness/base/near.h"

#include <stdio.h>
#include <string.h>

static unsigned less(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
	size_t n = strlen(b);
	unsigned row[64];

	if (n >= 64 || strlen(a) >= 64)
		return 99;
	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned other = less(row[j], row[j - 1]) + 1;

			other = less(other, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = row[j];
			row[j] = other;
		}
	}
	return row[n];
}

const char *near_match(const char *word, const char *const names[])
{
	const char *best = NULL;
	unsigned least = 99;

	for (size_t i = 0; names[i]; i++) {
		unsigned d = distance(word, names[i]);

		if (d < least) {
			least = d;
			best = names[i];
		}
	}
	return best && least <= 1 + strlen(word) / 3 ? best : NULL;
}

char *near_hint(const char *word, const char *const names[], char text[96])
{
	const char *near = near_match(word, names);

	*text = '\0';
	if (near)
		snprintf(text, 96, "; did you mean '%.64s'?", near);
	return text;
}
