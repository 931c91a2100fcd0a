/*
 * The life cycle of a nodeset on the caller's side, and the watchdog.
 */
#include "harness/nodes/node.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/nodes/node_impl.h"

/* Limits for libssh to return after its connection was cut, and for a thread to end. */
#define STUCK_NS 2000000000
#define JOIN_S 10

/* Cuts the connection of a thread that stays inside libssh too long; libssh then returns an
 * error. If it does not (libssh 0.10 has loops that do not check the connection), the node is
 * declared lost and its thread is abandoned. */
static void nodes_node_watch(struct node *n, bool giving_up)
{
	struct nodeset *set = n->set;
	int64_t until = atomic_load(&n->watch_ns), now = clock_ns(CLOCK_MONOTONIC);
	struct err why;

	pthread_mutex_lock(&set->lock);
	if ((until && now > until) || (giving_up && n->state == NODE_CONNECTING)) {
		atomic_store(&n->stalled, true);
		if (n->fd >= 0)
			shutdown(n->fd, SHUT_RDWR);
	}
	n->stuck = until && now > until + STUCK_NS;
	pthread_mutex_unlock(&set->lock);
	if (n->stuck)
		node_lose(n,
			err_set(&why, -ETIMEDOUT, "no answer in time, and libssh does not return"),
			&why);
}

static void *watchdog(void *arg)
{
	struct nodeset *set = arg;
	struct pollfd p = {.fd = set->watch_quit, .events = POLLIN};

	while (poll(&p, 1, 200) <= 0)
		for (size_t i = 0; i < set->n; i++)
			nodes_node_watch(&set->nodes[i],
				atomic_load(&set->closing) && clock_mono_s() > set->closing_s + 1);
	return NULL;
}

void nodeset_on_wait(struct nodeset *set, void (*fn)(void *ctx), void *ctx)
{
	set->waiting_fn = fn;
	set->waiting_ctx = ctx;
}

enum { WAITING_MS = 1000 };

int nodeset_wait(struct nodeset *set, bool (*check)(struct nodeset *, void *), void *ctx,
	double timeout_s, int also_fd)
{
	double until_s = clock_mono_s() + timeout_s;
	struct pollfd p[3] = {
		{.fd = set->done, .events = POLLIN},
		{.fd = set->interrupt, .events = POLLIN},
		{.fd = also_fd ? also_fd : -1, .events = POLLIN},
	};

	for (;;) {
		double left_s = until_s - clock_mono_s();
		int limit_ms = timeout_s > 0 ? (int)(left_s * 1000) + 1 : -1, n;
		uint64_t count;
		bool so;

		pthread_mutex_lock(&set->lock);
		so = check(set, ctx);
		pthread_mutex_unlock(&set->lock);
		if (so)
			return 0;
		if (timeout_s > 0 && left_s <= 0)
			return -ETIMEDOUT;
		if (set->waiting_fn && (limit_ms < 0 || limit_ms > WAITING_MS))
			limit_ms = WAITING_MS;
		n = poll(p, 3, limit_ms);
		if (!n && set->waiting_fn)
			set->waiting_fn(set->waiting_ctx);
		if (n < 0)
			continue;
		if (p[1].revents || p[2].revents)
			return -EINTR;
		if (p[0].revents && read(set->done, &count, sizeof(count)) < 0)
			continue;
	}
}

static char *node_copy(const char *s)
{
	return s ? alloc_copy(s) : NULL;
}

static char **copy_list(const char *const *list)
{
	char **copies;
	size_t n = 0;

	if (!list)
		return NULL;
	while (list[n])
		n++;
	copies = alloc_zero(n + 1, sizeof(*copies));
	for (size_t i = 0; i < n; i++)
		copies[i] = node_copy(list[i]);
	return copies;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

static void hop_init(struct hop *h, struct node *n, const struct node_spec *spec)
{
	*h = (struct hop){
		.node = n,
		.address = node_copy(spec->address),
		.user = node_copy(spec->user ? spec->user : "root"),
		.identity = node_copy(spec->identity),
		.auth_socket = node_copy(spec->auth_socket),
		.host_key = node_copy(spec->host_key),
		.host_key_alias = node_copy(spec->host_key_alias),
		.identities = copy_list(spec->identities),
		.known_hosts = copy_list(spec->known_hosts),
		.identities_only = spec->identities_only,
		.port = spec->port ? spec->port : 22,
		.fd = -1,
		.pair = -1,
	};
}

static void hop_clear(struct hop *h)
{
	free(h->address);
	free(h->user);
	free(h->identity);
	free(h->auth_socket);
	free(h->host_key);
	free(h->host_key_alias);
	free_list(h->identities);
	free_list(h->known_hosts);
	if (h->fd >= 0)
		close(h->fd);
	if (h->pair >= 0)
		close(h->pair);
}

static int node_init(struct node *n, const struct node_spec *spec, struct err *e)
{
	n->fd = -1;
	n->name = node_copy(spec->name);
	n->sudo = spec->sudo;
	n->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	n->hops = alloc_zero(spec->n_jumps + 1, sizeof(*n->hops));
	for (size_t i = 0; i < spec->n_jumps; i++)
		hop_init(&n->hops[i], n, &spec->jumps[i]);
	hop_init(&n->hops[spec->n_jumps], n, spec);
	n->n_hops = spec->n_jumps + 1;
	n->user = n->hops[spec->n_jumps].user;
	return n->wake < 0 ? err_errno(e, -errno, "cannot make an eventfd") : 0;
}

static int check_specs(const struct node_spec *specs, size_t n, struct err *e)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		if (!specs[i].name || !specs[i].address)
			return err_set(e, -EINVAL, "node %zu needs a name and an address", i + 1);
		for (k = 0; k < i; k++)
			if (!strcmp(specs[k].name, specs[i].name))
				return err_set(
					e, -EINVAL, "two nodes are named '%s'", specs[i].name);
	}
	return 0;
}

