/*
 * The caller's requests to nodes: calls, events, transfers. Each is an op that is queued for the
 * node's thread; the caller waits for it here.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/nodes/node_impl.h"

/* Queues 'op'; if the node is lost, completes it with the error at once. */
static void submit(struct node *n, struct op *op)
{
	struct op **at;

	op->node = n;
	pthread_mutex_lock(&n->set->lock);
	if (n->state == NODE_LOST) {
		op->rc = -ENOTCONN;
		op->err = n->why;
		op->state = OP_DONE;
	} else {
		for (at = &n->ops; *at; at = &(*at)->next)
			;
		*at = op;
	}
	pthread_mutex_unlock(&n->set->lock);
	event_post(n->wake);
}

struct waiting {
	struct op **ops;
	size_t n;
};

static bool all_done(struct nodeset *set, void *ctx)
{
	const struct waiting *w = ctx;
	size_t i;

	(void)set;
	/* A transfer cannot be cancelled while its thread is inside libssh. */
	for (i = 0; i < w->n; i++)
		if (w->ops[i] && w->ops[i]->state != OP_DONE &&
			!atomic_load(&w->ops[i]->node->stuck))
			return false;
	return true;
}

/* Abandons an op that the caller no longer waits for. Returns true if it has completed and the
 * caller owns it. */
static bool reclaim(struct node *n, struct op *op)
{
	struct op **at;
	bool done;

	pthread_mutex_lock(&n->set->lock);
	done = op->state == OP_DONE;
	if (!done) {
		for (at = &n->ops; *at && *at != op; at = &(*at)->next)
			;
		if (*at) {
			*at = op->next;
			op_free(op);
		} else {
			op->abandoned = true;
		}
	}
	pthread_mutex_unlock(&n->set->lock);
	return done;
}

/* Takes the result of '*op' after the common wait returned 'waited'; sets '*op' to NULL if it had
 * not completed. */
static int calls_collect(struct node *n, struct op **op, int waited, double timeout_s,
	const char *what, struct err *e)
{
	int rc;

	if (!reclaim(n, *op)) {
		*op = NULL;
		if (node_lost(n, e))
			return -ENOTCONN;
		if (waited == -EINTR)
			return err_blame(e, ERR_INTERRUPTED,
				err_set(e, -EINTR, "%s: %s: interrupted", n->name, what));
		return err_blame(e, ERR_CLUSTER,
			err_set(e, -ETIMEDOUT, "%s: %s: no answer within %g s", n->name, what,
				timeout_s));
	}
	rc = (*op)->rc;
	if (rc < 0)
		err_set(e, rc, "%s: %s", n->name, (*op)->err.text);
	if (rc == -ENOTCONN)
		err_blame(e, ERR_CLUSTER, rc);
	return rc;
}

/* -EINTR if nodeset_interrupt was called and nodeset_resume was not. */
static int check_interrupt(struct node *n, const char *what, struct err *e)
{
	struct pollfd p = {.fd = n->set->interrupt, .events = POLLIN};

	if (poll(&p, 1, 0) <= 0)
		return 0;
	return err_blame(
		e, ERR_INTERRUPTED, err_set(e, -EINTR, "%s: %s: interrupted", n->name, what));
}

static int first_error(struct err *e, int rc, const struct err *why)
{
	if (e)
		*e = *why;
	return rc;
}

static int make_call(struct node *n, const char *name, json_t *args, struct op **out, struct err *e)
{
	struct op *op = alloc_zero(1, sizeof(*op));
	json_t *msg = json_object();
	char *text = NULL;
	int rc;

	rc = check_interrupt(n, name, e);
	if (rc < 0)
		goto out;
	pthread_mutex_lock(&n->set->lock);
	op->id = ++n->last_id;
	pthread_mutex_unlock(&n->set->lock);
	json_object_set_new(msg, "id", json_integer(op->id));
	json_object_set_new(msg, "op", json_string(name));
	if (args && json_object_update_missing(msg, args)) {
		rc = err_set(e, -EINVAL, "%s: %s: the arguments are not an object", n->name, name);
		goto out;
	}
	text = json_dumps(msg, JSON_COMPACT);
	if (!text)
		rc = err_set(e, -EINVAL, "%s: %s: the arguments cannot be written as JSON", n->name,
			name);
	else if (strlen(text) > NODE_LINE_MAX)
		rc = err_set(e, -E2BIG, "%s: %s: arguments of more than 1 MiB", n->name, name);
	else
		op->line = alloc_format("%s\n", text);
out:
	free(text);
	json_decref(msg);
	json_decref(args);
	if (rc < 0)
		op_free(op);
	else
		*out = op;
	return rc;
}

int node_call_all(struct node_request *requests, size_t n, double timeout_s, struct err *e)
{
	struct op **ops = alloc_zero(n, sizeof(*ops));
	struct waiting w = {ops, n};
	int rc = 0, waited = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		struct node_request *r = &requests[i];

		r->result = NULL;
		r->rc = make_call(r->node, r->op, r->args, &ops[i], &r->err);
		r->args = NULL;
		if (r->rc == 0)
			submit(r->node, ops[i]);
	}
	if (n)
		waited = nodeset_wait(requests[0].node->set, all_done, &w, timeout_s, 0);
	for (i = 0; i < n; i++) {
		struct node_request *r = &requests[i];

		if (r->rc == 0)
			r->rc = calls_collect(r->node, &ops[i], waited, timeout_s, r->op, &r->err);
		if (r->rc == 0)
			r->result = json_incref(ops[i]->result);
		if (r->rc < 0 && !rc)
			rc = first_error(e, r->rc, &r->err);
	}
	for (i = 0; i < n; i++)
		op_free(ops[i]);
	free(ops);
	return rc;
}

