/*
 * What an attempt leaves: files fetched from the nodes into its folder, and the samples that
 * they reduce to.
 *
 *   cells/0007.1/NODE.fs.trace    the file system's processes on a server or client
 *   cells/0007.1/NODE.app.trace   the workload on a client
 *   cells/0007.1/NODE.app.out     what it printed
 *   cells/0007.1/NODE.fs.samples  what the sampler read there, second by second (where it can be
 *   had)
 *   cells/0007.1/NODE.fs.beside.trace  what a second tracer saw of the file system
 *   cells/0007.1/NODE.app.times   when it ran and how long (run times)
 *
 * Of a cell that measures run times only the workload's output and times are fetched: what the
 * tracers wrote there is counted and dropped.
 */
#ifndef CULPRIT_HARNESS_MEASURE_H
#define CULPRIT_HARNESS_MEASURE_H

#include "harness/experiment/attempt.h"
#include "harness/judging/reduce.h"

/* Fetches the files into 'folder' (relative to the run's), all nodes at once, removes them there,
 * and adds the workload's own results per client to detail.results. 'may_fail': a client without a
 * result has its reason there instead. */
int measure_fetch(struct executor *x, const char *folder, const struct part *workload,
	bool may_fail, json_t *detail, struct err *e);

/* Removes an attempt's files from the nodes, as far as they can be reached. */
void measure_discard(struct cluster *c);

/* The cluster as a reduction wants it described (reduce.h). New reference. */
int measure_describe(struct executor *x, json_t **out, struct err *e);

/* reduce_traces of the attempt in 'folder' (relative to the run's); 'beside': of the second
 * tracer's traces. */
int measure_reduce(struct executor *x, const char *folder, const json_t *cluster, int64_t start_ns,
	int32_t seconds, bool beside, struct reduction **out, struct err *e);

/* Mean over the clients of how long their workload ran, to detail.runtime_s. */
int measure_runtime(struct executor *x, const char *folder, json_t *detail, struct err *e);

/* Writes samples and the list of files to 's', the run's own store or the one beside it; 'r' NULL:
 * only the files. Inside the caller's transaction. */
int measure_store(struct executor *x, struct store *s, const char *folder, int64_t attempt,
	const struct reduction *r, struct err *e);

#endif
