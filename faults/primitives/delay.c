/* Delays packets that a firewall rule hands to a queue (NFQUEUE), by libmnl. */
#include "faults/primitives/delay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "faults/primitives/link_model.h"
#include "faults/primitives/procfs.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define FULL_PACKET 1514 /* bytes, of Ethernet */
#define HEADERS 64       /* bytes of a packet that the kernel copies */
#define RECEIVE_ROOM (8 << 20)
#define ANSWER_TIMEOUT_S 5
#define QUEUE_FIRST 51200u /* other programs' queues are numbered from 0 */
#define QUEUE_TRIES 1024u
#define READS_MAX 64 /* before due packets are looked for again */
#define NOTE_NS 100000000

struct delay_packet {
	uint32_t id, bytes;
	int64_t came_ns, due_ns;
};

struct delay_queue {
	int fd;
	uint16_t number;
	struct link_model model;
	struct delay_packet waiting[DELAY_PACKETS_MAX]; /* a ring, ordered by due_ns */
	uint32_t first, n;
	uint64_t bytes; /* that wait */
	struct delay_totals totals;
	int64_t began_ns, note_ns, waited_ns;
	uint64_t dropped; /* by us; the kernel counts those that find no room in its queue */
};

/* ---- netlink ---- */

static struct nlmsghdr *delay_message(char *buf, uint16_t type, uint16_t queue, bool ack)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | type);
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (ack ? NLM_F_ACK : 0));
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = AF_UNSPEC;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(queue);
	return nlh;
}

static int delay_send(int fd, const struct nlmsghdr *nlh)
{
	return send(fd, nlh, nlh->nlmsg_len, 0) < 0 ? -errno : 0;
}

/* Sends a request and reads its answer. */
static int delay_request(int fd, const struct nlmsghdr *nlh)
{
	char buf[16384];
	int rc = delay_send(fd, nlh);
	ssize_t n;

	if (rc)
		return rc;
	n = recv(fd, buf, sizeof(buf), 0);
	if (n < 0)
		return -errno;
	return mnl_cb_run(buf, (size_t)n, 0, 0, NULL, NULL) < 0 ? -errno : 0;
}

/* -EBUSY, or -EPERM in older kernels: another program has it. */
static int delay_bind(int fd, uint16_t queue)
{
	const struct nfqnl_msg_config_cmd command = {.command = NFQNL_CFG_CMD_BIND};
	char buf[512];
	struct nlmsghdr *nlh = delay_message(buf, NFQNL_MSG_CONFIG, queue, true);

	mnl_attr_put(nlh, NFQA_CFG_CMD, sizeof(command), &command);
	return delay_request(fd, nlh);
}

/* Segments of TCP stay joined as they are, except on a link with a rate: its queue has room for
 * fewer bytes than they are together. */
static int delay_configure(int fd, uint16_t queue, bool joined)
{
	const struct nfqnl_msg_config_params params = {
		.copy_range = htonl(HEADERS), .copy_mode = NFQNL_COPY_PACKET};
	char buf[512];
	struct nlmsghdr *nlh = delay_message(buf, NFQNL_MSG_CONFIG, queue, true);

	mnl_attr_put(nlh, NFQA_CFG_PARAMS, sizeof(params), &params);
	mnl_attr_put_u32(nlh, NFQA_CFG_QUEUE_MAXLEN, htonl(2 * DELAY_PACKETS_MAX));
	if (joined) {
		mnl_attr_put_u32(nlh, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO));
		mnl_attr_put_u32(nlh, NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO));
	}
	return delay_request(fd, nlh);
}

static int delay_socket(int *fd)
{
	const struct timeval limit = {.tv_sec = ANSWER_TIMEOUT_S};
	struct sockaddr_nl self = {.nl_family = AF_NETLINK};
	int room = RECEIVE_ROOM, on = 1;

	*fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (*fd < 0 || bind(*fd, (struct sockaddr *)&self, sizeof(self)) < 0)
		return -errno;
	setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(*fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	/* Packets that find no room in it are dropped and counted; that is no error. */
	setsockopt(*fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on));
	return 0;
}

