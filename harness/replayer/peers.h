/*
 * Progress of a replay's threads, on this node and on the others.
 *
 * A trace's threads are spread over nodes. An op waits for ops of other threads (diag/app/app.h).
 * Nodes report progress as lines on 'fd', a socket of the agent (PROTOCOL.md, "link"). Outgoing
 * lines begin with their destination nodes, "2,3 p 17 300"; incoming lines with their source node:
 *
 *	hello ME N    from the orchestrator: this is node ME of N
 *	p THREAD OPS  the thread has completed this number of ops
 *	b NUMBER      the node has reached this barrier
 *	h             the node is still active
 *	q NS, a NS    a question and its answer, to measure the round trip
 *	x WORDS       the node has failed
 *
 * Lines from one node to another arrive in order. Between two barriers all nodes are in the same
 * pass, so progress needs no pass number.
 *
 * Every wait is limited: if no node has been active for 'stall_s', waits end.
 */
#ifndef CULPRIT_HARNESS_REPLAYER_PEERS_H
#define CULPRIT_HARNESS_REPLAYER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"

struct peers;

enum { PEERS_NODES = 4096 };

/* 'fd' negative: this is the only node; otherwise waits for the hello. The caller keeps ownership
 * of the descriptor. */
int peers_new(int fd, double stall_s, struct peers **out, struct err *e);
void peers_free(struct peers *p); /* NULL is fine */

unsigned peers_me(const struct peers *p);
unsigned peers_n(const struct peers *p);

/* Threads are numbered 0 to n - 1. Before the first pass. -ENOMEM. */
int peers_threads(struct peers *p, uint32_t n, struct err *e);
/* Registers that 'node' (another one) must be notified when a thread of this node has completed
 * 'ops'. -ENOMEM. */
int peers_tell(struct peers *p, uint32_t thread, uint64_t ops, unsigned node, struct err *e);

/* Median seconds of a line to another node and the answer back; 0 if this is the only node. */
int peers_round_trip(struct peers *p, double *seconds, struct err *e);

/* Waits until every node has reached this barrier. -ECANCELED: peers_stop; -ETIMEDOUT: a stall;
 * -EPIPE: another node has failed, with its message, or the orchestrator has disconnected. */
int peers_barrier(struct peers *p, const char *what, struct err *e);

/* Call before the barrier that begins a pass: resets all progress. */
void peers_reset(struct peers *p);

/* Reports that a thread of this node has completed 'ops'. */
void peers_completed(struct peers *p, uint32_t thread, uint64_t ops);
uint64_t peers_progress(const struct peers *p, uint32_t thread);

/* Waits until 'thread' has completed 'ops'; returns 1 if it had to wait, otherwise 0. Errors like
 * peers_barrier, but the caller words a stall. */
int peers_wait(struct peers *p, uint32_t thread, uint64_t ops, struct err *e);

/* Sleeps until CLOCK_MONOTONIC is 'at_ns'. -ECANCELED: stopped. */
int peers_sleep(struct peers *p, int64_t at_ns);
/* Reports that computing threads are not stalled. */
void peers_busy(struct peers *p, int more);
void peers_alive(struct peers *p);

/* Ends all waits with -ECANCELED. May be called from any thread. */
void peers_stop(struct peers *p);
bool peers_stopped(const struct peers *p);
/* Ends all waits on every node with this message. Only the first counts. */
void peers_fail(struct peers *p, const char *words);

#endif
