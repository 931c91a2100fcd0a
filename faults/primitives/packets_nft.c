/*
 * Packet drops with nftables. What is built to drop 5 % of what comes in from 10.0.0.1:
 *
 *	table inet culprit_8f3a12cd_d1 {
 *		chain loss {
 *			counter
 *			numgen random mod 1000000 < 50000 counter drop
 *		}
 *		chain hook {
 *			type filter hook input priority filter; policy accept;
 *			iiftype loopback accept
 *			ip saddr 10.0.0.1 jump loss
 *		}
 *	}
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <math.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "faults/primitives/packets_impl.h"
#include "harness/base/auto.h"

#define CHAIN_HOOK "hook"
#define CHAIN_LOSS "loss"
#define SCALE 1000000u
#define REPLY_TIMEOUT_S 5

/* One transaction. 'rc' keeps the first failure. */
struct nft_batch {
	const char *table;
	char *buf;
	size_t used, room;
	uint32_t seq, wanted;    /* wanted: how many answers */
	struct nftnl_rule *rule; /* between rule_begin and rule_end */
	bool xt;                 /* queues by the target of iptables */
	int rc;
};

/* Keeps the first failure; false after one. */
static bool batch_ok(struct nft_batch *b, bool done)
{
	if (!b->rc && !done)
		b->rc = -ENOMEM;
	return !b->rc;
}

/* Room for one message; NULL after a failure. */
static char *batch_room(struct nft_batch *b)
{
	size_t room = b->room * 2 + (size_t)MNL_SOCKET_BUFFER_SIZE;

	if (!b->rc && b->room - b->used < (size_t)MNL_SOCKET_BUFFER_SIZE) {
		char *more = realloc(b->buf, room);

		if (batch_ok(b, more)) {
			b->buf = more;
			b->room = room;
		}
	}
	return b->rc ? NULL : b->buf + b->used;
}

static void batch_mark(struct nft_batch *b, struct nlmsghdr *(*build)(char *buf, uint32_t seq))
{
	char *at = batch_room(b);

	if (at)
		b->used += NLMSG_ALIGN(build(at, b->seq++)->nlmsg_len);
}

/* Appends a message on 'object' of 'kind' (table, chain, rule), and frees the object. */
#define PUT(b, type, flags, kind, object)                                                          \
	do {                                                                                       \
		char *at_ = batch_room(b);                                                         \
		struct nlmsghdr *nlh_;                                                             \
                                                                                                   \
		if (at_) {                                                                         \
			nlh_ = nftnl_nlmsg_build_hdr(                                              \
				at_, type, NFPROTO_INET, (flags) | NLM_F_ACK, (b)->seq++);         \
			nftnl_##kind##_nlmsg_build_payload(nlh_, object);                          \
			(b)->used += NLMSG_ALIGN(nlh_->nlmsg_len);                                 \
			(b)->wanted++;                                                             \
		}                                                                                  \
		if (object)                                                                        \
			nftnl_##kind##_free(object);                                               \
	} while (0)

static void packets_nft_put_table(struct nft_batch *b, uint16_t type, uint16_t flags)
{
	struct nftnl_table *t = nftnl_table_alloc();

	batch_ok(b, t && !nftnl_table_set_str(t, NFTNL_TABLE_NAME, b->table));
	PUT(b, type, flags, table, t);
}

static void put_chain(struct nft_batch *b, const char *name, int hook)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (batch_ok(b,
		    c && !nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, b->table) &&
			    !nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name) &&
			    (hook < 0 || !nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter"))) &&
		hook >= 0) {
		nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, (uint32_t)hook);
		nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, 0);
		nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	}
	PUT(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, chain, c);
}

static void rule_begin(struct nft_batch *b, const char *chain)
{
	struct nftnl_rule *r = b->rule = nftnl_rule_alloc();

	batch_ok(b,
		r && !nftnl_rule_set_str(r, NFTNL_RULE_TABLE, b->table) &&
			!nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain));
}

static void rule_end(struct nft_batch *b)
{
	PUT(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, rule, b->rule);
}