int delay_open(const struct delay_spec *s, uint16_t *queue, int *fd, struct err *e)
{
	auto_fd int made = -1;
	unsigned at = 0;
	int rc = delay_socket(&made);

	if (rc)
		return err_errno(e, rc, "cannot speak to the kernel's packet queues");
	do
		rc = delay_bind(made, (uint16_t)(QUEUE_FIRST + at));
	while ((rc == -EBUSY || rc == -EPERM) && ++at < QUEUE_TRIES);
	if (rc == -EINVAL || rc == -EOPNOTSUPP)
		return err_set(e, -EOPNOTSUPP,
			"the kernel has no packet queues (nfnetlink_queue): load them with "
			"'modprobe nfnetlink_queue'");
	rc = rc ?: delay_configure(made, (uint16_t)(QUEUE_FIRST + at), s->rate <= 0);
	if (rc)
		return err_errno(e, rc, "cannot make the packet queue %u", QUEUE_FIRST + at);
	*queue = (uint16_t)(QUEUE_FIRST + at);
	*fd = made;
	made = -1;
	return 0;
}

/* ---- the program ---- */

static volatile sig_atomic_t delay_stopped;

static void delay_stop(int signo)
{
	(void)signo;
	delay_stopped = 1;
}

/* Accepts all packets up to 'id', or drops that one. */
static int delay_verdict(struct delay_queue *q, uint32_t id, uint32_t what)
{
	char buf[256];
	struct nlmsghdr *nlh = delay_message(buf,
		what == NF_ACCEPT ? NFQNL_MSG_VERDICT_BATCH : NFQNL_MSG_VERDICT, q->number, false);
	const struct nfqnl_msg_verdict_hdr v = {.verdict = htonl(what), .id = htonl(id)};

	mnl_attr_put(nlh, NFQA_VERDICT_HDR, sizeof(v), &v);
	return delay_send(q->fd, nlh);
}

/* Accepts the packets that are due at 'until_ns'. */
static int accept_due(struct delay_queue *q, int64_t now_ns, int64_t until_ns)
{
	bool any = false;
	uint32_t last = 0;

	for (; q->n && q->waiting[q->first].due_ns <= until_ns; q->n--) {
		const struct delay_packet *p = &q->waiting[q->first];

		q->totals.packets++;
		q->totals.bytes += p->bytes;
		q->bytes -= p->bytes;
		q->waited_ns += now_ns - p->came_ns;
		last = p->id;
		any = true;
		q->first = (q->first + 1) % DELAY_PACKETS_MAX;
	}
	return any ? delay_verdict(q, last, NF_ACCEPT) : 0;
}

static int on_attribute(const struct nlattr *attr, void *data)
{
	const struct nlattr **attrs = data;
	uint16_t type = mnl_attr_get_type(attr);

	if (type <= NFQA_MAX)
		attrs[type] = attr;
	return MNL_CB_OK;
}

static int on_packet(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *attrs[NFQA_MAX + 1] = {NULL};
	const struct nfqnl_msg_packet_hdr *head;
	struct delay_queue *q = data;
	int64_t now = clock_ns(CLOCK_MONOTONIC), due = LINK_DROPS;
	uint32_t bytes = 0, id;

	if (mnl_attr_parse(nlh, sizeof(struct nfgenmsg), on_attribute, attrs) < 0 ||
		!attrs[NFQA_PACKET_HDR])
		return MNL_CB_OK;
	head = mnl_attr_get_payload(attrs[NFQA_PACKET_HDR]);
	id = ntohl(head->packet_id);
	/* Of a packet that was copied in part, the kernel adds the length. */
	if (attrs[NFQA_CAP_LEN])
		bytes = ntohl(mnl_attr_get_u32(attrs[NFQA_CAP_LEN]));
	else if (attrs[NFQA_PAYLOAD])
		bytes = mnl_attr_get_payload_len(attrs[NFQA_PAYLOAD]);
	if (q->n < DELAY_PACKETS_MAX && q->bytes + bytes <= DELAY_BYTES_MAX)
		due = link_model_packet(&q->model, now, bytes);
	if (due == LINK_DROPS) {
		q->dropped++;
		return delay_verdict(q, id, NF_DROP) ? MNL_CB_ERROR : MNL_CB_OK;
	}
	q->bytes += bytes;
	q->waiting[(q->first + q->n++) % DELAY_PACKETS_MAX] = (struct delay_packet){
		.id = id, .bytes = bytes, .came_ns = now, .due_ns = due};
	return MNL_CB_OK;
}

