/*
 * The command primitive: a user's command, with one that undoes it and one that checks whether it
 * acts, for faults that no other primitive provides.
 *
 * Inverse: {"inverse": [argv], "check": [argv], "timeout_s": n}. Undo runs 'inverse', after which
 * 'check' must not end with 0. 'inverse' may run twice, or without the act.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_COMMAND_H
#define CULPRIT_FAULTS_PRIMITIVES_COMMAND_H

#include "faults/primitives/primitive.h"

/* New reference; NULL when out of memory. The arrays hold strings, at least one. */
json_t *command_inverse(const json_t *inverse, const json_t *check, double timeout_s);

/* Runs 'argv' to its end. -EIO with what it printed last if that is not 0; -ETIMEDOUT (it is
 * killed). */
int command_act(const json_t *argv, double timeout_s, struct err *e);

#endif
