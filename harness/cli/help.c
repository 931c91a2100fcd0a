#include <stdlib.h>
#include <string.h>

#include "harness/cli/options.h"

enum { WIDTH = 80, OPTION_INDENT = 25 };

void print_wrapped(FILE *f, int indent, const char *text)
{
	int column = indent;

	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > indent && column + 1 + length > WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', f);
			column++;
		}
		fprintf(f, "%.*s", length, text);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

/* Calls 'put' for every line of 'text'. */
static void each_line(const char *text, void (*put)(FILE *f, const char *line), FILE *f)
{
	char *copy = text ? strdup(text) : NULL, *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		put(f, line);
	free(copy);
}

static void put_paragraph(FILE *f, const char *line)
{
	print_wrapped(f, 0, line);
}

static void put_indented(FILE *f, const char *line)
{
	fprintf(f, "  %s\n", line);
}

static const struct option_row help_row[] = {
	{.name = "help", .letter = 'h', .help = "print this text"}, {0}};

/* Calls 'put' for every option of the command, and with a heading before every group. */
static void each_row(const struct option_row *rows,
	void (*put)(FILE *, const char *prefix, const struct option_row *), const char *prefix,
	FILE *f)
{
	for (; rows && rows->name; rows++) {
		put(f, prefix, rows);
		if (rows->type == OPTION_GROUP)
			each_row(rows->group, put, prefix, f);
	}
}

static void each_option(const struct command *c,
	void (*put)(FILE *, const char *prefix, const struct option_row *), const char *prefix,
	FILE *f)
{
	each_row(c->options, put, prefix, f);
	if (!c->parts)
		each_row(help_row, put, prefix, f);
}

static void put_option(FILE *f, const char *prefix, const struct option_row *o)
{
	char left[128];
	int n;

	(void)prefix;
	if (o->type == OPTION_GROUP) {
		fprintf(f, "%s%s%s", *o->help ? "\n" : "", o->help, *o->help ? ":\n" : "");
		return;
	}
	n = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", o->letter ? '-' : ' ',
		o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name, o->value ? " " : "",
		o->value ? o->value : "");
	if (n < OPTION_INDENT)
		fprintf(f, "%-*s", OPTION_INDENT, left);
	else
		fprintf(f, "%s\n%*s", left, OPTION_INDENT, "");
	print_wrapped(f, OPTION_INDENT, o->help);
}

static void put_usage(const struct command *c, const char *start, FILE *f)
{
	char *copy = strdup(c->arguments ? c->arguments : ""), *rest = copy, *form;

	while ((form = strsep(&rest, "\n"))) {
		fprintf(f, "%sculprit %s%s%s%s\n", start, c->name, *form ? " " : "", form,
			c->options && !c->in_order ? " [OPTION ...]" : "");
		start = "       ";
	}
	free(copy);
}

void help_command(const struct command *c, FILE *f)
{
	const char *start = "usage: ";

	if (!c->parts)
		put_usage(c, start, f);
	for (const struct command *const *p = c->parts; p && *p; p++) {
		if ((*p)->hidden)
			continue;
		put_usage(*p, start, f);
		start = "       ";
	}
	fputc('\n', f);
	each_line(c->about, put_paragraph, f);
	if (!c->parts)
		fputs("\noptions:\n", f);
	each_option(c, put_option, "", f);
	for (const struct command *const *p = c->parts; p && *p; p++) {
		if ((*p)->hidden)
			continue;
		fprintf(f, "\n%s: ", (*p)->name);
		print_wrapped(f, (int)strlen((*p)->name) + 2, (*p)->summary);
		each_row((*p)->options, put_option, "", f);
	}
	if (c->examples) {
		fputs("\nexamples:\n", f);
		each_line(c->examples, put_indented, f);
	}
	if (c->exits) {
		fputs("\nexit codes: ", f);
		print_wrapped(f, 12, c->exits);
	}
}

void help_list(FILE *f)
{
	fputs("usage: culprit COMMAND [ARGUMENT ...]\n\n"
	      "Injects a known fault into one server of a storage cluster under load, lets\n"
	      "detectors judge what was traced, and scores their verdicts.\n\n",
		f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, "  %-11s", (*c)->name);
		print_wrapped(f, 13, (*c)->summary);
	}
	fputs("\n'culprit COMMAND --help' or 'culprit help COMMAND' describes a command.\n"
	      "exit codes: 0 all as expected; 1 a detector fell short; 2 usage or input error;\n"
	      "            3 no valid result\n",
		f);
}

/* --- completion --- */

