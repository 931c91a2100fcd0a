/* Every option of every command is parsed, and stands in --help, completion and the manual. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/cli/cmd.h"

typedef void check_fn(const struct command *c, const struct option_row *o);

static void each_row(const struct command *c, const struct option_row *rows, check_fn *check)
{
	for (; rows && rows->name; rows++) {
		if (rows->type == OPTION_GROUP)
			each_row(c, rows->group, check);
		else
			check(c, rows);
	}
}

static void each_option(check_fn *check)
{
	for (const struct command *const *c = commands; *c; c++) {
		each_row(*c, (*c)->options, check);
		for (const struct command *const *p = (*c)->parts; p && *p; p++)
			each_row(*p, (*p)->options, check);
	}
}

/* A value that the option takes. */
static const char *sample(const struct option_row *o, char *text, size_t size)
{
	static const struct {
		const char *name, *value;
	} special[] = {{"by", "strength"}, {"level", "0.9"}, {"cells", "1-2"}, {"metric", "dread"},
		{"train-until", "5"}, {"subnet", "10.0.0.0/24"}, {"false-alarms", "1/100"},
		{"from", "2026-11-02"}, {"to", "2026-11-03"}, {"rank", "5"}, {"shard", "2/3"}};

	snprintf(text, size, "%.0f", o->min);
	if (o->type == OPTION_CHOICE)
		snprintf(text, size, "%.*s", (int)strcspn(o->value, "|"), o->value);
	else if (o->type == OPTION_QUANTITY)
		unit_format(o->unit, o->min > 1e-6 ? o->min : 1, text, (unsigned)size);
	else if (o->type == OPTION_CALL)
		for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
			if (!strcmp(o->name, special[i].name))
				return special[i].value;
	return text;
}

/* Parses "--name value", or "--name=value", or "-x value", with the smallest number of arguments.
 * Returns the exit code; '*changed': the options are not what they were. */
static int parse(const struct command *c, const struct option_row *o, int form, bool *changed)
{
	char first[400], needed[400], value[64], *options = calloc(2, c->size + 1),
						 *before = options + c->size + 1,
						 *argv[16] = {(char *)"x"};
	const char *text = sample(o, value, sizeof(value)), *other = "other";
	bool takes = o->type != OPTION_FLAG && (o->type != OPTION_CALL || o->value);
	struct call call = {.command = c, .options = options};
	struct option_walk w;
	int argc = 1, code, handled;

	if (!strcmp(c->name, "log") && !strcmp(o->name, "by"))
		text = "call,path";
	if (c->defaults)
		memcpy(options, c->defaults, c->size);
	memcpy(before, options, c->size);
	if (form == 2)
		snprintf(first, sizeof(first), "-%c", o->letter);
	else
		snprintf(first, sizeof(first), "--%s%s%s", o->name, form && takes ? "=" : "",
			form && takes ? text : "");
	argv[argc++] = first;
	if (takes && form != 1)
		argv[argc++] = (char *)text;
	if (o->needs) { /* a flag, or an option with a text */
		w = (struct option_walk){c->options};
		snprintf(needed, sizeof(needed), "--%s", o->needs);
		argv[argc++] = needed;
		if (option_takes_value(option_find(&w, o->needs, strlen(o->needs), 0))) {
			argv[argc++] = (char *)other;
			memcpy(before + w.at, &other, sizeof(other));
		} else {
			before[w.at] = true;
		}
	}
	for (int i = 0; i < c->min; i++)
		argv[argc++] = (char *)(c->words ? "fault" : "argument");
	handled = options_parse(&call, argc, argv, &code);
	assert_int_equal(handled, code != 0);
	assert_true(code || call.n == c->min);
	*changed = memcmp(options, before, c->size) != 0;
	options_clear(c->options, options);
	free(options);
	return code;
}

static void check_parsed(const struct command *c, const struct option_row *o)
{
	/* These values are those of zeroed or default options. */
	bool same = o->type == OPTION_CHOICE || !strcmp(c->name, "lab up"), changed;

	for (int form = 0; form < (o->letter ? 3 : 2); form++) {
		if (parse(c, o, form, &changed) || (!changed && !same))
			fail_msg("culprit %s --%s, form %d", c->name, o->name, form);
	}
}

