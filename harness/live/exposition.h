/* The text of the exporter's page, in Prometheus's text format 0.0.4. */
#ifndef CULPRIT_HARNESS_LIVE_EXPOSITION_H
#define CULPRIT_HARNESS_LIVE_EXPOSITION_H

#include <stdint.h>
#include <stdio.h>

#include "harness/live/life.h"

struct exposition {
	const struct lives *lives;
	size_t members, judged;    /* of the last look */
	uint64_t samples, skipped; /* lines that could not be read */
	double last_sample_s;      /* of the samples' own time; NAN: none came */
	uint64_t looks;
	double judge_s;
	bool up;      /* the source could be read at the last try */
	bool partial; /* and its answer said that samples may be missing */
	uint64_t failures;
};

void exposition_write(FILE *f, const struct exposition *x);
/* A label's value: '\', '"' and newlines escaped. */
void exposition_label(FILE *f, const char *value);

#endif
