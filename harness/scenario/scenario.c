#include "harness/scenario/scenario.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
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
	free(s->text);
	if (s->L)
		lua_close(s->L);
	free(s);
}

/* Element i (from 1) of the list on top of the stack, on top of it. */
static int push_element(struct scenario *s, size_t i)
{
	return lua_rawgeti(s->L, -1, (lua_Integer)i);
}

/* Room for as many elements of 'size' bytes as the list on top of the stack has. */
static int list_room(struct scenario *s, const struct luax_source *src, const char *key,
	size_t size, void *list, size_t *n, struct err *e)
{
	*n = lua_rawlen(s->L, -1);
	if (!*n || *n > LIST_MAX)
		return luax_complain(
			src, key, e, "scenario: '%s' must list 1 to %d entries", key, LIST_MAX);
	*(void **)list = calloc(*n, size);
	return *(void **)list ? 0 : err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
}

static int refuse_double(const struct luax_source *src, const char *name, const char *label,
	const char *key, struct err *e)
{
	return luax_complain(src, name, e, "scenario: '%s' stands twice in '%s'", label, key);
}

static int read_parts(struct scenario *s, enum part_kind kind, const char *key,
	const struct luax_source *src, struct part **list, size_t *count, struct err *e)
{
	size_t n;
	int rc = list_room(s, src, key, sizeof(**list), list, &n, e);

	for (size_t i = 0; i < n && !rc; i++) {
		push_element(s, i + 1);
		rc = part_load(s->L, kind, src, &(*list)[i], e);
		*count += !rc;
		for (size_t k = 0; k < i && !rc; k++)
			if (!strcmp((*list)[k].label, (*list)[i].label))
				rc = refuse_double(src, (*list)[i].name, (*list)[i].label, key, e);
	}
	return rc;
}

static int read_workloads(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return read_parts(s, PART_WORKLOAD, "workloads", src, &s->workloads, &s->n_workloads, e);
}

static int read_faults(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return read_parts(s, PART_FAULT, "faults", src, &s->faults, &s->n_faults, e);
}

/* One entry of 'detectors', on top of the stack: "name", or { "name", param = value }. */
static int read_detector(
	struct scenario *s, struct detector_choice *d, const struct luax_source *src, struct err *e)
{
	lua_State *L = s->L;
	bool table = lua_istable(L, -1);
	int rc = 0;

	d->params = json_object();
	for (lua_pushnil(L); table && !rc && lua_next(L, -2); lua_pop(L, 1)) {
		const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
		json_t *value = NULL;

		if (key && !lua_istable(L, -1) && !luajson_get(L, -1, &value, NULL))
			json_object_set_new(d->params, key, value);
		else if (key)
			rc = luax_complain(src, key, e,
				"detector parameter '%s' must be a number, string or boolean", key);
	}
	if (!table)
		lua_pop(L, 1);
	if (rc)
		return rc;
	if (table)
		push_element(s, 1);
	if (lua_type(L, -1) != LUA_TSTRING)
		return luax_complain(src, "detectors", e,
			"detectors: each entry is a name or { \"name\", param = value }");
	d->name = strdup(lua_tostring(L, -1));
	/* A path is relative to the scenario. */
	if (d->name && library_is_path(d->name)) {
		free(d->name);
		d->name = NULL;
		return library_find(LIBRARY_DETECTOR, lua_tostring(L, -1), src, &d->name, e);
	}
	return d->name ? 0 : err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
}

static int read_detectors(struct scenario *s, const struct luax_source *src, struct err *e)
{
	int top = lua_gettop(s->L), rc;
	size_t n;

	rc = list_room(s, src, "detectors", sizeof(*s->detectors), &s->detectors, &n, e);
	for (size_t i = 0; i < n && !rc; i++) {
		push_element(s, i + 1);
		rc = read_detector(s, &s->detectors[s->n_detectors++], src, e);
		lua_settop(s->L, top);
	}
	return rc;
}

/* The index of the training workload on top of the stack, which is popped: one of the scenario's
 * own by its name, or else one that is loaded for training only. */
