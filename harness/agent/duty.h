/*
 * Duty cycles: work for a share of the time only.
 *
 * A hog at a quarter is the full hog for a quarter of the time, whatever the speed of the disk or
 * the wire. Time at work is measured (CLOCK_MONOTONIC) from a request to its end, waiting
 * included. After DUTY_PERIOD_S * share of it, or after one request that took longer, follows a
 * rest of work * (1 / share - 1).
 */
#ifndef CULPRIT_HARNESS_AGENT_DUTY_H
#define CULPRIT_HARNESS_AGENT_DUTY_H

#include <stdbool.h>

#define DUTY_PERIOD_S 0.2

struct duty {
	double share; /* of the time at work; 1: always */
	double worked_s;
	double since_s; /* when this work began */
};

/* "25%": above 0 and at most 100 %, for program_options. */
bool duty_option(const char *text, void *duty);

/* Around each piece of work. */
void duty_begin(struct duty *d);
/* Is it time for a rest? Counts what has been done since duty_begin. */
bool duty_is_over(const struct duty *d);
/* Rests if it is time. */
void duty_end(struct duty *d);

#endif
