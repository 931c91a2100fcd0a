/* Checks names that become file names, Lua keys and terminal text. */
#include "harness/base/name.h"

#include <errno.h>
#include <string.h>

#include "harness/base/text.h"

int name_check(const char *kind, const char *name, struct err *e)
{
	static const char
		allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strspn(name, allowed);
	char shown[2 * NAME_LENGTH_MAX];

	if (!*name)
		return err_set(e, -EINVAL, "%s name is empty", kind);
	text_clean(name, shown, sizeof(shown));
	if (*name == '.' || *name == '-')
		return err_set(e, -EINVAL, "%s name '%s' starts with '%c'", kind, shown, *name);
	if (name[n])
		return err_set(e, -EINVAL,
			"%s name '%s' may hold letters, digits, '.', '_' and '-' only", kind,
			shown);
	if (n > NAME_LENGTH_MAX)
		return err_set(e, -EINVAL, "%s name '%s' is longer than %d characters", kind, shown,
			NAME_LENGTH_MAX);
	return 0;
}
