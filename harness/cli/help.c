/* Prints help, completions and manual pages from the tables of options. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/text.h"
#include "harness/cli/options.h"

#define ABOUT                                                                                      \
	"Injects a known fault into one server of a storage cluster under load, lets\n"            \
	"detectors judge what was traced, and scores their verdicts.\n"

enum { WIDTH = 80, OPTION_INDENT = 25 };

void print_wrapped(FILE *f, int indent, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	char *clean = alloc_zero(size, 1);
	int column = indent;

	text_clean(text, clean, size);
	for (char *rest = clean, *word; (word = strsep(&rest, " "));) {
		int length = (int)strlen(word);

		if (!length)
			continue;
		if (column > indent && column + 1 + length > WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(f, "%s%s", column > indent ? " " : "", word);
	}
	fputc('\n', f);
	free(clean);
}

/* Calls 'put' for every line of 'text'. */
static void each_line(const char *text, void (*put)(FILE *f, const char *line), FILE *f)
{
	char *copy = text ? alloc_copy(text) : NULL, *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		put(f, line);
	free(copy);
}

/* The next command of a list (may be NULL) that is not hidden, or NULL. */
static const struct command *next_shown(const struct command *const **list)
{
	while (*list && **list && (**list)->hidden)
		++*list;
	return *list && **list ? *(*list)++ : NULL;
}

static void put_paragraph(FILE *f, const char *line)
{
	print_wrapped(f, 0, line);
}

static void put_indented(FILE *f, const char *line)
{
	fprintf(f, "  %s\n", line);
}

static const struct option_row help_row = {
	.name = "help", .letter = 'h', .help = "print this text"};

/* "-o, --option VALUE", with what stands in place of a letter. */
static void name_option(const struct option_row *o, const char *none, char *text, size_t size)
{
	char letter[] = {'-', o->letter, ',', ' ', '\0'};

	snprintf(text, size, "%s--%s%s%s%s", o->letter ? letter : none, o->name,
		o->optional        ? " ["
			: o->value ? " "
				   : "",
		o->value ? o->value : "", o->optional ? "]" : "");
}

static void put_option(FILE *f, const struct option_row *o)
{
	char left[128] = "  ";

	if (o->type == OPTION_GROUP) {
		fprintf(f, "%s%s%s", *o->help ? "\n" : "", o->help, *o->help ? ":\n" : "");
		return;
	}
	name_option(o, "    ", left + 2, sizeof(left) - 2);
	if (strlen(left) < OPTION_INDENT)
		fprintf(f, "%-*s", OPTION_INDENT, left);
	else
		fprintf(f, "%s\n%*s", left, OPTION_INDENT, "");
	print_wrapped(f, OPTION_INDENT, o->help);
}

/* Calls 'put' for every option of the command, and for the heading of every group. */
static void each_option(
	const struct command *c, void (*put)(FILE *, const struct option_row *), FILE *f)
{
	struct option_walk w = {c->options};

	for (const struct option_row *o; (o = option_next(&w));)
		put(f, o);
}

static void put_usage(const struct command *c, const char *start, FILE *f)
{
	char *copy = alloc_copy(c->arguments ? c->arguments : ""), *rest = copy, *form;

	while ((form = strsep(&rest, "\n"))) {
		fprintf(f, "%sculprit %s%s%s%s\n", start, c->name, *form ? " " : "", form,
			c->options && !c->in_order ? " [OPTION ...]" : "");
		start = "       ";
	}
	free(copy);
}

static const char usual_exits[] = "0 done; 2 usage or input error; 3 it failed.";

void help_command(const struct command *c, FILE *f)
{
	const struct command *const *parts = c->parts, *p;

	if (!parts)
		put_usage(c, "usage: ", f);
	while ((p = next_shown(&parts)))
		put_usage(p, p == *c->parts ? "usage: " : "       ", f);
	fputc('\n', f);
	each_line(c->about, put_paragraph, f);
	if (!c->parts) {
		fputs("\noptions:\n", f);
		put_option(f, &help_row);
	}
	each_option(c, put_option, f);
	for (parts = c->parts; (p = next_shown(&parts));) {
		fprintf(f, "\n%s: ", p->name);
		print_wrapped(f, (int)strlen(p->name) + 2, p->summary);
		each_option(p, put_option, f);
	}
	if (c->examples) {
		fputs("\nexamples:\n", f);
		each_line(c->examples, put_indented, f);
	}
	fputs("\nexit codes: ", f);
	print_wrapped(f, 12, c->exits ? c->exits : usual_exits);
}

void help_list(FILE *f)
{
	const struct command *const *list = commands, *c;
	const struct task *t = tasks;
	bool half = false; /* the line has one command, of two */

	fputs("usage: culprit COMMAND [ARGUMENT ...]\n\n" ABOUT "\n", f);
	while ((c = next_shown(&list))) {
		if (c == t->first) {
			fprintf(f, "%s%s\n", half ? "\n" : "", (t++)->name);
			half = false;
		}
		fprintf(f, half ? "%-10s%s\n" : "  %-10s%-29s", c->name, c->summary);
		half = !half;
	}
	fprintf(f, "%s'culprit COMMAND --help' describes a command and its exit codes.\n",
		half ? "\n" : "");
}

