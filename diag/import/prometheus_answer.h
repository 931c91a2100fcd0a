/* Reads the answer of a Prometheus range query as a stream. */
#ifndef CULPRIT_DIAG_IMPORT_PROMETHEUS_ANSWER_H
#define CULPRIT_DIAG_IMPORT_PROMETHEUS_ANSWER_H

#include "diag/import/labels.h"

/* Receives a sample of a series of 'labels': 0, or a negative errno with a sentence. */
typedef int prometheus_take(void *ctx, uint32_t series, double time_s, double value, struct err *e);

/* Reads {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {...},
 * "values": [[1.5, "2"], ...]}, ...]}}. Adds series to 'labels', named 'metric', or __name__ if
 * that is NULL. Gives samples to 'take'. Messages call the answer 'source'. -EPROTO: not such an
 * answer; -EINVAL with the server's own sentence: it has the status "error"; -EIO; the error of
 * 'take'. */
int prometheus_answer_read(FILE *f, const char *source, const char *metric, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e);

/* Reads a file of answers, one after another: whole, or only the part in "data" or "result", as
 * printed by 'promtool query range -o json'. Gives every sample to 'take'. -EINVAL with
 * "SOURCE:LINE: sentence"; -EIO; the error of 'take'. */
int prometheus_answer_saved(FILE *f, const char *source, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e);

/* The server's own sentence from an answer with the status "error", escaped; or a description of
 * any other text (a proxy's page). */
void prometheus_answer_error(FILE *f, char *out, size_t size);

#endif
