/*
 * Views as a Grafana dashboard on a database of shipped logs (diag/ship/schema.h), through the
 * data source grafana-clickhouse-datasource.
 *
 * A panel's SQL is the view's SQL with three replacements: parameters become Grafana's variables;
 * tables become subqueries for the dashboard's time range and attempt, with the columns that the
 * view uses; 'totals', which is not shipped, becomes the equivalent sum of events. Its p50_ns and
 * p99_ns are exact there. Times of panels are whole seconds.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_DASHBOARD_H
#define CULPRIT_HARNESS_WEB_SERVE_DASHBOARD_H

#include <jansson.h>

#include "harness/web/serve/views.h"

/* The dashboard; new reference. Views that are invalid or need data that is not shipped are
 * omitted: 'left_out' receives a sentence for each. */
json_t *dashboard_grafana(const struct views *views, const char *database, json_t *left_out);

#endif
