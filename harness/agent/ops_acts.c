/*
 * Acts that take a moment: packets.*, limits.set, group.limit, signal.stop, command
 * (ops_process.c has signal.pause, which starts a program). Each records its inverse
 * (handle_record), acts, and says how that went (handle_acted).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "faults/primitives/command.h"
#include "faults/primitives/delay.h"
#include "faults/primitives/group.h"
#include "faults/primitives/limits.h"
#include "faults/primitives/packets.h"
#include "faults/primitives/signal.h"
#include "harness/agent/child.h"
#include "harness/agent/ops.h"

#define COMMAND_UNDO_S 30
#define DELAY_GRACE_S 2 /* for the program to let pass what waits */

/* ---- on processes that the agent did not start ---- */

static int check_not_guard(const struct agent *a, pid_t pid, struct err *e)
{
	return pid == guard_pid(a->guard)
		? err_set(e, -EINVAL, "process %d is the agent's guard", (int)pid)
		: 0;
}

static int pid_of(const struct agent *a, const json_t *args, pid_t *pid, struct err *e)
{
	*pid = (pid_t)jget_int(args, "pid");
	return check_not_guard(a, *pid, e);
}

static bool ops_acts_same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(jget(a, key), jget(b, key)) || (!jget(a, key) && !jget(b, key));
}

static bool same_act(const json_t *a, const json_t *b)
{
	return ops_acts_same(a, b, "pid") && ops_acts_same(a, b, "start_ticks") &&
		ops_acts_same(a, b, "resource");
}

/* Does 'h' hold what 'inverse', of an act of 'kind', is about? Pauses are stops of several. */
static bool is_held(const struct handle *h, enum handle_kind kind, const json_t *inverse)
{
	json_t *one;
	size_t i;

	json_array_foreach(jget(h->inverse, "servers"), i, one) {
		if (h->kind == HANDLE_PAUSE && kind == HANDLE_STOP && same_act(one, inverse))
			return true;
	}
	return h->kind == kind && same_act(h->inverse, inverse);
}

/* Two acts of one kind on one thing: the second's inverse would be what the first did. */
static int check_not_held(
	const struct agent *a, enum handle_kind kind, const json_t *inverse, struct err *e)
{
	for (const struct handle *h = a->handles; h; h = h->next)
		if (is_held(h, kind, inverse))
			return err_set(e, -EBUSY, "'%s' holds that of process %lld already",
				h->name, (long long)jget_int(inverse, "pid"));
	return 0;
}

int ops_stop_inverse(const struct agent *a, pid_t pid, json_t **inverse, struct err *e)
{
	auto_json json_t *made = NULL;
	int rc = check_not_guard(a, pid, e) ?: signal_inverse(pid, &made, e)
			?: check_not_held(a, HANDLE_STOP, made, e);

	if (!rc)
		*inverse = AUTO_TAKE(made);
	return rc;
}

/* 'inverse' is stolen. */
static int ops_acts_begin(struct agent *a, enum handle_kind kind, json_t *inverse,
	const json_t *args, struct handle **out, struct err *e)
{
	int rc = check_not_held(a, kind, inverse, e) ?: handle_new(a, kind, out, e);

	if (rc) {
		json_decref(inverse);
		return rc;
	}
	return handle_record(a, *out, inverse, arg_number(args, "max_s", 0), e);
}

int op_limits_get(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *limits;
	int rc = limits_read((pid_t)jget_int(args, "pid"), &limits, e);

	if (!rc)
		agent_answer(a, id, limits);
	return rc;
}

int op_limits_set(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *inverse;
	struct handle *h;
	pid_t pid;
	int rc = pid_of(a, args, &pid, e) ?:
		limits_inverse(pid, jget_text(args, "resource"), &inverse, e) ?:
		ops_acts_begin(a, HANDLE_LIMIT, inverse, args, &h, e);

	return rc
		?: handle_acted(a, id, h, limits_set(h->inverse, jget_int(args, "soft"), e), NULL);
}

int op_signal_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *inverse;
	struct handle *h;
	pid_t pid;
	int rc = pid_of(a, args, &pid, e) ?: signal_inverse(pid, &inverse, e) ?:
		ops_acts_begin(a, HANDLE_STOP, inverse, args, &h, e);

	return rc ?: handle_acted(a, id, h, signal_stop(h->inverse, e), NULL);
}

/* ---- control groups ---- */

/* 'name' is a new group's. */
static int group_of(const struct agent *a, const json_t *args, const char *name, json_t **inverse,
	struct err *e)
{
	const struct group_spec s = {.pids = jget(args, "pids"),
		.cpus = arg_number(args, "cpus", 0),
		.memory_pct = arg_number(args, "memory_pct", 0)};
	json_t *pid;
	size_t i;
	int rc = 0;

