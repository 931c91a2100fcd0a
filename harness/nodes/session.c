/*
 * Opens the route to a node, hop after hop: a socket or a relay, and a session on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/nodes/node_impl.h"

static void quiet(int priority, const char *function, const char *buffer, void *userdata)
{
	(void)priority, (void)function, (void)buffer, (void)userdata;
}

static int connect_error(int code, struct hop *h, struct err *e)
{
	char text[128];

	if (code == ETIMEDOUT)
		return err_set(e, -ETIMEDOUT, "no answer within %g s at %s:%u",
			h->node->set->opt.connect_timeout_s, h->address, h->port);
	snprintf(text, sizeof(text), "%s", strerror(code));
	if (text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z'))
		text[0] = (char)(text[0] - 'A' + 'a');
	return err_set(e, -code, "%s at %s:%u", text, h->address, h->port);
}

/* 0 or a positive errno. */
static int connect_one(struct node *n, const struct addrinfo *ai, double deadline_s, int *out)
{
	int fd, code = 0;
	socklen_t len = sizeof(code);

	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS) {
		code = errno;
		goto out;
	}
	for (;;) {
		struct pollfd p[2] = {
			{.fd = fd, .events = POLLOUT}, {.fd = n->wake, .events = POLLIN}};
		double left_s = deadline_s - clock_mono_s();

		if (left_s <= 0) {
			code = ETIMEDOUT;
			goto out;
		}
		if (poll(p, 2, (int)(left_s * 1000) + 1) < 0 && errno != EINTR) {
			code = errno;
			goto out;
		}
		if (atomic_load(&n->set->closing)) {
			code = ECANCELED;
			goto out;
		}
		if (p[0].revents)
			break;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
out:
	if (code)
		close(fd);
	else
		*out = fd;
	return code;
}

/* A peer that vanishes must end every blocking call, even one that only reads. The agent's
 * heartbeat has the better error message, so it gets to fail first: the limit here is half as
 * long again. */
static void set_keepalive(int fd, double timeout_s)
{
	int on = 1, idle = 2, interval = 2, count = (int)(timeout_s / interval) + 1;
	unsigned user_ms = (unsigned)(timeout_s * 1500);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
}

static int connect_socket(struct hop *h, double deadline_s, struct err *e)
{
	struct node *n = h->node;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list, *ai;
	int code, fd = -1;
	char port[12];

	snprintf(port, sizeof(port), "%u", h->port);
	code = getaddrinfo(h->address, port, &hints, &list);
	if (code)
		return err_set(e, -EHOSTUNREACH, "cannot find address '%s': %s", h->address,
			gai_strerror(code));
	code = EHOSTUNREACH;
	for (ai = list; ai; ai = ai->ai_next) {
		code = connect_one(n, ai, deadline_s, &fd);
		if (!code || code == ECANCELED)
			break;
	}
	freeaddrinfo(list);
	if (code)
		return connect_error(code, h, e);
	set_keepalive(fd, n->set->opt.timeout_s);
	pthread_mutex_lock(&n->set->lock);
	h->fd = n->fd = fd;
	pthread_mutex_unlock(&n->set->lock);
	if (atomic_load(&n->set->closing))
		return err_set(e, -ECANCELED, "given up");
	return 0;
}

/* libssh's error on a connection that was not cut. */
static int ssh_failure(struct hop *h, struct err *e, const char *what)
{
	const char *text = ssh_get_error(h->session);

	return err_set(e, -EIO, "%s: %s", what, text && *text ? text : "the connection ended");
}

int hop_error(struct hop *h, struct err *e, const char *during, const char *what)
{
	if (atomic_load(&h->node->stalled))
		return err_set(e, -ETIMEDOUT, "no answer within %g s at %s:%u during %s",
			h->node->set->opt.connect_timeout_s, h->address, h->port, during);
	return ssh_failure(h, e, what);
}

int session_error(struct node *n, struct err *e, const char *what)
{
	struct hop *h = &n->hops[n->n_hops - 1];

	if (atomic_load(&n->stalled))
		return err_set(e, -ETIMEDOUT, "no answer from %s:%u in time (%s)", h->address,
			h->port, what);
	return ssh_failure(h, e, what);
}

