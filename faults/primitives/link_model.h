/*
 * The timing of a slow link, as arithmetic: no packets, no clock.
 *
 * A packet waits until the link has sent the earlier ones, takes the time of its bytes at the
 * link's rate, and then travels for the latency, plus or minus a random part of the jitter. Packets
 * keep their order. A packet that would wait longer than the queue is long is dropped, as by a
 * router.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_LINK_MODEL_H
#define CULPRIT_FAULTS_PRIMITIVES_LINK_MODEL_H

#include <stdint.h>

#include "harness/base/hash.h"

#define LINK_DROPS INT64_MIN

struct link_model {
	int64_t latency_ns, jitter_ns; /* jitter_ns <= latency_ns */
	double rate;                   /* bytes/s; 0: unlimited */
	int64_t queue_ns;              /* longest wait for the link; with a rate only */
	int64_t free_ns;               /* when the link has sent the last packet */
	int64_t last_ns;               /* when the last packet arrives */
	uint64_t packets;
};

/* Returns when a packet that comes at 'now_ns' arrives, or LINK_DROPS. */
static inline int64_t link_model_packet(struct link_model *m, int64_t now_ns, uint32_t bytes)
{
	int64_t sent = now_ns, span = 2 * m->jitter_ns + 1;

	m->packets++;
	if (m->rate > 0) {
		if (m->free_ns > sent)
			sent = m->free_ns;
		if (sent - now_ns > m->queue_ns)
			return LINK_DROPS;
		sent += (int64_t)((double)bytes * 1e9 / m->rate);
		m->free_ns = sent;
	}
	sent += m->latency_ns - m->jitter_ns + (int64_t)(hash_mix(0, m->packets) % (uint64_t)span);
	if (sent > m->last_ns)
		m->last_ns = sent;
	return m->last_ns;
}

#endif
