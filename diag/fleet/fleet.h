/*
 * FLEET: which members of a fleet (disks, servers, OSDs) differ from their peers, and how long.
 * The method, what it assumes and what it cannot see: diag/detectors/HOW.md.
 *
 *     struct fleet *f = fleet_new(&options);
 *     struct import_sink sink = fleet_sink(f);
 *     import_file("disks.csv", &how, &sink, &said, &e);
 *     fleet_judge(f, 0, 0, &result, &e);
 *
 * Samples go into a table of levels (panel.h) of bounded size; where there are more samples
 * than fit, neighbours in time share a cell. Everything is judged from the table, so that an
 * input is read once, and judging again (another window, new samples) costs some nanoseconds a
 * cell. /
 */
#ifndef CULPRIT_DIAG_FLEET_FLEET_H
#define CULPRIT_DIAG_FLEET_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/fleet/metric.h"
#include "diag/import/import.h"
#include "harness/base/err.h"

struct fleet_options {
	double alarms;   /* false alarms per series and week (or recording, if that is shorter) */
	double least;    /* smallest ratio to the peers that is called a finding, above 1 */
	double shortest; /* smallest share of the time (0 to 1) that is called a finding */
	double step_s;   /* of a cell, at least; 0: the median distance of two samples */
	size_t memory_bytes;                /* for the table */
	const struct metric_models *models; /* declared metrics; may be NULL */
	unsigned without; /* parts to leave out, to see what they are worth (enum fleet_part) */
};
enum fleet_part {
	FLEET_GROUPS = 1 << 0, /* peers are the members of the same group, not of the whole fleet */
	FLEET_OTHERS = 1 << 1, /* a member is not its own peer */
	FLEET_ROUNDS = 1 << 2, /* who is suspected is no peer of others */
	FLEET_SIDE = 1 << 3,   /* dispersion is learnt from the harmless side */
	FLEET_TAILS = 1 << 4,  /* tails are learnt; without: normal */
	FLEET_SCALES = 1 << 5, /* a group has a scale of its own */
	FLEET_SHORT = 1 << 6,  /* effects that do not last are looked for */
	FLEET_OWN = 1 << 7,    /* those are compared with the member's own median, too */
	FLEET_LOAD = 1 << 8,   /* load excuses */
	FLEET_CLASS = 1 << 9,  /* many members that are off alike are one finding */
	FLEET_PARTS = 10
};
extern const char *const fleet_part_names[FLEET_PARTS]; /* "groups" ... */
/* alarms 1e-4, least 1.15, shortest 0.005, memory 320 MiB. */
extern const struct fleet_options fleet_defaults;

enum finding_kind {
	FINDING_SHIFT,  /* a member has been off since a time, for most of the time since */
	FINDING_BURSTS, /* a member is off again and again, for short times */
	FINDING_GROUP,  /* a whole group is off against the other groups */
	FINDING_CLASS,  /* many members in many groups are off alike: another model or role */
	FINDING_KINDS
};
extern const char *const finding_kind_names[FINDING_KINDS]; /* "shift" ... */

struct fleet_finding {
	enum finding_kind kind;
	uint32_t member; /* of FINDING_GROUP: the group; of FINDING_CLASS: any of its members */
	uint32_t metric;
	double severity; /* distance from the peers over the distance that is allowed: at least 1 */
	/* Times its peers, below 1 where less is worse: the statistic that crossed its limit.
	 * Stretches of over_s are that far off, or further, for over_share of the time;
	 * over_share 1: it is the typical ratio of single samples. */
	double effect, over_s, over_share;
	double since_s, until_s; /* the first and the last time that it was off */
	bool open;               /* it is off at the end of what was judged */
	double share;            /* of its samples between the two, and ... */
	double share_of_all;     /* ... of all of its samples, that are off: 0 to 1 */
	/* The metric measures waiting, and there are others: the member may be a victim.
	 * Findings of the others come first. */
	bool waits;
	unsigned others; /* other metrics that find the same member */
	uint32_t count;  /* of FINDING_CLASS: how many members */
};

