/* Inside 'culprit diagnose --csv': several files of series, read in turn as if they were one. */
#ifndef CULPRIT_HARNESS_CLI_DIAGNOSE_FILES_H
#define CULPRIT_HARNESS_CLI_DIAGNOSE_FILES_H

#include "diag/import/import.h"
#include "harness/base/err.h"
#include "harness/cli/options.h"

/* Reads 'files' into the sink. '*said', zero at first, is that of all of them; a file that was
 * understood unlike the first one has a note. -EINVAL, besides what import_file returns: a series
 * has samples of the same time in two files, so that its key does not tell two members apart. */
int diagnose_files(const struct option_list *files, const struct import_options *how,
	const struct import_sink *sink, struct import_said *said, struct err *e);

#endif
