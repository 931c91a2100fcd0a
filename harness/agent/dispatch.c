/* From a line to an op: everything that can be wrong with a request is found here. */
#include <errno.h>
#include <string.h>

#include "harness/agent/agent.h"

enum type { TEXT, INTEGER, NUMBER, BOOLEAN, TEXTS, INTEGERS, TEXT_OBJECT, OBJECT };

static const char *const type_names[] = {
	[TEXT] = "a string",
	[INTEGER] = "an integer",
	[NUMBER] = "a number",
	[TEXTS] = "a list of strings, not empty",
	[INTEGERS] = "a list of integers, not empty",
	[BOOLEAN] = "true or false",
	[TEXT_OBJECT] = "an object of strings",
	[OBJECT] = "an object",
};

struct argument {
	const char *name;
	enum type type;
	bool required;
};

static const struct {
	const char *name;
	op_fn run;
	struct argument arguments[12];
} ops[] = {
	{"ping", op_ping, {{0}}},
	{"processes", op_processes, {{"exe", TEXT, false}}},
	{"run", op_run,
		{{"argv", TEXTS, true}, {"timeout_s", NUMBER, false}, {"stdin", TEXT, false}}},
	{"process.start", op_process_start,
		{{"argv", TEXTS, true}, {"stdin", TEXT, false}, {"stdout", TEXT, false},
			{"stderr", TEXT, false}, {"cwd", TEXT, false}, {"env", TEXT_OBJECT, false},
			{"max_s", NUMBER, false}, {"loop", BOOLEAN, false},
			{"self", BOOLEAN, false}, {"times", TEXT, false},
			{"trace", OBJECT, false}}},
	{"process.status", op_process_status, {{"handle", TEXT, true}}},
	{"process.stop", op_process_stop,
		{{"handle", TEXT, true}, {"signal", TEXT, false}, {"grace_s", NUMBER, false}}},
	{"command", op_command,
		{{"argv", TEXTS, true}, {"inverse", TEXTS, true}, {"check", TEXTS, true},
			{"max_s", NUMBER, false}}},
	{"service.kill", op_service_kill, {{"pid", INTEGER, true}, {"max_s", NUMBER, false}}},
	{"service.limit", op_service_limit,
		{{"pid", INTEGER, true}, {"limits", OBJECT, true}, {"max_s", NUMBER, false}}},
	{"service.restart", op_service_restart,
		{{"pid", INTEGER, true}, {"user", TEXT, false}, {"limits", OBJECT, false},
			{"storage", OBJECT, false}, {"max_s", NUMBER, false}}},
	{"fs.readonly", op_fs_readonly,
		{{"path", TEXT, true}, {"pid", INTEGER, false}, {"max_s", NUMBER, false}}},
	{"quarantine", op_quarantine, {{0}}},
	{"fs.info", op_fs_info, {{"path", TEXT, true}}},
	{"packets.drop", op_packets_drop,
		{{"percent", NUMBER, true}, {"direction", TEXT, false}, {"from", TEXTS, false},
			{"to", TEXTS, false}, {"max_s", NUMBER, false}}},
	{"packets.counters", op_packets_counters, {{"handle", TEXT, true}}},
	{"limits.get", op_limits_get, {{"pid", INTEGER, true}}},
	{"limits.set", op_limits_set,
		{{"pid", INTEGER, true}, {"resource", TEXT, true}, {"soft", INTEGER, true},
			{"max_s", NUMBER, false}}},
	{"signal.stop", op_signal_stop, {{"pid", INTEGER, true}, {"max_s", NUMBER, false}}},
	{"trace.start", op_trace_start,
		{{"tracer", TEXT, true}, {"mode", TEXT, false}, {"memory_bytes", INTEGER, false},
			{"paths", TEXTS, false}, {"pids", INTEGERS, true}, {"out", TEXT, true}}},
	{"trace.stop", op_trace_stop, {{"handle", TEXT, true}}},
	{"check", op_check, {{"what", TEXT, true}}},
	{"undo", op_undo, {{"handle", TEXT, true}}},
	{"fingerprint", op_fingerprint, {{"pids", INTEGERS, false}}},
	{"load", op_load, {{"pids", INTEGERS, false}}},
	{"bye", op_bye, {{0}}},
};

static bool all(const json_t *list, bool (*is)(const json_t *))
{
	const json_t *value;
	size_t i;

	if (!json_is_array(list) || !json_array_size(list))
		return false;
	json_array_foreach((json_t *)list, i, value) if (!is(value)) return false;
	return true;
}

static bool is_text(const json_t *v)
{
	return json_is_string(v);
}

static bool is_integer(const json_t *v)
{
	return json_is_integer(v);
}

static bool fits(const json_t *v, enum type type)
{
	const char *key;
	json_t *value;

	switch (type) {
	case TEXT: return json_is_string(v);
	case INTEGER: return json_is_integer(v);
	case NUMBER: return json_is_number(v);
	case BOOLEAN: return json_is_boolean(v);
	case TEXTS: return all(v, is_text);
	case INTEGERS: return all(v, is_integer);
	case TEXT_OBJECT:
		json_object_foreach((json_t *)v, key, value) if (!json_is_string(value) || !*key ||
			strchr(key, '=')) return false;
		return json_is_object(v);
	case OBJECT: return json_is_object(v);
	}
	return false;
}

static int check_arguments(
	const char *op, const struct argument *arguments, const json_t *request, struct err *e)
{
	const struct argument *arg;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)request, key, value)
	{
		if (!strcmp(key, "id") || !strcmp(key, "op"))
			continue;
		for (arg = arguments; arg->name && strcmp(arg->name, key); arg++)
			;
		if (!arg->name)
			return err_set(e, -EINVAL, "%s has no argument '%s'", op, key);
		if (!fits(value, arg->type))
			return err_set(e, -EINVAL, "%s must be %s", key, type_names[arg->type]);
	}
	for (arg = arguments; arg->name; arg++)
		if (arg->required && !json_object_get(request, arg->name))
			return err_set(e, -EINVAL, "%s needs the argument '%s'", op, arg->name);
	return 0;
}

static int run(struct agent *a, json_t *id, json_t *request, struct err *e)
{
	const char *op = json_string_value(json_object_get(request, "op"));
	int rc;

	if (!json_is_integer(id))
		return err_set(e, -EINVAL, "a request needs an integer 'id'");
	if (!op)
		return err_set(e, -EINVAL, "a request needs a string 'op'");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strcmp(ops[i].name, op))
			continue;
		rc = check_arguments(op, ops[i].arguments, request, e);
		return rc ? rc : ops[i].run(a, id, request, e);
	}
	return err_set(e, -ENOSYS, "there is no op '%s'", op);
}

void agent_line(struct agent *a, const char *line, size_t size)
{
	json_t *request = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL), *id;
	struct err e;
	int rc;

	guard_beat(a->guard);
	if (!json_is_object(request)) {
		agent_end(a, 2, "a line was not a JSON object");
	} else {
		id = json_object_get(request, "id");
		rc = run(a, id, request, &e);
		if (rc)
			agent_refuse(a, json_is_integer(id) ? id : NULL, rc, &e);
	}
	json_decref(request);
}
