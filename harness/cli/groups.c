/* Options that several commands share. */
#include "harness/cli/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"

#define AT(field) offsetof(struct outcome_options, field)

static int set_json(void *field, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	*(enum table_format *)field = TABLE_JSON;
	return 0;
}

static int set_by(void *field, const char *text, struct err *e)
{
	*(bool *)field = true;
	return strcmp(text, "strength") ? err_set(e, -EINVAL, "takes 'strength', not '%s'", text)
					: 0;
}

static int set_level(void *field, const char *text, struct err *e)
{
	double *level = field;
	char *end;

	*level = strtod(text, &end);
	if (end != text && !*end && *level > 0 && *level <= 1)
		return 0;
	return err_set(e, -EINVAL, "takes a rate above 0 and at most 1, not '%s'", text);
}

static int set_cells(void *field, const char *text, struct err *e)
{
	struct cell_range *cells = field;
	int n = 0;

	if (sscanf(text, "%9ld-%9ld%n", &cells->from, &cells->to, &n) == 2 && !text[n] &&
		cells->from > 0 && cells->to >= cells->from)
		return 0;
	return err_set(e, -EINVAL, "takes FROM-TO, two cell numbers such as 45-84, not '%s'", text);
}

_Static_assert(TABLE_TEXT == 0 && TABLE_MARKDOWN == 1 && TABLE_CSV == 2 && TABLE_JSON == 3 &&
		TABLE_SVG == 4,
	"the order of --format");

const struct option_row outcome_rows[] = {
	{"format", 0, OPTION_CHOICE, AT(format), "text|markdown|csv|json|svg",
		"default: text; svg only with --against hotdep09-table1"},
	{"json", 0, OPTION_CALL, AT(format), NULL, "short for --format json", .set = set_json},
	{"against", 0, OPTION_TEXT, AT(against), "NAME",
		"compare with a published table: hotdep09-table1 (TP and FP) or hotdep09-table2 "
		"(run times); prints published value, measured value and interval in its layout"},
	{"details", 0, OPTION_FLAG, AT(details), NULL,
		"also null detectors by fault, detection, resource, delay, abstentions"},
	{"by", 0, OPTION_CALL, AT(by_strength), "strength",
		"instead of the table: TP by the strength of each fault, and the smallest strength "
		"from which on TP is at least --level; next to it what the fault costs the "
		"application",
		.set = set_by},
	{"level", 0, OPTION_CALL, AT(level), "RATE",
		"TP that --by strength asks for (default: 0.95)", .set = set_level},
	{"tap", 0, OPTION_FLAG, AT(tap), NULL,
		"instead of the table: one TAP test for each cell and detector"},
	{"junit", 0, OPTION_TEXT, AT(junit), "FILE", "write these tests to FILE as JUnit XML"},
	{"baseline", 0, OPTION_TEXT, AT(baseline), "FILE",
		"compare with the scores in FILE. A score is worse if an exact test says so "
		"(one-sided, 1 %). Then only regressions count, not single cells"},
	{"write-baseline", 0, OPTION_TEXT, AT(write_baseline), "FILE", "write the scores to FILE"},
	{0},
};

const struct option_row outcome_recorded_rows[] = {
	{"cells", 0, OPTION_CALL, AT(cells), "FROM-TO",
		"score only these cells of the plan; training cells are used in any case",
		.set = set_cells},
	{0},
};

const struct option_row inventory_rows[] = {
	{"inventory", 'i', OPTION_TEXT, 0, "FILE", "Lua file that describes the cluster's nodes"},
	{0},
};

const struct option_row detector_rows[] = {
	{"detector", 0, OPTION_LIST, offsetof(struct detector_options, names),
		"NAME[,KEY=VALUE,...]",
		"use this detector: a built-in name, a Lua file, or a program (its protocol is in "
		"diag/detectors/README.md). KEY=VALUE sets a parameter. May be repeated. Default: "
		"those of the run's scenario"},
	{"trust", 0, OPTION_FLAG, offsetof(struct detector_options, trust), NULL,
		"run detector programs also on a machine that cannot confine them"},
	{0},
};

int detectors_chosen(const char *command, const struct detector_options *o, json_t **list)
{
	*list = json_array();
	detector_trust_programs(o->trust);
	for (size_t i = 0; i < o->names.n; i++)
		if (show_parse_detector(command, o->names.v[i], *list))
			return -EINVAL;
	return 0;
}
