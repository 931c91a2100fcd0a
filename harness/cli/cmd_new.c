/* The command 'new': writes a template for the user to fill in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/name.h"
#include "harness/cli/cmd.h"

/* The text with every "my-KIND" replaced by the name that was given; malloced. */
static char *with_name(const char *text, const char *kind, const char *name)
{
	auto_free char *word = alloc_format("my-%s", kind);
	size_t length = strlen(word), size;
	char *out;
	FILE *f = alloc_text(&out, &size);

	for (const char *p; (p = strstr(text, word)); text = p + length)
		fprintf(f, "%.*s%s", (int)(p - text), text, name);
	fputs(text, f);
	fclose(f);
	return out;
}

static int write_template(const char *kind, const char *name, const char *path, struct err *e)
{
	auto_free char *sub = alloc_format("harness/lua/templates/%s.lua", kind);
	auto_free char *from = NULL, *text = NULL, *own = NULL;
	int rc = home_path(sub, &from, e) ?: file_read(from, &text, NULL, e);

	if (rc)
		return rc;
	own = with_name(text, kind, name);
	return file_write_atomic(path, 0644, own, strlen(own), e);
}

static void say_how(const char *kind, const char *path)
{
	static const struct {
		const char *kind, *how;
	} ways[] = {
		{"inventory", "fill it in, then run culprit doctor --inventory %s"},
		{"finding", "try it with culprit findings --finding ./%s LOG"},
		{"file-system", "try it with culprit lab up --fs ./%s"},
		{"scenario",
			"see its plan with culprit run %s --dry-run, on the lab (culprit lab up) "
			"or with --inventory FILE"},
		{"detector",
			"try it with culprit diagnose RUN --detector ./%s, or with --csv FILE in "
			"place of RUN; or name it in a scenario by this path"},
		{NULL, "name it in a scenario as \"./%s\""},
	};
	size_t i = 0;

	while (ways[i].kind && strcmp(ways[i].kind, kind))
		i++;
	printf("%s: ", path);
	printf(ways[i].how, path); /* each has one %s */
	putchar('\n');
}

static int new_run(const struct call *c)
{
	const char *kind = c->args[0], *name = c->args[1];
	char path[NAME_LENGTH_MAX + 8];
	struct err e;

	if (name_check(kind, name, &e))
		return cmd_fail("new", CULPRIT_EXIT_USAGE, "%s", e.text);
	snprintf(path, sizeof(path), "%s.lua", name);
	if (access(path, F_OK) == 0)
		return cmd_fail("new", CULPRIT_EXIT_USAGE, "'%s' is there already", path);
	if (write_template(kind, name, path, &e))
		return cmd_error("new", &e, ERR_HARNESS);
	say_how(kind, path);
	return CULPRIT_EXIT_OK;
}

const struct command new_command = {.name = "new",
	.summary = "write a commented template",
	.arguments = "KIND NAME",
	.about =
		"Writes NAME.lua into the current folder: a template with comments that runs as "
		"it stands, under that name. KIND is scenario, fault, workload, detector, finding, "
		"file-system or inventory.\n\n"
		"A scenario names the file by its path: faults = { \"none\", \"./NAME.lua\" }. A "
		"file system works in the lab, 'culprit lab up --fs ./NAME.lua', and in an "
		"inventory, file_system = { type = \"./NAME.lua\" }. An inventory is to be filled "
		"in with your hosts; 'culprit doctor --inventory NAME.lua' checks them.",
	.examples = "culprit new scenario first\n"
		    "culprit new fault slow-nic\n"
		    "culprit new file-system my-fs\n"
		    "culprit new inventory my-hosts",
	.words = "scenario|fault|workload|detector|finding|file-system|inventory",
	ARGUMENTS(2, 2),
	.run = new_run};
