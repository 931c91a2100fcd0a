/* The answer of Prometheus's range query, read as a stream. */
#ifndef CULPRIT_DIAG_IMPORT_PROMETHEUS_ANSWER_H
#define CULPRIT_DIAG_IMPORT_PROMETHEUS_ANSWER_H

#include "diag/import/labels.h"

/* What is done with a sample of a series of 'labels': 0, or a negative errno with a sentence. */
typedef int prometheus_take(void *ctx, uint32_t series, double time_s, double value, struct err *e);

/* Reads {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {...},
 * "values": [[1.5, "2"], ...]}, ...]}}. Series are added to 'labels'; 'metric' (may be NULL) is
 * their name, else __name__ is. Samples go to 'take'. Messages call it 'source'. -EPROTO: it is not
 * such an answer; -EINVAL with the server's own sentence: it has the status "error"; -EIO; what
 * 'take' returned. */
int prometheus_answer_read(FILE *f, const char *source, const char *metric, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e);

/* Reads a file of answers, one after another: whole, or only what is in "data" or in "result", as
 * 'promtool query range -o json' prints it. Every sample goes to 'take'. -EINVAL with "SOURCE:LINE:
 * sentence"; -EIO; what 'take' returned. */
int prometheus_answer_saved(FILE *f, const char *source, struct labels *labels,
	prometheus_take *take, void *ctx, struct import_said *said, struct err *e);

/* The server's own sentence from an answer with the status "error", escaped; or what can be said of
 * any other text (a proxy's page). */
void prometheus_answer_error(FILE *f, char *out, size_t size);

#endif
