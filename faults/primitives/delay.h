/*
 * The delay primitive: a slow link for kernels without netem. A rule of packets.h hands packets to
 * a queue, where a program on the node holds each until link_model.h says that it arrives.
 *
 * Its inverse is that of the process primitive with "backend" and "table" of the packets primitive:
 * undo ends the program, which lets the packets pass that still wait, and then removes the rule.
 * The rule lets packets pass while no program listens, so a program that dies leaves a fast link;
 * packets that waited are lost then.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_DELAY_H
#define CULPRIT_FAULTS_PRIMITIVES_DELAY_H

#include <stdint.h>

#include "faults/primitives/primitive.h"

/* What waits at a time; further packets are dropped and counted. */
#define DELAY_PACKETS_MAX 65536u
#define DELAY_BYTES_MAX (64u << 20)

struct delay_spec {
	double latency_s, jitter_s; /* a packet takes latency - jitter to latency + jitter */
	double rate;                /* bytes/s; 0: unlimited */
	double buffer_s;            /* of a rate: longest wait; room for ten packets in any case */
};

/* Makes a queue that no other program of the node has; it stays empty until a rule names it.
 * '*fd' is a netlink socket: the queue lives as long as that. -EOPNOTSUPP: the kernel has none. */
int delay_open(const struct delay_spec *s, uint16_t *queue, int *fd, struct err *e);

struct delay_totals {
	double seconds;          /* since the program listens */
	uint64_t packets, bytes; /* that have passed */
	double waited_s;         /* all of these together */
	uint64_t dropped;        /* packets that found no room */
};

/* Serves the queue of delay_open until SIGTERM: then lets all pass and returns 0. 'note' is called
 * ten times a second. */
int delay_serve(int fd, uint16_t queue, const struct delay_spec *s,
	void (*note)(const struct delay_totals *so_far), struct err *e);

#endif
