/*
 * Commands: one file each (cmd_NAME.c), which defines its `struct command`; commands.c lists them.
 *
 * A command prints results on standard output and complaints on standard error, each complaint
 * one line: "culprit NAME: sentence". It returns an exit code. main checks at the end that
 * standard output was written.
 */
#ifndef CULPRIT_HARNESS_CLI_CMD_H
#define CULPRIT_HARNESS_CLI_CMD_H

#include <jansson.h>

#include "harness/base/err.h"
#include "harness/cli/options.h"

enum {
	CULPRIT_EXIT_OK = 0,      /* all as expected */
	CULPRIT_EXIT_SHORT = 1,   /* a detector fell short, or a regression */
	CULPRIT_EXIT_USAGE = 2,   /* usage, scenario, inventory or other input error */
	CULPRIT_EXIT_INVALID = 3, /* the harness could not produce a valid result */
};

extern const struct command capture_command, diagnose_command, doctor_command, findings_command,
	lab_command, list_command, log_command, new_command, query_command, replay_command,
	report_command, rescore_command, resume_command, run_command, serve_command, ship_command,
	slow_command, status_command, table_command, timeline_command, trace_command, undo_command,
	watch_command;

/* What follows "there is no command 'NAME'": how a former command is spelled now, the nearest name,
 * or "". Returns 'text'. */
char *command_hint(const char *name, char text[96]);

/* "culprit NAME: sentence" on stderr, control characters escaped; returns 'code'. */
int cmd_fail(const char *name, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints the error; returns the exit code of its class, or of 'class' if it has none yet. */
int cmd_error(const char *name, struct err *e, enum err_class class);

/* Prints 'v' (stolen) on stdout, indented. */
void cmd_print_json(json_t *v);

#endif
