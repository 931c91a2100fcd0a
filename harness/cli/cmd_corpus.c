/* The command 'corpus': packs a run without its traces. */
#include "harness/cli/cmd.h"
#include "harness/cli/shards.h"

struct options {
	const char *folder;
	bool whole;
};

static int corpus_run(const struct call *c)
{
	const struct options *o = c->options;
	struct store *s = NULL;
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (!o->folder)
		return cmd_fail("corpus", CULPRIT_EXIT_USAGE,
			"give the folder to write: culprit corpus %s --output corpora/NAME",
			c->args[0]);
	if (shards_open("corpus", c->n, c->args, &s, &e) || store_pack(s, o->folder, o->whole, &e))
		code = cmd_error("corpus", &e, ERR_USAGE);
	store_close(s);
	return code;
}

static const struct option_row rows[] = {
	{"output", 'o', OPTION_TEXT, offsetof(struct options, folder), "FOLDER",
		"write to this folder, which is made if need be"},
	{"whole", 0, OPTION_FLAG, offsetof(struct options, whole), NULL,
		"with verdicts, hosts and all details, as 'culprit report' needs them"},
	{0},
};

const struct command corpus_command = {.name = "corpus",
	.summary = "pack a run's measurements, to judge them on another machine",
	.arguments = "RUN ... --output FOLDER",
	.about = "Packs what judging and scoring need of a run into FOLDER/run.db.gz: plan, "
		 "attempts, samples and events, but no traces, hosts or verdicts.\n\n"
		 "'rescore', 'diagnose' and 'table' read FOLDER as they read a run and give the "
		 "same verdicts. A corpus cannot be written to.\n\n"
		 "Several runs must be shards of one ('culprit run --shard'); FOLDER then holds "
		 "them as one run, in which each shard is judged with its own training.",
	.examples = "culprit corpus runs/NAME -o corpora/NAME",
	ARGUMENTS(1, SHARDS_MAX),
	OPTIONS(rows, struct options),
	.run = corpus_run};
