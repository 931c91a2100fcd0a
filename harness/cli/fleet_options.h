/* Options of the detector 'fleet', for every command that runs it; an OPTION_GROUP row over a
 * struct fleet_given includes them. */
#ifndef CULPRIT_HARNESS_CLI_FLEET_OPTIONS_H
#define CULPRIT_HARNESS_CLI_FLEET_OPTIONS_H

#include "diag/fleet/fleet.h"
#include "harness/cli/options.h"

struct fleet_given {
	struct option_list metrics;
	const char *metrics_file;
	double alarms, least, shortest_pct, memory_bytes; /* 0: the detector's default */
};

extern const struct option_row fleet_rows[];

/* Fills '*o' and '*models' (zero at first; o->models is 'models', the caller clears it) from what
 * was given and from the defaults. -EINVAL: a declaration is wrong. */
int fleet_options_fill(const struct fleet_given *given, struct fleet_options *o,
	struct metric_models *models, struct err *e);
/* The name of the first option that was given, or NULL. */
const char *fleet_options_given(const struct fleet_given *given);

#endif