static void every_option_is_parsed(void **state)
{
	(void)state;
	each_option(check_parsed);
}

static char *text_of(void (*put)(FILE *f, const void *arg), const void *arg)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	put(f, arg);
	fclose(f);
	return text;
}

static void put_help(FILE *f, const void *c)
{
	help_command(c, f);
}

struct line {
	int n;
	char *words[4];
};

static void put_completion(FILE *f, const void *arg)
{
	const struct line *l = arg;

	help_complete(l->n, (char **)l->words, f);
}

static void put_manual(FILE *f, const void *arg)
{
	(void)arg;
	help_manual(f);
}

/* The part of 'text' from 'from' to 'to', or to its end. */
static char *part_of(char *text, const char *from, const char *to)
{
	char *p = strstr(text, from), *end = p ? strstr(p + strlen(from), to) : NULL;

	return p ? strndup(p, end ? (size_t)(end - p) : strlen(p)) : strdup("");
}

static void expect(const char *where, char *text, const char *needle, const struct command *c)
{
	if (!strstr(text, needle))
		fail_msg("culprit %s: there is no '%s' in %s", c->name, needle, where);
	free(text);
}

static char *manual;

static void check_shown(const struct command *c, const struct option_row *o)
{
	char from[64], option[64], escaped[64] = "";
	struct line line = {0};

	snprintf(option, sizeof(option), "--%s", o->name);
	expect("--help", text_of(put_help, c), option, c);
	assert_true(o->help && *o->help);
	if (c->hidden)
		return;
	snprintf(from, sizeof(from), "%s", c->name);
	for (char *word = strtok(from, " "); word; word = strtok(NULL, " "))
		line.words[line.n++] = word;
	line.words[line.n++] = option;
	snprintf(escaped, sizeof(escaped), "%s\n", option);
	expect("completion", text_of(put_completion, &line), escaped, c);
	*escaped = '\0';
	for (const char *p = option; *p; p++)
		strcat(escaped, *p == '-' ? "\\-" : (char[]){*p, '\0'});
	snprintf(from, sizeof(from), ".SS culprit %s\n", c->name);
	expect("the manual page", part_of(manual, from, ".SS "), escaped, c);
}

static void every_option_is_shown(void **state)
{
	(void)state;
	manual = text_of(put_manual, NULL);
	each_option(check_shown);
	free(manual);
}

/* Help fits a terminal; only words that are too long for a line, and examples, may stand out. */
static void help_is_80_columns_wide(void **state)
{
	(void)state;
	for (const struct command *const *c = commands; *c; c++) {
		char *text = text_of(put_help, *c), *rest = text, *line;

		while ((line = strsep(&rest, "\n")))
			if (strlen(line) > 80)
				fail_msg("culprit %s --help: '%s'", (*c)->name, line);
		free(text);
	}
}

static void no_option_stands_twice(const struct command *c, const struct option_row *o)
{
	int n = 0, letters = 0;

	for (const struct option_row *r = c->options; r->name; r++) {
		for (const struct option_row *g = r->type == OPTION_GROUP ? r->group : r; g->name;
			g++) {
			n += !strcmp(g->name, o->name);
			letters += o->letter && g->letter == o->letter;
			if (r->type != OPTION_GROUP)
				break;
		}
	}
	if (n != 1 || letters > 1)
		fail_msg("culprit %s: --%s stands twice", c->name, o->name);
}

static void options_are_distinct(void **state)
{
	(void)state;
	each_option(no_option_stands_twice);
}

