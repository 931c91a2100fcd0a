/* Loads and checks a scenario. */
#include "harness/scenario/scenario.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/name.h"

#define DEFAULT_TRACER "ebpf"
enum { LIST_MAX = 1000 };

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_workloads; i++)
		part_clear(s->L, &s->workloads[i]);
	for (size_t i = 0; i < s->n_faults; i++)
		part_clear(s->L, &s->faults[i]);
	for (size_t i = 0; i < s->n_detectors; i++) {
		free(s->detectors[i].name);
		json_decref(s->detectors[i].params);
	}
	free(s->workloads);
	free(s->faults);
	free(s->detectors);
	free(s->training);
	free(s->path);
	free(s->name);
	free(s->summary);
	free(s->inventory);
	for (size_t i = 0; i < s->n_tracers; i++)
		tracing_clear(&s->tracers[i]);
	free(s->tracers);
	tracing_clear(&s->second);
	recorder_clear(&s->recorder);
	free(s->text);
	lua_close(s->L);
	free(s);
}

/* A scenario while it is read. Its table is at stack index 1, the value of the key that is being
 * read on top of the stack. */
struct loading {
	struct scenario *s;
	lua_State *L;
	const struct luax_source *src;
	struct err *e;
};

/* Reads the element on top of the stack, which may stay there, into element i of 'list'. On failure
 * the element holds nothing. */
typedef int read_fn(struct loading *r, void *list, size_t i);

static int read_elements(
	struct loading *r, const char *key, size_t size, void *list, size_t *count, read_fn *read)
{
	int top = lua_gettop(r->L), rc = 0;
	size_t n = lua_rawlen(r->L, top);

	if (!n || n > LIST_MAX)
		return luax_complain(r->src, key, r->e, "scenario: '%s' must list 1 to %d entries",
			key, LIST_MAX);
	*(void **)list = alloc_zero(n, size);
	for (size_t i = 0; i < n && !rc; i++) {
		lua_rawgeti(r->L, top, (lua_Integer)i + 1);
		rc = read(r, *(void **)list, i);
		*count += !rc;
		lua_settop(r->L, top);
	}
	return rc;
}

static int refuse_double(struct loading *r, const char *name, const char *label, const char *key)
{
	return luax_complain(r->src, name, r->e, "scenario: '%s' stands twice in '%s'", label, key);
}

/* The entry on top of the stack. */
static int load_part(struct loading *r, enum part_kind kind, struct part *p)
{
	int rc = part_load(r->L, kind, r->src, p, r->e);

	if (rc || kind != PART_WORKLOAD)
		return rc;
	rc = part_files_read(r->L, r->src, p, r->e);
	if (rc)
		part_clear(r->L, p);
	return rc;
}

static int read_part(
	struct loading *r, enum part_kind kind, const char *key, struct part *list, size_t i)
{
	int rc = load_part(r, kind, &list[i]);

	for (size_t k = 0; k < i && !rc; k++)
		if (!strcmp(list[k].label, list[i].label)) {
			rc = refuse_double(r, list[i].name, list[i].label, key);
			part_clear(r->L, &list[i]);
		}
	return rc;
}

static int read_workload(struct loading *r, void *list, size_t i)
{
	return read_part(r, PART_WORKLOAD, "workloads", list, i);
}

static int read_fault(struct loading *r, void *list, size_t i)
{
	return read_part(r, PART_FAULT, "faults", list, i);
}

/* "name", or { "name", param = value }. */
static int read_detector(struct loading *r, void *list, size_t i)
{
	struct detector_choice *d = (struct detector_choice *)list + i;
	lua_State *L = r->L;
	json_auto_t *params = json_object();
	bool table = lua_istable(L, -1);
	const char *name;
	int rc;

	if (table)
		for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
			const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2)
									 : NULL;
			json_t *value;

			if (key && (lua_istable(L, -1) || luajson_get(L, -1, &value, NULL)))
				return luax_complain(r->src, key, r->e,
					"detector parameter '%s' must be a number, string or "
					"boolean",
					key);
			if (key)
				json_object_set_new(params, key, value);
		}
	if (table)
		lua_rawgeti(L, -1, 1);
	if (lua_type(L, -1) != LUA_TSTRING)
		return luax_complain(r->src, "detectors", r->e,
			"detectors: each entry is a name or { \"name\", param = value }");
	name = lua_tostring(L, -1);
	/* A path is relative to the scenario. */
	if (!library_is_path(name))
		d->name = alloc_copy(name);
	else if ((rc = library_find(LIBRARY_DETECTOR, name, r->src, &d->name, r->e)))
		return rc;
	d->params = json_incref(params);
	return 0;
}

