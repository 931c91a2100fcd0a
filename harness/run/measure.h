/*
 * What an attempt leaves: files fetched from the nodes into its folder, and the samples that
 * they reduce to.
 *
 *   cells/0007.1/NODE.fs.trace    the file system's processes on a server or client
 *   cells/0007.1/NODE.app.trace   the workload on a client
 *   cells/0007.1/NODE.app.out     what it printed
 */
#ifndef CULPRIT_HARNESS_MEASURE_H
#define CULPRIT_HARNESS_MEASURE_H

#include "harness/run/attempt.h"

struct measurement;

/* Fetches the files into 'folder' (relative to the run's), all nodes at once, removes them there, and adds
 * the workload's own results per client to detail.results. 'may_fail': a client without a result has its reason
 * there instead. */
int measure_fetch(struct executor *x, const char *folder, const struct part *workload, bool may_fail,
		  json_t *detail, struct err *e);

/* Removes an attempt's files from the nodes, as far as they can be reached. */
void measure_discard(struct cluster *c);

/* Traces to samples. -EBADMSG when a trace is damaged. */
int measure_reduce(struct executor *x, const char *folder, int64_t start_ns, int32_t seconds,
		   struct measurement **out, struct err *e);

/* Writes samples and the list of files; inside the caller's transaction. */
int measure_store(struct executor *x, const char *folder, int64_t attempt, const struct measurement *m,
		  struct err *e);
void measure_free(struct measurement *m);

#endif
