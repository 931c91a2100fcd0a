#include <getopt.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/show.h"

static void usage(FILE *f)
{
	fputs("usage: culprit table RUN [--format text|markdown|csv|json] [--json]\n\n"
	      "Prints the scores of a run: share of faulty cells in which the victim was named (TP),\n"
	      "share of cells in which a healthy server was (FP), both with n and exact 95 % intervals.\n",
	      f);
}

int cmd_table(int argc, char **argv)
{
	static const struct option longs[] = {{"format", required_argument, NULL, 'f'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	enum table_format format = TABLE_TEXT;
	struct store *s;
	struct err e;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (opt) {
		case 'f':
			if (table_format_parse(optarg, &format, &e))
				return cmd_fail("table", CULPRIT_EXIT_USAGE, "%s", e.text);
			break;
		case 'j':
			format = TABLE_JSON;
			break;
		case 'h':
			usage(stdout);
			return CULPRIT_EXIT_OK;
		default:
			usage(stderr);
			return CULPRIT_EXIT_USAGE;
		}
	}
	if (argc - optind != 1)
		return cmd_fail("table", CULPRIT_EXIT_USAGE, "which run? 'culprit table runs/NAME'");
	if (store_open(argv[optind], &s, &e))
		return cmd_fail("table", CULPRIT_EXIT_USAGE, "%s", e.text);
	if (show_table(s, format, stdout, &e))
		code = cmd_fail("table", CULPRIT_EXIT_INVALID, "%s", e.text);
	store_close(s);
	return code;
}
