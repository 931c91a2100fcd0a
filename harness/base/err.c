/* Error sentences, their classes, and exit codes. */
#include "harness/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void format(struct err *e, const char *fmt, va_list ap)
{
	if (!e)
		return;
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	e->class = ERR_UNCLASSED;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format(e, fmt, ap);
	va_end(ap);
	return code;
}

int err_errno(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!e)
		return code;
	va_start(ap, fmt);
	format(e, fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror(-code));
	return code == -ENOMEM ? err_blame(e, ERR_HARNESS, code) : code;
}

int err_prefix(struct err *e, int code, const char *fmt, ...)
{
	struct err old;
	va_list ap;
	size_t n;

	if (!e)
		return code;
	old = *e;
	va_start(ap, fmt);
	format(e, fmt, ap);
	va_end(ap);
	e->class = old.class;
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %.*s", (int)sizeof(old.text) - 2, old.text);
	return code;
}

int err_blame(struct err *e, enum err_class class, int code)
{
	if (e && e->class == ERR_UNCLASSED)
		e->class = class;
	return code;
}

int err_exit_code(const struct err *e)
{
	return e->class == ERR_USAGE || e->class == ERR_SCENARIO || e->class == ERR_DAMAGED ? 2 : 3;
}
