/* Reads sockets by sock_diag(7): one dump for each address family, each socket with as much of
 * struct tcp_info as this kernel has. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "diag/capture/sampler/netlink.h"
#include "diag/capture/sampler/sampler.h"

enum {
	ESTABLISHED = 1,
	SYN_SENT,
	SYN_RECV,
	FIN_WAIT1,
	FIN_WAIT2,
	TIME_WAIT,
	CLOSE,
	CLOSE_WAIT,
	LAST_ACK,
	LISTEN,
	CLOSING,
	/* Sockets in other states have no struct tcp_info. */
	STATES = 1 << ESTABLISHED | 1 << SYN_SENT | 1 << FIN_WAIT1 | 1 << FIN_WAIT2 |
		1 << CLOSE_WAIT | 1 << LAST_ACK | 1 << LISTEN | 1 << CLOSING,
	/* A dump may omit a socket while others come and go: it is remembered for this number of
	 * ticks. */
	MISSING_TICKS = 3,
};

struct tcp {
	struct netlink *nl;
	uint16_t *listening; /* ports on which the sampled processes listen */
	size_t n_listening, listening_room;
};

/* Place of each reading in struct tcp_info; a kernel older than the field has a shorter struct. */
#define FIELD(reading, field)                                                                      \
	{                                                                                          \
		READING_##reading, offsetof(struct tcp_info, field),                               \
			sizeof(((struct tcp_info *)NULL)->field)                                   \
	}
static const struct {
	enum reading reading;
	size_t offset, size;
} fields[] = {
	FIELD(TCP_SENT, tcpi_bytes_sent),
	FIELD(TCP_RECEIVED, tcpi_bytes_received),
	FIELD(TCP_SENT_SEGMENTS, tcpi_segs_out),
	FIELD(TCP_RECEIVED_SEGMENTS, tcpi_segs_in),
	FIELD(TCP_RETRANSMITTED, tcpi_total_retrans),
	FIELD(TCP_OUT_OF_ORDER, tcpi_rcv_ooopack),
	FIELD(TCP_DUPLICATES, tcpi_dsack_dups),
	FIELD(TCP_BUSY, tcpi_busy_time),
	FIELD(TCP_RECEIVER_LIMITED, tcpi_rwnd_limited),
	FIELD(TCP_SENDER_LIMITED, tcpi_sndbuf_limited),
	FIELD(TCP_RTT, tcpi_rtt),
	FIELD(TCP_RTT_VARIATION, tcpi_rttvar),
	FIELD(TCP_WINDOW, tcpi_snd_cwnd),
	FIELD(TCP_DELIVERY_RATE, tcpi_delivery_rate),
	FIELD(TCP_UNSENT, tcpi_notsent_bytes),
};

static void take_info(const struct nlattr *a, struct thing *t)
{
	const char *info = mnl_attr_get_payload(a);
	size_t size = mnl_attr_get_payload_len(a);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t wide;
		uint32_t narrow;

		if (fields[i].offset + fields[i].size > size)
			continue;
		if (fields[i].size == sizeof(wide)) {
			memcpy(&wide, info + fields[i].offset, sizeof(wide));
		} else {
			memcpy(&narrow, info + fields[i].offset, sizeof(narrow));
			wide = narrow;
		}
		thing_set(t, fields[i].reading, wide);
	}
}

/* An IPv4 address in an IPv6 socket is the same peer as in an IPv4 socket. */
static void take_peer(const struct inet_diag_msg *m, struct socket_peer *p)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *address = (const uint8_t *)m->id.idiag_dst;
	bool v4 = m->idiag_family == AF_INET;

	p->port = m->id.idiag_dport;
	if (!v4 && !memcmp(address, mapped, sizeof(mapped))) {
		v4 = true;
		address += sizeof(mapped);
	}
	p->family = v4 ? AF_INET : AF_INET6;
	memcpy(p->address, address, v4 ? 4 : 16);
}

static void take_socket(const struct nlmsghdr *h, struct sampler_snapshot *s)
{
	const struct inet_diag_msg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *a;
	struct thing *t;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) ||
		(m->idiag_family != AF_INET && m->idiag_family != AF_INET6))
		return;
	t = snapshot_add(
		s, THING_SOCKET, (uint64_t)m->id.idiag_cookie[1] << 32 | m->id.idiag_cookie[0]);
	if (!t)
		return;
	t->inode = m->idiag_inode;
	t->local_port = ntohs(m->id.idiag_sport);
	t->listening = m->idiag_state == LISTEN;
	if (t->listening)
		return;
	take_peer(m, &t->peer);
	thing_set(t, READING_TCP_UNREAD, m->idiag_rqueue);
	mnl_attr_for_each(a, h, sizeof(*m)) if (mnl_attr_get_type(a) == INET_DIAG_INFO)
		take_info(a, t);
}

int tcp_parse(const void *data, size_t size, struct sampler_snapshot *s)
{
	return netlink_parse(data, size, SOCK_DIAG_BY_FAMILY, take_socket, s);
}

