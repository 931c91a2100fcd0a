/* Parses the command line by tables of options. */
#include "harness/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/cli/cmd.h"
#include "harness/cli/config.h"
#include "harness/base/near.h"
#include "harness/lua/luax.h"

#define usage(c, ...) cmd_fail((c)->name, CULPRIT_EXIT_USAGE, __VA_ARGS__)

/* One parse: argv[at] is read next. */
struct parse {
	const struct call *call;
	int argc, at;
	char **argv;
	const struct option_row *given[64]; /* not by the configuration */
	size_t n_given;
};

const struct option_row *option_next(struct option_walk *w)
{
	const struct option_row *o = w->next;

	if (o && !o->name && w->after) {
		o = w->after;
		w->after = NULL;
		w->base = 0;
	}
	if (!o || !o->name)
		return NULL;
	w->at = w->base + o->at;
	w->next = o + 1;
	if (o->type == OPTION_GROUP)
		*w = (struct option_walk){.next = o->group, .after = o + 1, .base = o->at};
	return o;
}

const struct option_row *option_find(
	struct option_walk *w, const char *name, size_t length, char letter)
{
	const struct option_row *o;

	while ((o = option_next(w)))
		if (o->type != OPTION_GROUP &&
			(name ? strlen(o->name) == length && !memcmp(o->name, name, length)
			      : o->letter == letter))
			break;
	return o;
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

	for (size_t n; *words; words += n + (words[n] == '|'), i++) {
		n = strcspn(words, "|");
		if (n == length && !memcmp(words, text, n))
			return i;
	}
	return -1;
}

static int set_field(const struct option_row *o, char *field, const char *text, struct err *e)
{
	struct option_list *list = (struct option_list *)field;
	int i;

	switch (o->type) {
	case OPTION_FLAG: *(bool *)field = true; return 0;
	case OPTION_TEXT: *(const char **)field = text; return 0;
	case OPTION_WHOLE:
	case OPTION_COUNT: return set_whole(o, field, text, e);
	case OPTION_QUANTITY: return set_quantity(o, field, text, e);
	case OPTION_CHOICE:
		i = word_index(o->value, text);
		if (i < 0)
			return err_set(e, -EINVAL, "takes %s, not '%s'", o->value, text);
		*(unsigned *)field = (unsigned)i;
		return 0;
	case OPTION_LIST:
		list->v = alloc_room(list->v, list->n, sizeof(*list->v));
		list->v[list->n++] = text;
		return 0;
	default: return o->set(field, text, e);
	}
}

/* 'option' is "--name" or "-x"; 'length' without its value. */
static int options_refuse(const struct command *c, const char *option, size_t length)
{
	const char *names[65] = {"help"}, *near = NULL;
	struct option_walk w = {c->options};
	const struct option_row *o;
	char name[64];

	for (size_t n = 1; n < 64 && (o = option_next(&w));)
		if (o->type != OPTION_GROUP)
			names[n++] = o->name;
	if (length > 2) {
		snprintf(name, sizeof(name), "%.*s", (int)length - 2, option + 2);
		near = near_match(name, names);
	}
	return near ? usage(c, "there is no option '%.*s'; did you mean '--%s'?", (int)length,
			      option, near)
		    : usage(c, "there is no option '%.*s'; 'culprit %s --help' lists the options",
			      (int)length, option, c->name);
}

/* Remembers that the option is given; was it before? */
static bool given_again(struct parse *p, const struct option_row *o)
{
	for (size_t i = 0; i < p->n_given; i++)
		if (p->given[i] == o)
			return true;
	if (p->n_given < sizeof(p->given) / sizeof(p->given[0]))
		p->given[p->n_given++] = o;
	return false;
}

static bool is_given(const struct parse *p, const char *name)
{
	for (size_t i = 0; i < p->n_given; i++)
		if (!strcmp(p->given[i]->name, name))
			return true;
	return false;
}

/* Refuses options that mean nothing next to each other: 0, or an exit code. */
static int check_company(const struct parse *p)
{
	for (size_t i = 0; i < p->n_given; i++) {
		const struct option_row *o = p->given[i];

		if (o->needs && !is_given(p, o->needs))
			return usage(p->call->command, "--%s needs --%s", o->name, o->needs);
		for (size_t k = 0; o->allows && k < p->n_given; k++)
			if (k != i && word_index(o->allows, p->given[k]->name) < 0)
				return usage(p->call->command, "--%s means nothing with --%s",
					p->given[k]->name, o->name);
	}
	return 0;
}

/* Sets the option whose field is at 'at'. 'value' is what stands in the same word, or NULL. 0, or
 * an exit code. */
