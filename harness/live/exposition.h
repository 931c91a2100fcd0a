/* The text of the exporter's page, in Prometheus's text format 0.0.4. */
#ifndef CULPRIT_HARNESS_LIVE_EXPOSITION_H
#define CULPRIT_HARNESS_LIVE_EXPOSITION_H

#include <stdint.h>
#include <stdio.h>

#include "harness/live/life.h"

struct exposition {
	const struct lives *lives;
	size_t members, judged;    /* in the last judgement */
	uint64_t samples, skipped; /* lines that could not be read */
	double last_sample_s;      /* in the samples' time; NAN: no samples */
	uint64_t looks;
	double judge_s;
	bool up;      /* the last attempt to read the source succeeded */
	bool partial; /* its answer said that samples may be missing */
	uint64_t failures;
};

void exposition_write(FILE *f, const struct exposition *x);
/* A label's value: '\', '"' and newlines escaped. */
void exposition_label(FILE *f, const char *value);

#endif
