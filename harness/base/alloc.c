/* Memory for the orchestrator: no function returns NULL. */
#include "harness/base/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void alloc_end(void)
{
	static const char said[] = "culprit: out of memory\n";

	if (write(STDERR_FILENO, said, sizeof(said) - 1) < 0)
		_exit(3);
	_exit(3);
}

static void *or_end(void *p)
{
	if (!p)
		alloc_end();
	return p;
}

void *alloc_zero(size_t n, size_t size)
{
	return or_end(calloc(n ? n : 1, size ? size : 1));
}

void *alloc_resize(void *p, size_t n, size_t size)
{
	return or_end(size && n > SIZE_MAX / size ? NULL : realloc(p, n && size ? n * size : 1));
}

char *alloc_copy(const char *s)
{
	return or_end(strdup(s));
}

char *alloc_format(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return or_end(text);
}

FILE *alloc_text(char **text, size_t *size)
{
	return or_end(open_memstream(text, size));
}

void alloc_free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}
