/*
 * Relays data on a jump host: data that the next hop's session writes into a socket pair is sent
 * through a direct-tcpip channel, and back. The thread never blocks inside libssh, only in poll,
 * so shutting a socket down ends it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/nodes/node_impl.h"

/* Data waiting to be written in one direction. */
struct chunk {
	char data[32768];
	size_t at, len;
};

/* Returns false once the channel or its session has ended and all received data is delivered. */
static bool channel_to_pair(struct hop *h, struct chunk *c)
{
	ssize_t sent;
	int got;

	for (;;) {
		if (c->at == c->len) {
			got = ssh_channel_read_nonblocking(h->forward, c->data, sizeof(c->data), 0);
			if (got < 0 ||
				(!got &&
					(ssh_channel_is_eof(h->forward) ||
						ssh_channel_is_closed(h->forward))))
				return false;
			if (!got)
				return ssh_is_connected(h->session);
			c->at = 0;
			c->len = (size_t)got;
		}
		sent = send(h->pair, c->data + c->at, c->len - c->at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		c->at += (size_t)sent;
	}
}

/* Writes only as much as the peer has room for, so that libssh never waits for its window. */
static bool pair_to_channel(struct hop *h, struct chunk *c)
{
	size_t room = ssh_channel_window_size(h->forward);
	ssize_t got;
	int sent;

	while (room && !(ssh_get_poll_flags(h->session) & SSH_WRITE_PENDING)) {
		if (c->at == c->len) {
			got = recv(h->pair, c->data, sizeof(c->data), MSG_DONTWAIT);
			if (got < 0)
				return errno == EAGAIN || errno == EINTR;
			if (!got)
				return false;
			c->at = 0;
			c->len = (size_t)got;
		}
		sent = ssh_channel_write(h->forward, c->data + c->at,
			(uint32_t)(c->len - c->at < room ? c->len - c->at : room));
		if (sent < 0)
			return false;
		c->at += (size_t)sent;
		room = ssh_channel_window_size(h->forward);
	}
	return true;
}

static void *relay(void *arg)
{
	struct hop *h = arg;
	struct chunk *down = calloc(1, sizeof(*down)), *up = calloc(1, sizeof(*up));

	while (down && up && channel_to_pair(h, down) && pair_to_channel(h, up)) {
		bool pending = ssh_get_poll_flags(h->session) & SSH_WRITE_PENDING,
		     full = down->at < down->len;
		bool room = !pending && ssh_channel_window_size(h->forward);
		struct pollfd p[2] = {
			{.fd = h->fd,
				.events = (short)((full ? 0 : POLLIN) | (pending ? POLLOUT : 0))},
			{.fd = h->pair,
				.events = (short)((full ? POLLOUT : 0) | (room ? POLLIN : 0))},
		};

		poll(p, 2, -1);
		if (p[1].revents & (POLLHUP | POLLERR))
			break;
		if (pending)
			ssh_blocking_flush(h->session, 0);
	}
	shutdown(h->pair, SHUT_RDWR);
	free(down);
	free(up);
	return NULL;
}

static int open_forward(struct hop *h, struct hop *next, struct err *e)
{
	h->forward = ssh_channel_new(h->session);
	if (h->forward &&
		ssh_channel_open_forward(
			h->forward, next->address, (int)next->port, "127.0.0.1", 0) == SSH_OK)
		return 0;
	hop_error(h, e, "opening the channel to the next hop",
		"the host refuses forwarding (is AllowTcpForwarding off there?)");
	return err_prefix(
		e, -EHOSTUNREACH, "%s cannot reach %s:%u", h->address, next->address, next->port);
}

int relay_start(struct hop *h, struct hop *next, struct err *e)
{
	struct node *n = h->node;
	int ends[2], rc;

	rc = open_forward(h, next, e);
	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_errno(e, -errno, "cannot make a socket pair");
	ssh_set_blocking(h->session, 0);
	pthread_mutex_lock(&n->set->lock);
	next->fd = n->fd = ends[0];
	pthread_mutex_unlock(&n->set->lock);
	h->pair = ends[1];
	rc = pthread_create(&h->relay, NULL, relay, h);
	h->relaying = !rc;
	return rc ? err_errno(e, -rc, "cannot start a thread") : 0;
}

void relay_stop(struct hop *h)
{
	if (h->relaying) {
		shutdown(h->pair, SHUT_RDWR);
		pthread_join(h->relay, NULL);
		ssh_set_blocking(h->session, 1);
	}
	h->relaying = false;
	if (h->forward)
		ssh_channel_free(h->forward);
	h->forward = NULL;
}
