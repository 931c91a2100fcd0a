/*
 * Gate limits: what a scenario demands of hosts and clocks before an attempt counts. The gates
 * themselves (harness/run/gates.h) measure and decide.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_GATE_LIMITS_H
#define CULPRIT_HARNESS_SCENARIO_GATE_LIMITS_H

#include "harness/lua/luax.h"

/* Negative: the scenario does not give it; gate_defaults then holds. */
struct gates {
	double load_pct;     /* of all processors of a host, used by anything but this run */
	double process_pct;  /* of one processor, used by one process that is not ours */
	double steal_pct;    /* of all processors, taken by the hypervisor */
	double pressure_pct; /* of the time, in which a task waited for memory or storage */
	double memory_pct;   /* of a host's memory, available at the least */
	double disk_bytes;   /* free at the least where the run is kept, and on a host where the
				agent keeps its files */
	double clock_s;      /* between any two hosts' clocks */
	double drift_s;      /* of one host's clock against ours, in one attempt */
	double window_s;     /* for which a host's load is measured */
	double wait_s;       /* for which a host may be in quarantine */
	double onset_s;      /* from when a fault is asked for until it is verified to act; it has
				no default in gate_defaults: gates_onset_s */
};

extern const struct gates gate_defaults;

/* The scenario's 'onset', else half of the fault's phase, but not less than 5 s: who has phases of
 * seconds tries something out. */
double gates_onset_s(const struct gates *g, double fault_s);

void gates_init(struct gates *g);

/* Reads the scenario's table 'gates', which is on top of the stack. -EINVAL with FILE:LINE. */
int gates_read(lua_State *L, const struct luax_source *src, struct gates *g, struct err *e);

#endif
