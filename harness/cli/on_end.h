/*
 * A command that is run when a run has ended, however it ended: to notify somebody.
 */
#ifndef CULPRIT_HARNESS_CLI_ON_END_H
#define CULPRIT_HARNESS_CLI_ON_END_H

#include "harness/cli/options.h"
#include "harness/run/executor.h"

struct on_end_options {
	const char *command; /* NULL: none; split as words.h says */
	double limit_s;      /* 0: a minute */
};

extern const struct option_row on_end_rows[];

/* Refuses a command that cannot be split, or whose program is not there: 0, or an exit code. */
int on_end_check(const char *command, const struct on_end_options *o);

/* Runs the command with what became of the run in its environment (on_end_rows has the names).
 * 'class' is of the error that ended the run, if 'rc' is not 0; 'code' is the exit code, which the
 * command changes in no case. If it fails, that is told on standard error. */
void on_end_run(const char *command, const struct on_end_options *o, const struct executor *x,
	int rc, enum err_class class, int code);

#endif
