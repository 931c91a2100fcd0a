/* Options that name a Prometheus server and a query, for 'diagnose' and 'watch'; an OPTION_GROUP
 * row over a struct prometheus_given includes them. */
#ifndef CULPRIT_HARNESS_CLI_PROMETHEUS_OPTIONS_H
#define CULPRIT_HARNESS_CLI_PROMETHEUS_OPTIONS_H

#include "diag/import/prometheus.h"
#include "harness/cli/options.h"

struct prometheus_given {
	const char *url;
	struct option_list queries;
	double step_s, timeout_s;
	const char *token_file, *password_file, *ca_file, *cert_file, *key_file;
};

extern const struct option_row prometheus_rows[];

/* Fills '*o' from 'given' and 'how' (which labels are member and groups; may be NULL); '*o' borrows
 * from both. 0: it is ready for prometheus_new. 1: there is no --prometheus. -EINVAL with a
 * sentence: an option is missing, or needs --prometheus. */
int prometheus_options_fill(const struct prometheus_given *given, const struct import_options *how,
	struct prometheus_options *o, struct err *e);

#endif