static int make_set(const struct node_spec *specs, size_t n, const struct node_options *opts,
	struct nodeset **out, struct err *e)
{
	struct nodeset *set = alloc_zero(1, sizeof(*set));
	int rc = 0;

	*out = set;
	set->opt = *opts;
	if (set->opt.connect_timeout_s <= 0)
		set->opt.connect_timeout_s = 10;
	for (size_t i = 0; i < n; i++)
		if (specs[i].connect_timeout_s > set->opt.connect_timeout_s)
			set->opt.connect_timeout_s = specs[i].connect_timeout_s;
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
	set->nodes = alloc_zero(n, sizeof(*set->nodes));
	for (; set->n < n && !rc; set->n++) {
		set->nodes[set->n].set = set;
		rc = node_init(&set->nodes[set->n], &specs[set->n], e);
	}
	return rc ? rc : bundle_load(opts->agent_dir ? opts->agent_dir : ".", &set->bundle, e);
}

/* Only the caller's thread receives signals. */
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
	rc = nodeset_wait(set, all_up_or_one_lost, NULL, 0, opts->interrupt_fd);
	if (rc < 0) {
		err_set(e, rc, "interrupted while connecting");
		err_blame(e, ERR_INTERRUPTED, rc);
		goto out;
	}
	pthread_mutex_lock(&set->lock);
	if (set->failed) {
		rc = err_set(
			e, set->failed->rc, "%s: %s", set->failed->name, set->failed->why.text);
		/* Retrying does not fix a mismatched host key: the inventory or known_hosts is
		 * wrong, or another host answers. */
		err_blame(e, rc == -EKEYREJECTED ? ERR_SCENARIO : ERR_CLUSTER, rc);
	}
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
	for (size_t i = 0; i < n->n_hops; i++)
		hop_clear(&n->hops[i]);
	free(n->hops);
	free(n->name);
	free(n->in);
	free(n->file_command);
	close(n->wake);
}

/* GCC 12's ThreadSanitizer does not know pthread_clockjoin_np and reports everything of a joined
 * thread as shared. Builds with it join by the other clock. */
#ifdef __SANITIZE_THREAD__
static int clock_join(pthread_t thread, const struct timespec *until)
{
	struct timespec left = {.tv_sec = until->tv_sec - (time_t)clock_mono_s() + time(NULL) + 1};

	return pthread_timedjoin_np(thread, NULL, &left);
}
#else
static int clock_join(pthread_t thread, const struct timespec *until)
{
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, until);
}
#endif

/* Returns false if the thread does not end. */
static bool node_join(struct node *n)
{
	double until_s = atomic_load(&n->stuck) ? 0 : n->set->closing_s + JOIN_S;
	const struct timespec until = {.tv_sec = (time_t)until_s + 1};

	return !clock_join(n->thread, &until);
}

/* Run before the exit handlers of libraries, which would free what a thread still uses. */
static void end_at_once(int status, void *arg)
{
	(void)arg;
	fflush(NULL);
	_exit(status);
}

void nodeset_free(struct nodeset *set)
{
	struct node_event *ev;
	bool all_ended = true;
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
		all_ended &= !set->nodes[i].started || node_join(&set->nodes[i]);
	if (set->watching) {
		event_post(set->watch_quit);
		pthread_join(set->watchdog, NULL);
	}
	/* A thread stuck in libssh still uses the nodeset, and libcrypto until exit, so free
	 * neither. */
	if (!all_ended) {
		on_exit(end_at_once, NULL);
		return;
	}
	for (i = 0; i < set->n; i++)
		node_clear(&set->nodes[i]);
	while ((ev = set->events)) {
		set->events = ev->next;
		json_decref(ev->json);
		free(ev);
	}
	link_clear(set);
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
		err_blame(
			why, ERR_CLUSTER, err_set(why, -ENOTCONN, "%s: %s", n->name, n->why.text));
	pthread_mutex_unlock(&n->set->lock);
	return lost;
}
