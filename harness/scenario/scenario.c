#include "harness/scenario/scenario.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"

#define DEFAULT_TRACER "ebpf"

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
	free(s->text);
	if (s->L)
		lua_close(s->L);
	free(s);
}

/* The list is on top of the stack. */
static int read_parts(
	struct scenario *s, enum part_kind kind, const struct luax_source *src, struct err *e)
{
	struct part **list = kind == PART_FAULT ? &s->faults : &s->workloads;
	size_t *count = kind == PART_FAULT ? &s->n_faults : &s->n_workloads;
	const char *key = kind == PART_FAULT ? "faults" : "workloads";
	size_t n = lua_rawlen(s->L, -1);
	int rc = 0;

	if (!n || n > 1000)
		return luax_complain(src, key, e, "scenario: '%s' must list at least one", key);
	*list = calloc(n, sizeof(**list));
	if (!*list)
		return err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
	for (size_t i = 0; i < n && !rc; i++) {
		lua_rawgeti(s->L, -1, (lua_Integer)i + 1);
		rc = part_load(s->L, kind, src, &(*list)[i], e);
		if (rc)
			break;
		(*count)++;
		for (size_t k = 0; k < i; k++)
			if (!strcmp((*list)[k].label, (*list)[i].label))
				return luax_complain(src, (*list)[i].name, e,
					"scenario: '%s' stands twice in '%s'", (*list)[i].label,
					key);
	}
	return rc;
}

static int read_param_value(lua_State *L, json_t *into, const char *key)
{
	json_t *v = NULL;

	if (lua_isinteger(L, -1))
		v = json_integer(lua_tointeger(L, -1));
	else if (lua_type(L, -1) == LUA_TNUMBER)
		v = json_real(lua_tonumber(L, -1));
	else if (lua_type(L, -1) == LUA_TSTRING)
		v = json_string(lua_tostring(L, -1));
	else if (lua_isboolean(L, -1))
		v = json_boolean(lua_toboolean(L, -1));
	return v ? json_object_set_new(into, key, v) : -1;
}

/* One entry of 'detectors': "name", or { "name", param = value }. */
static int read_detector(struct scenario *s, const struct luax_source *src, struct err *e)
{
	struct detector_choice *d = &s->detectors[s->n_detectors];
	lua_State *L = s->L;
	int rc = 0;

	d->params = json_object();
	if (lua_istable(L, -1)) {
		lua_rawgeti(L, -1, 1);
		if (lua_type(L, -1) == LUA_TSTRING)
			d->name = strdup(lua_tostring(L, -1));
		lua_pop(L, 1);
		for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
			if (lua_type(L, -2) == LUA_TSTRING &&
				read_param_value(L, d->params, lua_tostring(L, -2)) && !rc)
				rc = luax_complain(src, lua_tostring(L, -2), e,
					"detector parameter '%s' must be a number, string or boolean",
					lua_tostring(L, -2));
		}
	} else if (lua_type(L, -1) == LUA_TSTRING) {
		d->name = strdup(lua_tostring(L, -1));
	}
	s->n_detectors++;
	if (!rc && !d->name)
		rc = luax_complain(src, "detectors", e,
			"detectors: each entry is a name or { \"name\", param = value }");
	return rc;
}

static int read_detectors(struct scenario *s, const struct luax_source *src, struct err *e)
{
	size_t n = lua_rawlen(s->L, -1);
	int rc = 0;

	if (!n)
		return luax_complain(
			src, "detectors", e, "scenario: 'detectors' must list at least one");
	s->detectors = calloc(n, sizeof(*s->detectors));
	if (!s->detectors)
		return err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
	for (size_t i = 0; i < n && !rc; i++) {
		lua_rawgeti(s->L, -1, (lua_Integer)i + 1);
		rc = read_detector(s, src, e);
		lua_pop(s->L, 1);
	}
	return rc;
}

/* The index of the training workload on top of the stack, popped: one of the scenario's own by its
 * name alone, or else one that is loaded for training only. */
static int training_workload(
	struct scenario *s, const struct luax_source *src, size_t *index, struct err *e)
{
	const char *name = lua_type(s->L, -1) == LUA_TSTRING ? lua_tostring(s->L, -1) : NULL;
	struct part *more;
	int rc;

	for (size_t k = 0; name && k < s->n_workloads; k++) {
		if (!strcmp(s->workloads[k].name, name)) {
			lua_pop(s->L, 1);
			*index = k;
			return 0;
		}
	}
	more = realloc(s->workloads, (s->n_workloads + 1) * sizeof(*more));
	if (!more)
		return err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
	s->workloads = more;
	rc = part_load(s->L, PART_WORKLOAD, src, &s->workloads[s->n_workloads], e);
	if (!rc)
		*index = s->n_workloads++;
	return rc;
}

