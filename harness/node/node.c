/*
 * The caller's side of a nodeset: its life, calls, events, transfers, and the watchdog.
 */
#include "harness/node/node.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/node/impl.h"

/* Watches for threads that libssh holds longer than they may be held. */
static void *watchdog(void *arg)
{
	struct nodeset *set = arg;
	struct pollfd p = {.fd = set->watch_quit, .events = POLLIN};
	size_t i;

	while (poll(&p, 1, 200) <= 0) {
		bool giving_up = atomic_load(&set->closing) && clock_mono_s() > set->closing_s + 1;

		for (i = 0; i < set->n; i++) {
			struct node *n = &set->nodes[i];
			int64_t until = atomic_load(&n->watch_ns);

			pthread_mutex_lock(&set->lock);
			if ((until && clock_ns(CLOCK_MONOTONIC) > until) ||
			    (giving_up && n->state == NODE_CONNECTING)) {
				atomic_store(&n->stalled, true);
				if (n->fd >= 0)
					shutdown(n->fd, SHUT_RDWR);
			}
			pthread_mutex_unlock(&set->lock);
		}
	}
	return NULL;
}

/* Returns once all that 'check' asks for is so (0), or with -EINTR or -ETIMEDOUT. */
static int wait_until(struct nodeset *set, bool (*check)(struct nodeset *, void *), void *ctx, double timeout_s,
		      int also_fd)
{
	double until_s = clock_mono_s() + timeout_s;
	struct pollfd p[3] = {
		{.fd = set->done, .events = POLLIN},
		{.fd = set->interrupt, .events = POLLIN},
		{.fd = also_fd ? also_fd : -1, .events = POLLIN},
	};

	for (;;) {
		double left_s = until_s - clock_mono_s();
		uint64_t count;
		bool so;

		pthread_mutex_lock(&set->lock);
		so = check(set, ctx);
		pthread_mutex_unlock(&set->lock);
		if (so)
			return 0;
		if (timeout_s > 0 && left_s <= 0)
			return -ETIMEDOUT;
		if (poll(p, 3, timeout_s > 0 ? (int)(left_s * 1000) + 1 : -1) < 0)
			continue;
		if (p[1].revents || p[2].revents)
			return -EINTR;
		if (p[0].revents && read(set->done, &count, sizeof(count)) < 0)
			continue;
	}
}

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static int check_specs(const struct node_spec *specs, size_t n, struct err *e)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		if (!specs[i].name || !specs[i].address)
			return err_set(e, -EINVAL, "node %zu has no name or no address", i + 1);
		for (k = 0; k < i; k++)
			if (!strcmp(specs[k].name, specs[i].name))
				return err_set(e, -EINVAL, "there are two nodes of the name '%s'", specs[i].name);
	}
	return 0;
}

static int make_set(const struct node_spec *specs, size_t n, const struct node_options *opts,
		    struct nodeset **out, struct err *e)
{
	struct nodeset *set = calloc(1, sizeof(*set));
	size_t i;

	*out = set;
	if (!set)
		return err_errno(e, -ENOMEM, "cannot connect");
	set->opt = *opts;
	if (set->opt.connect_timeout_s <= 0)
		set->opt.connect_timeout_s = 10;
	if (set->opt.timeout_s <= 0)
		set->opt.timeout_s = 10;
	if (set->opt.lease_s <= 0)
		set->opt.lease_s = 10;
	pthread_mutex_init(&set->lock, NULL);
	set->events_end = &set->events;
	set->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	set->interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	set->watch_quit = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->done < 0 || set->interrupt < 0 || set->watch_quit < 0)
		return err_errno(e, -errno, "cannot make an eventfd");
	set->nodes = calloc(n ? n : 1, sizeof(*set->nodes));
	if (!set->nodes)
		return err_errno(e, -ENOMEM, "cannot connect");
	for (i = 0; i < n; i++) {
		struct node *node = &set->nodes[i];

		node->set = set;
		node->fd = -1;
		node->name = copy(specs[i].name);
		node->address = copy(specs[i].address);
		node->user = copy(specs[i].user ? specs[i].user : "root");
		node->identity = copy(specs[i].identity);
		node->host_key = copy(specs[i].host_key);
		node->port = specs[i].port ? specs[i].port : 22;
		node->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		set->n = i + 1;
		if (node->wake < 0)
			return err_errno(e, -errno, "cannot make an eventfd");
	}
	return bundle_load(opts->agent_dir ? opts->agent_dir : ".", &set->bundle, e);
}

