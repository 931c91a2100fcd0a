/*
 * netlink.c: reads kernel tables over netlink(7) into a snapshot. A dump waits up to a second for
 * each part of the answer.
 */
#ifndef CULPRIT_DIAG_CAPTURE_SAMPLER_NETLINK_H
#define CULPRIT_DIAG_CAPTURE_SAMPLER_NETLINK_H

#include <libmnl/libmnl.h>

#include "diag/capture/sampler/sampler.h"

struct netlink;
typedef void (*netlink_take)(const struct nlmsghdr *h, struct sampler_snapshot *s);

/* 'bus' is NETLINK_ROUTE or similar. -errno: this kernel does not have it. */
int netlink_new(int bus, struct netlink **out);
/* Sends 'request' (sets its flags and number) and calls 'take' for each message of the type
 * 'answers'. -errno from the kernel; -ETIMEDOUT: no answer. */
int netlink_dump(struct netlink *n, struct nlmsghdr *request, uint16_t answers, netlink_take take,
	struct sampler_snapshot *s);
/* Part of netlink_dump: the messages of one packet, which may be damaged. 1: more follow; 0: the
 * end; -errno from the kernel. */
int netlink_parse(const void *data, size_t size, uint16_t type, netlink_take take,
	struct sampler_snapshot *s);
void netlink_free(struct netlink *n);

#endif
