/*
 * Views as a Grafana dashboard on a database of shipped logs (diag/ship/schema.h), through the data
 * source grafana-clickhouse-datasource.
 *
 * A panel's SQL is the view's own, with three things put in place: parameters become Grafana's
 * variables; tables become what the dashboard's time range and attempt hold of them, with the
 * columns that the view names; 'totals', which is not shipped, becomes the sum of events that it
 * is. Its p50_ns and p99_ns are exact there. Times of panels are whole seconds.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_DASHBOARD_H
#define CULPRIT_HARNESS_WEB_SERVE_DASHBOARD_H

#include <jansson.h>

#include "harness/web/serve/views.h"

/* The dashboard; new reference. Views that ask what is not shipped, or are wrong, are no panels:
 * 'left_out' gets a sentence for each. */
json_t *dashboard_grafana(const struct views *views, const char *database, json_t *left_out);

#endif
