#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/cli/cmd.h"

static void usage(FILE *f)
{
	fputs("usage: culprit new fault|workload|detector|inventory NAME\n\n"
	      "Writes NAME.lua here: a template that explains itself and runs as it stands. Name it in a\n"
	      "scenario by its path: faults = { \"none\", \"./NAME.lua\" }. An inventory is to be filled in\n"
	      "with your hosts; culprit doctor --inventory NAME.lua tries them.\n",
		f);
}

static bool name_fits(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n && n <= 40 && !name[n] && name[0] != '-';
}

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

int cmd_new(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *kind, *name;
	char path[64];
	struct err e;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		usage(opt == 'h' ? stdout : stderr);
		return opt == 'h' ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
	}
	if (argc - optind != 2) {
		usage(stderr);
		return CULPRIT_EXIT_USAGE;
	}
	kind = argv[optind];
	name = argv[optind + 1];
	if (strcmp(kind, "fault") && strcmp(kind, "workload") && strcmp(kind, "detector") &&
		strcmp(kind, "inventory"))
		return cmd_fail("new", CULPRIT_EXIT_USAGE,
			"there is no template for '%s'; there are fault, workload, detector, inventory",
			kind);
	if (!name_fits(name))
		return cmd_fail("new", CULPRIT_EXIT_USAGE,
			"the name '%s' does not fit: letters, digits, '-', '_', at most 40", name);
	snprintf(path, sizeof(path), "%s.lua", name);
	if (access(path, F_OK) == 0)
		return cmd_fail("new", CULPRIT_EXIT_USAGE, "'%s' is there already", path);
	if (copy_template(kind, path, &e))
		return cmd_fail("new", CULPRIT_EXIT_USAGE, "%s", e.text);
	if (!strcmp(kind, "inventory"))
		printf("%s: fill it in, then run culprit doctor --inventory %s\n", path, path);
	else
		printf("%s: name it in a scenario as \"./%s\"\n", path, path);
	return CULPRIT_EXIT_OK;
}
