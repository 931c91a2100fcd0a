/*
 * A node's thread: connects, then loops: sends queued requests, reads answers, renews the lease,
 * moves one part of a transfer, and sleeps in poll.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/nodes/node_impl.h"

void node_watch(struct node *n, double seconds)
{
	int64_t until = 0;

	if (seconds > 0)
		until = clock_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * 1e9);
	atomic_store(&n->watch_ns, until);
}

void event_post(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	/* Fails only if the counter is full, and then the other side is awake anyway. */
	n = write(fd, &one, sizeof(one));
	(void)n;
}

static void event_clear(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
}

void op_free(struct op *op)
{
	if (!op)
		return;
	free(op->line);
	free(op->remote);
	free(op->local);
	json_decref(op->result);
	free(op);
}

void op_finish(struct node *n, struct op *op, int rc)
{
	bool abandoned;

	pthread_mutex_lock(&n->set->lock);
	op->rc = rc;
	op->state = OP_DONE;
	abandoned = op->abandoned;
	pthread_mutex_unlock(&n->set->lock);
	if (abandoned)
		op_free(op);
	else
		event_post(n->set->done);
}

/* Takes 'json', read from a line of 'bytes' bytes; 0 for our own events. */
static int add_event(struct node *n, json_t *json, size_t bytes, struct err *e)
{
	struct nodeset *set = n->set;
	struct node_event *ev = alloc_zero(1, sizeof(*ev));
	size_t waiting;

	*ev = (struct node_event){.node = n, .json = json, .bytes = bytes};
	pthread_mutex_lock(&set->lock);
	*set->events_end = ev;
	set->events_end = &ev->next;
	waiting = n->event_bytes += bytes;
	pthread_mutex_unlock(&set->lock);
	event_post(set->done);
	return waiting <= NODE_EVENTS_MAX
		? 0
		: err_set(e, -EPROTO, "the agent sends too many events: %zu bytes are pending",
			  waiting);
}

static int answer_error(struct op *op, json_t *msg)
{
	const char *text = json_string_value(json_object_get(msg, "error"));
	json_int_t code = json_integer_value(json_object_get(msg, "code"));

	return err_set(&op->err, code < 0 && code > -4096 ? (int)code : -EIO, "%s",
		text && *text ? text : "unknown error");
}

static void take_answer(struct node *n, json_t *msg, int64_t got_ns)
{
	json_int_t id = json_integer_value(json_object_get(msg, "id"));
	json_t *result = json_incref(json_object_get(msg, "result"));
	struct op **at;

	/* From here on only the caller owns 'result'; this thread no longer touches it. */
	json_object_del(msg, "result");
	pthread_mutex_lock(&n->set->lock);
	for (at = &n->ops; *at; at = &(*at)->next) {
		struct op *op = *at;

		if (op->kind != OP_CALL || op->state != OP_RUNNING || op->id != id)
			continue;
		*at = op->next;
		op->got_ns = got_ns;
		op->rc = 0;
		op->result = result;
		if (!result)
			op->rc = answer_error(op, msg);
		result = NULL;
		op->state = OP_DONE;
		event_post(n->set->done);
		break;
	}
	pthread_mutex_unlock(&n->set->lock);
	json_decref(result);
}

static int take_hello(struct node *n, json_t *msg, struct err *e)
{
	json_int_t protocol = json_integer_value(json_object_get(msg, "protocol"));

	if (protocol != 1)
		return err_set(e, -EPROTO, "the agent speaks protocol %d, this culprit speaks 1",
			(int)protocol);
	if (!json_is_string(json_object_get(msg, "dir")))
		return err_set(e, -EPROTO, "the agent's hello has no dir");
	n->hello = json_incref(msg);
	return 0;
}

static int thread_take_line(
	struct node *n, const char *line, size_t len, int64_t got_ns, struct err *e)
{
	json_t *msg = json_loadb(line, len, 0, NULL);
	const char *event = json_string_value(json_object_get(msg, "event"));
	int rc = 0;

	if (!n->hello) {
		if (event && !strcmp(event, "hello")) {
			rc = take_hello(n, msg, e);
		} else {
			/* Text that a login shell prints. */
			text_tail_add(&n->agent.printed, line, len);
			text_tail_add(&n->agent.printed, "\n", 1);
		}
	} else if (event) {
		rc = link_take(n, msg, e);
		if (!rc) {
			rc = add_event(n, msg, len, e);
			msg = NULL;
		}
		rc = rc > 0 ? 0 : rc;
	} else if (json_is_integer(json_object_get(msg, "id"))) {
		take_answer(n, msg, got_ns);
	} else {
		rc = err_set(e, -EPROTO, "the agent sent an invalid message: '%.*s'",
			(int)(len < 60 ? len : 60), line);
	}
	json_decref(msg);
	return rc;
}

