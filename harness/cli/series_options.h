/* Options that say how series from elsewhere are read, for every command that takes a file of them;
 * an OPTION_GROUP row includes them:
 *
 *     struct options { struct series_options series; ... };
 *     {"", 0, OPTION_GROUP, AT(series), NULL, "reading the file", .group = series_rows},
 *     if (series_options_check("watch", &o->series))
 *             return CULPRIT_EXIT_USAGE;
 *     import_file(path, &o->series.how, ...);
 *
 * The names --metric and --metrics are free for declarations (diag/fleet/metric.h). */
#ifndef CULPRIT_HARNESS_CLI_SERIES_OPTIONS_H
#define CULPRIT_HARNESS_CLI_SERIES_OPTIONS_H

#include "diag/import/import.h"
#include "harness/cli/options.h"

struct series_options {
	struct import_options how; /* whole after series_options_check */
	struct option_list groups, only;
};
extern const struct option_row series_rows[];

/* Checks what was given and completes 'how', which points into '*o' and into argv. 0, or -EINVAL
 * after a complaint in the name of 'command'. */
int series_options_check(const char *command, struct series_options *o);
/* The name of the first option that was given, for "--NAME needs --csv"; NULL: none was. */
const char *series_options_given(const struct series_options *o);

#endif