/* Adds an expression to the rule, with numbers as {attribute, value}. NULL after a failure. */
#define EXPR(b, name, ...) put_expr(b, name, (const uint32_t[][2]){__VA_ARGS__, {0}})

static struct nftnl_expr *put_expr(struct nft_batch *b, const char *name, const uint32_t (*set)[2])
{
	struct nftnl_expr *x = b->rc ? NULL : nftnl_expr_alloc(name);

	if (!batch_ok(b, x))
		return NULL;
	nftnl_rule_add_expr(b->rule, x);
	for (; (*set)[0]; set++)
		nftnl_expr_set_u32(x, (uint16_t)(*set)[0], (*set)[1]);
	return x;
}

static void put_meta(struct nft_batch *b, uint32_t key)
{
	EXPR(b, "meta", {NFTNL_EXPR_META_KEY, key}, {NFTNL_EXPR_META_DREG, NFT_REG_1});
}

static void put_cmp(struct nft_batch *b, uint32_t op, const void *data, uint32_t size)
{
	struct nftnl_expr *x = EXPR(
		b, "cmp", {NFTNL_EXPR_CMP_SREG, NFT_REG_1}, {NFTNL_EXPR_CMP_OP, op});

	batch_ok(b, x && !nftnl_expr_set(x, NFTNL_EXPR_CMP_DATA, data, size));
}

static void put_address(struct nft_batch *b, const struct packets_address *a, bool source)
{
	uint32_t size = a->family == AF_INET ? 4 : 16;
	uint32_t offset = a->family == AF_INET ? (source ? 12 : 16) : (source ? 8 : 24);

	EXPR(b, "payload", {NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER},
		{NFTNL_EXPR_PAYLOAD_OFFSET, offset}, {NFTNL_EXPR_PAYLOAD_LEN, size},
		{NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1});
	put_cmp(b, NFT_CMP_EQ, a->bytes, size);
}

/* Ends the rule. */
static void put_verdict(struct nft_batch *b, int verdict, const char *chain)
{
	struct nftnl_expr *x = EXPR(b, "immediate", {NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT},
		{NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict});

	batch_ok(b, x && (!chain || !nftnl_expr_set_str(x, NFTNL_EXPR_IMM_CHAIN, chain)));
	rule_end(b);
}

/* The kernel reads the target's argument as struct xt_NFQ_info_v3, aligned. */
static void put_queue_xt(struct nft_batch *b, uint16_t queue)
{
	struct nftnl_expr *x = EXPR(b, "target", {NFTNL_EXPR_TG_REV, 3});
	const struct xt_NFQ_info_v3 info = {
		.queuenum = queue, .queues_total = 1, .flags = NFQ_FLAG_BYPASS};
	void *own = x ? calloc(1, XT_ALIGN(sizeof(info))) : NULL;

	if (!batch_ok(b, own))
		return;
	memcpy(own, &info, sizeof(info));
	nftnl_expr_set_str(x, NFTNL_EXPR_TG_NAME, "NFQUEUE");
	/* The expression frees it. */
	nftnl_expr_set(x, NFTNL_EXPR_TG_INFO, own, XT_ALIGN(sizeof(info)));
}

/* Ends the rule: packets go into the queue, or pass while no program listens there. */
static void put_queue(struct nft_batch *b, uint16_t queue)
{
	struct nftnl_expr *x = b->xt ? NULL : EXPR(b, "queue", {0});

	if (b->xt)
		put_queue_xt(b, queue);
	if (x) {
		nftnl_expr_set_u16(x, NFTNL_EXPR_QUEUE_NUM, queue);
		nftnl_expr_set_u16(x, NFTNL_EXPR_QUEUE_TOTAL, 1);
		nftnl_expr_set_u16(x, NFTNL_EXPR_QUEUE_FLAGS, NFT_QUEUE_FLAG_BYPASS);
	}
	rule_end(b);
}

