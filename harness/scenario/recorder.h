/*
 * A scenario's flight recorder: a second look at each cell, kept for the last seconds only, and
 * written at moments that the scenario chooses.
 *
 *   recorder = { "ebpf", mode = "flow", heads = true, ring = "30s",
 *                write = { after_onset = "5s", at_offset = true, at_end = true },
 *                trigger = "slow-disk.lua" }
 *
 * What the scenario's tracer records is judged as without it.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_RECORDER_H
#define CULPRIT_HARNESS_SCENARIO_RECORDER_H

#include "harness/scenario/tracing.h"

/* What is written is the attempt's folder 'recorder.1', 'recorder.2' ..., at most so many. */
enum { RECORDER_WRITES = 16 };

struct recorder {
	struct tracing tracing; /* name NULL: the scenario has no recorder */
	double ring_s;
	double after_onset_s;   /* below 0: not then */
	bool at_offset, at_end; /* before the fault is undone; before the workload stops */
	char *trigger;          /* path of a file as trigger.h has it, or NULL */
};

/* Reads the table on top of the stack and pops it. -EINVAL with FILE:LINE, also of the trigger's
 * own file. */
int recorder_load(lua_State *L, const struct luax_source *src, struct recorder *out, struct err *e);
void recorder_clear(struct recorder *r);

/* 'after_s': from the onset to the cell's end. -EINVAL with FILE:LINE. */
int recorder_check(const struct recorder *r, const struct tracing *tracer, double after_s,
	const struct luax_source *src, struct err *e);

/* Arguments of trace.start, without pids. New reference. */
json_t *recorder_args(const struct recorder *r, const char *out);

#endif