static int set_options(struct hop *h, const char *key_type, const char *known_path, struct err *e)
{
	const bool no_config = false;
	/* An entry of known_hosts for a host alias has no port. */
	unsigned port = h->host_key_alias ? 22 : h->port;
	long timeout_s = (long)h->node->set->opt.connect_timeout_s + 1;
	int fd, rc = 0;

	fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_errno(e, -errno, "cannot duplicate the socket");
	rc |= ssh_options_set(h->session, SSH_OPTIONS_PROCESS_CONFIG, &no_config);
	rc |= ssh_options_set(
		h->session, SSH_OPTIONS_HOST, h->host_key_alias ? h->host_key_alias : h->address);
	rc |= ssh_options_set(h->session, SSH_OPTIONS_PORT, &port);
	rc |= ssh_options_set(h->session, SSH_OPTIONS_USER, h->user);
	rc |= ssh_options_set(h->session, SSH_OPTIONS_TIMEOUT, &timeout_s);
	if (h->auth_socket)
		rc |= ssh_options_set(h->session, SSH_OPTIONS_IDENTITY_AGENT,
			strcmp(h->auth_socket, "none") ? h->auth_socket : "/dev/null");
	if (key_type) {
		/* RSA keys sign with hashes that have separate algorithm names. */
		if (!strcmp(key_type, "ssh-rsa"))
			key_type = "rsa-sha2-512,rsa-sha2-256";
		rc |= ssh_options_set(h->session, SSH_OPTIONS_HOSTKEYS, key_type);
	}
	if (known_path) {
		rc |= ssh_options_set(h->session, SSH_OPTIONS_KNOWNHOSTS, known_path);
		rc |= ssh_options_set(h->session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
	}
	if (rc || ssh_options_set(h->session, SSH_OPTIONS_FD, &fd)) {
		rc = ssh_failure(h, e, "cannot set up the session");
		close(fd);
	}
	return rc;
}

/* libssh reads only one file of known hosts, but a user may have several. '*fd' is their
 * concatenation. */
static int gather_known(struct hop *h, int *fd, struct err *e)
{
	int rc = 0;

	*fd = memfd_create("known_hosts", MFD_CLOEXEC);
	if (*fd < 0)
		return err_errno(e, -errno, "cannot read known hosts");
	for (size_t i = 0; h->known_hosts[i] && !rc; i++) {
		char *text = NULL;
		size_t size;

		rc = file_read(h->known_hosts[i], &text, &size, e);
		if (rc == -ENOENT || rc == -ENOTDIR)
			rc = 0;
		else if (!rc && (fd_write_all(*fd, text, size) || fd_write_all(*fd, "\n", 1)))
			rc = err_set(e, -ENOMEM, "cannot read known hosts");
		free(text);
	}
	return rc;
}

/* Opens a session on h->fd and authenticates both sides. */
static int open_hop(struct hop *h, struct err *e)
{
	static struct ssh_callbacks_struct callbacks = {
		.size = sizeof(callbacks), .auth_function = login_no_passphrase};
	char known_path[32] = "/dev/null", *type = NULL;
	ssh_key pinned = NULL;
	int known = -1, rc;

	rc = hop_pin(h, &pinned, &type, e);
	if (!rc && !pinned && h->known_hosts)
		rc = gather_known(h, &known, e);
	if (rc < 0)
		goto out;
	if (known >= 0)
		snprintf(known_path, sizeof(known_path), "/proc/self/fd/%d", known);
	h->session = ssh_new();
	if (!h->session) {
		rc = err_errno(e, -ENOMEM, "cannot make a session");
		goto out;
	}
	ssh_set_callbacks(h->session, &callbacks);
	rc = set_options(h, type, pinned || known >= 0 ? known_path : NULL, e);
	if (rc < 0)
		goto out;
	if (ssh_connect(h->session) != SSH_OK) {
		rc = hop_error(h, e, "the SSH handshake", "no SSH session");
		if (type && strstr(e->text, "no match for method server host key algo"))
			rc = err_set(e, -EKEYREJECTED,
				"%s:%u has no host key of the pinned type %s: if the host was"
				" reinstalled, put its new key into host_key;"
				" otherwise suspect an attack",
				h->address, h->port, type);
		goto out;
	}
	rc = hop_trust(h, pinned, e);
	if (!rc)
		rc = hop_authenticate(h, e);
out:
	if (known >= 0)
		close(known);
	ssh_key_free(pinned);
	free(type);
	return rc;
}

/* An sshd drops connections at random once ten are unauthenticated (MaxStartups), and all nodes
 * may share one jump host. */
#define GATE_WIDTH 8

static sem_t gate;

static void make_gate(void)
{
	sem_init(&gate, 0, GATE_WIDTH);
}

static int enter_gate(struct node *n, struct err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct timespec nap = {.tv_nsec = 20000000};

	pthread_once(&once, make_gate);
	while (sem_trywait(&gate)) {
		if (atomic_load(&n->set->closing))
			return err_set(e, -ECANCELED, "given up");
		nanosleep(&nap, NULL);
	}
	return 0;
}

int session_open(struct node *n, struct err *e)
{
	bool gated = n->n_hops > 1;
	double deadline_s;
	int rc;

	/* Both settings are per thread in libssh. */
	ssh_set_log_callback(quiet);
	ssh_set_log_level(SSH_LOG_NOLOG);

	rc = gated ? enter_gate(n, e) : 0;
	if (rc < 0)
		return rc;
	deadline_s = clock_mono_s() + n->set->opt.connect_timeout_s;
	rc = connect_socket(&n->hops[0], deadline_s, e);
	if (rc < 0 && gated)
		err_prefix(e, rc, "jump host");
	for (size_t i = 0; i < n->n_hops && !rc; i++) {
		struct hop *h = &n->hops[i];

		/* Each hop gets the full time limit of a direct connection. */
		node_watch(n, i ? n->set->opt.connect_timeout_s : deadline_s - clock_mono_s());
		rc = open_hop(h, e);
		if (gated)
			sem_post(&gate);
		gated = false;
		if (!rc && i + 1 < n->n_hops)
			rc = relay_start(h, h + 1, e);
		if (rc < 0 && i + 1 < n->n_hops)
			err_prefix(e, rc, "jump host");
	}
	if (gated)
		sem_post(&gate);
	n->session = n->hops[n->n_hops - 1].session;
	node_watch(n, 0);
	return rc;
}

void session_close(struct node *n)
{
	node_watch(n, 2);
	node_command_close(&n->agent);
	n->session = NULL;
	for (size_t i = n->n_hops; i-- > 0;) {
		struct hop *h = &n->hops[i];

		/* Never wait for a jump host that no longer answers. */
		if (i + 1 < n->n_hops && atomic_load(&n->stalled) && h->fd >= 0)
			shutdown(h->fd, SHUT_RDWR);
		relay_stop(h);
		if (h->session) {
			ssh_disconnect(h->session);
			ssh_free(h->session);
		}
		h->session = NULL;
	}
	node_watch(n, 0);
}
