/* Options that several commands share; an OPTION_GROUP row includes them. */
#ifndef CULPRIT_HARNESS_CLI_GROUPS_H
#define CULPRIT_HARNESS_CLI_GROUPS_H

#include <jansson.h>

#include "harness/cli/options.h"

/* Of struct outcome_options: what 'run', 'rescore' and 'table' end with; and the part of it that
 * needs a recorded run. */
extern const struct option_row outcome_rows[], outcome_recorded_rows[];
#define OUTCOME_EXITS                                                                              \
	"1 a regression or, under --tap or --junit without --baseline, a wrong verdict; "

/* Of a const char *: the inventory of 'doctor' and 'undo'. */
extern const struct option_row inventory_rows[];

struct detector_options {
	struct option_list names; /* "NAME" or "NAME,KEY=VALUE,..." */
	bool trust;               /* run programs also where they cannot be confined */
};
extern const struct option_row detector_rows[];

/* [{name, params}] of --detector, a new reference, and takes note of --trust. 0, or -EINVAL after
 * a complaint in the name of 'command'. */
int detectors_chosen(const char *command, const struct detector_options *o, json_t **list);

#endif