static int read_training(struct scenario *s, const struct luax_source *src, struct err *e)
{
	const struct luax_field fields[] = {
		{"workloads", LUAX_TABLE, .required = true},
		{"repeats", LUAX_INTEGER, .min = 1, .max = 1000, .out = &s->training_repeats},
		{NULL},
	};
	int rc = luax_read(s->L, -1, src, "training", fields, false, e);
	size_t n;

	if (rc)
		return rc;
	lua_getfield(s->L, -1, "workloads");
	n = lua_rawlen(s->L, -1);
	s->training = calloc(n + 1, sizeof(*s->training));
	if (!s->training)
		rc = err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
	for (size_t i = 0; i < n && !rc; i++) {
		lua_rawgeti(s->L, -1, (lua_Integer)i + 1);
		rc = training_workload(s, src, &s->training[i], e);
		s->n_training += !rc;
	}
	lua_settop(s->L, 1);
	return rc;
}

/* Every fault's 'workloads' are among the scenario's, and every workload has a fault or a
 * control. */
static int check_under(const struct scenario *s, char *const *under, const char *kind,
	const char *whose, const struct luax_source *src, struct err *e)
{
	for (size_t i = 0; under && under[i]; i++) {
		size_t w;

		for (w = 0; w < s->n_matrix && strcmp(s->workloads[w].name, under[i]) &&
			strcmp(s->workloads[w].label, under[i]);
			w++)
			;
		if (w == s->n_matrix)
			return luax_complain(src, under[i], e,
				"%s '%s': '%s' is not among the scenario's 'workloads'", kind,
				whose, under[i]);
	}
	return 0;
}

static int check_matrix(const struct scenario *s, const struct luax_source *src, struct err *e)
{
	bool none = s->controls == 1;
	int rc = 0;

	for (size_t f = 0; f < s->n_faults; f++)
		none = none || !strcmp(s->faults[f].name, "none");
	if (!none)
		return luax_complain(src, "controls", e,
			"'controls' says how often, but \"none\" is not among the 'faults'");

	for (size_t f = 0; f < s->n_faults && !rc; f++)
		rc = check_under(s, s->faults[f].under, "fault", s->faults[f].name, src, e);
	for (size_t k = 0; k < s->n_tracers && !rc; k++)
		rc = check_under(s, s->tracers[k].under, "tracer", s->tracers[k].name, src, e);
	return rc;
}

static int read_list(struct scenario *s, const char *key, const struct luax_source *src,
	struct err *e, int (*read)(struct scenario *, const struct luax_source *, struct err *))
{
	int rc = 0;

	lua_getfield(s->L, -1, key);
	if (!lua_isnil(s->L, -1))
		rc = read(s, src, e);
	lua_settop(s->L, 1);
	return rc;
}

static int read_workloads(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return read_parts(s, PART_WORKLOAD, src, e);
}

static int read_faults(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return read_parts(s, PART_FAULT, src, e);
}

static int read_phases(struct scenario *s, const struct luax_source *src, struct err *e)
{
	const struct luax_field fields[] = {
		{"before", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 0, .max = 86400,
			.out = &s->before_s},
		{"fault", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 1, .max = 86400,
			.out = &s->fault_s},
		{"after", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 0, .max = 86400,
			.out = &s->after_s},
		{NULL},
	};

	return luax_read(s->L, -1, src, "phases", fields, false, e);
}

static int read_gates(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return gates_read(s->L, src, &s->gates, e);
}

/* 'tracer', or 'tracers': the list is on top of the stack if 'many'. */
static int read_tracers(struct scenario *s, const struct luax_source *src, bool many, struct err *e)
{
	size_t n = many ? lua_rawlen(s->L, -1) : 1;
	int rc = 0;

	if (!n || n > 100)
		return luax_complain(
			src, "tracers", e, "scenario: 'tracers' must list at least one");
	s->tracers = calloc(n, sizeof(*s->tracers));
	if (!s->tracers)
		return err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
	for (size_t i = 0; i < n && !rc; i++) {
		if (many)
			lua_rawgeti(s->L, -1, (lua_Integer)i + 1);
		else
			lua_pushvalue(s->L, -1);
		rc = tracing_load(s->L, src, &s->tracers[i], e);
		s->n_tracers += !rc;
		for (size_t k = 0; k < i && !rc; k++)
			if (!strcmp(s->tracers[k].label, s->tracers[i].label))
				rc = luax_complain(src, s->tracers[i].name, e,
					"scenario: '%s' stands twice in 'tracers'",
					s->tracers[i].label);
	}
	return rc;
}