static int take_input(struct node *n, const char *data, size_t len, struct err *e)
{
	int64_t got_ns = clock_real_ns();
	char *start, *nl;
	int rc = 0;

	if (n->in_len + len > n->in_room) {
		n->in_room = (n->in_len + len) * 2;
		n->in = alloc_resize(n->in, n->in_room, 1);
	}
	memcpy(n->in + n->in_len, data, len);
	/* Only new data can contain a newline. */
	start = n->in;
	nl = memchr(n->in + n->in_len, '\n', len);
	n->in_len += len;
	for (; nl && !rc; nl = memchr(start, '\n', (size_t)(n->in + n->in_len - start))) {
		if (nl - start > NODE_LINE_MAX)
			break;
		rc = thread_take_line(n, start, (size_t)(nl - start), got_ns, e);
		start = nl + 1;
	}
	n->in_len -= (size_t)(start - n->in);
	memmove(n->in, start, n->in_len);
	if (!rc && n->in_len > NODE_LINE_MAX)
		rc = err_set(e, -EPROTO, "the agent sent a line of more than 1 MiB");
	return rc;
}

/* Processes received data. Returns -ECONNRESET and the reason once the agent has ended. */
static int drain(struct node *n, struct err *e)
{
	char buf[16384];
	int got, rc = 0;

	/* Limited, because the agent may print faster than this reads. */
	for (int i = 0; i < 64 && !rc; i++) {
		got = node_command_read(&n->agent, buf, sizeof(buf));
		if (got == 0)
			return 0;
		if (got < 0)
			return node_command_error(&n->agent, e, "agent ended");
		n->heard_s = clock_mono_s();
		n->ping_s = 0;
		rc = take_input(n, buf, (size_t)got, e);
	}
	n->fresh = true;
	return rc;
}

static int send_line(struct node *n, const char *line, size_t len, struct err *e)
{
	if (ssh_channel_write(n->agent.ssh, line, (uint32_t)len) == (int)len)
		return 0;
	/* If the agent has ended, its last output explains the error better. */
	if (drain(n, e) < 0)
		return -ECONNRESET;
	return node_command_error(&n->agent, e, "agent ended");
}

static int send_own(struct node *n, const char *op, struct err *e)
{
	char line[64];
	int64_t id;
	int len;

	pthread_mutex_lock(&n->set->lock);
	id = ++n->last_id;
	pthread_mutex_unlock(&n->set->lock);
	len = snprintf(line, sizeof(line), "{\"id\":%lld,\"op\":\"%s\"}\n", (long long)id, op);
	return send_line(n, line, (size_t)len, e);
}

static int send_queued(struct node *n, struct err *e)
{
	struct op *op, **at;
	char *line;
	int rc = 0;

	while (!rc) {
		line = NULL;
		pthread_mutex_lock(&n->set->lock);
		for (at = &n->ops; (op = *at); at = &op->next)
			if (op->state == OP_QUEUED && (op->kind <= OP_TELL || !n->transfer))
				break;
		if (op) {
			op->state = OP_RUNNING;
			if (op->kind <= OP_TELL) {
				line = op->line;
				op->line = NULL;
				op->sent_ns = clock_real_ns();
			}
			if (op->kind != OP_CALL)
				*at = op->next;
			if (op->kind == OP_TELL) {
				n->told--;
				op_free(op);
			}
		}
		pthread_mutex_unlock(&n->set->lock);
		if (!op)
			break;
		if (line)
			rc = send_line(n, line, strlen(line), e);
		else
			transfer_begin(n, op);
		free(line);
	}
	return rc;
}

static double ping_interval(const struct node *n)
{
	const struct node_options *o = &n->set->opt;

	return (o->lease_s < o->timeout_s ? o->lease_s : o->timeout_s) / 4;
}

static int heartbeat(struct node *n, struct err *e)
{
	double now_s = clock_mono_s(), since_s;
	int rc;

	if (n->ping_s) {
		/* Measured from the last message, unless our own ping was late: then the node is
		 * not to blame for the silence. */
		since_s = n->ping_s - ping_interval(n);
		if (since_s < n->heard_s)
			since_s = n->heard_s;
		if (now_s - since_s >= n->set->opt.timeout_s)
			return err_set(e, -ETIMEDOUT, "no answer for %g s", n->set->opt.timeout_s);
	}
	if (now_s < n->next_ping_s)
		return 0;
	n->next_ping_s = now_s + ping_interval(n);
	rc = send_own(n, "ping", e);
	if (!n->ping_s)
		n->ping_s = clock_mono_s();
	return rc;
}

void node_wait(struct node *n, double until_s, bool ended)
{
	struct pollfd p[2] = {{.fd = n->fd, .events = POLLIN}, {.fd = n->wake, .events = POLLIN}};
	double left_s = until_s - clock_mono_s();

	if (n->fresh)
		return;
	node_watch(n, 0);
	if (ssh_get_poll_flags(n->session) & SSH_WRITE_PENDING)
		p[0].events |= POLLOUT;
	if (left_s < 0)
		left_s = 0;
	/* Wait until the exit code can no longer arrive. */
	if (ended && !ssh_is_connected(n->session))
		p[0].fd = -1;
	poll(p, 2, (int)(left_s * 1000) + 1);
	if (p[1].revents)
		event_clear(n->wake);
	node_watch(n, n->set->opt.timeout_s);
}

