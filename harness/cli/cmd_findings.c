/* culprit findings: patterns in logs and runs, explained. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/base/outfile.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/base/json_text.h"
#include "harness/cli/subject.h"
#include "harness/judging/findings.h"

struct options {
	bool json, no_index;
	long cell, recording;
	double timeout_s;
	const char *finding;
};

struct shown {
	bool json;
	const char *run; /* NULL: logs */
	long n;
};

static void show_json(const struct finding *f)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o}", "finding", json_text(f->name),
		"severity", json_text(f->severity), "about", json_text(f->about), "text",
		json_text(f->text), "todo", json_text(f->todo));

	if (f->evidence)
		json_object_set_new(o, "evidence", json_text(f->evidence));
	if (f->log)
		json_object_set_new(o, "log", json_text(f->log));
	if (f->node)
		json_object_set_new(o, "node", json_text(f->node));
	if (f->cell)
		json_object_set_new(o, "cell", json_integer(f->cell));
	if (f->number)
		json_object_set_new(o, "number", json_integer(f->number));
	if (isfinite(f->t_s))
		json_object_set_new(o, "t_s", json_real(f->t_s));
	json_line(o);
	json_decref(o);
}

/* A second on each side of the moment. */
static void show_timeline(const struct shown *s, const struct finding *f)
{
	if (!s->run || !f->cell)
		return;
	fputs("\n  timeline: culprit timeline ", stdout);
	text_print_clean(stdout, s->run);
	printf(" --cell %lld", (long long)f->cell);
	if (isfinite(f->t_s) && f->t_s >= 0)
		printf(" --from %.3fs --to %.3fs", f->t_s > 1 ? f->t_s - 1 : 0, f->t_s + 1);
}

static int findings_show(void *ctx, const struct finding *f, struct err *e)
{
	struct shown *s = ctx;

	s->n++;
	if (s->json) {
		show_json(f);
	} else {
		printf("%s: %s: ", f->severity, f->name);
		text_print_clean(stdout, f->text);
		printf("\n  do:  ");
		text_print_clean(stdout, f->todo);
		if (f->evidence) {
			printf("\n  see: ");
			text_print_clean(stdout, f->evidence);
		}
		show_timeline(s, f);
		putchar('\n');
	}
	return ferror(stdout) ? outfile_flush(stdout, e) : 0;
}

static int findings_run(const struct call *c)
{
	const struct options *o = c->options;
	struct query_spec spec = {.no_index = o->no_index, .timeout_s = o->timeout_s};
	struct shown shown = {.json = o->json};
	struct subject s = {.recording = o->recording};
	struct query *q = NULL;
	struct err e;
	int code = CULPRIT_EXIT_OK, rc;

	rc = subject_open(&s, c->n, c->args, o->cell, &spec, &q, &e);
	if (rc) {
		code = cmd_error("findings", &e, ERR_USAGE);
	} else {
		shown.run = s.run;
		rc = findings_search(q, o->finding, findings_show, &shown, &e);
		rc = rc ?: outfile_flush(stdout, &e);
		if (rc)
			code = cmd_error(
				"findings", &e, rc == -EINVAL ? ERR_SCENARIO : ERR_HARNESS);
		else if (shown.n)
			code = CULPRIT_EXIT_SHORT;
		else if (!o->json && !query_no_calls(q))
			fputs("nothing was found\n", stderr);
		code = subject_problems(q, "findings", code);
	}
	query_free(q);
	subject_close(&s);
	return code;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"finding", 0, OPTION_TEXT, AT(finding), "NAME",
		"only this one: a name of culprit's own, or a file (./mine.lua)"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print one JSON object per line"},
	{"cell", 0, OPTION_WHOLE, AT(cell), "N", "of a run: only this cell's logs", 1, 1e9},
	{"recording", 0, OPTION_WHOLE, AT(recording), "N",
		"of a run: only what flight recorders wrote, the N-th time in each cell", 1, 1e3},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"end a search that takes longer, each (default: 10min)", 0.001, 1e7, UNIT_SECONDS},
	{"no-index", 0, OPTION_FLAG, AT(no_index), NULL,
		"read logs from their beginning; neither use nor make an index"},
	{0},
};

const struct command findings_command = {.name = "findings",
	.summary = "look for known mistakes",
	.arguments = "LOG ...\nRUN",
	.about = "Looks for patterns that mean lost data or wasted work. Each finding says what "
		 "happened, what to do, and which query shows the events behind it: give it to "
		 "'culprit query'. Of a run it also says which part of which cell's timeline to "
		 "look at. Errors come first; 'culprit list findings' says what is looked for.\n\n"
		 "A finding is a query with an explanation in a Lua file; 'culprit new finding "
		 "NAME' writes one to begin with.",
	.examples = "culprit findings LOG\n"
		    "culprit findings --json RUN\n"
		    "culprit findings --finding ./slow-calls.lua LOG",
	.exits = "0 nothing was found; 1 something was; 2 usage error, a wrong finding, logs "
		 "without calls, or a log is damaged or cut short; 3 the time limit, an "
		 "interrupt, or the output cannot be written.",
	ARGUMENTS(1, 1000),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.timeout_s = 600},
	.run = findings_run};
