/* Opens the run or the logs that a query is about. */
#include "harness/cli/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/cli/cmd.h"
#include "harness/cli/tables.h"
#include "harness/run/signals.h"

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int open_run(struct subject *s, const char *folder, long cell, struct query_spec *spec,
	struct query **q, struct err *e)
{
	struct run_tables_spec of = {
		.cell = cell, .recording = (size_t)s->recording, .only_tables = s->tables};
	json_auto_t *verdicts = NULL;
	struct judge *judge = NULL;
	struct store *store;
	int rc = store_open(folder, &store, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	if (s->tables)
		rc = table_judge_corpus(store, &judge, &verdicts, e);
	of.verdicts = verdicts;
	rc = rc ?: run_tables_new(store, &of, &s->of_run, e)
		?: run_tables_query(s->of_run, spec, q, e);
	judge_free(judge);
	store_close(store);
	return rc;
}

static int take_logs(
	struct subject *s, int n, char **args, long cell, struct query_spec *spec, struct err *e)
{
	if (cell || s->recording)
		return err_set(e, -EINVAL, "--%s is for runs", cell ? "cell" : "recording");
	s->logs = alloc_zero((size_t)n, sizeof(*s->logs));
	for (int i = 0; i < n; i++) {
		if (!strcmp(args[i], "-"))
			return err_set(e, -EINVAL,
				"a query needs files: standard input can be read only once");
		if (is_folder(args[i]))
			return err_set(e, -EINVAL, "'%s': one run at a time, or logs", args[i]);
		if (file_check_readable(args[i], e))
			return -EINVAL;
		s->logs[i].path = s->logs[i].name = args[i];
	}
	spec->logs = s->logs;
	spec->n_logs = (size_t)n;
	return 0;
}

int subject_open(struct subject *s, int n, char **args, long cell, struct query_spec *spec,
	struct query **q, struct err *e)
{
	spec->interrupted = signals_catch();
	if (n != 1 || !is_folder(args[0]))
		return take_logs(s, n, args, cell, spec, e) ?: query_new(spec, q, e);
	s->run = args[0];
	return open_run(s, args[0], cell, spec, q, e);
}

void subject_close(struct subject *s)
{
	run_tables_free(s->of_run);
	free(s->logs);
}

int subject_problems(const struct query *q, const char *command, int code)
{
	const char *why;

	for (size_t i = 0; (why = query_problem(q, i)); i++) {
		cmd_fail(command, CULPRIT_EXIT_USAGE, "%s", why);
		code = code == CULPRIT_EXIT_INVALID ? code : CULPRIT_EXIT_USAGE;
	}
	if (code == CULPRIT_EXIT_OK && (why = query_no_calls(q)))
		code = cmd_fail(command, CULPRIT_EXIT_USAGE, "%s", why);
	return code;
}