/* Signals are for the caller's thread. */
static int start_threads(struct nodeset *set, struct err *e)
{
	sigset_t all, before;
	size_t i;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&set->watchdog, NULL, watchdog, set);
	set->watching = !rc;
	for (i = 0; i < set->n && !rc; i++) {
		rc = pthread_create(&set->nodes[i].thread, NULL, node_thread, &set->nodes[i]);
		set->nodes[i].started = !rc;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? err_errno(e, -rc, "cannot start a thread") : 0;
}

static bool all_up_or_one_lost(struct nodeset *set, void *ctx)
{
	size_t i;

	(void)ctx;
	for (i = 0; i < set->n; i++)
		if (set->nodes[i].state == NODE_CONNECTING && !set->failed)
			return false;
	return true;
}

int node_connect_all(const struct node_spec *specs, size_t n, const struct node_options *opts,
		     struct nodeset **out, struct err *e)
{
	struct nodeset *set = NULL;
	int rc;

	rc = check_specs(specs, n, e);
	if (rc < 0)
		return rc;
	rc = make_set(specs, n, opts, &set, e);
	if (rc < 0)
		goto out;
	rc = start_threads(set, e);
	if (rc < 0)
		goto out;
	rc = wait_until(set, all_up_or_one_lost, NULL, 0, opts->interrupt_fd);
	if (rc < 0) {
		err_set(e, rc, "interrupted while connecting");
		goto out;
	}
	pthread_mutex_lock(&set->lock);
	if (set->failed)
		rc = err_set(e, set->failed->rc, "%s: %s", set->failed->name, set->failed->why.text);
	pthread_mutex_unlock(&set->lock);
	if (rc < 0)
		goto out;
	*out = set;
	set = NULL;
out:
	nodeset_free(set);
	return rc;
}

static void node_clear(struct node *n)
{
	json_decref(n->hello);
	free(n->name);
	free(n->address);
	free(n->user);
	free(n->identity);
	free(n->host_key);
	free(n->in);
	close(n->wake);
	if (n->fd >= 0)
		close(n->fd);
}

void nodeset_free(struct nodeset *set)
{
	struct node_event *ev;
	size_t i;

	if (!set)
		return;
	pthread_mutex_lock(&set->lock);
	set->closing_s = clock_mono_s();
	atomic_store(&set->closing, true);
	pthread_mutex_unlock(&set->lock);
	for (i = 0; i < set->n; i++)
		event_post(set->nodes[i].wake);
	for (i = 0; i < set->n; i++)
		if (set->nodes[i].started)
			pthread_join(set->nodes[i].thread, NULL);
	if (set->watching) {
		event_post(set->watch_quit);
		pthread_join(set->watchdog, NULL);
	}
	for (i = 0; i < set->n; i++)
		node_clear(&set->nodes[i]);
	while ((ev = set->events)) {
		set->events = ev->next;
		json_decref(ev->json);
		free(ev);
	}
	bundle_clear(&set->bundle);
	close(set->done);
	close(set->interrupt);
	close(set->watch_quit);
	pthread_mutex_destroy(&set->lock);
	free(set->nodes);
	free(set);
}

void nodeset_interrupt(struct nodeset *set)
{
	int saved = errno;

	event_post(set->interrupt);
	errno = saved;
}

