/* Internals of dashboards: SQL (dashboard_sql.c) and panels (dashboard.c). */
#ifndef CULPRIT_HARNESS_WEB_SERVE_DASHBOARD_IMPL_H
#define CULPRIT_HARNESS_WEB_SERVE_DASHBOARD_IMPL_H

#include "harness/web/serve/dashboard.h"

/* The time at t = 0, in seconds since 1970. */
#define DASHBOARD_START                                                                            \
	"(SELECT min(start_ns) / 1e9 FROM ${database}.culprit_logs WHERE ifNull(attempt, 0) = "    \
	"$attempt)"

/* The view's query for ClickHouse; 'timed': its first column becomes a time. NULL: it needs
 * unavailable data, '*why' says which. The caller frees both. */
char *dashboard_sql(const struct view *v, bool timed, char **why);

#endif