static int take_packets(struct delay_queue *q)
{
	char buf[16384];

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = recv(q->fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		/* An answer refuses a verdict on a packet that is gone with its interface. */
		if (mnl_cb_run(buf, (size_t)n, 0, 0, on_packet, q) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* Packets that found no room in the kernel's queue or in the socket. */
static uint64_t dropped_by_kernel(uint16_t queue)
{
	unsigned long long full = 0, unread = 0;
	auto_free char *text = NULL;
	unsigned number;

	if (file_read("/proc/self/net/netfilter/nfnetlink_queue", &text, NULL, NULL))
		return 0;
	PROCFS_EACH_LINE(line, text)
	{
		if (sscanf(line, "%u %*u %*u %*u %*u %llu %llu", &number, &full, &unread) == 3 &&
			number == queue)
			return full + unread;
	}
	return 0;
}

static void delay_note(
	struct delay_queue *q, int64_t now_ns, void (*note)(const struct delay_totals *))
{
	if (now_ns < q->note_ns)
		return;
	q->note_ns = now_ns + NOTE_NS;
	q->totals.seconds = (double)(now_ns - q->began_ns) / 1e9;
	q->totals.waited_s = (double)q->waited_ns / 1e9;
	q->totals.dropped = q->dropped + dropped_by_kernel(q->number);
	note(&q->totals);
}

static int delay_loop(struct delay_queue *q, void (*note)(const struct delay_totals *))
{
	struct pollfd fd = {.fd = q->fd, .events = POLLIN};
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	int rc = 0;

	q->began_ns = now;
	while (!rc && !delay_stopped) {
		int64_t until = q->n && q->waiting[q->first].due_ns < q->note_ns
			? q->waiting[q->first].due_ns
			: q->note_ns;
		const struct timespec limit = {.tv_nsec = until > now ? until - now : 0};

		if (ppoll(&fd, 1, &limit, NULL) < 0 && errno != EINTR)
			rc = -errno;
		rc = rc ?: take_packets(q);
		now = clock_ns(CLOCK_MONOTONIC);
		rc = rc ?: accept_due(q, now, now);
		delay_note(q, now, note);
	}
	return rc ?: accept_due(q, now, INT64_MAX);
}

int delay_serve(int fd, uint16_t queue, const struct delay_spec *s,
	void (*note)(const struct delay_totals *so_far), struct err *e)
{
	static struct delay_queue q;
	const struct sigaction action = {.sa_handler = delay_stop};
	int rc;

	q.fd = fd;
	q.number = queue;
	q.model = (struct link_model){.latency_ns = (int64_t)(s->latency_s * 1e9),
		.jitter_ns = (int64_t)(s->jitter_s * 1e9),
		.rate = s->rate};
	if (s->rate > 0)
		q.model.queue_ns = (int64_t)(fmax(s->buffer_s, 10 * FULL_PACKET / s->rate) * 1e9);
	sigaction(SIGTERM, &action, NULL);
	/* A busy node must not add to the delay. */
	prctl(PR_SET_TIMERSLACK, 1);
	setpriority(PRIO_PROCESS, 0, -20);
	rc = delay_loop(&q, note);
	return rc ? err_errno(e, rc, "cannot serve the packet queue %u", (unsigned)queue) : 0;
}

/* ---- the inverse ---- */

/* The program first: when a rule goes, the kernel drops what still waits. */
static int delay_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	bool rule = false;
	int rc = primitive_revert(&process_primitive, inverse, was_there, e),
	    again = primitive_revert(&packets_primitive, inverse, &rule, rc ? NULL : e);

	*was_there |= rule;
	return rc ?: again;
}

static int delay_verify(const json_t *inverse, struct err *e)
{
	return process_primitive.verify_undone(inverse, e)
		?: packets_primitive.verify_undone(inverse, e);
}

const struct primitive delay_primitive = {
	.name = "delay",
	.ends_with_boot = true,
	.undo = delay_undo,
	.verify_undone = delay_verify,
};