void nodeset_resume(struct nodeset *set)
{
	uint64_t count;

	while (read(set->interrupt, &count, sizeof(count)) > 0)
		;
}

size_t nodeset_count(const struct nodeset *set)
{
	return set->n;
}

struct node *nodeset_at(struct nodeset *set, size_t i)
{
	return i < set->n ? &set->nodes[i] : NULL;
}

struct node *nodeset_find(struct nodeset *set, const char *name)
{
	size_t i;

	for (i = 0; i < set->n; i++)
		if (!strcmp(set->nodes[i].name, name))
			return &set->nodes[i];
	return NULL;
}

const char *node_name(const struct node *n)
{
	return n->name;
}

const json_t *node_hello(const struct node *n)
{
	return n->hello;
}

const char *node_dir(const struct node *n)
{
	return json_string_value(json_object_get(n->hello, "dir"));
}

bool node_lost(struct node *n, struct err *why)
{
	bool lost;

	pthread_mutex_lock(&n->set->lock);
	lost = n->state == NODE_LOST;
	if (lost)
		err_set(why, -ENOTCONN, "%s: %s", n->name, n->why.text);
	pthread_mutex_unlock(&n->set->lock);
	return lost;
}

/* Queues 'op'; on a node that is lost, ends it at once. */
static void submit(struct node *n, struct op *op)
{
	struct op **at;

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
	for (i = 0; i < w->n; i++)
		if (w->ops[i] && w->ops[i]->state != OP_DONE)
			return false;
	return true;
}

/* Lets go of an op that was not waited for to the end; true if it is the caller's after all. */
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

/* Takes the outcome of '*op' after the wait for all ended with 'waited'; '*op' is NULL then if
 * it had not ended. */
static int collect(struct node *n, struct op **op, int waited, double timeout_s, const char *what, struct err *e)
{
	int rc;

	if (!reclaim(n, *op)) {
		*op = NULL;
		if (waited == -EINTR)
			return err_set(e, -EINTR, "%s: %s: interrupted", n->name, what);
		return err_set(e, -ETIMEDOUT, "%s: %s: no answer within %g s", n->name, what, timeout_s);
	}
	rc = (*op)->rc;
	if (rc < 0)
		err_set(e, rc, "%s: %s", n->name, (*op)->err.text);
	return rc;
}

/* -EINTR if nodeset_interrupt was called and nodeset_resume was not. */
static int check_interrupt(struct node *n, const char *what, struct err *e)
{
	struct pollfd p = {.fd = n->set->interrupt, .events = POLLIN};

	if (poll(&p, 1, 0) <= 0)
		return 0;
	return err_set(e, -EINTR, "%s: %s: interrupted", n->name, what);
}

