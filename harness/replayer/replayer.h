/*
 * Replays an application trace on one of several nodes (Mesnier et al. 2007): repeats the file
 * operations of the captured threads on dummy files, in closed loop.
 *
 * Ranks are assigned to nodes in blocks: with 8 ranks and 3 nodes, ranks 0 to 2 are on node 0. Each
 * thread of the trace is a thread here; all ranks of a node share one process.
 *
 *	causal  before an op the thread computes and is away as captured, then waits for the
 *	        same ops of others as in the capture
 *	think   the pause before an op is as long as captured, whichever op it waited for
 *	wall    an op begins at its time in the trace, but never before the previous one has ended
 *	afap    an op begins when the previous one has ended
 *
 * Computing is processor time of the thread: it spins until it has used as much, counting from the
 * end of its last op, so that the replay's own work is included.
 */
#ifndef CULPRIT_HARNESS_REPLAYER_REPLAYER_H
#define CULPRIT_HARNESS_REPLAYER_REPLAYER_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/replayer/peers.h"

enum replay_mode { REPLAY_CAUSAL, REPLAY_AFAP, REPLAY_THINK, REPLAY_WALL, REPLAY_MODES };

extern const char *const replay_mode_names[REPLAY_MODES];

struct replayer_options {
	const char *trace; /* file */
	const char *root;  /* absolute; the dummy files are below it */
	enum replay_mode mode;
	double speed;         /* pauses and computing are divided by it */
	double cpu;           /* 0 to 1: this share of the computing spins, the rest sleeps */
	unsigned long passes; /* 0: until stopped */
	bool prepare_only;    /* make the files */
	bool series;          /* report bytes over time */
	FILE *out;
};

/*
 * Prints a line of JSON when it begins, and one for each pass:
 *
 *	{"replay":"...","node":0,"nodes":2,"ranks":[0,1],"mode":"causal","round_trip_us":812.0}
 *	{"pass":1,"whole":true,"seconds":...,"first_s":...,"ops":...,"read_bytes":...,
 *	 "written_bytes":...,"computed_s":...,"away_s":...,"waited_s":...,"waits":...,
 *	 "calls_s":...,"short":0,"errors":{"open ENOENT":1},
 *	 "latency":{"pread":[bucket,count,...]},
 *	 "series":{"interval_s":0.001,"skipped":0,"read_bytes":[...],"written_bytes":[...]}}
 *
 * 'seconds' is from the moment when all nodes were ready to the end of this node's last op,
 * 'first_s' to the start of its first op (equal to 'seconds' without ops). Times of threads are
 * summed. 'errors' are of calls that succeeded in the capture, 'short' counts calls that moved
 * fewer bytes than in the capture. 'series', if requested, begins when all nodes were ready
 * (diag/app/series.h).
 *
 * -ECANCELED after peers_stop: not a failure. Other errors have been reported to all nodes.
 */
int replayer_run(const struct replayer_options *o, struct peers *p, struct err *e);

/* The node of a rank. */
unsigned replayer_node(uint32_t rank, uint32_t ranks, unsigned nodes);

#endif
