/* The table of commands, and how they report errors. */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/near.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/cli/schemas.h"

/* What a shell needs to ask 'culprit complete' for candidates. */
static const char *const scripts[] = {
	"_culprit() {\n"
	"\tmapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" complete -- "
	"\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"}\n"
	"complete -o default -F _culprit culprit\n",
	"#compdef culprit\n"
	"local -a offers\n"
	"offers=(${(f)\"$(${words[1]} complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
	"(( $#offers )) && compadd -a offers || _files\n",
	"complete -c culprit -a "
	"'(culprit complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n",
};

struct options {
	unsigned shell; /* its position in 'scripts' */
	bool manual, schemas;
};

static int help(const struct call *c)
{
	const struct options *o = c->options;
	const struct command *found = NULL;
	struct err e = {0};
	char hint[96];

	if (o->manual) {
		help_manual(stdout);
	} else if (o->shell < sizeof(scripts) / sizeof(scripts[0])) {
		fputs(scripts[o->shell], stdout);
	} else if (o->schemas && !c->n) {
		if (schemas_list(stdout, &e))
			return cmd_error("help", &e, ERR_HARNESS);
	} else if (!c->n) {
		help_list(stdout);
	} else {
		found = command_find(commands, c->args[0]);
		if (found && c->n > 1)
			found = found->parts ? command_find(found->parts, c->args[1]) : NULL;
		if (!found)
			return cmd_fail("help", CULPRIT_EXIT_USAGE, "there is no such command%s",
				c->n == 1 && *command_hint(c->args[0], hint)
					? hint
					: "; 'culprit help' lists them");
		if (!o->schemas)
			help_command(found, stdout);
		else if (schemas_print(found, stdout, &e))
			return cmd_error("help", &e, ERR_HARNESS);
	}
	return CULPRIT_EXIT_OK;
}

static int complete(const struct call *c)
{
	help_complete(c->n, c->args, stdout);
	return CULPRIT_EXIT_OK;
}

static const struct option_row help_rows[] = {
	{"completion", 0, OPTION_CHOICE, offsetof(struct options, shell), "bash|zsh|fish",
		"print the completion script of this shell"},
	{"man", 0, OPTION_FLAG, offsetof(struct options, manual), NULL,
		"print the manual page, in roff"},
	{"schemas", 0, OPTION_FLAG, offsetof(struct options, schemas), NULL,
		"list the JSON Schemas of what --json prints, or print that of COMMAND"},
	{0},
};

static const struct command help_entry = {.name = "help",
	.summary = "describe a command",
	.arguments = "[COMMAND]",
	.about = "Lists the commands, or describes one of them. Prints the manual page, shells' "
		 "completion, and JSON Schemas.",
	.examples = "culprit help run\n"
		    "source <(culprit help --completion bash)\n"
		    "culprit help --man | man -l -\n"
		    "culprit help --schemas lab status",
	.max = 2,
	.is_help = true,
	.options = help_rows,
	.size = sizeof(struct options),
	.defaults = &(const struct options){.shell = UINT_MAX},
	.run = help};

static const struct command complete_entry = {.name = "complete",
	.summary = "candidates for a shell's completion",
	.arguments = "-- WORD ...",
	.about = "Prints what can stand for the last word of a command line.",
	.max = INT_MAX,
	.hidden = true,
	.is_help = true,
	.run = complete};

const struct command *const commands[] = {
	&doctor_command,
	&lab_command,
	&list_command,
	&new_command,
	&run_command,
	&resume_command,
	&status_command,
	&undo_command,
	&table_command,
	&rescore_command,
	&report_command,
	&timeline_command,
	&diagnose_command,
	&watch_command,
	&slow_command,
	&findings_command,
	&trace_command,
	&capture_command,
	&replay_command,
	&log_command,
	&query_command,
	&serve_command,
	&ship_command,
	&help_entry,
	&complete_entry,
	NULL,
};

const struct task tasks[] = {
	{"set up", &doctor_command},
	{"run an experiment", &run_command},
	{"see its results", &table_command},
	{"find what is slow or wrong", &diagnose_command},
	{"record and read what happens", &trace_command},
	{0},
};

char *command_hint(const char *name, char text[96])
{
	static const char *const former[][2] = {{"compare", "log A --compare B"},
		{"corpus", "ship RUN --pack FOLDER"}, {"dashboard", "ship --dashboard FILE"},
		{"remeasure", "rescore --remeasure RUN"}, {"samples", "query --samples RUN"},
		{"trace-control", "trace --control FOLDER ORDER"}};
	const char *names[64];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(former) / sizeof(former[0]); i++)
		if (!strcmp(name, former[i][0])) {
			snprintf(text, 96, "; it is 'culprit %s' now", former[i][1]);
			return text;
		}
	for (; commands[n] && n < 63; n++)
		names[n] = commands[n]->name;
	names[n] = NULL;
	return near_hint(name, names, text);
}

int cmd_fail(const char *name, int code, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "culprit %s: ", name);
	text_print_clean(stderr, text);
	fputc('\n', stderr);
	return code;
}

int cmd_error(const char *name, struct err *e, enum err_class class)
{
	err_blame(e, class, 0);
	return cmd_fail(name, err_exit_code(e), "%s", e->text);
}

void cmd_print_json(json_t *v)
{
	json_dumpf(v, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(v);
}