/* Calls 'put' for every command and subcommand that is not hidden. Subcommands come first: in a
 * shell's case statement the more specific pattern must. */
static void each_command(void (*put)(FILE *f, const struct command *c), FILE *f)
{
	for (const struct command *const *c = commands; *c; c++) {
		for (const struct command *const *p = (*c)->parts; p && *p; p++)
			if (!(*p)->hidden)
				put(f, *p);
		put(f, *c);
	}
}

static void put_words(FILE *f, const char *words)
{
	for (; *words; words++)
		fputc(*words == '|' ? ' ' : *words, f);
}

/* The last word of a command's name. */
static const char *short_name(const struct command *c)
{
	const char *last = strrchr(c->name, ' ');

	return last ? last + 1 : c->name;
}

static void put_names(FILE *f, const struct command *const *list)
{
	for (; list && *list; list++)
		if (!(*list)->hidden)
			fprintf(f, "%s ", short_name(*list));
}

static void bash_name(FILE *f, const char *prefix, const struct option_row *o)
{
	(void)prefix;
	if (o->type != OPTION_GROUP)
		fprintf(f, "--%s ", o->name);
}

static void bash_choice(FILE *f, const char *prefix, const struct option_row *o)
{
	if (o->type != OPTION_CHOICE)
		return;
	fprintf(f, "\t\"%s \"*\" --%s \") words='", prefix, o->name);
	put_words(f, o->value);
	fputs("' ;;\n", f);
}

static void bash_command(FILE *f, const struct command *c)
{
	each_option(c, bash_choice, c->name, f);
	fprintf(f, "\t\"%s \"*) words='", c->name);
	put_names(f, c->parts);
	put_words(f, c->words ? c->words : "");
	fputs(c->words ? " " : "", f);
	each_option(c, bash_name, "", f);
	fputs("' ;;\n", f);
}

static void bash(FILE *f)
{
	fputs("_culprit() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=\n"
	      "\tcase \"${COMP_WORDS[*]:1:COMP_CWORD-1} \" in\n",
		f);
	each_command(bash_command, f);
	fputs("\t*) words='", f);
	put_names(f, commands);
	fputs("' ;;\n\tesac\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "}\ncomplete -o default -F _culprit culprit\n",
		f);
}

/* Text between a shell's single quotes; a backslash goes before characters of 'special'. */
static void put_quoted(FILE *f, const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			fputc('\\', f);
		fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, f);
	}
}

static void zsh_option(FILE *f, const char *prefix, const struct option_row *o)
{
	(void)prefix;
	if (o->type == OPTION_GROUP)
		return;
	fprintf(f, " \\\n\t\t'%s--%s[", o->type == OPTION_LIST ? "*" : "", o->name);
	put_quoted(f, o->help, "[]:\\");
	fputc(']', f);
	if (o->type == OPTION_CHOICE) {
		fputs(":value:(", f);
		put_words(f, o->value);
		fputc(')', f);
	} else if (o->value) {
		fprintf(f, ":%s:_files", o->value);
	}
	fputc('\'', f);
}

static void zsh_command(FILE *f, const struct command *c)
{
	fprintf(f, "\t\"%s \"*) _arguments", c->name);
	each_option(c, zsh_option, "", f);
	fputs(" \\\n\t\t'*:argument:", f);
	if (c->words || c->parts) {
		fputc('(', f);
		put_names(f, c->parts);
		put_words(f, c->words ? c->words : "");
		fputs(")' ;;\n", f);
	} else {
		fputs("_files' ;;\n", f);
	}
}

static void zsh(FILE *f)
{
	fputs("#compdef culprit\n_culprit() {\n"
	      "\tcase \"${words[2,CURRENT-1]} \" in\n",
		f);
	each_command(zsh_command, f);
	fputs("\t*) compadd ", f);
	put_names(f, commands);
	fputs(";;\n\tesac\n}\n_culprit \"$@\"\n", f);
}

static void fish_option(FILE *f, const char *prefix, const struct option_row *o)
{
	if (o->type == OPTION_GROUP)
		return;
	fprintf(f, "complete -c culprit -n '%s' -l %s", prefix, o->name);
	if (o->letter)
		fprintf(f, " -s %c", o->letter);
	if (o->type == OPTION_CHOICE) {
		fputs(" -xa '", f);
		put_words(f, o->value);
		fputc('\'', f);
	} else if (o->value) {
		fputs(" -r", f);
	}
	fputs(" -d '", f);
	put_quoted(f, o->help, "\\");
	fputs("'\n", f);
}

