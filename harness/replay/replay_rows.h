/* Compares application and replay row by row: for the table of 'culprit replay' and the page of
 * 'culprit timeline'. */
#ifndef CULPRIT_HARNESS_REPLAY_REPLAY_ROWS_H
#define CULPRIT_HARNESS_REPLAY_REPLAY_ROWS_H

#include <jansson.h>
#include <stddef.h>

enum { REPLAY_ROWS_MAX = 64 };

struct replay_row {
	char what[48], application[32], replay[32], difference[16]; /* "" if unknown */
};

/* Fills rows from a replay's result (harness/replay/replay.h); times and bytes of several passes
 * are means. Returns the number of rows. */
size_t replay_rows(const json_t *result, struct replay_row rows[REPLAY_ROWS_MAX]);

/* Wall time of the replay's computing divided by the processor time that it needs: above 1 if the
 * clients' processors were busy otherwise. 0: it did not compute. */
double replay_crowding(const json_t *result);

/* The mean of a figure over the passes. */
double replay_mean(const json_t *result, const char *key);

#endif