static int make_call(struct node *n, const char *name, json_t *args, struct op **out, struct err *e)
{
	struct op *op = calloc(1, sizeof(*op));
	json_t *msg = json_object();
	char *text = NULL;
	int rc;

	rc = check_interrupt(n, name, e);
	if (rc < 0)
		goto out;
	if (!op || !msg) {
		rc = err_errno(e, -ENOMEM, "%s: %s", n->name, name);
		goto out;
	}
	pthread_mutex_lock(&n->set->lock);
	op->id = ++n->last_id;
	pthread_mutex_unlock(&n->set->lock);
	json_object_set_new(msg, "id", json_integer(op->id));
	json_object_set_new(msg, "op", json_string(name));
	if (args && json_object_update_missing(msg, args)) {
		rc = err_set(e, -EINVAL, "%s: %s: the arguments are no object", n->name, name);
		goto out;
	}
	text = json_dumps(msg, JSON_COMPACT);
	if (!text || asprintf(&op->line, "%s\n", text) < 0)
		rc = err_set(e, -EINVAL, "%s: %s: the arguments cannot be written as JSON", n->name, name);
	else if (strlen(text) > NODE_LINE_MAX)
		rc = err_set(e, -E2BIG, "%s: %s: arguments of more than 1 MiB", n->name, name);
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
	struct op **ops = calloc(n + 1, sizeof(*ops));
	struct waiting w = {ops, n};
	int rc = 0, waited = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		struct node_request *r = &requests[i];

		r->result = NULL;
		if (ops) {
			r->rc = make_call(r->node, r->op, r->args, &ops[i], &r->err);
		} else {
			json_decref(r->args);
			r->rc = err_errno(&r->err, -ENOMEM, "%s: %s", r->node->name, r->op);
		}
		r->args = NULL;
		if (r->rc == 0)
			submit(r->node, ops[i]);
	}
	if (n && ops)
		waited = wait_until(requests[0].node->set, all_done, &w, timeout_s, 0);
	for (i = 0; i < n; i++) {
		struct node_request *r = &requests[i];

		if (r->rc == 0)
			r->rc = collect(r->node, &ops[i], waited, timeout_s, r->op, &r->err);
		if (r->rc == 0)
			r->result = json_incref(ops[i]->result);
		if (r->rc < 0 && !rc)
			rc = err_set(e, r->rc, "%s", r->err.text);
	}
	for (i = 0; i < n && ops; i++)
		op_free(ops[i]);
	free(ops);
	return rc;
}

int node_call(struct node *n, const char *op, json_t *args, double timeout_s, json_t **result, struct err *e)
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
		rc = collect(n, &op, wait_until(n->set, all_done, &w, timeout_s, 0), timeout_s, "ping", e);
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

	/* A limit of 0 means none to wait_until. */
	if (wait_until(set, any_event, NULL, timeout_s > 0 ? timeout_s : 1e-9, 0) == -EINTR)
		return -EINTR;
	pthread_mutex_lock(&set->lock);
	list = set->events;
	set->events = NULL;
	set->events_end = &set->events;
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

static int make_transfer(const struct node_transfer *t, enum op_kind kind, struct op **out, struct err *e)
{
	struct node *n = t->node;
	struct op *op;
	int rc;

	rc = check_interrupt(n, t->remote, e);
	if (rc < 0)
		return rc;
	op = calloc(1, sizeof(*op));
	if (!op)
		return err_errno(e, -ENOMEM, "%s: %s", n->name, t->remote);
	op->kind = kind;
	op->local = copy(t->local);
	if (t->remote[0] == '/')
		op->remote = copy(t->remote);
	else if (asprintf(&op->remote, "%s/%s", node_dir(n), t->remote) < 0)
		op->remote = NULL;
	if (!op->local || !op->remote) {
		op_free(op);
		return err_errno(e, -ENOMEM, "%s: %s", n->name, t->remote);
	}
	*out = op;
	return 0;
}

static int transfer_all(struct node_transfer *transfers, size_t n, enum op_kind kind, double timeout_s,
			struct err *e)
{
	struct op **ops = calloc(n + 1, sizeof(*ops));
	struct waiting w = {ops, n};
	int rc = 0, waited = 0;
	size_t i;

	if (!ops)
		return err_errno(e, -ENOMEM, "cannot begin a transfer");
	for (i = 0; i < n; i++) {
		struct node_transfer *t = &transfers[i];

		t->rc = make_transfer(t, kind, &ops[i], &t->err);
		if (t->rc == 0)
			submit(t->node, ops[i]);
	}
	if (n)
		waited = wait_until(transfers[0].node->set, all_done, &w, timeout_s, 0);
	for (i = 0; i < n; i++) {
		struct node_transfer *t = &transfers[i];

		if (t->rc == 0)
			t->rc = collect(t->node, &ops[i], waited, timeout_s, t->remote, &t->err);
		if (t->rc < 0 && !rc)
			rc = err_set(e, t->rc, "%s", t->err.text);
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
