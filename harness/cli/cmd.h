/*
 * Commands: one file each (cmd_NAME.c), one line each in main.c's table.
 *
 * A command gets its own name as argv[0] and returns an exit code of
 * CULPRIT_EXIT_*. It parses with getopt_long, prints results on stdout and
 * complaints on stderr, each complaint one line: "culprit NAME: sentence".
 */
#ifndef CULPRIT_CLI_CMD_H
#define CULPRIT_CLI_CMD_H

#include "harness/base/err.h"

enum {
	CULPRIT_EXIT_OK = 0,      /* all as expected */
	CULPRIT_EXIT_SHORT = 1,   /* a detector fell short, or a regression */
	CULPRIT_EXIT_USAGE = 2,   /* usage, scenario, inventory or other input error */
	CULPRIT_EXIT_INVALID = 3, /* the harness could not produce a valid result */
};

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* one line, for culprit help */
};

int cmd_lab(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_table(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_rescore(int argc, char **argv);
int cmd_remeasure(int argc, char **argv);
int cmd_samples(int argc, char **argv);
int cmd_corpus(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_undo(int argc, char **argv);

/* "culprit NAME: sentence" on stderr; returns 'code'. */
int cmd_fail(const char *name, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
