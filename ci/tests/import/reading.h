/* Reads a range query's answer like its reader does: once to see the series, once to give
 * samples. */
#ifndef CULPRIT_CI_TESTS_IMPORT_READING_H
#define CULPRIT_CI_TESTS_IMPORT_READING_H

#include "diag/import/labels.h"
#include "diag/import/prometheus_answer.h"

struct reading {
	struct labels *labels;
	const struct import_sink *sink;
	struct import_said *said;
};

static inline int see(void *ctx, uint32_t series, double time_s, double value, struct err *e)
{
	const struct reading *r = ctx;

	(void)value;
	(void)e;
	labels_seen(r->labels, series, time_s);
	return 0;
}

static inline int give(void *ctx, uint32_t series, double time_s, double value, struct err *e)
{
	const struct reading *r = ctx;

	return labels_sample(r->labels, series, time_s, value, r->sink, r->said, e);
}

#endif
