#include <stdarg.h>
#include <stdlib.h>

#include "harness/base/text.h"
#include "harness/cli/cmd.h"

struct options {
	unsigned shell; /* 0: none; else its position in 'shells' */
	bool manual;
};

static int help(void *options, int argc, char **argv)
{
	static const char *const shells[] = {NULL, "bash", "zsh", "fish"};
	const struct options *o = options;
	const struct command *c = NULL;

	if (o->manual) {
		help_manual(stdout);
	} else if (shells[o->shell]) {
		help_completion(shells[o->shell], stdout);
	} else if (!argc) {
		help_list(stdout);
	} else {
		c = command_find(commands, argv[0]);
		if (c && argc > 1)
			c = c->parts ? command_find(c->parts, argv[1]) : NULL;
		if (!c)
			return cmd_fail("help", CULPRIT_EXIT_USAGE,
				"there is no command '%s%s%s'; 'culprit help' lists them", argv[0],
				argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
		help_command(c, stdout);
	}
	return CULPRIT_EXIT_OK;
}

static const struct option_row rows[] = {
	{.name = "completion",
		.type = OPTION_CHOICE,
		.at = offsetof(struct options, shell),
		.value = "none|bash|zsh|fish",
		.help = "print the completion script of this shell"},
	{.name = "man",
		.at = offsetof(struct options, manual),
		.help = "print the manual page, in roff"},
	{0},
};

const struct command help_command_row = {
	.name = "help",
	.summary = "describe the commands; completion scripts; the manual page",
	.arguments = "[COMMAND]",
	.about = "Lists the commands, or describes one of them.",
	.examples = "culprit help run\n"
		    "source <(culprit help --completion bash)\n"
		    "culprit help --man | man -l -",
	.max = 2,
	.options = rows,
	.size = sizeof(struct options),
	.run = help,
};

const struct command *const commands[] = {
	&lab_command,
	&run_command,
	&resume_command,
	&status_command,
	&table_command,
	&report_command,
	&rescore_command,
	&remeasure_command,
	&diagnose_command,
	&samples_command,
	&corpus_command,
	&new_command,
	&list_command,
	&log_command,
	&trace_command,
	&doctor_command,
	&undo_command,
	&help_command_row,
	NULL,
};

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
