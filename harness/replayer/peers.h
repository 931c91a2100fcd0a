/*
 * Progress of a replay's threads, on this node and on the others.
 *
 * A trace's threads are spread over nodes. An op waits for ops of threads (diag/app/app.h); what
 * runs on other nodes is told of by lines on 'fd', a socket of the agent's (PROTOCOL.md, "link").
 * Lines begin with the nodes they go to, "2,3 p 17 300", and come with the node they are from:
 *
 *	hello ME N    from the orchestrator: this is node ME of N
 *	p THREAD OPS  it has completed so many ops
 *	b NUMBER      the node has come to this barrier
 *	h             something continues there
 *	q NS, a NS    a question and its answer, by which the way's length is measured
 *	x WORDS       the node has failed
 *
 * Lines from one node to another arrive in order. Between two barriers all nodes are in the same
 * pass, so progress needs no number of a pass.
 *
 * Nothing waits for ever: when no node has done anything for 'stall_s', what waits ends.
 */
#ifndef CULPRIT_HARNESS_REPLAYER_PEERS_H
#define CULPRIT_HARNESS_REPLAYER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"

struct peers;

enum { PEERS_NODES = 4096 };

/* 'fd' below 0: this node is alone; else it waits for the hello. The descriptor stays the
 * caller's. */
int peers_new(int fd, double stall_s, struct peers **out, struct err *e);
void peers_free(struct peers *p); /* NULL is fine */

unsigned peers_me(const struct peers *p);
unsigned peers_n(const struct peers *p);

/* Threads are numbered 0 to n - 1. Before the first pass. -ENOMEM. */
int peers_threads(struct peers *p, uint32_t n, struct err *e);
/* 'node' (another one) is to be told when a thread of this node has completed 'ops'. -ENOMEM. */
int peers_tell(struct peers *p, uint32_t thread, uint64_t ops, unsigned node, struct err *e);

/* Median seconds of a line to another node and the answer back; 0 where this node is alone. */
int peers_round_trip(struct peers *p, double *seconds, struct err *e);

/* Waits until every node has come here. -ECANCELED: peers_stop; -ETIMEDOUT: a stall; -EPIPE:
 * another node has failed, with its words, or the orchestrator is gone. */
int peers_barrier(struct peers *p, const char *what, struct err *e);

/* Before a barrier that begins a pass: no thread has completed anything. */
void peers_reset(struct peers *p);

/* A thread of this node has completed so many ops. */
void peers_completed(struct peers *p, uint32_t thread, uint64_t ops);
uint64_t peers_progress(const struct peers *p, uint32_t thread);

/* Until 'thread' has completed 'ops'; 1 if it had to wait, else 0. Errors as peers_barrier, but the
 * sentence of a stall is the caller's. */
int peers_wait(struct peers *p, uint32_t thread, uint64_t ops, struct err *e);

/* Until CLOCK_MONOTONIC is 'at_ns'. -ECANCELED: not any more. */
int peers_sleep(struct peers *p, int64_t at_ns);
/* Threads that compute are not stalled. */
void peers_busy(struct peers *p, int more);
void peers_alive(struct peers *p);

/* All that waits ends with -ECANCELED. From any thread. */
void peers_stop(struct peers *p);
bool peers_stopped(const struct peers *p);
/* The same on every node, with these words. Only the first counts. */
void peers_fail(struct peers *p, const char *words);

#endif
