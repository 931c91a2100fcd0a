/* 'culprit diagnose' of series from elsewhere by the detector 'fleet': reads, judges, prints. */
#ifndef CULPRIT_HARNESS_CLI_DIAGNOSE_FLEET_H
#define CULPRIT_HARNESS_CLI_DIAGNOSE_FLEET_H

#include "harness/cli/fleet_options.h"
#include "harness/cli/prometheus_options.h"
#include "harness/cli/series_options.h"

struct fleet_request {
	struct series_options series;
	struct prometheus_given prometheus;
	struct fleet_given fleet;
	struct {
		double from_s, to_s; /* Unix seconds; 0: without bound */
		double last_s;
	} range;
	struct {
		long rank;
		bool all_windows, fail;
		const char *labels, *report;
	} output;
	/* Options that all detectors have. */
	struct option_list files; /* none: Prometheus is asked */
	double window_s, step_s;
	bool json;
};

/* Rows over .range and .output. */
extern const struct option_row fleet_range_rows[], fleet_output_rows[];

/* The name of the first option that only this detector has and that was given, or NULL. */
const char *fleet_request_given(const struct fleet_request *r);
/* Returns the exit code, after a complaint unless it is 0 or that of --fail. */
int diagnose_fleet(struct fleet_request *r);

#endif