/* A workload for training: one of the scenario's own by its name, or else one that is loaded for
 * training only. */
static int read_training_workload(struct loading *r, void *list, size_t i)
{
	struct scenario *s = r->s;
	const char *name = lua_type(r->L, -1) == LUA_TSTRING ? lua_tostring(r->L, -1) : NULL;
	size_t k = 0;
	int rc = 0;

	while (k < s->n_workloads && !(name && !strcmp(s->workloads[k].name, name)))
		k++;
	if (k == s->n_workloads) {
		s->workloads = alloc_resize(s->workloads, k + 1, sizeof(*s->workloads));
		rc = load_part(r, PART_WORKLOAD, &s->workloads[k]);
		s->n_workloads += !rc;
	}
	((size_t *)list)[i] = k;
	return rc;
}

static int read_training(struct loading *r)
{
	struct scenario *s = r->s;
	const struct luax_field fields[] = {
		{"workloads", LUAX_TABLE, .required = true},
		{"repeats", LUAX_INTEGER, .min = 1, .max = 1000, .out = &s->training_repeats},
		{NULL},
	};
	int rc = luax_read(r->L, -1, r->src, "training", fields, false, r->e);

	lua_getfield(r->L, -1, "workloads");
	return rc ? rc
		  : read_elements(r, "workloads", sizeof(*s->training), &s->training,
			    &s->n_training, read_training_workload);
}

/* The workloads that a fault or tracer is limited to must be the scenario's. */
static int check_under(struct loading *r, char *const *under, const char *kind, const char *whose)
{
	for (size_t i = 0; under && under[i]; i++) {
		char *const one[] = {under[i], NULL};
		size_t w = 0;

		while (w < r->s->n_matrix && !part_under_has(one, &r->s->workloads[w]))
			w++;
		if (w == r->s->n_matrix)
			return luax_complain(r->src, under[i], r->e,
				"%s '%s': '%s' is not among the scenario's 'workloads'", kind,
				whose, under[i]);
	}
	return 0;
}

static int check_matrix(struct loading *r)
{
	const struct scenario *s = r->s;
	bool none = s->controls == 1;
	int rc = 0;

	for (size_t f = 0; f < s->n_faults; f++)
		none = none || !strcmp(s->faults[f].name, "none");
	if (!none)
		return luax_complain(r->src, "controls", r->e,
			"'controls' says how often, but \"none\" is not among the 'faults'");
	for (size_t f = 0; f < s->n_faults && !rc; f++)
		rc = check_under(r, s->faults[f].under, "fault", s->faults[f].name);
	for (size_t k = 0; k < s->n_tracers && !rc; k++)
		rc = check_under(r, s->tracers[k].under, "tracer", s->tracers[k].name);
	return rc;
}

static int read_phases(struct loading *r)
{
#define PHASE(key, least, to)                                                                      \
	{                                                                                          \
		.name = key, .type = LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = least,            \
		.max = 86400, .out = to                                                            \
	}
	const struct luax_field fields[] = {PHASE("before", 0, &r->s->before_s),
		PHASE("fault", 1, &r->s->fault_s), PHASE("after", 0, &r->s->after_s), {NULL}};
#undef PHASE

	return luax_read(r->L, -1, r->src, "phases", fields, false, r->e);
}

static int read_gates(struct loading *r)
{
	return gates_read(r->L, r->src, &r->s->gates, r->e);
}

static int read_tracer(struct loading *r, void *list, size_t i)
{
	struct tracing *tracers = list;
	int rc = tracing_load(r->L, r->src, &tracers[i], r->e);

	for (size_t k = 0; k < i && !rc; k++)
		if (!strcmp(tracers[k].label, tracers[i].label)) {
			rc = refuse_double(r, tracers[i].name, tracers[i].label, "tracers");
			tracing_clear(&tracers[i]);
		}
	return rc;
}

static int read_one_tracer(struct loading *r)
{
	r->s->tracers = alloc_zero(1, sizeof(*r->s->tracers));
	r->s->n_tracers = 1;
	return tracing_load(r->L, r->src, r->s->tracers, r->e);
}

