/* The programs within culprit-agent, and how it starts itself again. */
#ifndef CULPRIT_HARNESS_AGENT_PROGRAMS_H
#define CULPRIT_HARNESS_AGENT_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

int serve_main(int argc, char **argv);
int file_main(int argc, char **argv);  /* file.c */
int files_main(int argc, char **argv); /* files.c */
int loop_main(int argc, char **argv);
int sink_main(int argc, char **argv); /* net.c */
int send_main(int argc, char **argv);
int cpu_main(int argc, char **argv); /* hogs.c */
int memory_main(int argc, char **argv);
int read_main(int argc, char **argv);
int pause_main(int argc, char **argv);           /* pause.c */
int delay_main(int argc, char **argv);           /* delay.c */
int replay_main(int argc, char **argv);          /* replay.c */
int standby_program_main(int argc, char **argv); /* standby.c */

/* How this program was started, through its loader if so: 1 to 4 words, then NULL. self_init keeps
 * 'argv0'. */
int self_init(const char *argv0, struct err *e);
const char *const *self_argv(void);

/* An option of a program: "--name VALUE", given to 'set', which is false if the value is bad. */
struct program_option {
	const char *name; /* NULL ends a list */
	bool (*set)(const char *value, void *into);
	void *into;
};

/* Reads options and then exactly 'operands' more words (any number from 1 if negative). Returns the
 * index of the first of them; or -1 once --help or the usage was printed, with the exit code in
 * '*code'. */
int program_options(int argc, char **argv, const struct program_option *options, int operands,
	const char *usage, int *code);

/* For 'set': the text itself, into a const char *; a number from 1, into an unsigned long; and a
 * time above 0, into a double of seconds. */
bool option_text(const char *value, void *into);
bool option_count(const char *value, void *into);
bool option_time(const char *value, void *into);

/* Prints "culprit-agent COMMAND: cannot WHAT 'SUBJECT': REASON"; returns 1. */
int program_failed(const char *command, const char *what, const char *subject, int errnum);

#endif