int node_call(struct node *n, const char *op, json_t *args, double timeout_s, json_t **result,
	struct err *e)
{
	struct node_request r = {.node = n, .op = op, .args = args};
	int rc;

	rc = node_call_all(&r, 1, timeout_s, e);
	if (rc == 0 && result)
		*result = r.result;
	else
		json_decref(r.result);
	return rc;
}

struct node_asked {
	struct node *node;
	struct op *op;
	char *what;
};

int node_ask(struct node *n, const char *op, json_t *args, struct node_asked **out, struct err *e)
{
	struct op *made;
	int rc = make_call(n, op, args, &made, e);

	if (rc < 0)
		return rc;
	submit(n, made);
	*out = alloc_zero(1, sizeof(**out));
	**out = (struct node_asked){.node = n, .op = made, .what = alloc_copy(op)};
	return 0;
}

int node_answered(struct node_asked *a, json_t **result, struct err *e)
{
	struct waiting w = {&a->op, 1};
	bool done;
	int rc;

	pthread_mutex_lock(&a->node->set->lock);
	done = all_done(a->node->set, &w);
	pthread_mutex_unlock(&a->node->set->lock);
	if (!done)
		return 0;
	rc = calls_collect(a->node, &a->op, 0, 0, a->what, e);
	if (rc < 0)
		return rc;
	*result = json_incref(a->op->result);
	return 1;
}

void node_asked_free(struct node_asked *a)
{
	if (!a)
		return;
	if (a->op && reclaim(a->node, a->op))
		op_free(a->op);
	free(a->what);
	free(a);
}

int node_clock_offset(struct node *n, double *offset_s, double *error_s, struct err *e)
{
	int64_t best_ns = 0, offset_ns = 0;
	int i, rc;

	for (i = 0; i < 8; i++) {
		struct op *op = NULL;
		struct waiting w = {&op, 1};
		double timeout_s = n->set->opt.timeout_s;
		json_t *time;

		rc = make_call(n, "ping", NULL, &op, e);
		if (rc < 0)
			return rc;
		submit(n, op);
		rc = calls_collect(n, &op, nodeset_wait(n->set, all_done, &w, timeout_s, 0),
			timeout_s, "ping", e);
		if (rc < 0) {
			op_free(op);
			return rc;
		}
		time = json_object_get(op->result, "time_ns");
		if (!json_is_integer(time)) {
			op_free(op);
			return err_set(e, -EPROTO, "%s: ping: the answer has no time_ns", n->name);
		}
		if (!i || op->got_ns - op->sent_ns < best_ns) {
			best_ns = op->got_ns - op->sent_ns;
			offset_ns = json_integer_value(time) - (op->sent_ns + best_ns / 2);
		}
		op_free(op);
	}
	*offset_s = (double)offset_ns / 1e9;
	*error_s = (double)best_ns / 2e9;
	return 0;
}

static bool any_event(struct nodeset *set, void *ctx)
{
	(void)ctx;
	return set->events != NULL;
}

int node_events(struct nodeset *set, double timeout_s, node_event_fn fn, void *ctx)
{
	struct node_event *list, *ev;
	int n = 0;

	/* nodeset_wait treats a limit of 0 as no limit. */
	if (nodeset_wait(set, any_event, NULL, timeout_s > 0 ? timeout_s : 1e-9, 0) == -EINTR)
		return -EINTR;
	pthread_mutex_lock(&set->lock);
	list = set->events;
	set->events = NULL;
	set->events_end = &set->events;
	for (ev = list; ev; ev = ev->next)
		ev->node->event_bytes -= ev->bytes;
	pthread_mutex_unlock(&set->lock);
	while ((ev = list)) {
		list = ev->next;
		fn(ctx, ev->node, ev->json);
		json_decref(ev->json);
		free(ev);
		n++;
	}
	return n;
}

static int make_transfer(
	const struct node_transfer *t, enum op_kind kind, struct op **out, struct err *e)
{
	struct node *n = t->node;
	struct op *op;
	int rc;

	rc = check_interrupt(n, t->remote, e);
	if (rc < 0)
		return rc;
	*out = op = alloc_zero(1, sizeof(*op));
	op->kind = kind;
	op->local = alloc_copy(t->local);
	op->remote = t->remote[0] == '/' ? alloc_copy(t->remote)
					 : alloc_format("%s/%s", node_dir(n), t->remote);
	return 0;
}

static int transfer_all(struct node_transfer *transfers, size_t n, enum op_kind kind,
	double timeout_s, struct err *e)
{
	struct op **ops = alloc_zero(n, sizeof(*ops));
	struct waiting w = {ops, n};
	int rc = 0, waited = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		struct node_transfer *t = &transfers[i];

		t->rc = make_transfer(t, kind, &ops[i], &t->err);
		if (t->rc == 0)
			submit(t->node, ops[i]);
	}
	if (n)
		waited = nodeset_wait(transfers[0].node->set, all_done, &w, timeout_s, 0);
	for (i = 0; i < n; i++) {
		struct node_transfer *t = &transfers[i];

		if (t->rc == 0)
			t->rc = calls_collect(
				t->node, &ops[i], waited, timeout_s, t->remote, &t->err);
		if (t->rc < 0 && !rc)
			rc = first_error(e, t->rc, &t->err);
		op_free(ops[i]);
	}
	free(ops);
	return rc;
}

int node_fetch_all(struct node_transfer *transfers, size_t n, double timeout_s, struct err *e)
{
	return transfer_all(transfers, n, OP_FETCH, timeout_s, e);
}

int node_put_all(struct node_transfer *transfers, size_t n, double timeout_s, struct err *e)
{
	return transfer_all(transfers, n, OP_PUT, timeout_s, e);
}
