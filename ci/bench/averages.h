/*
 * Averages of an attempt by server, over a window of whole seconds: requests in flight in each
 * layer (diag/flow/flow.h), and the node's readings (diag/record/reading.h). From them
 * ci/bench/ratios.h makes a table as Dinh 2009's Table 6.1.
 *
 * As CSV, a row for each server and component:
 *
 *   # run: unbalanced-20261123
 *   # file system: orangefs
 *   # window: from 30 s after the onset to the end of the fault
 *   cell,fault,server,victim,component,average
 *   3,unbalanced,s2,1,Trove,12.5
 *
 * fault: without its parameters; "none": a control. Components: the layers by their names, averages
 * in requests; readings by theirs, in their units, COUNT ones per second.
 */
#ifndef CULPRIT_CI_BENCH_AVERAGES_H
#define CULPRIT_CI_BENCH_AVERAGES_H

#include <stdio.h>

#include "diag/flow/flow.h"
#include "harness/store/store.h"

/* Requests in flight in a layer on a node, averaged over the seconds [from, to); NAN if there are
 * none. */
double averages_depth(const struct flow *f, size_t layer, uint32_t node, int32_t from, int32_t to);

/* Prints all confirmed scored attempts. 'skip_s': seconds after the onset that are left out; a
 * control's onset is where the mean faulty attempt of the run has its own. -EINVAL: the run
 * did not record flows, or a window is empty, and the error names the cell; -EIO: 'f' could not be
 * written. Else as flows_new. */
int averages_print(struct store *s, int32_t skip_s, FILE *f, struct err *e);

#endif
