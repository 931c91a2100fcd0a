/*
 * Requests as a table, so that what flow_run found can be kept and need not be found again.
 *
 *     flow_table_new(put, &mine, &table);                  (while logs are read)
 *     struct flow_sink sink = flow_table_sink(table);
 *     flow_new(&spec, &sink, &flow), flow_add(flow, ...), flow_run(flow, &e)
 *     flow_table_end(table, flow, &e)
 *
 *     flow_new(&spec, &sink, &flow);                       (later, without logs)
 *     flow_table_open(flow, "run 7", get, &mine, &e), flow_run(flow, &e)
 *
 * A flow of a table gives its sink the same requests and disk calls in the same order, and answers
 * the questions of flow.h as the flow that has read the logs; but there is nothing for the sink's
 * 'fuse', and flow_cut has nothing to say.
 *
 * The table is written in blocks: columns of numbers (harness/base/pack.h) with a row for each
 * request in the order of completion, its legs, how each was bound, why some are missing, the FUSE
 * request and the application's call behind it; rows for the disk calls of these requests; rows for
 * disk calls that no request took. Texts are numbers of a list. Block 0, written last, is about all
 * of them: nodes, counts and reasons, clocks, requests in flight by layer and second.
 */
#ifndef CULPRIT_DIAG_FLOW_TABLE_H
#define CULPRIT_DIAG_FLOW_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "diag/flow/flow.h"

/* Takes a block. 0 or a negative errno. */
typedef int (*flow_table_put)(
	void *ctx, uint32_t block, const void *data, size_t size, struct err *e);
/* Gives a block, malloced. 1; 0: there is none; or a negative errno. */
typedef int (*flow_table_get)(
	void *ctx, uint32_t block, unsigned char **data, size_t *size, struct err *e);

struct flow_table;

void flow_table_new(flow_table_put put, void *ctx, struct flow_table **out);
void flow_table_free(struct flow_table *t); /* NULL is fine */
struct flow_sink flow_table_sink(struct flow_table *t);
/* After flow_run: writes what is left. */
int flow_table_end(struct flow_table *t, const struct flow *f, struct err *e);

/* Makes 'f', to which no log was added, a flow of a table, which 'name' is for errors. 'ctx' is
 * borrowed until flow_run has ended. 1; 0: there is no table, or another version of this program
 * has written it, or its layers are not those of the flow's protocol: read the logs. -EBADMSG
 * (ERR_DAMAGED), also of flow_run: this is no table. */
int flow_table_open(struct flow *f, const char *name, flow_table_get get, void *ctx, struct err *e);

#endif
