/*
 * The families, each with what is known of real fleets. All of them have lasting differences
 * between healthy members, since no two disks are alike, and noise that is correlated in time.
 *
 * Development and held-out families alternate, in the order in which they were thought of, before
 * any detector was run on them: each half has tails, load, gaps, models and groups in some form.
 */
#include "ci/bench/fleet_maker.h"

#include <string.h>

#define HOUR 3600.0
#define DAY 86400.0
/* What most families have in common. */
#define USUAL .dispersion = {0.02, 0.08}, .noise = {0.1, 0.4}, .slow = 0.08, .slow_tau_s = HOUR

const struct maker_family maker_families[MAKER_FAMILIES] = {
	{"lognormal", "log-normal noise, all else equal",
		"mean latencies over some seconds are products of queueing, seek and transfer; "
		"their logs are close to normal",
		USUAL},
	{"pareto", "tails of exponent 1.5 in one sample of twenty",
		"disk and request times have power tails (retries, cleaning, remapped sectors): "
		"means of few requests keep them",
		.held_out = true, USUAL, .tail_share = 0.05, .tail_alpha = 1.5},
	{"diurnal", "a load of the day and the week that all members share",
		"user-facing fleets have two to four times the load by day; everybody's latency "
		"follows",
		USUAL, .day = 0.7},
	{"groups", "groups differ lastingly by tens of per cent",
		"hosts differ by generation, firmware and tenants; their disks share it",
		.held_out = true, USUAL, .groups = 0.35},
	{"dispersion", "healthy members differ by a few per cent in some groups, by two in others",
		"disks behind one RAID share their load evenly, OSDs by their data: the same "
		"product has both",
		.dispersion = {0.02, 0.35}, .mixed = true, .noise = {0.1, 0.4}, .slow = 0.08,
		.slow_tau_s = HOUR},
	{"drift", "members' levels wander over days",
		"data moves, caches warm, disks fill from fast outer to slow inner tracks",
		.held_out = true, USUAL, .drift = 0.08, .drift_tau_s = 3 * DAY},
	{"missing",
		"hours without recording, random gaps, members that come and go, irregular steps",
		"monitoring records in shifts, scrapes time out, disks are replaced, clocks jitter",
		USUAL, .missing = true},
	{"models", "two models of disks in each host, told by a group column",
		"hosts are repaired with newer disks; the inventory knows the model",
		.held_out = true, USUAL, .model_ratio = {1.3, 3}, .model_known = true},
	{"models-unknown", "two models of disks in each host, told by nothing",
		"the same without an inventory: a third of the members is of the other model",
		USUAL, .model_ratio = {1.3, 3}},
	{"bursts", "groups hiccup together, members collect garbage",
		"a host's backup or scrub slows all its disks for minutes; SSDs clean themselves",
		.held_out = true, USUAL, .group_bursts = 6, .member_bursts = 24},
	{"load-open", "latency grows with the load, which members share unequally (open loop)",
		"hot shards: arrivals do not wait for answers; waiting grows as 1/(1 - load)",
		USUAL, .day = 0.3, .load = LOAD_OPEN},
	{"load-closed", "as load-open, but clients wait for answers (closed loop)",
		"batch clients have so many requests in flight: a slow member gets less to do",
		.held_out = true, USUAL, .day = 0.3, .load = LOAD_CLOSED},
	{"quantised", "values of few steps, and zeros where nothing happened",
		"iostat and sar print 0.01 to 1 ms, idle disks have a latency of 0", USUAL,
		.quantum = {0.02, 0.4}, .zeros = 0.15},
	{"group-off", "a tenth of the groups is off as a whole",
		"a host with a bad controller or in power saving: its disks are fine",
		.held_out = true, USUAL, .group_off = {1.5, 3}},
	{"throughput", "a throughput: less is worse",
		"benchmarks and scrubs report MB/s; a slow disk has less",
		.dispersion = {0.02, 0.08}, .noise = {0.05, 0.2}, .slow = 0.05, .slow_tau_s = HOUR,
		.day = 0.1, .less = true},
	{"heavy", "lasting differences of healthy members have heavy tails (t, 3 degrees)",
		"a few members of every fleet are unlike the others without being ill",
		.held_out = true, .dispersion = {0.02, 0.08}, .heavy = 3, .noise = {0.1, 0.4},
		.slow = 0.08, .slow_tau_s = HOUR},
};

int maker_family_find(const char *name)
{
	for (int i = 0; i < MAKER_FAMILIES; i++)
		if (!strcmp(maker_families[i].name, name))
			return i;
	return -1;
}