static void put_loss_rules(struct nft_batch *b, const struct packets_spec *s)
{
	uint32_t threshold = (uint32_t)llround(s->percent * SCALE / 100);
	uint32_t limit = htonl(threshold ? threshold : 1);

	rule_begin(b, CHAIN_LOSS);
	EXPR(b, "counter", {0});
	rule_end(b);

	rule_begin(b, CHAIN_LOSS);
	if (threshold < SCALE) {
		EXPR(b, "numgen", {NFTNL_EXPR_NG_DREG, NFT_REG_1}, {NFTNL_EXPR_NG_MODULUS, SCALE},
			{NFTNL_EXPR_NG_TYPE, NFT_NG_RANDOM});
		/* Comparisons are bytewise, so numbers must be big-endian. */
		EXPR(b, "byteorder", {NFTNL_EXPR_BYTEORDER_SREG, NFT_REG_1},
			{NFTNL_EXPR_BYTEORDER_DREG, NFT_REG_1},
			{NFTNL_EXPR_BYTEORDER_OP, NFT_BYTEORDER_HTON},
			{NFTNL_EXPR_BYTEORDER_LEN, 4}, {NFTNL_EXPR_BYTEORDER_SIZE, 4});
		put_cmp(b, NFT_CMP_LT, &limit, sizeof(limit));
	}
	EXPR(b, "counter", {0});
	if (s->queue)
		put_queue(b, s->queue);
	else
		put_verdict(b, NF_DROP, NULL);
}

static int put_jump(
	void *batch, const struct packets_address *from, const struct packets_address *to)
{
	struct nft_batch *b = batch;

	rule_begin(b, CHAIN_HOOK);
	if (from || to) {
		uint8_t family = (from ? from : to)->family == AF_INET ? NFPROTO_IPV4
								       : NFPROTO_IPV6;

		put_meta(b, NFT_META_NFPROTO);
		put_cmp(b, NFT_CMP_EQ, &family, 1);
	}
	if (from)
		put_address(b, from, true);
	if (to)
		put_address(b, to, false);
	put_verdict(b, NFT_JUMP, CHAIN_LOSS);
	return 0;
}

static void put_hook_rules(struct nft_batch *b, const struct packets_spec *s)
{
	const uint16_t loopback = ARPHRD_LOOPBACK;

	rule_begin(b, CHAIN_HOOK);
	put_meta(b, s->out ? NFT_META_OIFTYPE : NFT_META_IIFTYPE);
	put_cmp(b, NFT_CMP_EQ, &loopback, sizeof(loopback));
	put_verdict(b, NF_ACCEPT, NULL);
	packets_each_pair(s, put_jump, b);
}

AUTO_DEFINE(socket, struct mnl_socket *, mnl_socket_close)

static struct mnl_socket *socket_open(struct err *e)
{
	struct timeval limit = {.tv_sec = REPLY_TIMEOUT_S};
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		err_errno(e, -errno, "cannot speak to nftables");
		if (nl)
			mnl_socket_close(nl);
		return NULL;
	}
	setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return nl;
}

/* Until each message was acknowledged, or one was refused. */
static int receive_acks(struct mnl_socket *nl, uint32_t wanted)
{
	char answer[MNL_SOCKET_BUFFER_SIZE];

	while (wanted) {
		ssize_t n = mnl_socket_recvfrom(nl, answer, sizeof(answer));
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)answer;

		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		for (int left = (int)n; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
			const struct nlmsgerr *msg = mnl_nlmsg_get_payload(nlh);

			if (nlh->nlmsg_type == NLMSG_ERROR && msg->error)
				return msg->error;
			wanted -= nlh->nlmsg_type == NLMSG_ERROR;
		}
	}
	return 0;
}

/* Sends all at once, and frees the batch. */
static int batch_send(struct nft_batch *b, struct err *e)
{
	auto_free char *buf = b->buf;
	auto_of(socket) struct mnl_socket *nl = NULL;
	int rc, room = (int)b->used * 2;

	if (b->rc)
		return err_errno(e, b->rc, "cannot build the nftables table '%s'", b->table);
	nl = socket_open(e);
	if (!nl)
		return -errno;
	setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	rc = mnl_socket_sendto(nl, buf, b->used) < 0 ? -errno : receive_acks(nl, b->wanted);
	return rc ? err_errno(e, rc, "nftables refuses the table '%s'", b->table) : 0;
}