static int dump(struct tcp *t, uint8_t family, struct sampler_snapshot *s)
{
	char request[MNL_ALIGN(sizeof(struct nlmsghdr)) +
		MNL_ALIGN(sizeof(struct inet_diag_req_v2))] __attribute__((aligned(8)));
	struct nlmsghdr *h = mnl_nlmsg_put_header(request);
	struct inet_diag_req_v2 *r = mnl_nlmsg_put_extra_header(h, sizeof(*r));

	h->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	r->sdiag_family = family;
	r->sdiag_protocol = IPPROTO_TCP;
	r->idiag_ext = 1 << (INET_DIAG_INFO - 1);
	r->idiag_states = STATES;
	return netlink_dump(t->nl, h, SOCK_DIAG_BY_FAMILY, take_socket, s);
}

static int list_sockets(struct tcp *t, struct sampler_snapshot *s, struct err *e)
{
	int rc = dump(t, AF_INET, s);

	if (!rc)
		rc = dump(t, AF_INET6, s);
	/* no IPv6 here */
	if (rc == -ENOENT && s->n)
		rc = 0;
	s->sockets_listed = !rc;
	return rc ? err_errno(e, rc, "cannot list the TCP sockets") : 0;
}

static int add_listening(struct tcp *t, uint16_t port)
{
	if (t->n_listening == t->listening_room) {
		size_t room = t->listening_room ? 2 * t->listening_room : 16;
		uint16_t *more = realloc(t->listening, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->listening = more;
		t->listening_room = room;
	}
	t->listening[t->n_listening++] = port;
	return 0;
}

static bool is_listening(const struct tcp *t, uint16_t port)
{
	for (size_t i = 0; i < t->n_listening; i++)
		if (t->listening[i] == port)
			return true;
	return false;
}

static int tcp_by_number(const void *a, const void *b)
{
	const uint32_t *p = a, *q = b;

	return *p < *q ? -1 : *p > *q;
}

/* A socket keeps its owner: after its process has closed it, it still sends its remaining data, but
 * has no inode any more. */
static int tcp_judge(struct tcp *t, struct processes *p, const struct sampler_snapshot *before,
	struct sampler_snapshot *s)
{
	const uint32_t *inodes = NULL;
	bool asked = false;
	size_t n = 0;
	int rc = 0;

	t->n_listening = 0;
	for (size_t i = 0; i < s->n && !rc; i++) {
		struct thing *x = &s->things[i];
		const struct thing *old;

		if (x->kind != THING_SOCKET)
			continue;
		x->fresh = before->sockets_listed;
		old = snapshot_find(before, THING_SOCKET, x->id);
		if (old && old->judged) {
			x->judged = true;
			x->ours = old->ours;
			x->peer = old->peer;
		} else if (x->inode) {
			if (!asked)
				inodes = processes_sockets(p, &n);
			asked = true;
			/* Only now its owner must be determined. */
			x->ours = n &&
				bsearch(&x->inode, inodes, n, sizeof(*inodes), tcp_by_number);
		}
		if (x->ours && x->listening)
			rc = add_listening(t, x->local_port);
	}
	for (size_t i = 0; i < s->n && !rc; i++) {
		struct thing *x = &s->things[i];

		if (x->kind != THING_SOCKET || x->judged || !x->inode)
			continue;
		x->judged = true;
		if (x->ours && is_listening(t, x->local_port)) {
			x->peer.accepted = 1;
			x->peer.port = 0;
		}
	}
	return rc;
}

static void keep_missing(const struct sampler_snapshot *before, struct sampler_snapshot *s)
{
	size_t n = s->n;

	for (size_t i = 0; i < before->n; i++) {
		const struct thing *old = &before->things[i];
		const struct sampler_snapshot listed = {.things = s->things, .n = n};
		struct thing *t;

		if (old->kind != THING_SOCKET || old->listening || (old->judged && !old->ours) ||
			old->missing == MISSING_TICKS ||
			snapshot_find(&listed, THING_SOCKET, old->id))
			continue;
		t = snapshot_add(s, THING_SOCKET, old->id);
		if (!t)
			return;
		*t = *old;
		t->missing++;
	}
	snapshot_sort(s);
}

int tcp_read(struct tcp *t, struct processes *p, const struct sampler_snapshot *before,
	struct sampler_snapshot *s, struct err *e)
{
	int rc = list_sockets(t, s, e);

	snapshot_sort(s);
	if (!rc && tcp_judge(t, p, before, s))
		rc = err_errno(e, -ENOMEM, "cannot list the TCP sockets");
	if (!rc)
		keep_missing(before, s);
	return rc;
}

int tcp_new(struct tcp **out, struct err *e)
{
	struct sampler_snapshot probe = {0};
	struct tcp *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_errno(e, -ENOMEM, "cannot list sockets");
	rc = netlink_new(NETLINK_SOCK_DIAG, &t->nl);
	if (rc) {
		rc = err_set(e, -EOPNOTSUPP, "this kernel has no sock_diag (%s)", strerror(-rc));
		goto out;
	}
	rc = dump(t, AF_INET, &probe);
	if (rc)
		rc = err_set(e, -EOPNOTSUPP,
			"this kernel does not list TCP sockets through sock_diag (%s)",
			strerror(-rc));
out:
	snapshot_free(&probe);
	if (rc)
		tcp_free(t);
	else
		*out = t;
	return rc;
}

void tcp_free(struct tcp *t)
{
	if (!t)
		return;
	netlink_free(t->nl);
	free(t->listening);
	free(t);
}
