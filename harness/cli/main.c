/* Finds the command and runs it. */
#include <stdio.h>
#include <string.h>

#include "commit.h"
#include "harness/base/outfile.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/lua/luax.h"

static int unknown(const char *name)
{
	char hint[96];

	fputs("culprit: there is no command '", stderr);
	text_print_clean(stderr, name);
	fprintf(stderr, "'%s\n", *command_hint(name, hint) ? hint : "; 'culprit help' lists them");
	return CULPRIT_EXIT_USAGE;
}

static int main_run(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		help_list(stderr);
		return CULPRIT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("culprit %s%s%s%s\n", CULPRIT_VERSION, *CULPRIT_COMMIT ? " (" : "",
			CULPRIT_COMMIT, *CULPRIT_COMMIT ? ")" : "");
		return CULPRIT_EXIT_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help_list(stdout);
		return CULPRIT_EXIT_OK;
	}
	c = command_find(commands, argv[1]);
	return c ? command_run(c, argc - 1, argv + 1) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
	/* The command reorders its arguments. */
	const char *name = argc > 1 && command_find(commands, argv[1]) ? argv[1] : NULL;
	int code = main_run(argc, argv);
	struct err e = {""};

	/* Results count only once they are written: a full disk must not end with 0. A command that
	 * ends with 3 has said why. */
	if (outfile_flush(stdout, &e)) {
		if (code == CULPRIT_EXIT_INVALID)
			return code;
		if (name)
			return cmd_fail(name, CULPRIT_EXIT_INVALID, "%s", e.text);
		fprintf(stderr, "culprit: %s\n", e.text);
		code = CULPRIT_EXIT_INVALID;
	}
	return code;
}