static int read_second(struct loading *r)
{
	return tracing_load(r->L, r->src, &r->s->second, r->e);
}

static int read_recorder(struct loading *r)
{
	return recorder_load(r->L, r->src, &r->s->recorder, r->e);
}

/* Name of the first detector that looks at events, or NULL. Mistakes in a detector's own file are
 * reported when it is loaded to judge. */
static const char *wants_events(const struct scenario *s)
{
	for (size_t i = 0; i < s->n_detectors; i++) {
		struct detector *d;
		bool wants;

		if (detector_load(s->detectors[i].name, s->detectors[i].params, &d, NULL))
			continue;
		wants = detector_wants_events(d);
		detector_free(d);
		if (wants)
			return s->detectors[i].name;
	}
	return NULL;
}

/* The tracer 'name', in the mode that the detectors need: sums, unless one looks at events. */
static int fit_tracer(struct scenario *s, const char *name, struct tracing *out, struct err *e)
{
	struct tracing t;
	int rc = tracing_named(name, wants_events(s) != NULL, &t, e);

	if (rc)
		return rc;
	tracing_clear(out);
	*out = t;
	return 0;
}

static bool scenario_has(struct loading *r, const char *key)
{
	bool there = lua_getfield(r->L, 1, key) != LUA_TNIL;

	lua_pop(r->L, 1);
	return there;
}

/* Keys that a scenario of its kind must have, and may not have. */
static int check_kind(struct loading *r)
{
	static const char *const verdicts[] = {"faults", "detectors", NULL};
	static const char *const not_runtime[] = {"faults", "detectors", "phases", "training",
		"tracer", "second_tracer", "recorder", "controls", NULL};
	const struct scenario *s = r->s;

	if (s->measure == MEASURE_VERDICTS) {
		for (const char *const *key = verdicts; *key; key++)
			if (!scenario_has(r, *key))
				return luax_complain(
					r->src, NULL, r->e, "scenario: '%s' is missing", *key);
		return !scenario_has(r, "tracers")
			? 0
			: luax_complain(r->src, "tracers", r->e,
				  "'tracers' is for measure = \"runtime\"; "
				  "verdicts have one 'tracer'");
	}
	for (const char *const *key = not_runtime; *key; key++)
		if (scenario_has(r, *key))
			return luax_complain(r->src, *key, r->e,
				"a scenario that measures run times has no '%s'", *key);
	for (size_t i = 0; i < s->n_tracers; i++)
		if (tracing_none(&s->tracers[i]))
			return 0;
	return luax_complain(r->src, "tracers", r->e,
		"'tracers' needs \"none\": what the others are compared with");
}

/* Detectors judge logs in culprit's own format. */
static int check_tracer(struct scenario *s, const struct luax_source *src, struct err *e)
{
	const struct tracing *t = s->tracers, *second = &s->second;

	if (s->measure == MEASURE_RUNTIME)
		return 0;
	if (!tracing_has_log(t) || t->one_server || t->under)
		return luax_complain(src, t->name, e,
			"tracer '%s' gives detectors nothing to look at; use ebpf or ptrace on "
			"all nodes",
			t->label);
	if (t->mode && !strcmp(t->mode, "sums") && wants_events(s))
		return luax_complain(src, wants_events(s), e,
			"detector '%s' needs events, which sums do not hold: use "
			"tracer = { \"%s\", mode = \"events\" }",
			wants_events(s), t->name);
	if (second->name && (!tracing_has_log(second) || !strcmp(second->label, t->label)))
		return luax_complain(src, "second_tracer", e,
			"the second tracer of '%s' cannot be '%s': use ebpf or ptrace, the one "
			"that is not the first",
			t->label, second->label);
	return recorder_check(&s->recorder, t, s->fault_s + s->after_s, src, e);
}

/* Sets 'which', a tracer of 's', for the command line. */
static int set_tracer(struct scenario *s, const char *name, struct tracing *which, struct err *e)
{
	static const struct luax_source command_line = {.path = (char *)"command line"};
	int rc = 0;

	if (s->measure == MEASURE_RUNTIME)
		return err_set(e, -EINVAL,
			"'%s' measures the run times of its own 'tracers': --only tracer=NAME "
			"leaves some out",
			s->name);
	rc = fit_tracer(s, name, which, e);
	return rc ? rc : check_tracer(s, &command_line, e);
}

int scenario_set_tracer(struct scenario *s, const char *name, struct err *e)
{
	return set_tracer(s, name, s->tracers, e);
}