static int send_table(
	const struct packets_spec *s, const char *table, bool commit, bool xt, struct err *e)
{
	struct nft_batch b = {.table = table, .seq = (uint32_t)time(NULL), .xt = xt};

	batch_mark(&b, nftnl_batch_begin);
	packets_nft_put_table(&b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	put_chain(&b, CHAIN_LOSS, -1);
	put_chain(&b, CHAIN_HOOK, s->out ? NF_INET_LOCAL_OUT : NF_INET_LOCAL_IN);
	put_loss_rules(&b, s);
	put_hook_rules(&b, s);
	/* The kernel checks a batch without an end, and then drops it. */
	if (commit)
		batch_mark(&b, nftnl_batch_end);
	return batch_send(&b, e);
}

/* Kernels without nft_queue (CONFIG_NFT_QUEUE) may have the target of iptables, which nftables also
 * takes. */
static int make_table(const struct packets_spec *s, const char *table, bool commit, struct err *e)
{
	int rc = send_table(s, table, commit, false, e);

	if (rc != -ENOENT || !s->queue)
		return rc;
	rc = send_table(s, table, commit, true, e);
	return rc == -ENOENT
		? err_set(e, -EOPNOTSUPP,
			  "nftables cannot queue packets: the kernel has neither nft_queue nor "
			  "nft_compat with xt_NFQUEUE")
		: rc;
}

static int nft_check(bool queue, struct err *e)
{
	const struct packets_spec probe = {.percent = 1, .queue = queue};

	return make_table(&probe, "culprit_probe", false, e);
}

static int nft_drop(const struct packets_spec *s, const char *table, struct err *e)
{
	return make_table(s, table, true, e);
}

static int nft_remove(const char *table, struct err *e)
{
	struct nft_batch b = {.table = table, .seq = (uint32_t)time(NULL)};

	batch_mark(&b, nftnl_batch_begin);
	packets_nft_put_table(&b, NFT_MSG_DELTABLE, 0);
	batch_mark(&b, nftnl_batch_end);
	return batch_send(&b, e);
}

/* One dump. -EINTR: somebody changed the rules under it. */
static int dump_once(uint16_t type, uint16_t family, uint32_t seq, mnl_cb_t cb, void *data,
	struct mnl_socket *nl)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(buf, type, family, NLM_F_DUMP, seq);
	int more = mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0 ? -1 : 1;

	while (more > 0) {
		ssize_t n = mnl_socket_recvfrom(nl, buf, sizeof(buf));

		more = n < 0 ? -1
			     : mnl_cb_run(buf, (size_t)n, seq, mnl_socket_get_portid(nl), cb, data);
	}
	return !more ? 0 : errno == EAGAIN ? -ETIMEDOUT : -errno;
}

static int dump(uint16_t type, uint16_t family, mnl_cb_t cb, void *data, struct err *e)
{
	int rc = -EINTR;

	for (uint32_t tries = 0; tries < 10 && rc == -EINTR; tries++) {
		auto_of(socket) struct mnl_socket *nl = socket_open(e);

		if (!nl)
			return -errno;
		rc = dump_once(type, family, (uint32_t)time(NULL) + tries, cb, data, nl);
	}
	return rc ? err_errno(e, rc, "cannot list nftables") : 0;
}

AUTO_DEFINE(table, struct nftnl_table *, nftnl_table_free)
AUTO_DEFINE(rule, struct nftnl_rule *, nftnl_rule_free)
AUTO_DEFINE(iter, struct nftnl_expr_iter *, nftnl_expr_iter_destroy)

static bool has_text(const json_t *list, const char *text)
{
	json_t *name;
	size_t i;

	json_array_foreach((json_t *)list, i, name) {
		if (!strcmp(json_string_value(name), text))
			return true;
	}
	return false;
}

