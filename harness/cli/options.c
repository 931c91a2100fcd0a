#include "harness/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/cli/cmd.h"
#include "harness/lua/luax.h"

/* One parse: argv[at] is read next. */
struct parse {
	const struct call *call;
	int argc, at;
	char **argv;
};

const struct option_row *option_find(
	const struct option_row *rows, const char *name, size_t length, char letter, size_t *at)
{
	for (; rows && rows->name; rows++) {
		const struct option_row *found = rows;
		bool group = rows->type == OPTION_GROUP;

		if (group)
			found = option_find(rows->group, name, length, letter, at);
		else if (name ? strlen(rows->name) != length || memcmp(rows->name, name, length)
			      : rows->letter != letter)
			found = NULL;
		if (found && at)
			*at = rows->at + (group ? *at : 0);
		if (found)
			return found;
	}
	return NULL;
}

bool option_takes_value(const struct option_row *o)
{
	return o->type != OPTION_FLAG && (o->type != OPTION_CALL || o->value);
}

static int set_whole(const struct option_row *o, char *field, const char *text, struct err *e)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || (double)n < o->min || (double)n > o->max)
		return err_set(e, -EINVAL, "takes a whole number from %.0f to %.0f, not '%s'",
			o->min, o->max, text);
	if (o->type == OPTION_COUNT)
		*(unsigned *)field = (unsigned)n;
	else
		*(long *)field = n;
	return 0;
}

static int set_quantity(const struct option_row *o, char *field, const char *text, struct err *e)
{
	char low[32], high[32];
	double v;
	int rc = unit_parse(o->unit, text, &v, e);

	if (rc)
		return err_prefix(e, rc, "takes a quantity");
	if (v < o->min || (o->max > 0 && v > o->max)) {
		unit_format(o->unit, o->min, low, sizeof(low));
		unit_format(o->unit, o->max, high, sizeof(high));
		return err_set(e, -EINVAL, "takes %s%s%s%s, not '%s'",
			o->max > 0 ? "" : "at least ", low, o->max > 0 ? " to " : "",
			o->max > 0 ? high : "", text);
	}
	*(double *)field = v;
	return 0;
}

/* The position of 'text' in "one|two|three", or -1. */
static int word_index(const char *words, const char *text)
{
	size_t length = strlen(text);
	int i = 0;

	for (const char *w = words; *w; w += *w == '|', i++) {
		size_t n = strcspn(w, "|");

		if (n == length && !memcmp(w, text, n))
			return i;
		w += n;
	}
	return -1;
}

static int set_choice(const struct option_row *o, char *field, const char *text, struct err *e)
{
	int i = word_index(o->value, text);

	if (i < 0)
		return err_set(e, -EINVAL, "takes %s, not '%s'", o->value, text);
	*(unsigned *)field = (unsigned)i;
	return 0;
}

