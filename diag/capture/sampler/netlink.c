/* Dumps kernel tables over netlink(7): one request, and an answer of many messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "diag/capture/sampler/netlink.h"

enum { BUFFER_BYTES = 64 << 10 };

struct netlink {
	struct mnl_socket *socket;
	uint32_t seq;
	char buffer[BUFFER_BYTES] __attribute__((aligned(8)));
};

int netlink_new(int bus, struct netlink **out)
{
	const struct timeval patience = {.tv_sec = 1};
	struct netlink *n = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return -ENOMEM;
	n->socket = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!n->socket || mnl_socket_bind(n->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		rc = -errno;
		netlink_free(n);
		return rc;
	}
	setsockopt(
		mnl_socket_get_fd(n->socket), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	*out = n;
	return 0;
}

int netlink_parse(
	const void *data, size_t size, uint16_t type, netlink_take take, struct sampler_snapshot *s)
{
	const struct nlmsghdr *h = data;
	int left = (int)size;

	for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left)) {
		int code = 0;

		/* libmnl treats lengths from 2^31 on as negative. */
		if (h->nlmsg_len > (unsigned)left)
			break;
		if (h->nlmsg_type == type)
			take(h, s);
		if (h->nlmsg_type != NLMSG_DONE && h->nlmsg_type != NLMSG_ERROR)
			continue;
		/* Both begin with a code. */
		if (mnl_nlmsg_get_payload_len(h) >= sizeof(code))
			memcpy(&code, mnl_nlmsg_get_payload(h), sizeof(code));
		return code < 0 && code > -4096 ? code : 0;
	}
	return 1;
}

int netlink_dump(struct netlink *n, struct nlmsghdr *request, uint16_t answers, netlink_take take,
	struct sampler_snapshot *s)
{
	int rc = 1;

	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = ++n->seq;
	if (mnl_socket_sendto(n->socket, request, request->nlmsg_len) < 0)
		return -errno;
	while (rc > 0) {
		const struct nlmsghdr *first = (const void *)n->buffer;
		ssize_t got = mnl_socket_recvfrom(n->socket, n->buffer, sizeof(n->buffer));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		/* The rest of an abandoned answer. */
		if ((size_t)got >= sizeof(*first) && first->nlmsg_seq != n->seq)
			continue;
		rc = netlink_parse(n->buffer, (size_t)got, answers, take, s);
	}
	return rc;
}

void netlink_free(struct netlink *n)
{
	if (!n)
		return;
	if (n->socket)
		mnl_socket_close(n->socket);
	free(n);
}