/* What a parse of these words, ended by NULL, complains of: '*said'; returns the exit code. */
static int complain(const struct command *c, char *said, size_t size, const char *const *words)
{
	char options[8192] = {0}, *argv[16] = {(char *)"x"};
	struct call call = {.command = c, .options = options};
	FILE *to = tmpfile();
	int old = dup(STDERR_FILENO), argc = 1, code;
	size_t n;

	assert_true(to && old >= 0 && c->size <= sizeof(options));
	while (words[argc - 1]) {
		argv[argc] = (char *)words[argc - 1];
		argc++;
	}
	dup2(fileno(to), STDERR_FILENO);
	options_parse(&call, argc, argv, &code);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(to);
	n = fread(said, 1, size - 1, to);
	said[n] = '\0';
	fclose(to);
	options_clear(c->options, options);
	return code;
}

static void wrong_words_are_refused(void **state)
{
	static const struct {
		const struct command *c;
		const char *words[4], *said;
	} cases[] = {
		{&run_command, {"--invetory", "f", "x"},
			"there is no option '--invetory'; did you mean '--inventory'?"},
		{&run_command, {"--qq=5", "x"}, "there is no option '--qq'; 'culprit run --help'"},
		{&run_command, {"-x", "x"}, "there is no option '-x'"},
		{&run_command, {"x", "--only"}, "--only needs a value: --only KEY=VALUE"},
		{&run_command, {"--only=cell=1", "--only=cell=2", "x"},
			"--only is given twice, with 'cell=1' and with 'cell=2'"},
		{&run_command, {"--quiet=yes", "x"}, "--quiet takes no value, not 'yes'"},
		{&run_command, {"--repeats", "0", "x"},
			"takes a whole number from 1 to 10000, not '0'"},
		{&run_command, {"--repeats", "5x", "x"}, "from 1 to 10000, not '5x'"},
		{&run_command, {"--seed", "99999999999999999999", "x"}, "from 0 to 4294967295"},
		{&run_command, {"--lease", "10", "x"}, "'10' has no unit; write it like 10s"},
		{&run_command, {"--lease", "1h", "x"}, "--lease takes 1 s to 10 min, not '1h'"},
		{&table_command, {"--format", "tex", "x"}, "--format takes text|markdown|csv|json"},
		{&table_command, {"--level", "2", "x"}, "takes a rate above 0 and at most 1"},
		{&table_command, {"--cells", "5-4", "x"}, "takes FROM-TO"},
		{&report_command, {NULL}, "which run? 'culprit report RUN [OTHER ...]'"},
		{&resume_command, {"a", "b"}, "'b' is one argument too many"},
		{&list_command, {"fault"}, "'fault' is not one of scenarios|faults|workloads"},
		{&log_command, {NULL}, "which file? 'culprit log FILE'\n"},
		{&query_command, {"--wide", "x"}, "--wide needs --samples"},
		{&query_command, {"--samples", "--json", "x"},
			"--json means nothing with --samples"},
		{&trace_command, {"--control=x", "-c", "on"},
			"--summary means nothing with --control"},
		{&resume_command, {"a\n", "--", "b\n\033[2J"},
			"'b\\n\\x1b[2J' is one argument too many"},
	};
	char said[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int code = complain(cases[i].c, said, sizeof(said), cases[i].words);

		if (code != CULPRIT_EXIT_USAGE || !strstr(said, cases[i].said) ||
			strchr(said, '\n') != said + strlen(said) - 1)
			fail_msg("case %zu: %d, %s", i, code, said);
	}
}

static void words_after_a_double_dash_are_arguments(void **state)
{
	char first[] = "x", dash[] = "--", option[] = "--json", one[] = "-",
	     *argv[] = {first, one, dash, option, NULL};
	bool json[2] = {false};
	struct call call = {.command = &list_command, .options = json};
	int code;

	(void)state;
	assert_int_equal(options_parse(&call, 4, argv, &code), 1);
	assert_int_equal(code, CULPRIT_EXIT_USAGE);
	assert_int_equal(call.n, 2);
	assert_string_equal(argv[0], "-");
	assert_string_equal(argv[1], "--json");
	assert_false(json[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_is_parsed),
		cmocka_unit_test(every_option_is_shown),
		cmocka_unit_test(help_is_80_columns_wide),
		cmocka_unit_test(options_are_distinct),
		cmocka_unit_test(wrong_words_are_refused),
		cmocka_unit_test(words_after_a_double_dash_are_arguments),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
