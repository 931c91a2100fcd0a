#include <getopt.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/store/store.h"

static void usage(FILE *f)
{
	fputs("usage: culprit corpus RUN -o FOLDER [--whole]\n\n"
	      "Packs what judging and scoring need of a run (plan, attempts, samples, events; no traces, no\n"
	      "hosts, no verdicts) into FOLDER/run.db.gz. 'rescore', 'diagnose' and 'table' read FOLDER as\n"
	      "they read a run, and give the same verdicts; it cannot be written to.\n\n"
	      "  -o, --output FOLDER   made if need be\n"
	      "  --whole               with verdicts, hosts and all details: for 'report', too\n\n"
	      "Exit codes: 0 packed; 2 usage or input.\n",
		f);
}

int cmd_corpus(int argc, char **argv)
{
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
		{"whole", no_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	const char *folder = NULL;
	struct store *s = NULL;
	struct err e;
	bool whole = false;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
		if (opt == 'o') {
			folder = optarg;
		} else if (opt == 'w') {
			whole = true;
		} else {
			usage(opt == 'h' ? stdout : stderr);
			return opt == 'h' ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
		}
	}
	if (argc - optind != 1 || !folder)
		return cmd_fail("corpus", CULPRIT_EXIT_USAGE,
			"which run, and where to? 'culprit corpus runs/NAME -o corpora/NAME'");
	if (store_open(argv[optind], &s, &e) || store_pack(s, folder, whole, &e))
		code = cmd_fail("corpus", CULPRIT_EXIT_USAGE, "%s", e.text);
	store_close(s);
	return code;
}
