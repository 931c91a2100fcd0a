/*
 * What the scenario's flight recorder wrote in an attempt (detail.recorder, see
 * harness/run/trial_impl.h), for readers of logs: each writing is a row like the attempt's
 * own (ROWS_TRACED), but for its logs, which are about a part of the cell.
 */
#ifndef CULPRIT_HARNESS_JUDGING_WRITINGS_H
#define CULPRIT_HARNESS_JUDGING_WRITINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

/* How often it was written. 'never' (may be NULL): there is a recorder, and it never was. */
size_t writing_count(const json_t *row, bool *never);

/* The n-th writing, from 1: the attempt's row with "written": {"number", "of", "why", "from_s",
 * "to_s"}; the last two: what the ring may hold, from the attempt's start_ns. New reference; NULL:
 * there is none. */
json_t *writing_row(const json_t *row, size_t n);

/* The n-th writing; n 0: the last one or, where nothing was written, the attempt itself. New
 * reference. -ENOENT. */
int writing_choose(const json_t *row, size_t n, json_t **out, struct err *e);

/* Where a row's logs are: RUN/cells/0007.1, or the writing's folder below it. malloced. */
char *writing_folder(const char *run, const json_t *row);

/* "recorder.1: 5 s after the onset"; "" for an attempt itself. malloced. */
char *writing_name(const json_t *row);

/* "its flight recorder was never written: its trigger was asked 31 times and held 0 times";
 * malloced. */
char *written_never(const json_t *row);

#endif
