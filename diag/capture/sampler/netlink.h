/*
 * netlink.c: what the kernel lists over netlink(7), taken into a snapshot. A dump waits up to a
 * second for each part of the answer.
 */
#ifndef CULPRIT_DIAG_CAPTURE_SAMPLER_NETLINK_H
#define CULPRIT_DIAG_CAPTURE_SAMPLER_NETLINK_H

#include <libmnl/libmnl.h>

#include "diag/capture/sampler/sampler.h"

struct netlink;
typedef void (*netlink_take)(const struct nlmsghdr *h, struct sampler_snapshot *s);

/* 'bus' is NETLINK_ROUTE and the like. -errno: this kernel has none. */
int netlink_new(int bus, struct netlink **out);
/* Sends 'request' (its flags and number are set here) and calls 'take' for each message of the
 * type 'answers'. -errno as the kernel says; -ETIMEDOUT: it did not answer. */
int netlink_dump(struct netlink *n, struct nlmsghdr *request, uint16_t answers, netlink_take take,
	struct sampler_snapshot *s);
/* Part of netlink_dump: the messages of one packet, however damaged. 1: more follow; 0: that was
 * all; -errno as the kernel says. */
int netlink_parse(const void *data, size_t size, uint16_t type, netlink_take take,
	struct sampler_snapshot *s);
void netlink_free(struct netlink *n);

#endif