int scenario_set_second(struct scenario *s, const char *name, struct err *e)
{
	return set_tracer(s, name, &s->second, e);
}

static int read_measure(struct loading *r, const char *text)
{
	if (text && strcmp(text, "verdicts") && strcmp(text, "runtime"))
		return luax_complain(r->src, text, r->e,
			"scenario: measure is \"verdicts\" or \"runtime\", not '%s'", text);
	r->s->measure = text && *text == 'r' ? MEASURE_RUNTIME : MEASURE_VERDICTS;
	return 0;
}

/* Reads the members that are tables, in an order in which each finds what it refers to. */
static int read_tables(struct loading *r)
{
	struct scenario *s = r->s;
	const struct {
		const char *key;
		/* A table with members of its own ... */
		int (*read)(struct loading *);
		/* ... or a list, of elements of one size. */
		size_t size;
		void *list;
		size_t *count;
		read_fn *read_element;
	} tables[] = {
		{"workloads", NULL, sizeof(*s->workloads), &s->workloads, &s->n_workloads,
			read_workload},
		{"faults", NULL, sizeof(*s->faults), &s->faults, &s->n_faults, read_fault},
		{"tracer", read_one_tracer},
		{"tracers", NULL, sizeof(*s->tracers), &s->tracers, &s->n_tracers, read_tracer},
		{"second_tracer", read_second},
		{"recorder", read_recorder},
		{"detectors", NULL, sizeof(*s->detectors), &s->detectors, &s->n_detectors,
			read_detector},
		{"phases", read_phases},
		{"training", read_training},
		{"gates", read_gates},
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !rc; i++) {
		if (lua_getfield(r->L, 1, tables[i].key) != LUA_TNIL)
			rc = tables[i].read
				? tables[i].read(r)
				: read_elements(r, tables[i].key, tables[i].size, tables[i].list,
					  tables[i].count, tables[i].read_element);
		lua_settop(r->L, 1);
		if (i == 0)
			s->n_matrix = s->n_workloads;
	}
	return rc;
}

/* What ends an attempt for safety's sake. */
static int read_safety(struct loading *r, const char *on_abort)
{
	struct scenario *s = r->s;

	if (on_abort && strcmp(on_abort, "continue") && strcmp(on_abort, "stop"))
		return luax_complain(r->src, "on_abort", r->e,
			"on_abort is \"continue\" or \"stop\", not \"%s\"", on_abort);
	if (lua_getfield(r->L, 1, "abort_if") == LUA_TNIL) {
		lua_pop(r->L, 1);
		return on_abort ? luax_complain(r->src, "on_abort", r->e,
					  "on_abort needs abort_if, the condition that aborts")
				: 0;
	}
	s->abort_ref = luaL_ref(r->L, LUA_REGISTRYINDEX);
	s->stop_on_abort = on_abort && !strcmp(on_abort, "stop");
	return 0;
}

static int read_scenario(struct loading *r)
{
	struct scenario *s = r->s;
	auto_free char *measure = NULL, *on_abort = NULL;
	const struct luax_field fields[] = {
		{"name", LUAX_STRING, .required = true, .out = &s->name},
		{"summary", LUAX_STRING, .out = &s->summary},
		{"inventory", LUAX_STRING, .out = &s->inventory},
		{"measure", LUAX_STRING, .out = &measure},
		{"tracer", LUAX_ANY},
		{"tracers", LUAX_TABLE},
		{"second_tracer", LUAX_ANY},
		{"recorder", LUAX_ANY},
		{"workloads", LUAX_TABLE, .required = true},
		{"faults", LUAX_TABLE},
		{"detectors", LUAX_TABLE},
		{"phases", LUAX_TABLE},
		{"training", LUAX_TABLE},
		{"gates", LUAX_TABLE},
		{"abort_if", LUAX_FUNCTION},
		{"on_abort", LUAX_STRING, .out = &on_abort},
		{"limit", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 1, .max = 86400,
			.out = &s->limit_s},
		{"prepare_limit", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 1, .max = 86400,
			.out = &s->prepare_limit_s},
		{"repeats", LUAX_INTEGER, .min = 1, .max = 10000, .out = &s->repeats},
		{"controls", LUAX_INTEGER, .min = 1, .max = 1000, .out = &s->controls},
		{"attempts", LUAX_INTEGER, .min = 1, .max = 100, .out = &s->attempts},
		{"seed", LUAX_INTEGER, .min = 0, .max = 4294967295.0, .out = &s->seed},
		{NULL},
	};
	int rc = luax_read(r->L, -1, r->src, "scenario", fields, false, r->e);
	struct err why;

	if (!rc && name_check("scenario", s->name, &why))
		rc = luax_complain(r->src, "name", r->e, "%s", why.text);
	if (rc || (rc = read_measure(r, measure)) || (rc = read_tables(r)) || (rc = check_kind(r)))
		return rc;
	rc = read_safety(r, on_abort);
	if (rc)
		return rc;
	if (!s->n_tracers) {
		s->tracers = alloc_zero(1, sizeof(*s->tracers));
		s->n_tracers = 1;
		rc = fit_tracer(s, DEFAULT_TRACER, s->tracers, r->e);
	}
	if (!rc)
		rc = check_tracer(s, r->src, r->e);
	return rc ? rc : check_matrix(r);
}

