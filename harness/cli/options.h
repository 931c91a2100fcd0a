/*
 * The command line as data. A command is one `struct command`, its options are rows of a table.
 * From these come parsing, --help, 'culprit help', shell completion and the manual page.
 */
#ifndef CULPRIT_HARNESS_CLI_OPTIONS_H
#define CULPRIT_HARNESS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "harness/base/err.h"
#include "harness/base/units.h"

enum option_type {
	OPTION_FLAG,     /* bool */
	OPTION_TEXT,     /* const char * */
	OPTION_WHOLE,    /* long, 'min' to 'max' */
	OPTION_COUNT,    /* unsigned, 'min' to 'max' */
	OPTION_QUANTITY, /* double in the base unit of 'unit', 'min' to 'max' (0: no limit) */
	OPTION_CHOICE,   /* unsigned: position in 'value', "text|markdown|csv" */
	OPTION_LIST,     /* struct option_list: may be repeated */
	OPTION_CALL,     /* 'set' decides; takes no value if 'value' is NULL; see 'optional' */
	OPTION_GROUP,    /* the rows 'group', their fields counted from 'at'; 'help' is a heading */
};

struct option_row {
	const char *name; /* NULL ends a table */
	char letter;      /* its short form, or 0 */
	enum option_type type;
	size_t at;         /* offset of its field in the options */
	const char *value; /* what it takes, as help shows it: "FILE" */
	const char *help;  /* what it does, with unit and default */
	double min, max;
	enum unit unit;
	/* 0, or -EINVAL with a sentence that follows the option's name: "takes ..., not '...'". */
	int (*set)(void *field, const char *text, struct err *e);
	const struct option_row *group;
	bool optional;      /* the value is a number and may be left out: then 'text' is NULL */
	const char *needs;  /* the option without which it means nothing, or NULL */
	const char *allows; /* of a mode of the command: which others mean anything in it, "a|b" */
};

struct option_list {
	const char **v;
	size_t n;
};

/* What a command is run with. */
struct call {
	const struct command *command;
	void *options;
	int n;
	char **args; /* args[n] is NULL */
};

struct command {
	const char *name;      /* "table"; of a subcommand "lab up" */
	const char *summary;   /* one line for 'culprit help' */
	const char *arguments; /* "RUN"; several forms are lines. NULL: none */
	const char *about;     /* the sentence that says what it does, then paragraphs */
	const char *examples;  /* lines */
	const char *exits;     /* what its exit codes mean; NULL: the usual */
	const char *words;     /* the first argument must be one of these: "faults|metrics" */
	void (*offers)(
		FILE *f, const char *begun); /* completion: what else it may be, a line each */
	int min, max;                        /* number of arguments */
	bool in_order; /* options end at the first argument: a command follows */
	bool hidden;   /* culprit itself starts it */
	bool is_help;  /* it takes no defaults of the configuration, and no mistake in it matters */
	const struct option_row *options;
	size_t size;                        /* of the struct that the options fill; zeroed before */
	const void *defaults;               /* of that struct, or NULL */
	int (*run)(const struct call *c);   /* returns an exit code */
	const struct command *const *parts; /* subcommands, ended by NULL; then there is no 'run' */
};

/* Initializers of a struct command: the number of arguments; option rows and what they fill. */
#define ARGUMENTS(least, most) .min = least, .max = most
#define OPTIONS(rows, type) .options = rows, .size = sizeof(type)

/* All commands, ended by NULL. */
extern const struct command *const commands[];

/* Headings in 'culprit help', in the order of 'commands', ended by {0}. */
struct task {
	const char *name;
	const struct command *first; /* the heading comes before it */
};
extern const struct task tasks[];

/* Takes defaults from the configuration (config.h), parses argv[1] and on (argv[0] is the command's
 * name), then runs the command or prints its
 * help. Returns the exit code. Values in the options point into argv. */
int command_run(const struct command *c, int argc, char **argv);

/* Parses argv[1] and on into '*c', whose command and options are set. 0, or 1 when help was
 * printed or a complaint was made; then '*code' is the exit code. The caller ends both cases with
 * options_clear. */
int options_parse(struct call *c, int argc, char **argv, int *code);
void options_clear(const struct option_row *rows, void *options);

/* A walk over a table: a group's row, its own rows, and on. Begins as {rows}. */
struct option_walk {
	const struct option_row *next, *after; /* 'after': where it continues behind the group */
	size_t base, at;                       /* 'at': offset of the field of the last row */
};
/* The next row, or NULL. */
const struct option_row *option_next(struct option_walk *w);
/* The next option of this name or, if 'name' is NULL, of this letter; NULL if there is none. */
const struct option_row *option_find(
	struct option_walk *w, const char *name, size_t length, char letter);
bool option_takes_value(const struct option_row *o);

/* The last word of a command's name. */
const char *command_short_name(const struct command *c);
/* The command of this name in a list ended by NULL, or NULL. */
const struct command *command_find(const struct command *const *list, const char *name);

/* help.c: the help of a command, the list of commands, and the manual page in roff. */
void help_command(const struct command *c, FILE *f);
void help_list(FILE *f);
void help_manual(FILE *f);

/* Prints what can stand for the last of the words after "culprit", one candidate a line; nothing
 * where a file is expected. */
void help_complete(int n, char **words, FILE *f);

/* Prints 'text' word by word between column 'indent', where the cursor is, and column 80; then a
 * new line. Control characters are escaped. */
void print_wrapped(FILE *f, int indent, const char *text);

#endif
