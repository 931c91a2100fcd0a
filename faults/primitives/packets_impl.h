/* What packets.c and its two backends share. */
#ifndef CULPRIT_FAULTS_PRIMITIVES_PACKETS_IMPL_H
#define CULPRIT_FAULTS_PRIMITIVES_PACKETS_IMPL_H

#include "faults/primitives/packets.h"

extern const struct packets_backend packets_nft, packets_iptables;

/* Calls 'fn' for each pair of addresses that one packet can have ('from' or 'to' NULL: any), until
 * it returns non-zero; returns that. */
int packets_each_pair(const struct packets_spec *s,
	int (*fn)(void *ctx, const struct packets_address *from, const struct packets_address *to),
	void *ctx);

/* packets_nft.c: see packets_tables. */
int nft_list(json_t **out, struct err *e);

#endif