static int training_workload(
	struct scenario *s, const struct luax_source *src, size_t *index, struct err *e)
{
	const char *name = lua_type(s->L, -1) == LUA_TSTRING ? lua_tostring(s->L, -1) : NULL;
	struct part *more;
	int rc;

	for (*index = 0; name && *index < s->n_workloads; ++*index) {
		if (!strcmp(s->workloads[*index].name, name)) {
			lua_pop(s->L, 1);
			return 0;
		}
	}
	more = realloc(s->workloads, (s->n_workloads + 1) * sizeof(*more));
	if (!more)
		return err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
	s->workloads = more;
	*index = s->n_workloads;
	rc = part_load(s->L, PART_WORKLOAD, src, &more[*index], e);
	s->n_workloads += !rc;
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
	size_t n = 0;

	if (!rc) {
		lua_getfield(s->L, -1, "workloads");
		rc = list_room(s, src, "workloads", sizeof(*s->training), &s->training, &n, e);
	}
	for (size_t i = 0; i < n && !rc; i++) {
		push_element(s, i + 1);
		rc = training_workload(s, src, &s->training[i], e);
		s->n_training += !rc;
	}
	return rc;
}

/* The workloads that a fault or tracer is limited to must be the scenario's. */
static int check_under(const struct scenario *s, char *const *under, const char *kind,
	const char *whose, const struct luax_source *src, struct err *e)
{
	for (size_t i = 0; under && under[i]; i++) {
		char *const one[] = {under[i], NULL};
		size_t w = 0;

		while (w < s->n_matrix && !part_under_has(one, &s->workloads[w]))
			w++;
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

static int read_one_tracer(struct scenario *s, const struct luax_source *src, struct err *e)
{
	s->tracers = calloc(1, sizeof(*s->tracers));
	s->n_tracers = s->tracers != NULL;
	return s->tracers ? tracing_load(s->L, src, s->tracers, e)
			  : err_errno(e, -ENOMEM, "cannot load '%s'", src->path);
}

static int read_many_tracers(struct scenario *s, const struct luax_source *src, struct err *e)
{
	size_t n;
	int rc = list_room(s, src, "tracers", sizeof(*s->tracers), &s->tracers, &n, e);

	for (size_t i = 0; i < n && !rc; i++) {
		push_element(s, i + 1);
		rc = tracing_load(s->L, src, &s->tracers[i], e);
		s->n_tracers += !rc;
		for (size_t k = 0; k < i && !rc; k++)
			if (!strcmp(s->tracers[k].label, s->tracers[i].label))
				rc = refuse_double(
					src, s->tracers[i].name, s->tracers[i].label, "tracers", e);
	}
	return rc;
}

static int read_second(struct scenario *s, const struct luax_source *src, struct err *e)
{
	return tracing_load(s->L, src, &s->second, e);
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

/* Keys that a scenario of its kind must have, and may not have. */
static int check_kind(struct scenario *s, const struct luax_source *src, struct err *e)
{
	static const char *const verdicts[] = {"faults", "detectors", NULL};
	static const char *const not_runtime[] = {"faults", "detectors", "phases", "training",
		"tracer", "second_tracer", "controls", NULL};
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

/* Detectors judge logs in culprit's own format. */
static int check_tracer(const struct scenario *s, const struct luax_source *src, struct err *e)
{
	const struct tracing *t = s->tracers;

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
	if (s->second.name && (!tracing_has_log(&s->second) || !strcmp(s->second.label, t->label)))
		return luax_complain(src, "second_tracer", e,
			"the second tracer of '%s' cannot be '%s': use ebpf or ptrace, the one "
			"that is not the first",
			t->label, s->second.label);
	return 0;
}

static int refuse_runtime(const struct scenario *s, struct err *e)
{
	if (s->measure == MEASURE_RUNTIME)
		return err_set(e, -EINVAL,
			"'%s' measures the run times of its own 'tracers': --only tracer=NAME "
			"leaves some out",
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
		{"tracers", read_many_tracers}, {"second_tracer", read_second},
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
		{"second_tracer", LUAX_ANY},
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
	struct err why;

	if (!rc && name_check("scenario", s->name, &why))
		rc = luax_complain(src, "name", e, "%s", why.text);
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
