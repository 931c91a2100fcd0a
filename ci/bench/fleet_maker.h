/*
 * Made-up fleets, drawn from a seed: members in groups, with metrics over time, of families of
 * distributions as real fleets have them, and with ill members that are known.
 *
 * A value is a product: level of the fleet x group x model x member (its lasting difference from
 * its peers) x slow walk x what all share (load of the day) x bursts x noise x the illness.
 * Everything about a member follows from the seed, so series can be made in any order.
 */
#ifndef CULPRIT_CI_BENCH_FLEET_MAKER_H
#define CULPRIT_CI_BENCH_FLEET_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "diag/import/import.h"

enum { MAKER_FAMILIES = 16, MAKER_METRICS_MAX = 2, MAKER_LEVELS_MAX = 2 };

enum maker_noise_tail { TAIL_LOGNORMAL, TAIL_PARETO };
enum maker_load { LOAD_NONE, LOAD_OPEN, LOAD_CLOSED };

/* Ranges "from, to" are drawn from once a fleet (log-uniform), unless said otherwise. */
struct maker_family {
	const char *name, *summary, *reason;
	bool held_out;        /* not to be examined while the detector is tuned */
	double dispersion[2]; /* standard deviation of the members' lasting log levels */
	bool mixed;           /* each group draws its own dispersion, from one of the two ends */
	double heavy;         /* degrees of freedom of their t distribution; 0: normal */
	double noise[2];      /* standard deviation of the logs of single samples */
	double tail_share, tail_alpha; /* so many samples are multiplied by a Pareto variable */
	double slow, slow_tau_s;       /* standard deviation and time constant of a log walk */
	double drift, drift_tau_s;     /* another one */
	double day;                    /* amplitude of the log load that all share */
	double groups;                 /* standard deviation of the groups' log levels */
	double model_ratio[2];         /* the second model's level over the first's; 0: one model */
	bool model_known;              /* a group column names it */
	double group_bursts, member_bursts; /* a day */
	bool missing; /* gaps, hours without recording, members that come and go */
	enum maker_load load;
	double quantum[2];   /* values are rounded to it, in units of the fleet's level */
	double zeros;        /* share of samples in which nothing happened: value 0 */
	double group_off[2]; /* a tenth of the groups, one at least, is off by this ratio */
	bool less;           /* a throughput: less is worse */
};
extern const struct maker_family maker_families[MAKER_FAMILIES];
/* Its index, or -1. */
int maker_family_find(const char *name);

enum maker_who { WHO_NONE, WHO_ONE, WHO_THIRD }; /* of a quarter of the groups, one at least */
enum maker_when { WHEN_EPISODE, WHEN_SHORT_ONES };

struct maker_spec {
	size_t family;
	uint64_t seed;
	unsigned members;    /* about */
	unsigned group_size; /* 0: each group draws from 4 to 40 */
	double duration_s, step_s;
	enum maker_who who;
	enum maker_when when;
	double ratio, share; /* of the ill: times their healthy self, in so much of the time */
};
/* Draws members (40 to 'members_most'), recording (1 h to 4 weeks), who and when. */
struct maker_spec maker_draw(size_t family, uint64_t seed, bool faulty, double ratio, double share,
	unsigned members_most);

struct maker_member {
	char name[24], host[24], model[24];
	unsigned group;
	bool ill;
	double onset_s; /* of the ill, since the start of the recording */
	double level;   /* lasting, in logs: over the group's and the model's */
	unsigned second_model;
};
struct maker_group {
	unsigned first, n;
	double level; /* in logs */
	double off;   /* 1: as the others */
	double dispersion;
};

struct maker {
	struct maker_spec spec;
	const struct maker_family *family;
	struct maker_member *members;
	struct maker_group *groups;
	unsigned n_members, n_groups, n_metrics, n_steps;
	double dispersion; /* the fleet's; of a mixed one, the smaller */
	double start_s;
	struct maker_fleet *own;
};
struct maker *maker_new(const struct maker_spec *spec);
void maker_free(struct maker *m);

/* "latency_ms"; a declaration for import_sink's metric. */
const char *maker_metric(const struct maker *m, unsigned metric);
const char *maker_declaration(const struct maker *m, unsigned metric);
/* Groups of a member, from the widest; returns their number. */
unsigned maker_groups(const struct maker *m, unsigned member, const char *group[MAKER_LEVELS_MAX]);
/* Names of the group columns. */
const char *maker_group_column(const struct maker *m, unsigned level);

/* All n_steps values of each metric; NAN: there is no sample. */
void maker_series(const struct maker *m, unsigned member, float *values[MAKER_METRICS_MAX]);
/* The time of a step, which differs by member where steps are irregular. */
double maker_time(const struct maker *m, unsigned member, unsigned step);
/* Writes for an ill member in which steps it is ill (zero otherwise); returns how many are. */
unsigned maker_ill_steps(const struct maker *m, unsigned member, uint8_t *ill);

/* Gives everything to a sink, one series after the other. */
int maker_run(const struct maker *m, const struct import_sink *sink, struct err *e);

/* Small random numbers, also for others: xoshiro256++, seeded by splitmix64. */
struct maker_rng {
	uint64_t s[4];
};
void maker_seed(struct maker_rng *r, uint64_t seed, uint64_t stream);
uint64_t maker_bits(struct maker_rng *r);
double maker_uniform(struct maker_rng *r); /* (0, 1) */
double maker_gauss(struct maker_rng *r);

#endif
