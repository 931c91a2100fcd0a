/* Detectors on anyone's time series: the inside of 'culprit diagnose --csv'. */
#ifndef CULPRIT_CLI_DIAGNOSE_CSV_H
#define CULPRIT_CLI_DIAGNOSE_CSV_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct csv_options {
	const char *csv;     /* a path, or "-" */
	const char **trains; /* files of fault-free times */
	size_t n_trains;
	bool has_until;
	double train_until_s;    /* rows before it are training, if has_until; in the file's time */
	double window_s, step_s; /* 0: all in one; 0: the file's own */
	const json_t *
		detectors; /* [{name, params}]; none: peer-robust, or peer-threshold if there is training */
};

/* '*verdicts' is [{what, from_s, to_s, detector, verdict}], their times in the file's own; a
 * detector that failed has its "error" in the verdict. '*failed' counts those. -EINVAL with
 * FILE:LINE for what cannot be read. */
int diagnose_csv(const struct csv_options *o, json_t **verdicts, unsigned *failed, struct err *e);

#endif