	if ((s.cpus > 0) == (s.memory_pct > 0))
		return err_set(e, -EINVAL, "group.limit needs either 'cpus' or 'memory_pct'");
	json_array_foreach((json_t *)s.pids, i, pid) {
		rc = rc ?: check_not_guard(a, (pid_t)json_integer_value(pid), e);
	}
	rc = rc ?: group_inverse(&s, name, inverse, e);
	for (const struct handle *h = a->handles; h && !rc; h = h->next)
		if (h->kind == HANDLE_GROUP && ops_acts_same(h->inverse, *inverse, "group") &&
			ops_acts_same(h->inverse, *inverse, "file"))
			rc = err_set(e, -EBUSY, "the server is limited already, by '%s'", h->name);
	return rc;
}

int ops_group_able(const struct agent *a, const json_t *args, struct err *e)
{
	auto_json json_t *inverse = NULL;

	return args ? group_of(a, args, "check", &inverse, e) : 0;
}

int op_group_limit(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *inverse;
	struct handle *h;
	char name[64];
	int rc = handle_new(a, HANDLE_GROUP, &h, e);

	if (rc)
		return rc;
	snprintf(name, sizeof(name), "%.8s_%s", a->session, h->name);
	rc = group_of(a, args, name, &inverse, e)
		?: handle_record(a, h, inverse, arg_number(args, "max_s", 0), e);
	return rc ?: handle_acted(a, id, h, group_act(h->inverse, e), NULL);
}

int op_group_usage(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct group_usage u;
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_GROUP, &h, e) ?: group_read(h->inverse, &u, e);

	if (!rc)
		agent_answer(a, id,
			json_pack("{s:f, s:I, s:I, s:I}", "throttled_s", u.throttled_s, "periods",
				(json_int_t)u.periods, "throttled", (json_int_t)u.throttled,
				"reclaims", (json_int_t)u.reclaims));
	return rc;
}

/* ---- commands ---- */

int op_command(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_new(a, HANDLE_COMMAND, &h, e)
		?: handle_record(a, h,
			   command_inverse(
				   jget(args, "inverse"), jget(args, "check"), COMMAND_UNDO_S),
			   arg_number(args, "max_s", 0), e);

	if (rc)
		return rc;
	/* No request is read in the meantime, so it must be over well before the lease is. */
	rc = command_act(jget(args, "argv"), a->lease_s / 2, e);
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

/* All packets of the host that the session's SSH connection comes from: the fault would end its own
 * session, or slow it. Where they are not named, or fewer, TCP or the guard's lease has to cope. */
static int check_session(const struct packets_spec *s, struct err *e)
{
	const struct packets_address *list = s->out ? s->to : s->from;
	/* Of sshd: the peer's address, its port, ours. An IPv6 address may have a scope. */
	const char *connection = getenv("SSH_CONNECTION") ?: "";
	struct packets_address peer;
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(connection, " %"), connection);
	if (!*text || s->percent < 100 || packets_address_parse(text, &peer, NULL))
		return 0;
	for (size_t i = 0; i < (s->out ? s->n_to : s->n_from); i++)
		if (list[i].family == peer.family &&
			!memcmp(list[i].bytes, peer.bytes, peer.family == AF_INET ? 4 : 16))
			return err_set(e, -EADDRINUSE,
				"culprit's own SSH session comes from %s: to drop or delay all "
				"packets of that host would cut it off or slow it",
				list[i].text);
	return 0;
}

/* What a request asks for. 's' borrows the addresses, which the caller frees. */
static int read_packets(const json_t *args, struct packets_address **from,
	struct packets_address **to, struct packets_spec *s, struct err *e)
{
	const char *direction = jget_text(args, "direction");
	int rc = parse_addresses(jget(args, "from"), from, &s->n_from, e)
		?: parse_addresses(jget(args, "to"), to, &s->n_to, e);

	s->percent = arg_number(args, "percent", 100);
	s->out = direction && !strcmp(direction, "out");
	s->from = *from;
	s->to = *to;
	if (!rc && !families_meet(s))
		rc = err_set(e, -EINVAL, "'from' and 'to' have no IP version in common");
	return rc ?: check_session(s, e);
}

static int read_delay(const json_t *args, struct delay_spec *d, struct err *e)
{
	d->latency_s = arg_number(args, "latency_s", 0);
	d->jitter_s = arg_number(args, "jitter_s", 0);
	d->rate = arg_number(args, "rate", 0);
	d->buffer_s = arg_number(args, "buffer_s", 0.05);
	if (d->latency_s <= 0 && d->rate <= 0)
		return err_set(e, -EINVAL, "packets.delay needs 'latency_s' or 'rate'");
	if (d->jitter_s > d->latency_s)
		return err_set(e, -EINVAL, "jitter_s must be at most latency_s, %g s, not %g s",
			d->latency_s, d->jitter_s);
	return 0;
}

