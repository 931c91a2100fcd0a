/* Prints the JSON Schemas of the commands' output. */
#include "harness/cli/schemas.h"

#include <errno.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/home.h"

static bool prints_json(const struct command *c)
{
	struct option_walk w = {c->options};

	return !c->parts && option_find(&w, "json", 4, 0);
}

static int schemas_path_of(const struct command *c, char **path, struct err *e)
{
	auto_free char *sub = alloc_format("results/schemas/%s.json", c->name);

	for (char *s = sub; *s; s++)
		*s = *s == ' ' ? '-' : *s;
	return home_path(sub, path, e);
}

static int list(const struct command *const *of, FILE *out, struct err *e)
{
	int bad = 0;

	for (; *of; of++) {
		auto_free char *path = NULL;
		int rc = 0;

		if ((*of)->parts) {
			rc = list((*of)->parts, out, e);
		} else if (prints_json(*of) && !(rc = schemas_path_of(*of, &path, e))) {
			fprintf(out, "%-15s %s\n", (*of)->name, path);
			if (access(path, R_OK) < 0)
				rc = err_errno(e, -errno, "cannot read '%s'", path);
		}
		bad = bad ? bad : rc;
	}
	return bad;
}

int schemas_list(FILE *out, struct err *e)
{
	return list(commands, out, e);
}

int schemas_print(const struct command *c, FILE *out, struct err *e)
{
	auto_free char *path = NULL, *text = NULL;
	int rc;

	if (!prints_json(c))
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL,
				"'culprit %s' has no --json; 'culprit help --schemas' "
				"lists the commands that have",
				c->name));
	rc = schemas_path_of(c, &path, e) ?: file_read(path, &text, NULL, e);
	if (!rc)
		fputs(text, out);
	return rc;
}