static int say_bye(struct node *n, double *until_s, struct err *e)
{
	const struct err why = {"the nodeset is being freed"};

	transfer_abort(n, -ECANCELED, &why);
	*until_s = clock_mono_s() + 5;
	n->bye_sent = true;
	return send_own(n, "bye", e);
}

/* The time of the loop's next iteration if no data arrives. */
static double next_turn_s(const struct node *n, double bye_until_s)
{
	double until_s = n->next_ping_s, limit_s = n->set->opt.timeout_s;

	if (n->agent.ended_s)
		return n->agent.ended_s + COMMAND_LINGER_S;
	if (n->bye_sent)
		return bye_until_s;
	return n->ping_s && n->ping_s + limit_s < until_s ? n->ping_s + limit_s : until_s;
}

static int thread_serve(struct node *n, struct err *e)
{
	double bye_until_s = 0;
	int rc;

	for (;;) {
		n->fresh = false;
		node_watch(n, n->set->opt.timeout_s);
		rc = drain(n, e);
		if (rc < 0)
			return n->bye_sent ? 0 : rc;
		if (!atomic_load(&n->set->closing)) {
			rc = send_queued(n, e);
			if (!rc)
				rc = heartbeat(n, e);
			if (rc < 0)
				return rc;
		} else if (n->bye_sent ? clock_mono_s() > bye_until_s
				       : say_bye(n, &bye_until_s, e) < 0) {
			return 0;
		}
		if (n->transfer && transfer_step(n))
			continue;
		node_wait(n, next_turn_s(n, bye_until_s), n->agent.ended_s);
	}
}

static int start_agent(struct node *n, const char *command, struct err *e)
{
	/* The agent may have to wait until an earlier session's lease expires. */
	double limit_s = n->set->opt.connect_timeout_s + n->set->opt.lease_s,
	       until_s = clock_mono_s() + limit_s;
	char last[300];
	int rc;

	node_watch(n, limit_s);
	rc = node_command_open(n, &n->agent, command, e);
	while (!rc) {
		n->fresh = false;
		node_watch(n, n->set->opt.timeout_s);
		rc = drain(n, e);
		if (rc < 0 || n->hello)
			break;
		if (atomic_load(&n->set->closing))
			return err_set(e, -ECANCELED, "given up");
		if (clock_mono_s() > until_s) {
			text_tail_line(&n->agent.printed, last, sizeof(last));
			return err_set(e, -ETIMEDOUT,
				"the agent started but sent no hello within %g s%s%s", limit_s,
				last[0] ? "; last it printed: " : "", last);
		}
		node_wait(n, n->agent.ended_s ? n->agent.ended_s + COMMAND_LINGER_S : until_s,
			n->agent.ended_s);
	}
	return rc;
}

static int bring_up(struct node *n, struct err *e)
{
	char *command = NULL;
	int rc;

	rc = session_open(n, e);
	if (!rc)
		rc = deploy(n, &command, e);
	if (!rc)
		rc = start_agent(n, command, e);
	free(command);
	if (rc < 0)
		return rc;
	n->heard_s = clock_mono_s();
	n->next_ping_s = n->heard_s + ping_interval(n);
	pthread_mutex_lock(&n->set->lock);
	if (n->state == NODE_CONNECTING)
		n->state = NODE_UP;
	pthread_mutex_unlock(&n->set->lock);
	event_post(n->set->done);
	return 0;
}

void node_lose(struct node *n, int rc, const struct err *why)
{
	struct nodeset *set = n->set;
	enum node_state was;
	struct op *op;

	pthread_mutex_lock(&set->lock);
	was = n->state;
	if (was != NODE_LOST) {
		n->state = NODE_LOST;
		n->rc = rc;
		n->why = *why;
		if (!set->failed && !atomic_load(&set->closing))
			set->failed = n;
	}
	while ((op = n->ops)) {
		n->ops = op->next;
		if (op->kind == OP_TELL) {
			op_free(op);
			continue;
		}
		op->rc = -ENOTCONN;
		op->err = *why;
		op->state = OP_DONE;
	}
	pthread_mutex_unlock(&set->lock);
	if (was == NODE_UP && !n->bye_sent)
		add_event(n, json_pack("{s:s,s:s}", "event", "lost", "why", why->text), 0, NULL);
	event_post(set->done);
}

void *node_thread(void *arg)
{
	struct node *n = arg;
	struct err why = {"the nodeset is being freed"};
	int rc;

	rc = bring_up(n, &why);
	if (!rc)
		rc = thread_serve(n, &why);
	/* Never wait for a dead connection. */
	if (rc == -ETIMEDOUT && n->fd >= 0)
		shutdown(n->fd, SHUT_RDWR);
	node_watch(n, 2);
	node_lose(n, rc, &why);
	transfer_abort(n, -ENOTCONN, &why);
	session_close(n);
	return NULL;
}