static void fish_command(FILE *f, const struct command *c)
{
	char when[128], *space;

	snprintf(when, sizeof(when), "__fish_seen_subcommand_from %s", c->name);
	space = strchr(when + strlen("__fish_seen_subcommand_from "), ' ');
	if (space)
		snprintf(when, sizeof(when),
			"__fish_seen_subcommand_from %.*s; and __fish_seen_subcommand_from %s",
			(int)strcspn(c->name, " "), c->name, short_name(c));
	else {
		fprintf(f, "complete -c culprit -n __fish_use_subcommand -fa %s -d '", c->name);
		put_quoted(f, c->summary, "\\");
		fputs("'\n", f);
	}
	if (c->parts || c->words) {
		fprintf(f, "complete -c culprit -n '%s' -fa '", when);
		put_names(f, c->parts);
		put_words(f, c->words ? c->words : "");
		fputs("'\n", f);
	}
	each_option(c, fish_option, when, f);
}

void help_completion(const char *shell, FILE *f)
{
	if (!strcmp(shell, "bash"))
		bash(f);
	else if (!strcmp(shell, "zsh"))
		zsh(f);
	else
		each_command(fish_command, f);
}

/* --- the manual page --- */

static void put_roff(FILE *f, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text; text++)
		fputs(*text == '\\' ? "\\e" : *text == '-' ? "\\-" : (char[]){*text, '\0'}, f);
	fputc('\n', f);
}

static void roff_paragraph(FILE *f, const char *line)
{
	if (*line)
		put_roff(f, line);
	else
		fputs(".PP\n", f);
}

static void roff_option(FILE *f, const char *prefix, const struct option_row *o)
{
	char name[128];

	(void)prefix;
	if (o->type == OPTION_GROUP) {
		if (*o->help)
			fprintf(f, ".PP\n%s:\n", o->help);
		return;
	}
	fputs(".TP\n.B ", f);
	snprintf(name, sizeof(name), "%s%.1s%s--%s%s%s", o->letter ? "-" : "", &o->letter,
		o->letter ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
	put_roff(f, name);
	put_roff(f, o->help);
}

static void roff_command(FILE *f, const struct command *c)
{
	char *copy = strdup(c->arguments ? c->arguments : ""), *rest = copy, *form;

	fprintf(f, ".SS culprit %s\n", c->name);
	while (!c->parts && (form = strsep(&rest, "\n"))) {
		fprintf(f, ".B culprit %s\n", c->name);
		put_roff(f, form);
		fputs(".br\n", f);
	}
	free(copy);
	fputs(".PP\n", f);
	each_line(c->about ? c->about : c->summary, roff_paragraph, f);
	each_option(c, roff_option, "", f);
	if (c->examples) {
		fputs(".PP\nExamples:\n.PP\n.nf\n", f);
		each_line(c->examples, put_roff, f);
		fputs(".fi\n", f);
	}
	if (c->exits) {
		fputs(".PP\nExit codes: ", f);
		put_roff(f, c->exits);
	}
}

void help_manual(FILE *f)
{
	fputs(".TH CULPRIT 1 \"\" \"culprit " CULPRIT_VERSION "\" \"User Commands\"\n"
	      ".SH NAME\nculprit \\- fault injection and diagnosis for storage clusters\n"
	      ".SH SYNOPSIS\n.B culprit\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n"
	      ".SH DESCRIPTION\n"
	      "Injects a known fault into one server of a storage cluster under load, lets\n"
	      "detectors judge what was traced, and scores their verdicts.\n"
	      ".SH COMMANDS\n",
		f);
	each_command(roff_command, f);
	fputs(".SH EXIT STATUS\n"
	      "0: all as expected.  1: a detector fell short, or a score became worse.\n"
	      "2: usage, scenario or other input is wrong.  3: there is no valid result.\n"
	      ".SH ENVIRONMENT\n"
	      ".TP\n.B CULPRIT_INVENTORY\nThe inventory that\n.B culprit run\n"
	      "uses when neither the command line nor the scenario names one.\n"
	      ".TP\n.B CULPRIT_HOME\nThe folder of faults, workloads, detectors and templates.\n"
	      "Default: found relative to the program.\n"
	      ".TP\n.B CULPRIT_AGENT_DIR\nThe folder of the node agent. Default: found relative\n"
	      "to the program.\n"
	      ".TP\n.B NO_COLOR\nIf set, output has no colours.\n"
	      ".SH FILES\n"
	      ".TP\n.I /run/culprit/lab\nThe embedded lab, with its inventory.lua.\n"
	      ".TP\n.I runs/\nThe default place of runs, in the current folder.\n",
		f);
}
