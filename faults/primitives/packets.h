/*
 * The packets primitive: drops a share of the packets that come in or go out,
 * at random, and counts them (001, section 5: packet loss of 5 %).
 *
 * It has a table of its own in nftables, made and removed as one transaction
 * over netlink; nothing else is touched, and packets on the loopback interface are
 * left alone. Where the kernel lacks nf_tables or its random numbers, a chain
 * of its own in iptables (match 'statistic') does the same.
 */
#ifndef CULPRIT_FAULTS_PACKETS_H
#define CULPRIT_FAULTS_PACKETS_H

#include <stddef.h>
#include <stdint.h>

#include "faults/primitives/primitive.h"

enum packets_backend { PACKETS_NFTABLES, PACKETS_IPTABLES };

struct packets_address {
	int family; /* AF_INET or AF_INET6 */
	unsigned char bytes[16];
	char text[46];
};

/* -EINVAL if 'text' is no IPv4 or IPv6 address. */
int packets_address_parse(const char *text, struct packets_address *a, struct err *e);

struct packets_spec {
	double percent;                     /* 0 < percent <= 100, in steps of 0.0001 */
	bool out;                           /* sent packets instead of received ones */
	const struct packets_address *from; /* n_from == 0: any source */
	size_t n_from;
	const struct packets_address *to; /* n_to == 0: any destination */
	size_t n_to;
};

/* Can this node do it, and how? Found by a transaction that is not committed, so nothing
 * changes. -EPERM: not root; -EOPNOTSUPP: neither backend is there. 'forced' is the name of a
 * backend, or NULL. */
int packets_check(const char *forced, enum packets_backend *backend, struct err *e);
const char *packets_backend_name(enum packets_backend backend);

/* The inverse of packets_drop for the table named after 'session' and 'handle'; NULL: no memory. */
json_t *packets_inverse(enum packets_backend backend, const char *session, const char *handle);

/* The act that 'inverse' takes back. All or nothing with nftables; with iptables a failure may
 * leave a part, which undo removes. */
int packets_drop(const struct packets_spec *s, const json_t *inverse, struct err *e);

struct packets_counters {
	uint64_t seen, dropped; /* packets that matched the addresses; of these, dropped */
	uint64_t seen_bytes, dropped_bytes;
};

int packets_read(const json_t *inverse, struct packets_counters *c, struct err *e);

/* Names of all nftables tables, "family name", as a JSON array; an empty one where there
 * is no nf_tables. */
int packets_tables(json_t **out, struct err *e);

/* The backends, with the name of the table or chain. */
int nft_drop(const struct packets_spec *s, const char *table, bool commit, struct err *e);
int nft_read(const char *table, struct packets_counters *c, struct err *e);
int nft_remove(const char *table, struct err *e);
int nft_list(json_t **out, struct err *e);

int iptables_check(struct err *e);
int iptables_drop(const struct packets_spec *s, const char *chain, struct err *e);
int iptables_read(const char *chain, struct packets_counters *c, struct err *e);
int iptables_remove(const char *chain, struct err *e);
int iptables_has(const char *chain, bool *has, struct err *e);

#endif
