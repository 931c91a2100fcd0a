/* Inside 'culprit diagnose --csv': detectors on time series from elsewhere. */
#ifndef CULPRIT_HARNESS_CLI_DIAGNOSE_CSV_H
#define CULPRIT_HARNESS_CLI_DIAGNOSE_CSV_H

#include <jansson.h>
#include <stdbool.h>

#include "diag/import/import.h"
#include "harness/base/err.h"
#include "harness/cli/options.h"

struct csv_options {
	struct option_list files; /* paths, or "-" */
	const char *csv;          /* the first, NULL: none */
	const char **trains;      /* fault-free files */
	size_t n_trains;
	const struct import_options *how; /* of all files; NULL: find out */
	bool has_until;
	double train_until_s;    /* if has_until, rows before it are training */
	double window_s, step_s; /* 0: one window; 0: as in the file */
	/* [{name, params}]; if empty: peer-robust, or with training peer-threshold */
	const json_t *detectors;
};

/* '*verdicts' becomes [{what, from_s, to_s, detector, verdict}], with times as in the file; if a
 * detector failed, the verdict has an "error", and '*failed' counts it. -EINVAL with FILE:LINE if a
 * file is wrong. */
int diagnose_csv(const struct csv_options *o, json_t **verdicts, unsigned *failed, struct err *e);

#endif
