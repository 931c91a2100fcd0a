/*
 * The writings of the scenario's flight recorder in an attempt (detail.recorder, see
 * harness/run/trial_impl.h), for readers of logs. Each writing is a row like the attempt's own
 * (ROWS_TRACED), but its logs cover only part of the cell.
 */
#ifndef CULPRIT_HARNESS_JUDGING_WRITINGS_H
#define CULPRIT_HARNESS_JUDGING_WRITINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

/* Number of writings. 'never' (may be NULL): receives true if there is a recorder that never
 * wrote. */
size_t writing_count(const json_t *row, bool *never);

/* The n-th writing, from 1: the attempt's row with "written": {"number", "of", "why", "from_s",
 * "to_s"}; the last two are the range that the ring can hold, from the attempt's start_ns. New
 * reference; NULL: no such writing. */
json_t *writing_row(const json_t *row, size_t n);

/* The n-th writing; n 0: the last one or, without writings, the attempt itself. New reference.
 * -ENOENT. */
int writing_choose(const json_t *row, size_t n, json_t **out, struct err *e);

/* The folder of a row's logs: RUN/cells/0007.1, or the writing's folder below it. malloced. */
char *writing_folder(const char *run, const json_t *row);

/* "recorder.1: 5 s after the onset"; "" for an attempt itself. malloced. */
char *writing_name(const json_t *row);

/* "its flight recorder never wrote: its trigger was called 31 times and was true 0 times";
 * malloced. */
char *written_never(const json_t *row);

#endif