static int read_one_tracer(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return read_tracers(s, src, false, e);
}

static int read_many_tracers(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return read_tracers(s, src, true, e);
}

static int read_second(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return tracing_load(s->L, src, &s->second, e);
}

/* Name of the first detector that looks at events, or NULL. What a detector's own file has wrong is
 * said where it is loaded to judge. */
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

/* The tracer 'name' as the detectors need it: sums, unless one of them looks at events. */
static int fit_tracer(struct scenario *s, const char *name, struct err *e)
{
	struct tracing t;
	int rc = tracing_named(name, wants_events(s) != NULL, &t, e);

	if (rc)
		return rc;
	if (!s->tracers)
		s->tracers = calloc(1, sizeof(*s->tracers));
	if (!s->tracers) {
		tracing_clear(&t);
		return err_errno(e, -ENOMEM, "cannot choose a tracer");
	}
	tracing_clear(s->tracers);
	*s->tracers = t;
	s->n_tracers = 1;
	return 0;
}

static bool has(struct scenario *s, const char *key)
{
	bool there = lua_getfield(s->L, 1, key) != LUA_TNIL;

	lua_pop(s->L, 1);
	return there;
}

/* What a scenario of its kind must say, and what it may not. */
static int check_kind(struct scenario *s, const struct luax_source *src, struct err *e)
{
	static const char *const verdicts[] = {"faults", "detectors", NULL};
	static const char *const not_runtime[] = {
		"faults", "detectors", "phases", "training", "tracer", "beside", "controls", NULL};
	bool untraced = false;

	for (size_t i = 0; s->measure == MEASURE_VERDICTS && verdicts[i]; i++)
		if (!has(s, verdicts[i]))
			return luax_complain(
				src, NULL, e, "scenario: '%s' is missing", verdicts[i]);
	for (size_t i = 0; s->measure == MEASURE_RUNTIME && not_runtime[i]; i++)
		if (has(s, not_runtime[i]))
			return luax_complain(src, not_runtime[i], e,
				"a scenario that measures run times has no '%s'", not_runtime[i]);
	if (s->measure == MEASURE_VERDICTS && has(s, "tracers"))
		return luax_complain(src, "tracers", e,
			"'tracers' is for measure = \"runtime\"; verdicts have one 'tracer'");
	if (s->measure == MEASURE_VERDICTS)
		return 0;
	for (size_t i = 0; i < s->n_tracers; i++)
		untraced = untraced || tracing_none(&s->tracers[i]);
	return untraced ? 0
			: luax_complain(src, "tracers", e,
				  "'tracers' needs \"none\": what the others are compared with");
}

/* Verdicts are given on what our own log says. */
static int check_tracer(const struct scenario *s, const struct luax_source *src, struct err *e)
{
	const struct tracing *t = s->tracers;

	if (s->measure == MEASURE_RUNTIME)
		return 0;
	if (!tracing_has_log(t) || t->one_server || t->under)
		return luax_complain(src, t->name, e,
			"tracer '%s' gives detectors nothing to look at; ebpf and ptrace on all "
			"nodes do",
			t->label);
	if (t->mode && !strcmp(t->mode, "sums") && wants_events(s))
		return luax_complain(src, wants_events(s), e,
			"detector '%s' looks at events, which sums have not: say "
			"tracer = { \"%s\", mode = \"events\" }",
			wants_events(s), t->name);
	if (s->second.name && (!tracing_has_log(&s->second) || !strcmp(s->second.label, t->label)))
		return luax_complain(src, "beside", e,
			"beside '%s' tracer '%s' nothing is to be seen: it takes ebpf or ptrace, "
			"the other one",
			t->label, s->second.label);
	return 0;
}

static int refuse_runtime(const struct scenario *s, struct err *e)
{
	if (s->measure == MEASURE_RUNTIME)
		return err_set(e, -EINVAL,
			"'%s' measures the run times of its own 'tracers': --only tracer=NAME leaves some out",
			s->name);
	return 0;
}

static const struct luax_source command_line = {.path = (char *)"command line"};

int scenario_set_tracer(struct scenario *s, const char *name, struct err *e)
{
	int rc = refuse_runtime(s, e);

	if (!rc)
		rc = fit_tracer(s, name, e);
	return rc ? rc : check_tracer(s, &command_line, e);
}

