#include <getopt.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/show.h"

static void usage(FILE *f)
{
	fputs("usage: culprit table RUN [--format text|markdown|csv|json] [--details] [--json]\n\n"
	      "Prints the scores of a run, of the verdicts that are in it: share of faulty cells in which the\n"
	      "victim was named (TP), share of cells in which a healthy server was (FP), both with n and exact\n"
	      "95 % intervals. 'culprit rescore' judges anew; 'culprit diagnose' shows single verdicts.\n\n"
	      "  --format FORMAT   text, markdown, csv or json (--json)\n"
	      "  --details         also null detectors by fault, detection, resource, delay, abstentions\n",
	      f);
}

int cmd_table(int argc, char **argv)
{
	static const struct option longs[] = {{"format", required_argument, NULL, 'f'},
					      {"details", no_argument, NULL, 'D'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	enum table_format format = TABLE_TEXT;
	bool details = false;
	struct store *s;
	struct err e;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (opt) {
		case 'f':
			if (table_format_parse(optarg, &format, &e))
				return cmd_fail("table", CULPRIT_EXIT_USAGE, "%s", e.text);
			break;
		case 'D':
			details = true;
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
	if (show_table(s, NULL, format, details, stdout, &e))
		code = cmd_fail("table", CULPRIT_EXIT_INVALID, "%s", e.text);
	store_close(s);
	return code;
}
