#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/show.h"
#include "harness/run/judge.h"

static void usage(FILE *f)
{
	fputs("usage: culprit diagnose RUN [--detector NAME|FILE]... [--json]\n\n"
	      "Judges a recorded run anew, from its kept measurements alone: no cluster, no root. The\n"
	      "run's verdicts are replaced by the new ones, and the table is printed.\n\n"
	      "  --detector NAME   built-in name or Lua file; may stand several times\n"
	      "                    (default: those of the run's scenario)\n",
	      f);
}

static json_t *fact(struct store *s, const char *key)
{
	char *text = store_get(s, key);
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	return v;
}

static int diagnose(struct store *s, json_t *detectors, struct err *e)
{
	json_t *servers = fact(s, "servers"), *own = fact(s, "detectors");
	char *seed = store_get(s, "seed");
	struct judge *j = NULL;
	int rc;

	if (!servers || !own || !seed)
		rc = err_set(e, -EINVAL, "'%s' was not written to the point where it can be judged", store_folder(s));
	else
		rc = judge_new(json_array_size(detectors) ? detectors : own, servers, strtoull(seed, NULL, 10), s, &j, e);
	if (!rc)
		rc = judge_all(j, e);
	judge_free(j);
	json_decref(servers);
	json_decref(own);
	free(seed);
	return rc;
}

int cmd_diagnose(int argc, char **argv)
{
	static const struct option longs[] = {{"detector", required_argument, NULL, 'd'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	enum table_format format = TABLE_TEXT;
	json_t *detectors = json_array();
	struct store *s = NULL;
	struct err e;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == 'd') {
			json_array_append_new(detectors, json_pack("{s:s, s:{}}", "name", optarg, "params"));
		} else if (opt == 'j') {
			format = TABLE_JSON;
		} else {
			usage(opt == 'h' ? stdout : stderr);
			code = opt == 'h' ? CULPRIT_EXIT_OK : CULPRIT_EXIT_USAGE;
			goto out;
		}
	}
	if (argc - optind != 1)
		code = cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "which run? 'culprit diagnose runs/NAME'");
	else if (store_open(argv[optind], &s, &e) || diagnose(s, detectors, &e))
		code = cmd_fail("diagnose", CULPRIT_EXIT_USAGE, "%s", e.text);
	else if (show_table(s, format, stdout, &e))
		code = cmd_fail("diagnose", CULPRIT_EXIT_INVALID, "%s", e.text);
out:
	store_close(s);
	json_decref(detectors);
	return code;
}