int scenario_set_second(struct scenario *s, const char *name, struct err *e)
{
	struct tracing t;
	int rc = refuse_runtime(s, e);

	if (!rc)
		rc = tracing_named(name, wants_events(s) != NULL, &t, e);
	if (rc)
		return rc;
	tracing_clear(&s->second);
	s->second = t;
	return check_tracer(s, &command_line, e);
}

static int read_measure(
	struct scenario *s, const struct luax_source *src, const char *text, struct err *e)
{
	if (text && strcmp(text, "verdicts") && strcmp(text, "runtime"))
		return luax_complain(src, text, e,
			"scenario: measure is \"verdicts\" or \"runtime\", not '%s'", text);
	s->measure = text && *text == 'r' ? MEASURE_RUNTIME : MEASURE_VERDICTS;
	return 0;
}

static int read_scenario(struct scenario *s, const struct luax_source *src, struct err *e)
{
	static const struct {
		const char *key;
		int (*read)(struct scenario *, const struct luax_source *, struct err *);
	} lists[] = {{"faults", read_faults}, {"tracer", read_one_tracer},
		{"tracers", read_many_tracers}, {"beside", read_second},
		{"detectors", read_detectors}, {"phases", read_phases}, {"training", read_training},
		{"gates", read_gates}};
	char *measure = NULL;
	const struct luax_field fields[] = {
		{"name", LUAX_STRING, .required = true, .out = &s->name},
		{"summary", LUAX_STRING, .out = &s->summary},
		{"inventory", LUAX_STRING, .out = &s->inventory},
		{"measure", LUAX_STRING, .out = &measure},
		{"tracer", LUAX_ANY},
		{"tracers", LUAX_TABLE},
		{"beside", LUAX_ANY},
		{"workloads", LUAX_TABLE, .required = true},
		{"faults", LUAX_TABLE},
		{"detectors", LUAX_TABLE},
		{"phases", LUAX_TABLE},
		{"training", LUAX_TABLE},
		{"gates", LUAX_TABLE},
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
	int rc = luax_read(s->L, -1, src, "scenario", fields, false, e);

	if (!rc)
		rc = read_measure(s, src, measure, e);
	free(measure);
	if (!rc)
		rc = read_list(s, "workloads", src, e, read_workloads);
	s->n_matrix = s->n_workloads;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !rc; i++)
		rc = read_list(s, lists[i].key, src, e, lists[i].read);
	if (!rc)
		rc = check_kind(s, src, e);
	if (!rc && !s->n_tracers)
		rc = fit_tracer(s, DEFAULT_TRACER, e);
	if (!rc)
		rc = check_tracer(s, src, e);
	if (!rc)
		rc = check_matrix(s, src, e);
	return rc;
}

/* A path in the scenario is relative to the scenario's folder. */
static int resolve_inventory(struct scenario *s)
{
	char *copy, *full;

	if (!s->inventory || s->inventory[0] == '/')
		return 0;
	copy = strdup(s->path);
	if (!copy || asprintf(&full, "%s/%s", dirname(copy), s->inventory) < 0) {
		free(copy);
		return -ENOMEM;
	}
	free(copy);
	free(s->inventory);
	s->inventory = full;
	return 0;
}

int scenario_load(const char *path, struct scenario **out, struct err *e)
{
	struct scenario *s = calloc(1, sizeof(*s));
	struct luax_source src = {0};
	int rc;

	if (!s)
		return err_errno(e, -ENOMEM, "cannot load '%s'", path);
	*s = (struct scenario){.before_s = 10,
		.fault_s = 25,
		.after_s = 15,
		.training_repeats = 1,
		.repeats = 1,
		.controls = 1,
		.limit_s = 600,
		.prepare_limit_s = 600,
		.attempts = 3,
		.seed = -1};
	gates_init(&s->gates);
	s->L = luax_new();
	s->path = strdup(path);
	if (!s->L || !s->path) {
		rc = err_errno(e, -ENOMEM, "cannot load '%s'", path);
		goto out;
	}
	rc = luax_load_file(s->L, path, &src, e);
	if (!rc)
		rc = read_scenario(s, &src, e);
	if (!rc)
		rc = resolve_inventory(s);
	if (!rc) {
		s->text = src.text;
		src.text = NULL;
		lua_settop(s->L, 0);
		*out = s;
		s = NULL;
	}
out:
	luax_source_clear(&src);
	scenario_free(s);
	return rc;
}