struct fleet_member {
	char *name;      /* "sda" */
	char *path;      /* with its groups: "rack1/host7/sda" */
	uint32_t group;  /* the narrowest */
	double severity; /* the largest over its metrics; below 1: no finding; 0: not judged */
	double effect;   /* of that metric */
	uint32_t metric; /* that metric */
	bool judged;     /* false: too few peers or samples, or left out */
	uint8_t layer;   /* layers.c */
	bool left_out;   /* a block device of another layer: a volume, where there are disks */
	int32_t finding; /* in 'findings', or -1 */
};

struct fleet_group {
	char *path;      /* "rack1/host7"; "" for the whole fleet */
	uint32_t parent; /* UINT32_MAX: none */
	unsigned members;
};

struct fleet_metric {
	const struct metric_model *model;
	double step_s;     /* width of a cell */
	double median;     /* level of the fleet, in the metric's unit */
	double dispersion; /* typical lasting ratio between healthy peers, above 1: "1.04" */
	double limit;      /* the ratio above which a lasting shift is a finding */
	uint64_t samples;
	bool judged; /* false: a load, or not examined, or without peers */
	bool unlike; /* healthy members differ by more than any limit for what lasts; it is NAN */
};

struct fleet_result {
	double from_s, to_s;            /* of what was judged */
	struct fleet_finding *findings; /* the most severe first */
	size_t n_findings;
	const struct fleet_member *members; /* all */
	size_t n_members;
	const struct fleet_group *groups;
	size_t n_groups;
	const struct fleet_metric *metrics;
	size_t n_metrics;
	uint32_t *ranking; /* members by severity, the worst first */
	char **notes;      /* what the reader should know: guesses, members without peers ... */
	size_t n_notes;
};

struct fleet *fleet_new(const struct fleet_options *o);
void fleet_free(struct fleet *f);
/* Where samples go. Samples may come in any order of series; those of one series in order of time
 * (a late one is put in its place; a counter's is dropped and counted). */
struct import_sink fleet_sink(struct fleet *f);
/* The first and last time of all samples; false: there are none. */
bool fleet_extent(const struct fleet *f, double *from_s, double *to_s);
/* Changes options.alarms from now on: who judges again and again pays for each look. */
void fleet_allow(struct fleet *f, double alarms);
/* Judges the samples of [from_s, to_s); both 0: all. The caller frees with fleet_result_free,
 * before the fleet. -EINVAL: there is nothing in it to be judged (the sentence says why). */
int fleet_judge(
	struct fleet *f, double from_s, double to_s, struct fleet_result **result, struct err *e);
void fleet_result_free(struct fleet_result *r);

/* What windows of one recording pay for being many. Each has its results added; members and
 * metrics are those of all results. */
struct fleet_windows *fleet_windows_new(size_t n_members, size_t n_metrics);
void fleet_windows_free(struct fleet_windows *w);
void fleet_windows_add(struct fleet_windows *w, const struct fleet_result *r);
/* The severity that a healthy member has in the worst of all windows with the probability 'alarms',
 * by what the members have; at least 1. It is the limit of findings in windows. */
double fleet_windows_pay(const struct fleet_windows *w, uint32_t metric, double alarms);

/* The ratio of a member to its peers over time, for plots: 'n' means over equal parts of the time
 * judged (NAN: no sample), of the member's metric. Above 1: worse. 'peak': the worst in each. */
void fleet_trace(struct fleet *f, const struct fleet_result *r, uint32_t member, uint32_t metric,
	size_t n, float *ratio, float *peak);
/* The same for a group, compared with the other groups by the medians of their members. */
void fleet_trace_group(struct fleet *f, const struct fleet_result *r, uint32_t group,
	uint32_t metric, size_t n, float *ratio, float *peak);

/* Forgets what is older than 'before_s' (in whole blocks of cells). */
void fleet_forget(struct fleet *f, double before_s);

#endif
