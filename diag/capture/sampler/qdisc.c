/* Reads queueing disciplines (tc(8)) of this network namespace's devices: drops, delays and
 * backlog. */
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "diag/capture/sampler/netlink.h"
#include "diag/capture/sampler/sampler.h"

/* A device's disciplines follow one another: those that count make one thing. */
static struct thing *thing_of(struct sampler_snapshot *s, uint64_t device)
{
	struct thing *last = s->n ? &s->things[s->n - 1] : NULL;

	if (last && last->kind == THING_QDISC && last->id == device)
		return last;
	return snapshot_add(s, THING_QDISC, device);
}

static void add_to(struct thing *t, enum reading r, uint64_t v)
{
	thing_set(t, r, v + (t->has >> r & 1 ? t->value[r] : 0));
}

/* A root adds up the drops and backlog of lower disciplines (qdisc_tree_reduce_backlog() in the
 * kernel), so only the root counts. 'ingress' and 'clsact' have separate drops: by filters, of
 * incoming packets. */
static void take_qdisc(const struct nlmsghdr *h, struct sampler_snapshot *s)
{
	const struct tcmsg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *a, *stat;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) ||
		(m->tcm_parent != TC_H_ROOT && m->tcm_parent != TC_H_INGRESS))
		return;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		if (mnl_attr_get_type(a) != TCA_STATS2)
			continue;
		mnl_attr_for_each_nested(stat, a)
		{
			struct gnet_stats_queue q;
			struct thing *t;

			if (mnl_attr_get_type(stat) != TCA_STATS_QUEUE ||
				mnl_attr_get_payload_len(stat) < sizeof(q))
				continue;
			memcpy(&q, mnl_attr_get_payload(stat), sizeof(q));
			t = thing_of(s, (uint32_t)m->tcm_ifindex);
			if (!t)
				return;
			add_to(t, READING_QDISC_DROPPED, q.drops);
			add_to(t, READING_QDISC_OVERLIMITS, q.overlimits);
			add_to(t, READING_QDISC_BACKLOG, q.backlog);
		}
	}
}

int qdisc_parse(const void *data, size_t size, struct sampler_snapshot *s)
{
	return netlink_parse(data, size, RTM_NEWQDISC, take_qdisc, s);
}

int qdisc_read(struct netlink *n, struct sampler_snapshot *s)
{
	char request[MNL_ALIGN(sizeof(struct nlmsghdr)) + MNL_ALIGN(sizeof(struct tcmsg))]
		__attribute__((aligned(8)));
	struct nlmsghdr *h = mnl_nlmsg_put_header(request);
	struct tcmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	const size_t first = s->n;
	size_t kept = first;
	int rc;

	if (!n)
		return -EOPNOTSUPP;
	h->nlmsg_type = RTM_GETQDISC;
	m->tcm_family = AF_UNSPEC;
	rc = netlink_dump(n, h, RTM_NEWQDISC, take_qdisc, s);
	for (size_t i = first; i < s->n; i++) {
		struct thing *t = &s->things[i];
		char name[IF_NAMESIZE] = "";

		/* As for other readings, those of lo do not count; a device that has been removed
		 * has none. */
		if (!if_indextoname((unsigned)t->id, name) || !strcmp(name, "lo"))
			continue;
		memcpy(t->name, name, sizeof(t->name));
		s->things[kept++] = *t;
	}
	s->n = kept;
	return rc;
}
