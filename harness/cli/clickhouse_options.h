/* Options of commands that talk to ClickHouse. */
#ifndef CULPRIT_HARNESS_CLI_CLICKHOUSE_OPTIONS_H
#define CULPRIT_HARNESS_CLI_CLICKHOUSE_OPTIONS_H

#include "diag/ship/clickhouse.h"
#include "harness/cli/options.h"

struct clickhouse_given {
	const char *password_file, *ca_file;
};

extern const struct option_row clickhouse_rows[];

/* Opens the database; the limit is of each request. SIGINT ends it. */
int clickhouse_given_open(const struct clickhouse_given *given, const char *url, double timeout_s,
	struct clickhouse **out, struct err *e);

#endif
