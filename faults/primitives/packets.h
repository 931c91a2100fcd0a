/*
 * The packets primitive: drops a share of the packets that come in or go out, at random, and counts
 * them (Kasick et al. 2009, section 5: packet loss of 5 %). Or it hands them to a queue (NFQUEUE),
 * where a program delays them (delay.h); they pass while no program listens there.
 *
 * It has its own table in nftables, made and removed in one transaction over netlink. Where
 * the kernel lacks nf_tables or its random numbers, its own chain in iptables (match
 * 'statistic') does the same. Nothing else is touched; packets on the loopback interface are left
 * alone.
 *
 * packets.c has act, check and undo next to each other: packets_drop, packets_verify, packets_undo.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_PACKETS_H
#define CULPRIT_FAULTS_PRIMITIVES_PACKETS_H

#include <stddef.h>
#include <stdint.h>

#include "faults/primitives/primitive.h"

struct packets_address {
	int family; /* AF_INET or AF_INET6 */
	unsigned char bytes[16];
	char text[46];
};

/* -EINVAL if 'text' is no IPv4 or IPv6 address. */
int packets_address_parse(const char *text, struct packets_address *a, struct err *e);

struct packets_spec {
	double percent;                     /* 0 < percent <= 100, in steps of 0.0001 */
	uint16_t queue;                     /* hands them to this one; 0: drops them */
	bool out;                           /* sent packets instead of received ones */
	const struct packets_address *from; /* n_from == 0: any source */
	size_t n_from;
	const struct packets_address *to; /* n_to == 0: any destination */
	size_t n_to;
};

struct packets_counters {
	uint64_t seen, dropped; /* that matched the addresses; of these, dropped or queued */
	uint64_t seen_bytes, dropped_bytes;
};

/* nftables or iptables. 'table' is the name of the table or chain. */
struct packets_backend {
	const char *name;
	/* Can this node drop packets, or queue them? Changes nothing. */
	int (*check)(bool queue, struct err *e);
	int (*drop)(const struct packets_spec *s, const char *table, struct err *e);
	int (*read)(const char *table, struct packets_counters *c, struct err *e);
	int (*has)(const char *table, bool *has, struct err *e);
	int (*remove)(const char *table, struct err *e);
};

/* Finds the backend that this node can use, and changes nothing. -EPERM: not root; -EOPNOTSUPP:
 * neither works. 'forced' is the name of a backend, or NULL. */
int packets_check(
	const char *forced, bool queue, const struct packets_backend **backend, struct err *e);

/* NULL if there is none of this name. */
const struct packets_backend *packets_backend_find(const char *name);

/* The inverse of packets_drop for the table named after 'session' and 'handle'; NULL: no memory. */
json_t *packets_inverse(
	const struct packets_backend *backend, const char *session, const char *handle);

/* The act that 'inverse' undoes. All or nothing with nftables; with iptables a failure may leave a
 * part, which undo removes. */
int packets_drop(const struct packets_spec *s, const json_t *inverse, struct err *e);

int packets_read(const json_t *inverse, struct packets_counters *c, struct err *e);

/* Names of all nftables tables, "family name", as a JSON array; an empty one if the kernel has no
 * nf_tables. */
int packets_tables(json_t **out, struct err *e);

#endif
