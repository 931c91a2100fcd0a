/* Operations on the disk of a server's storage. */
#include <errno.h>
#include <stdio.h>

#include "faults/primitives/disk.h"
#include "harness/agent/handle.h"
#include "harness/agent/ops.h"
#include "harness/base/jget.h"

/* 'handle' makes names of the act unique in the session. */
static int ops_disk_prepare(
	struct agent *a, const json_t *args, const char *handle, json_t **inverse, struct err *e)
{
	const struct disk_spec s = {.path = jget_text(args, "path"),
		.latency_s = arg_number(args, "latency_s", 0),
		.rate = arg_number(args, "rate", 0),
		.factor = arg_number(args, "factor", 0),
		.stall_s = arg_number(args, "stall_s", 0),
		.every_s = arg_number(args, "every_s", 0),
		.errors_pct = arg_number(args, "errors_pct", 0),
		.pid = (pid_t)jget_int(args, "pid"),
		.pids = jget(args, "pids"),
		.backend = jget_text(args, "backend")};
	char name[64];

	snprintf(name, sizeof(name), "%.8s-%.16s", a->session, handle);
	return disk_prepare(&s, a->dir, name, inverse, e);
}

int ops_disk_able(struct agent *a, const json_t *args, struct err *e)
{
	auto_json json_t *inverse = NULL;
	int rc = ops_disk_prepare(a, args, "check", &inverse, e);

	if (!rc)
		err_set(e, 0, "%s", disk_backend_name(inverse));
	return rc;
}

static int ops_disk_begin(
	struct agent *a, json_t *id, json_t *args, enum handle_kind kind, struct err *e)
{
	json_t *inverse;
	struct handle *h;
	int rc = handle_new(a, kind, &h, e)
		?: ops_disk_prepare(a, args, h->name, &inverse, e)
		?: handle_record(a, h, inverse, arg_number(args, "max_s", 0), e);

	return rc
		?: handle_acted(a, id, h, disk_act(h->inverse, e),
			   json_pack("{s:s}", "backend", disk_backend_name(h->inverse)));
}

int op_disk_degrade(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	return ops_disk_begin(a, id, args, HANDLE_DISK, e);
}

int op_disk_fail(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	return ops_disk_begin(a, id, args, HANDLE_DISK_ERRORS, e);
}

int op_disk_counters(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	json_t *counters;
	int rc = handle_get(a, args, HANDLE_ANY, &h, e);

	if (!rc && h->kind != HANDLE_DISK && h->kind != HANDLE_DISK_ERRORS)
		rc = err_set(e, -ENOENT, "'%s' is not of a disk", h->name);
	rc = rc ?: disk_counters(h->inverse, &counters, e);
	if (!rc)
		agent_answer(a, id, counters);
	return rc;
}