static int add_to_list(struct option_list *list, const char *text)
{
	list->v = alloc_resize(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = text;
	return 0;
}

static int set_field(const struct option_row *o, char *field, const char *text, struct err *e)
{
	switch (o->type) {
	case OPTION_FLAG: *(bool *)field = true; return 0;
	case OPTION_TEXT: *(const char **)field = text; return 0;
	case OPTION_WHOLE:
	case OPTION_COUNT: return set_whole(o, field, text, e);
	case OPTION_QUANTITY: return set_quantity(o, field, text, e);
	case OPTION_CHOICE: return set_choice(o, field, text, e);
	case OPTION_LIST: return add_to_list((struct option_list *)field, text);
	default: return o->set(field, text, e);
	}
}

static size_t names_of(const struct option_row *rows, const char *names[], size_t n)
{
	for (; rows && rows->name && n < 63; rows++) {
		if (rows->type == OPTION_GROUP)
			n = names_of(rows->group, names, n);
		else
			names[n++] = rows->name;
	}
	return n;
}

/* 'option' is "--name" or "-x"; 'length' without its value. */
static int refuse(const struct command *c, const char *option, size_t length)
{
	const char *names[65], *near = NULL;
	char name[64];
	size_t n = names_of(c->options, names, 0);

	names[n++] = "help";
	names[n] = NULL;
	if (length > 2) {
		snprintf(name, sizeof(name), "%.*s", (int)length - 2, option + 2);
		near = luax_nearest(name, names);
	}
	return cmd_fail(c->name, CULPRIT_EXIT_USAGE, "there is no option '%.*s'; %s%s%s",
		(int)length, option, near ? "did you mean '--" : "'culprit ", near ? near : c->name,
		near ? "'?" : " --help' lists the options");
}

/* Sets the option whose field is at 'at'. 'value' is what stands in the same word, or NULL. 0, or
 * an exit code. */
static int take(struct parse *p, const struct option_row *o, size_t at, const char *value)
{
	const char *command = p->call->command->name;
	bool wants = option_takes_value(o);
	struct err e;

	if (!wants && value)
		return cmd_fail(command, CULPRIT_EXIT_USAGE, "--%s takes no value, not '%s'",
			o->name, value);
	if (wants && !value && p->at >= p->argc)
		return cmd_fail(command, CULPRIT_EXIT_USAGE, "--%s needs a value: --%s %s", o->name,
			o->name, o->value);
	if (wants && !value)
		value = p->argv[p->at++];
	if (set_field(o, (char *)p->call->options + at, value, &e))
		return cmd_fail(command, CULPRIT_EXIT_USAGE, "--%s %s", o->name, e.text);
	return 0;
}

/* One word that begins with '-'. 0, -1 if help is asked for, or an exit code. */
static int take_word(struct parse *p, const char *word)
{
	const struct command *c = p->call->command;
	const struct option_row *o;
	size_t length = strcspn(word, "="), at = 0;
	int code = 0;

	if (!strcmp(word, "--help"))
		return -1;
	if (word[1] == '-') {
		o = option_find(c->options, word + 2, length - 2, 0, &at);
		return o ? take(p, o, at, word[length] ? word + length + 1 : NULL)
			 : refuse(c, word, length);
	}
	/* Letters without a value may stand together: -xy. */
	for (const char *l = word + 1; *l && !code; l++) {
		if (*l == 'h')
			return -1;
		o = option_find(c->options, NULL, 0, *l, &at);
		if (!o)
			return refuse(c, (char[]){'-', *l, '\0'}, 2);
		if (option_takes_value(o))
			return take(p, o, at, l[1] ? l + 1 : NULL);
		code = take(p, o, at, NULL);
	}
	return code;
}

static int check_arguments(const struct call *call)
{
	const struct command *c = call->command;
	char first[32];

	if (call->n > c->max)
		return cmd_fail(c->name, CULPRIT_EXIT_USAGE,
			"'%s' is one argument too many; see 'culprit %s --help'",
			call->args[c->max], c->name);
	if (c->words && call->n && word_index(c->words, call->args[0]) < 0)
		return cmd_fail(c->name, CULPRIT_EXIT_USAGE, "'%s' is not one of %s", call->args[0],
			c->words);
	if (call->n >= c->min)
		return 0;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(c->arguments, " "), c->arguments);
	for (char *p = first; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return cmd_fail(c->name, CULPRIT_EXIT_USAGE, "which %s? 'culprit %s %s'", first, c->name,
		c->arguments);
}

int options_parse(struct call *c, int argc, char **argv, int *code)
{
	struct parse p = {c, argc, 1, argv};
	bool only_arguments = false;

	c->args = argv;
	*code = 0;
	while (p.at < argc && !*code) {
		char *word = argv[p.at++];

		if (only_arguments || word[0] != '-' || !word[1]) {
			argv[c->n++] = word;
			only_arguments |= c->command->in_order;
		} else if (!strcmp(word, "--")) {
			only_arguments = true;
		} else {
			*code = take_word(&p, word);
		}
	}
	if (*code < 0) {
		help_command(c->command, stdout);
		*code = CULPRIT_EXIT_OK;
		return 1;
	}
	argv[c->n] = NULL;
	if (!*code)
		*code = check_arguments(c);
	return *code != 0;
}

void options_clear(const struct option_row *rows, void *options)
{
	for (; rows && rows->name; rows++) {
		char *field = (char *)options + rows->at;

		if (rows->type == OPTION_GROUP)
			options_clear(rows->group, field);
		else if (rows->type == OPTION_LIST)
			free(((struct option_list *)field)->v);
	}
}

const struct command *command_find(const struct command *const *list, const char *name)
{
	for (; *list; list++) {
		const char *last = strrchr((*list)->name, ' ');

		if (!strcmp(last ? last + 1 : (*list)->name, name))
			return *list;
	}
	return NULL;
}

static int run_part(const struct command *c, int argc, char **argv)
{
	const struct command *part = argc > 1 ? command_find(c->parts, argv[1]) : NULL;

	if (part)
		return command_run(part, argc - 1, argv + 1);
	if (argc < 2 || (strcmp(argv[1], "--help") && strcmp(argv[1], "-h")))
		return cmd_fail(c->name, CULPRIT_EXIT_USAGE, "%s%s%s; see 'culprit %s --help'",
			argc < 2 ? "which command?" : "there is no command '",
			argc < 2 ? "" : argv[1], argc < 2 ? "" : "'", c->name);
	help_command(c, stdout);
	return CULPRIT_EXIT_OK;
}

int command_run(const struct command *c, int argc, char **argv)
{
	struct call call = {.command = c};
	int code;

	if (c->parts)
		return run_part(c, argc, argv);
	call.options = alloc_zero(1, c->size);
	if (c->defaults)
		memcpy(call.options, c->defaults, c->size);
	if (!options_parse(&call, argc, argv, &code))
		code = c->run(&call);
	options_clear(c->options, call.options);
	free(call.options);
	return code;
}
