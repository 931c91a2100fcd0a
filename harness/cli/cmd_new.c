#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/name.h"
#include "harness/cli/cmd.h"

static int copy_template(const char *kind, const char *path, struct err *e)
{
	char sub[64], *from = NULL, *text = NULL;
	size_t size;
	int rc;

	snprintf(sub, sizeof(sub), "harness/lua/templates/%s.lua", kind);
	rc = home_path(sub, &from, e);
	if (!rc)
		rc = file_read(from, &text, &size, e);
	if (!rc)
		rc = file_write_atomic(path, 0644, text, size, e);
	free(text);
	free(from);
	return rc;
}

static int run(const struct call *c)
{
	const char *kind = c->args[0], *name = c->args[1];
	char path[NAME_LENGTH_MAX + 8];
	struct err e;

	if (name_check(kind, name, &e))
		return cmd_fail("new", CULPRIT_EXIT_USAGE, "%s", e.text);
	snprintf(path, sizeof(path), "%s.lua", name);
	if (access(path, F_OK) == 0)
		return cmd_fail("new", CULPRIT_EXIT_USAGE, "'%s' is there already", path);
	if (copy_template(kind, path, &e))
		return cmd_error("new", &e, ERR_HARNESS);
	if (!strcmp(kind, "inventory"))
		printf("%s: fill it in, then run culprit doctor --inventory %s\n", path, path);
	else
		printf("%s: name it in a scenario as \"./%s\"\n", path, path);
	return CULPRIT_EXIT_OK;
}

const struct command new_command = {.name = "new",
	.summary = "write a template of a fault, workload, detector or inventory",
	.arguments = "KIND NAME",
	.about = "Writes NAME.lua into the current folder: a template with comments that runs as "
		 "it stands. KIND is fault, workload, detector or inventory.\n\n"
		 "A scenario names the file by its path: faults = { \"none\", \"./NAME.lua\" }. An "
		 "inventory is to be filled in with your hosts; 'culprit doctor --inventory "
		 "NAME.lua' checks them.",
	.examples = "culprit new fault slow-nic\nculprit new inventory my-hosts",
	.words = "fault|workload|detector|inventory",
	ARGUMENTS(2, 2),
	.run = run};