int scenario_find(const char *name, char **path, struct err *e)
{
	struct stat st;

	/* A path is opened by who reads it, and complained of there. */
	if (library_is_path(name) || (!stat(name, &st) && !S_ISDIR(st.st_mode))) {
		*path = alloc_copy(name);
		return 0;
	}
	return library_find(LIBRARY_SCENARIO, name, NULL, path, e);
}

int scenario_load(const char *path, struct scenario **out, struct err *e)
{
	struct scenario *s = alloc_zero(1, sizeof(*s));
	struct luax_source src = {0};
	struct loading r = {s, luax_new(), &src, e};
	int rc;

	*s = (struct scenario){.before_s = 10,
		.fault_s = 25,
		.after_s = 15,
		.training_repeats = 1,
		.repeats = 1,
		.controls = 1,
		.limit_s = 600,
		.prepare_limit_s = 600,
		.attempts = 3,
		.seed = -1,
		.abort_ref = LUA_NOREF,
		.L = r.L,
		.path = alloc_copy(path)};
	gates_init(&s->gates);
	rc = luax_load_file(s->L, path, &src, e);
	if (!rc)
		rc = read_scenario(&r);
	if (rc) {
		scenario_free(s);
	} else {
		/* A path in the scenario is relative to the scenario's folder. */
		if (s->inventory) {
			auto_free char *given = s->inventory;

			s->inventory = luax_beside(path, given);
		}
		s->text = src.text;
		src.text = NULL;
		lua_settop(s->L, 0);
		*out = s;
	}
	luax_source_clear(&src);
	return rc;
}

/* Appends what is wrong with each entry of the list 'key', and with the file that it names. */
static void try_list(struct loading *r, const char *key, json_t *mistakes, read_fn *try, void *ctx)
{
	lua_settop(r->L, 1);
	lua_getfield(r->L, 1, key);
	for (lua_Integer i = 1; lua_istable(r->L, 2) && i <= LIST_MAX; i++) {
		lua_settop(r->L, 2);
		if (lua_rawgeti(r->L, 2, i) == LUA_TNIL)
			break;
		if (try(r, ctx, 0))
			json_array_append_new(mistakes, json_string(r->e->text));
	}
}

static int try_part(struct loading *r, void *kind, size_t i)
{
	struct part p;
	int rc = load_part(r, *(enum part_kind *)kind, &p);

	(void)i;
	if (!rc)
		part_clear(r->L, &p);
	return rc;
}

static int try_detector(struct loading *r, void *list, size_t i)
{
	struct detector_choice d = {0};
	int rc = read_detector(r, &d, i);

	if (!rc)
		json_array_append_new(
			list, json_pack("{s:s, s:o}", "name", d.name, "params", d.params));
	free(d.name);
	return rc;
}

void scenario_mistakes(const char *path, json_t *mistakes, json_t **detectors)
{
	enum part_kind fault = PART_FAULT, workload = PART_WORKLOAD;
	struct luax_source src = {0};
	struct err e;
	struct loading r = {NULL, luax_new(), &src, &e};

	*detectors = json_array();
	if (!luax_load_file(r.L, path, &src, &e)) {
		try_list(&r, "workloads", mistakes, try_part, &workload);
		try_list(&r, "faults", mistakes, try_part, &fault);
		try_list(&r, "detectors", mistakes, try_detector, *detectors);
	}
	luax_source_clear(&src);
	lua_close(r.L);
}