/* Has the kernel queues that a program can serve? */
static int check_queue(struct err *why)
{
	const struct delay_spec any = {.latency_s = 1};
	uint16_t queue;
	auto_fd int fd = -1;

	return delay_open(&any, &queue, &fd, why);
}

int ops_packets_able(const struct agent *a, const json_t *args, bool delay, struct err *why)
{
	auto_free struct packets_address *from = NULL, *to = NULL;
	const struct packets_backend *backend;
	struct packets_spec s = {0};
	struct delay_spec d;
	int rc = packets_check(a->packets_backend, delay, &backend, why);

	if (!rc && delay)
		rc = check_queue(why) ?: args ? read_delay(args, &d, why) : 0;
	if (!rc && args)
		rc = read_packets(args, &from, &to, &s, why);
	return rc ?: err_set(why, 0, "%s", backend->name);
}

int op_packets_drop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_free struct packets_address *from = NULL, *to = NULL;
	const struct packets_backend *backend;
	struct packets_spec s = {0};
	struct handle *h;
	int rc = read_packets(args, &from, &to, &s, e)
			?: packets_check(a->packets_backend, false, &backend, e)
			?: handle_new(a, HANDLE_PACKETS, &h, e);

	rc = rc
		?: handle_record(a, h, packets_inverse(backend, a->session, h->name),
			   arg_number(args, "max_s", 0), e);
	return rc
		?: handle_acted(a, id, h, packets_drop(&s, h->inverse, e),
			   json_pack("{s:s}", "backend", backend->name));
}

/* What 'culprit-agent delay' is to do; NULL: no memory. */
static char *delay_order(const struct delay_spec *d, uint16_t queue)
{
	auto_json json_t *order = json_pack("{s:i, s:f, s:f, s:f, s:f}", "queue", queue,
		"latency_s", d->latency_s, "jitter_s", d->jitter_s, "rate", d->rate, "buffer_s",
		d->buffer_s);

	return order ? json_dumps(order, JSON_COMPACT) : NULL;
}

/* The program before the rule, so that no packet waits for it. */
int op_packets_delay(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_of(child_spec) struct child_spec c = {
		CHILD_SPEC_INIT, .p.grace_s = DELAY_GRACE_S, .max_s = arg_number(args, "max_s", 0)};
	auto_free struct packets_address *from = NULL, *to = NULL;
	auto_free char *order = NULL;
	auto_json json_t *rule = NULL;
	const struct packets_backend *backend;
	struct packets_spec s = {0};
	struct delay_spec d;
	struct handle *h;
	int rc = read_delay(args, &d, e) ?: read_packets(args, &from, &to, &s, e)
			?: packets_check(a->packets_backend, true, &backend, e)
			?: handle_new(a, HANDLE_DELAY, &h, e)
			?: delay_open(&d, &s.queue, &c.p.in, e);

	if (rc)
		return rc;
	c.also = rule = packets_inverse(backend, a->session, h->name);
	order = delay_order(&d, s.queue);
	if (!rule || !order)
		return err_errno(e, -ENOMEM, "cannot delay packets");
	rc = ops_start_acting(a, h, &c, "delay", order, e);
	return rc
		?: handle_acted(a, id, h, packets_drop(&s, h->inverse, e),
			   json_pack("{s:s}", "backend", backend->name));
}

int op_packets_delays(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	json_t *done;
	int rc = handle_get(a, args, HANDLE_DELAY, &h, e) ?: ops_acting_done(a, h, &done, e);

	if (rc)
		return rc;
	done = done
		?: json_pack("{s:f, s:i, s:i, s:f, s:i}", "seconds", 0.0, "packets", 0, "bytes", 0,
			   "waited_s", 0.0, "dropped", 0);
	json_object_set_new(done, "running", json_boolean(!h->ended));
	agent_answer(a, id, done);
	return 0;
}

int op_packets_counters(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct packets_counters c;
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_PACKETS, &h, e) ?: packets_read(h->inverse, &c, e);

	if (!rc)
		agent_answer(a, id,
			json_pack("{s:I, s:I, s:I, s:I}", "seen", (json_int_t)c.seen, "dropped",
				(json_int_t)c.dropped, "seen_bytes", (json_int_t)c.seen_bytes,
				"dropped_bytes", (json_int_t)c.dropped_bytes));
	return rc;
}