static int on_table(const struct nlmsghdr *nlh, void *data)
{
	static const char *const families[NFPROTO_NUMPROTO] = {[NFPROTO_INET] = "inet",
		[NFPROTO_IPV4] = "ip",
		[NFPROTO_IPV6] = "ip6",
		[NFPROTO_ARP] = "arp",
		[NFPROTO_BRIDGE] = "bridge",
		[NFPROTO_NETDEV] = "netdev"};
	auto_of(table) struct nftnl_table *t = nftnl_table_alloc();
	uint32_t family;
	char text[300];

	if (!t || nftnl_table_nlmsg_parse(nlh, t) < 0)
		return MNL_CB_OK;
	family = nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY);
	snprintf(text, sizeof(text), "%s %s",
		family < NFPROTO_NUMPROTO && families[family] ? families[family] : "other",
		nftnl_table_get_str(t, NFTNL_TABLE_NAME));
	/* A dump that was begun anew has some names twice. */
	if (!has_text(data, text))
		json_array_append_new(data, json_string(text));
	return MNL_CB_OK;
}

int nft_list(json_t **out, struct err *e)
{
	auto_json json_t *list = json_array();
	int rc = list ? dump(NFT_MSG_GETTABLE, NFPROTO_UNSPEC, on_table, list, e)
		      : err_errno(e, -ENOMEM, "cannot list nftables");

	if (!rc)
		*out = AUTO_TAKE(list);
	return rc;
}

static int nft_has(const char *table, bool *found, struct err *e)
{
	auto_json json_t *list = NULL;
	char wanted[64];
	int rc = nft_list(&list, e);

	snprintf(wanted, sizeof(wanted), "inet %s", table);
	if (!rc)
		*found = has_text(list, wanted);
	return rc;
}

struct nft_reading {
	const char *table;
	struct packets_counters c;
	int found;
};

static int on_rule(const struct nlmsghdr *nlh, void *data)
{
	struct nft_reading *reading = data;
	auto_of(rule) struct nftnl_rule *r = nftnl_rule_alloc();
	auto_of(iter) struct nftnl_expr_iter *iter = NULL;
	struct nftnl_expr *x;
	bool acts = false;
	uint64_t packets = 0, bytes = 0;

	if (!r || nftnl_rule_nlmsg_parse(nlh, r) < 0 ||
		strcmp(nftnl_rule_get_str(r, NFTNL_RULE_TABLE), reading->table) ||
		strcmp(nftnl_rule_get_str(r, NFTNL_RULE_CHAIN), CHAIN_LOSS))
		return MNL_CB_OK;
	iter = nftnl_expr_iter_create(r);
	while (iter && (x = nftnl_expr_iter_next(iter))) {
		const char *name = nftnl_expr_get_str(x, NFTNL_EXPR_NAME);

		if (!strcmp(name, "counter")) {
			packets = nftnl_expr_get_u64(x, NFTNL_EXPR_CTR_PACKETS);
			bytes = nftnl_expr_get_u64(x, NFTNL_EXPR_CTR_BYTES);
			reading->found++;
		}
		acts = acts || !strcmp(name, "immediate") || !strcmp(name, "queue") ||
			!strcmp(name, "target");
	}
	*(acts ? &reading->c.dropped : &reading->c.seen) = packets;
	*(acts ? &reading->c.dropped_bytes : &reading->c.seen_bytes) = bytes;
	return MNL_CB_OK;
}

static int nft_read(const char *table, struct packets_counters *c, struct err *e)
{
	struct nft_reading reading = {.table = table};
	int rc = dump(NFT_MSG_GETRULE, NFPROTO_INET, on_rule, &reading, e);

	if (!rc && reading.found < 2)
		rc = err_set(e, -ENOENT, "the nftables table '%s' is not there any more", table);
	if (!rc)
		*c = reading.c;
	return rc;
}

const struct packets_backend packets_nft = {
	.name = "nftables",
	.check = nft_check,
	.drop = nft_drop,
	.read = nft_read,
	.has = nft_has,
	.remove = nft_remove,
};