static int options_take(struct parse *p, const struct option_row *o, size_t at, const char *value)
{
	const struct command *c = p->call->command;
	void *field = (char *)p->call->options + at;
	bool wants = option_takes_value(o), again = given_again(p, o);
	struct err e;

	if (o->optional && !value && !(p->at < p->argc && isdigit((unsigned char)*p->argv[p->at])))
		wants = false;
	if (!option_takes_value(o) && value)
		return usage(c, "--%s takes no value, not '%s'", o->name, value);
	if (wants && !value && p->at >= p->argc)
		return usage(c, "--%s needs a value: --%s %s", o->name, o->name, o->value);
	if (wants && !value)
		value = p->argv[p->at++];
	if (o->type == OPTION_TEXT && again && strcmp(*(char **)field, value))
		return usage(c, "--%s is given twice, with '%s' and with '%s'; it takes one value",
			o->name, *(char **)field, value);
	if (set_field(o, field, value, &e))
		return usage(c, "--%s %s", o->name, e.text);
	return 0;
}

/* One word that begins with '-'. 0, -1 if help is asked for, or an exit code. */
static int take_word(struct parse *p, const char *word)
{
	const struct command *c = p->call->command;
	const struct option_row *o;
	size_t length = strcspn(word, "=");
	int code = 0;

	if (!strcmp(word, "--help"))
		return -1;
	if (word[1] == '-') {
		struct option_walk w = {c->options};

		o = option_find(&w, word + 2, length - 2, 0);
		return o ? options_take(p, o, w.at, word[length] ? word + length + 1 : NULL)
			 : options_refuse(c, word, length);
	}
	/* Letters without a value may stand together: -xy. */
	for (const char *l = word + 1; *l && !code; l++) {
		struct option_walk w = {c->options};

		if (*l == 'h')
			return -1;
		o = option_find(&w, NULL, 0, *l);
		if (!o)
			return options_refuse(c, (char[]){'-', *l, '\0'}, 2);
		if (option_takes_value(o))
			return options_take(p, o, w.at, l[1] ? l + 1 : NULL);
		code = options_take(p, o, w.at, NULL);
	}
	return code;
}

static int check_arguments(const struct call *call)
{
	const struct command *c = call->command;
	char first[32];

	if (call->n > c->max)
		return usage(c, "'%s' is one argument too many; see 'culprit %s --help'",
			call->args[c->max], c->name);
	if (c->words && call->n && word_index(c->words, call->args[0]) < 0)
		return usage(c, "'%s' is not one of %s", call->args[0], c->words);
	if (call->n >= c->min)
		return 0;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(c->arguments, " \n"), c->arguments);
	for (char *p = first; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return usage(c, "which %s? 'culprit %s %.*s'", first, c->name,
		(int)strcspn(c->arguments, "\n"), c->arguments);
}

int options_parse(struct call *c, int argc, char **argv, int *code)
{
	struct parse p = {.call = c, .argc = argc, .at = 1, .argv = argv};
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
		} else if ((*code = take_word(&p, word)) < 0) {
			help_command(c->command, stdout);
			*code = CULPRIT_EXIT_OK;
			return 1;
		}
	}
	argv[c->n] = NULL;
	if (!*code)
		*code = check_company(&p);
	if (!*code)
		*code = check_arguments(c);
	return *code != 0;
}

void options_clear(const struct option_row *rows, void *options)
{
	struct option_walk w = {rows};

	for (const struct option_row *o; (o = option_next(&w));)
		if (o->type == OPTION_LIST)
			free(((struct option_list *)(void *)((char *)options + w.at))->v);
}

const char *command_short_name(const struct command *c)
{
	const char *last = strrchr(c->name, ' ');

	return last ? last + 1 : c->name;
}

const struct command *command_find(const struct command *const *list, const char *name)
{
	while (*list && strcmp(command_short_name(*list), name))
		list++;
	return *list;
}

static int run_part(const struct command *c, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *part = name ? command_find(c->parts, name) : NULL;

	if (part)
		return command_run(part, argc - 1, argv + 1);
	if (!name)
		return usage(c, "which command?; see 'culprit %s --help'", c->name);
	if (strcmp(name, "--help") && strcmp(name, "-h"))
		return usage(c, "there is no command '%s'; see 'culprit %s --help'", name, c->name);
	help_command(c, stdout);
	return CULPRIT_EXIT_OK;
}

/* Help and completion are given whatever the configuration says. */
static bool asks_for_help(const struct command *c, int argc, char **argv)
{
	if (c->is_help)
		return true;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

int command_run(const struct command *c, int argc, char **argv)
{
	struct call call = {.command = c};
	struct config held = {0};
	struct err e;
	int code;

	if (c->parts)
		return run_part(c, argc, argv);
	call.options = alloc_zero(1, c->size);
	if (c->defaults)
		memcpy(call.options, c->defaults, c->size);
	if (!asks_for_help(c, argc, argv) && config_apply(c, call.options, set_field, &held, &e))
		code = usage(c, "%s", e.text);
	else if (!options_parse(&call, argc, argv, &code))
		code = c->run(&call);
	options_clear(c->options, call.options);
	free(call.options);
	config_clear(&held);
	return code;
}
