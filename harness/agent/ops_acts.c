/*
 * Acts that take a moment: packets.drop, limits.set, signal.stop, command.
 * Each records its inverse (handle_record), acts, and says how that went (handle_acted).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faults/primitives/command.h"
#include "faults/primitives/limits.h"
#include "faults/primitives/packets.h"
#include "faults/primitives/signal.h"
#include "harness/agent/handle.h"
#include "harness/agent/ops.h"

#define COMMAND_UNDO_S 30

/* ---- on processes that the agent did not start ---- */

static int pid_of(const struct agent *a, const json_t *args, pid_t *pid, struct err *e)
{
	*pid = (pid_t)arg_integer(args, "pid");
	return *pid == guard_pid(a->guard)
		? err_set(e, -EINVAL, "process %d is the agent's guard", (int)*pid)
		: 0;
}

static bool same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key)) ||
		(!json_object_get(a, key) && !json_object_get(b, key));
}

/* Two acts of one kind on one thing: the second's inverse would be what the first did. */
static int check_not_held(
	const struct agent *a, enum handle_kind kind, const json_t *inverse, struct err *e)
{
	for (const struct handle *h = a->handles; h; h = h->next)
		if (h->kind == kind && same(h->inverse, inverse, "pid") &&
			same(h->inverse, inverse, "start_ticks") &&
			same(h->inverse, inverse, "resource"))
			return err_set(e, -EBUSY, "'%s' holds that of process %lld already",
				h->name, (long long)arg_integer(inverse, "pid"));
	return 0;
}

/* 'inverse' is stolen. */
static int begin(struct agent *a, enum handle_kind kind, json_t *inverse, const json_t *args,
	struct handle **out, struct err *e)
{
	struct handle *h = NULL;
	int rc = check_not_held(a, kind, inverse, e);

	if (!rc)
		rc = handle_new(a, kind, &h, e);
	if (rc) {
		json_decref(inverse);
		return rc;
	}
	rc = handle_record(a, h, inverse, arg_number(args, "max_s", 0), e);
	if (rc)
		handle_free(a, h);
	else
		*out = h;
	return rc;
}

int op_limits_get(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *limits;
	int rc = limits_read((pid_t)arg_integer(args, "pid"), &limits, e);

	if (!rc)
		agent_answer(a, id, limits);
	return rc;
}

int op_limits_set(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *inverse;
	struct handle *h;
	pid_t pid;
	int rc = pid_of(a, args, &pid, e);

	if (!rc)
		rc = limits_inverse(pid, arg_text(args, "resource"), &inverse, e);
	if (!rc)
		rc = begin(a, HANDLE_LIMIT, inverse, args, &h, e);
	return rc ? rc
		  : handle_acted(
			    a, id, h, limits_set(h->inverse, arg_integer(args, "soft"), e), NULL);
}

int op_signal_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *inverse;
	struct handle *h;
	pid_t pid;
	int rc = pid_of(a, args, &pid, e);

	if (!rc)
		rc = signal_inverse(pid, &inverse, e);
	if (!rc)
		rc = begin(a, HANDLE_STOP, inverse, args, &h, e);
	return rc ? rc : handle_acted(a, id, h, signal_stop(h->inverse, e), NULL);
}

/* ---- commands ---- */

int op_command(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_new(a, HANDLE_COMMAND, &h, e);

	if (rc)
		return rc;
	rc = handle_record(a, h,
		command_inverse(json_object_get(args, "inverse"), json_object_get(args, "check"),
			COMMAND_UNDO_S),
		arg_number(args, "max_s", 0), e);
	if (rc) {
		handle_free(a, h);
		return rc;
	}
	/* No request is read meanwhile, so it must be over well before the lease is. */
	rc = command_act(json_object_get(args, "argv"), a->lease_s / 2, e);
	return handle_acted(a, id, h, rc, NULL);
}

/* ---- packets ---- */

static int parse_addresses(
	const json_t *list, struct packets_address **out, size_t *n, struct err *e)
{
	int rc = 0;

	*n = json_array_size(list);
	*out = calloc(*n + 1, sizeof(**out));
	if (!*out)
		return err_errno(e, -ENOMEM, "cannot drop packets");
	for (size_t i = 0; i < *n && !rc; i++)
		rc = packets_address_parse(
			json_string_value(json_array_get(list, i)), &(*out)[i], e);
	return rc;
}

/* Two lists that name no common family would match nothing. */
static bool families_meet(const struct packets_spec *s)
{
	for (size_t i = 0; i < s->n_from; i++)
		for (size_t j = 0; j < s->n_to; j++)
			if (s->from[i].family == s->to[j].family)
				return true;
	return !s->n_from || !s->n_to;
}

int op_packets_drop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *direction = arg_text(args, "direction");
	struct packets_address *from = NULL, *to = NULL;
	struct packets_spec s = {.percent = arg_number(args, "percent", 0),
		.out = direction && !strcmp(direction, "out")};
	const struct packets_backend *backend;
	struct handle *h = NULL;
	int rc = parse_addresses(json_object_get(args, "from"), &from, &s.n_from, e);

	if (!rc)
		rc = parse_addresses(json_object_get(args, "to"), &to, &s.n_to, e);
	s.from = from;
	s.to = to;
	if (!rc && !families_meet(&s))
		rc = err_set(e, -EINVAL, "'from' and 'to' have no IP version in common");
	if (!rc)
		rc = packets_check(a->packets_backend, &backend, e);
	if (!rc)
		rc = handle_new(a, HANDLE_PACKETS, &h, e);
	if (!rc)
		rc = handle_record(a, h, packets_inverse(backend, a->session, h->name),
			arg_number(args, "max_s", 0), e);
	if (rc)
		handle_free(a, h);
	else
		rc = handle_acted(a, id, h, packets_drop(&s, h->inverse, e),
			json_pack("{s:s}", "backend", backend->name));
	free(from);
	free(to);
	return rc;
}

int op_packets_counters(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct packets_counters c;
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_PACKETS, &h, e);

	if (!rc)
		rc = packets_read(h->inverse, &c, e);
	if (!rc)
		agent_answer(a, id,
			json_pack("{s:I, s:I, s:I, s:I}", "seen", (json_int_t)c.seen, "dropped",
				(json_int_t)c.dropped, "seen_bytes", (json_int_t)c.seen_bytes,
				"dropped_bytes", (json_int_t)c.dropped_bytes));
	return rc;
}
