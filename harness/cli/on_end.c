/* Runs the user's command when a run has ended. */
#include "harness/cli/on_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"
#include "harness/base/words.h"
#include "harness/cli/cmd.h"

#define LIMIT_S 60

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool is_found(const char *name)
{
	const char *search = getenv("PATH");
	auto_free char *folders = alloc_copy(search ? search : "/usr/bin:/bin");
	char *save;

	if (strchr(name, '/'))
		return is_program(name);
	for (char *d = strtok_r(folders, ":", &save); d; d = strtok_r(NULL, ":", &save)) {
		auto_free char *path = alloc_format("%s/%s", d, name);

		if (is_program(path))
			return true;
	}
	return false;
}

int on_end_check(const char *command, const struct on_end_options *o)
{
	auto_free char **words = NULL;
	struct err e;

	if (!o->command)
		return o->limit_s > 0
			? cmd_fail(command, CULPRIT_EXIT_USAGE,
				  "--on-end-limit is the limit of --on-end, which is not given")
			: CULPRIT_EXIT_OK;
	if (words_split(o->command, &words, &e))
		return cmd_fail(command, CULPRIT_EXIT_USAGE, "--on-end %s", e.text);
	if (!is_found(words[0]))
		return cmd_fail(command, CULPRIT_EXIT_USAGE,
			"--on-end: there is no program '%s' (the command is not given to a shell)",
			words[0]);
	return CULPRIT_EXIT_OK;
}

static void set_text(const char *name, const char *value)
{
	auto_free char *full = alloc_format("CULPRIT_END_%s", name);

	if (setenv(full, value ? value : "", 1) < 0)
		alloc_end();
}

static void set_number(const char *name, long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	set_text(name, text);
}

/* What the store says of the run; nothing and zeros where it did not come to a store. */
static void set_counts(struct store *s)
{
	json_auto_t *tally = NULL;
	auto_free char *folder = s ? realpath(store_folder(s), NULL) : NULL;
	const json_t *attempts;
	struct err e;

	if (s && store_tally(s, &tally, &e))
		tally = NULL;
	attempts = jget(tally, "attempts");
	set_text("RUN", s ? store_run_id(s) : "");
	set_text("FOLDER", folder);
	set_number("CELLS", jget_int(tally, "planned"));
	set_number("CONFIRMED", jget_int(tally, "confirmed"));
	set_number("MISSING", (long long)json_array_size(jget(tally, "missing")));
	set_number("INVALID", jget_int(attempts, "invalid"));
	set_number("ERRORS", jget_int(attempts, "error"));
	set_number("ABORTED", jget_int(attempts, "aborted"));
}

static void set_environment(
	const char *command, const struct executor *x, const char *state, int code)
{
	char shard[64] = "", seed[32] = "";

	if (x->shard.of)
		snprintf(shard, sizeof(shard), "%ld/%ld", x->shard.index, x->shard.of);
	if (x->plan)
		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)x->plan->seed);
	set_text("COMMAND", command);
	set_text("STATE", state);
	set_number("EXIT", code);
	set_text("SCENARIO", x->scenario ? x->scenario->name : "");
	set_text("SEED", seed);
	set_text("SHARD", shard);
	set_counts(x->store);
}

void on_end_run(const char *command, const struct on_end_options *o, const struct executor *x,
	int rc, enum err_class class, int code)
{
	auto_free char **words = NULL;
	const char *state = rc && class == ERR_INTERRUPTED ? "interrupted"
		: rc || code > CULPRIT_EXIT_SHORT          ? "failed"
							   : "done";
	struct err e;

	if (!o->command || words_split(o->command, &words, &e))
		return;
	fflush(stdout);
	set_environment(command, x, state, code);
	if (proc_run_ok(
		    (const char *const *)words, o->limit_s > 0 ? o->limit_s : LIMIT_S, NULL, &e))
		cmd_fail(command, 0, "--on-end: %s", e.text);
}

#define AT(field) offsetof(struct on_end_options, field)
const struct option_row on_end_rows[] = {
	{"on-end", 0, OPTION_TEXT, AT(command), "COMMAND",
		"run this when the run is done, has failed or was interrupted. Blanks separate "
		"words, ' and \" keep them together; there is no shell. Its environment has "
		"CULPRIT_END_STATE (done, failed, interrupted), _EXIT, _RUN, _FOLDER, _SCENARIO, "
		"_SEED, _SHARD, _COMMAND (run, resume), and the counts _CELLS, _CONFIRMED, "
		"_MISSING and, of attempts, _INVALID, _ERRORS and _ABORTED. Its output is shown if "
		"it fails; the exit code stays the run's"},
	{"on-end-limit", 0, OPTION_QUANTITY, AT(limit_s), "TIME",
		"kill that command after this time, 1s to 1h (default: 1min)", 1, 3600,
		UNIT_SECONDS},
	{0},
};