/* --- completion --- */

/* Prints those of the words "one|two" that begin with 'begun'. */
static void offer(FILE *f, const char *begun, const char *words)
{
	for (; words && *words; words += strspn(words, "|")) {
		size_t length = strcspn(words, "|");

		if (strlen(begun) <= length && !strncmp(words, begun, strlen(begun)))
			fprintf(f, "%.*s\n", (int)length, words);
		words += length;
	}
}

static void offer_option(FILE *f, const char *begun, const struct option_row *o)
{
	char name[64];

	snprintf(name, sizeof(name), "--%s", o->name);
	if (o->type != OPTION_GROUP)
		offer(f, begun, name);
}

void help_complete(int n, char **words, FILE *f)
{
	const struct command *const *list = commands, *c = NULL, *offered;
	const char *begun = n ? words[n - 1] : "", *before = "";
	const struct option_row *o = NULL;
	struct option_walk w;

	for (int i = 0; i < n - 1; i++) {
		if (list && !(c = command_find(list, words[i])))
			return;
		list = list ? c->parts : NULL;
		/* A shell may part "--name=value" at the sign. */
		if (strcmp(words[i], "="))
			before = words[i];
	}
	if (!strcmp(begun, "="))
		begun = "";
	while ((offered = next_shown(&list)))
		offer(f, begun, command_short_name(offered));
	if (!c || c->parts)
		return;
	w = (struct option_walk){c->options};
	if (!strncmp(before, "--", 2))
		o = option_find(&w, before + 2, strlen(before + 2), 0);
	if (o && o->type == OPTION_CHOICE)
		offer(f, begun, o->value);
	if (o && option_takes_value(o))
		return;
	offer(f, begun, c->words);
	if (c->offers && *begun != '-')
		c->offers(f, begun);
	if (*begun != '-')
		return;
	offer_option(f, begun, &help_row);
	for (w = (struct option_walk){c->options}; (o = option_next(&w));)
		offer_option(f, begun, o);
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

static void roff_option(FILE *f, const struct option_row *o)
{
	char name[128];

	if (o->type == OPTION_GROUP) {
		if (*o->help)
			fprintf(f, ".PP\n%s:\n", o->help);
		return;
	}
	fputs(".TP\n.B ", f);
	name_option(o, "", name, sizeof(name));
	put_roff(f, name);
	put_roff(f, o->help);
}

static void roff_command(FILE *f, const struct command *c)
{
	char *copy = alloc_copy(c->arguments ? c->arguments : ""), *rest = copy, *form;

	fprintf(f, ".SS culprit %s\n", c->name);
	while (!c->parts && (form = strsep(&rest, "\n"))) {
		fprintf(f, ".B culprit %s\n", c->name);
		put_roff(f, form);
		fputs(".br\n", f);
	}
	free(copy);
	fputs(".PP\n", f);
	each_line(c->about ? c->about : c->summary, roff_paragraph, f);
	if (!c->parts)
		roff_option(f, &help_row);
	each_option(c, roff_option, f);
	if (c->examples) {
		fputs(".PP\nExamples:\n.PP\n.nf\n", f);
		each_line(c->examples, put_roff, f);
		fputs(".fi\n", f);
	}
	if (c->parts || strchr(c->name, ' '))
		return;
	fputs(".PP\nExit codes: ", f);
	put_roff(f, c->exits ? c->exits : usual_exits);
}

void help_manual(FILE *f)
{
	const struct command *const *list = commands, *c, *p;

	fputs(".TH CULPRIT 1 \"\" \"culprit " CULPRIT_VERSION "\" \"User Commands\"\n"
	      ".SH NAME\nculprit \\- fault injection and diagnosis for storage clusters\n"
	      ".SH SYNOPSIS\n.B culprit\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n"
	      ".SH DESCRIPTION\n" ABOUT ".SH COMMANDS\n",
		f);
	while ((c = next_shown(&list))) {
		const struct command *const *parts = c->parts;

		roff_command(f, c);
		while ((p = next_shown(&parts)))
			roff_command(f, p);
	}
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
	      ".TP\n.B CULPRIT_CONFIG\nThe configuration file; empty: none.\n"
	      ".TP\n.B NO_COLOR\nIf set, output has no colours.\n"
	      ".SH FILES\n"
	      ".TP\n.I /run/culprit/lab\nThe embedded lab, with its inventory.lua.\n"
	      ".TP\n.I ~/.config/culprit/config.lua\nDefaults of options, by command and long "
	      "name. The command line\ncomes after it. Options that may be repeated cannot stand "
	      "there.\n.nf\n"
	      "    return {\n"
	      "        run = { inventory = \"/home/me/hosts.lua\" },\n"
	      "        [\"lab up\"] = { servers = 6 },\n"
	      "    }\n.fi\n"
	      ".TP\n.I runs/\nThe default place of runs, in the current folder.\n",
		f);
}
