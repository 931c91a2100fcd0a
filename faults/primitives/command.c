/* Runs a user's command as a fault, with its inverse and its check. */
#include "faults/primitives/command.h"

#include <errno.h>
#include <stdlib.h>

#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"

json_t *command_inverse(const json_t *inverse, const json_t *check, double timeout_s)
{
	return json_pack(
		"{s:O, s:O, s:f}", "inverse", inverse, "check", check, "timeout_s", timeout_s);
}

static const char **words(const json_t *argv)
{
	size_t n = json_array_size(argv);
	auto_free const char **list = n ? calloc(n + 1, sizeof(*list)) : NULL;

	for (size_t i = 0; list && i < n; i++)
		if (!(list[i] = json_string_value(json_array_get(argv, i))))
			return NULL;
	return AUTO_TAKE(list);
}

/* Exit code, or -errno. */
static int primitives_command_run(
	const json_t *argv, double timeout_s, bool must_work, struct err *e)
{
	auto_free const char **list = words(argv);

	if (!list)
		return err_set(e, -EBADMSG, "a command must be a list of strings, at least one");
	return (must_work ? proc_run_ok : proc_run)(list, timeout_s, NULL, e);
}

int command_act(const json_t *argv, double timeout_s, struct err *e)
{
	return primitives_command_run(argv, timeout_s, true, e);
}

static int command_check(const json_t *inverse, struct err *e)
{
	return primitives_command_run(
		jget(inverse, "check"), jget_real(inverse, "timeout_s"), false, e);
}

static int undo(const json_t *inverse, bool *was_there, struct err *e)
{
	/* A check that does not end tells nothing, and the act must be undone all the same. */
	if (command_check(inverse, e) <= 0)
		*was_there = true;
	return primitives_command_run(
		jget(inverse, "inverse"), jget_real(inverse, "timeout_s"), true, e);
}

static int verify_undone(const json_t *inverse, struct err *e)
{
	int rc = command_check(inverse, e);

	if (rc == 0)
		return err_set(e, -EBUSY, "its check still says that it acts");
	return rc < 0 ? rc : 0;
}

/* What a command did may well outlive a reboot. */
const struct primitive command_primitive = {
	.name = "command", .ends_with_boot = false, .undo = undo, .verify_undone = verify_undone};
