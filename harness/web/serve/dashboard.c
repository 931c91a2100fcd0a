/* Writes views as a Grafana dashboard. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/web/serve/dashboard_impl.h"

enum { HALF = 12, HEIGHT = 8 };

static json_t *source(void)
{
	return json_pack("{s:s, s:s}", "type", "grafana-clickhouse-datasource", "uid", "${source}");
}

/* The type of a time series panel; NULL: a table. */
static json_t *custom(const struct view *v)
{
	static const char *const styles[VIEW_CHARTS] = {[VIEW_LINE] = "line",
		[VIEW_AREA] = "line",
		[VIEW_BARS] = "bars",
		[VIEW_HEAT] = "bars",
		[VIEW_DOTS] = "points"};
	const bool stacked = v->chart == VIEW_AREA || v->chart == VIEW_BARS ||
		v->chart == VIEW_HEAT;

	if (v->chart == VIEW_TABLE)
		return json_object();
	return json_pack("{s:s, s:i, s:{s:s}, s:{s:s, s:i}}", "drawStyle", styles[v->chart],
		"fillOpacity", v->chart == VIEW_LINE || v->chart == VIEW_DOTS ? 0 : 60, "stacking",
		"mode", stacked ? "normal" : "none", "scaleDistribution", "type",
		v->logarithmic ? "log" : "linear", "log", 10);
}

/* Grafana's names of units; others are shown unchanged. */
static json_t *unit_of(const struct view *v)
{
	static const char *const units[][2] = {{"s", "s"}, {"B", "bytes"}, {"B/s", "Bps"}};

	if (!v->unit || v->chart == VIEW_TABLE)
		return json_string("none");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i][0], v->unit))
			return json_string(units[i][1]);
	return json_sprintf("suffix: %s", v->unit);
}

static json_t *panel(const struct view *v, const char *sql, size_t n)
{
	const bool table = v->chart == VIEW_TABLE;
	json_t *target = json_pack("{s:s, s:o, s:s, s:s, s:s, s:i}", "refId", "A", "datasource",
		source(), "editorType", "sql", "rawSql", sql, "queryType",
		table ? "table" : "timeseries", "format", table ? 1 : 0);

	return json_pack("{s:I, s:s, s:s, s:s, s:o, s:s, s:{s:i, s:i, s:i, s:i}, s:{s:{s:o, s:o}, "
			 "s:[]}, s:[o]}",
		"id", (json_int_t)n + 1, "type", table ? "table" : "timeseries", "title", v->title,
		"description", v->about ? v->about : "", "datasource", source(), "interval", "1s",
		"gridPos", "x", (int)(n % 2) * HALF, "y", (int)(n / 2) * HEIGHT, "w", HALF, "h",
		HEIGHT, "fieldConfig", "defaults", "unit", unit_of(v), "custom", custom(v),
		"overrides", "targets", target);
}

static json_t *variables(const char *database)
{
	return json_pack("[{s:s, s:s, s:s, s:s}, {s:s, s:s, s:s, s:s}, {s:s, s:s, s:s, s:o, s:s, "
			 "s:i}]",
		"name", "source", "label", "Data source", "type", "datasource", "query",
		"grafana-clickhouse-datasource", "name", "database", "label", "Database", "type",
		"textbox", "query", database, "name", "attempt", "label", "Attempt (0: no run)",
		"type", "query", "datasource", source(), "query",
		"SELECT DISTINCT ifNull(attempt, 0) AS attempt FROM ${database}.culprit_logs ORDER "
		"BY attempt",
		"refresh", 2);
}

json_t *dashboard_grafana(const struct views *views, const char *database, json_t *left_out)
{
	json_t *panels = json_array();

	for (size_t i = 0; i < views->n; i++) {
		const struct view *v = &views->v[i];
		auto_free char *why = NULL, *sql = NULL;

		if (v->wrong) {
			json_array_append_new(left_out, json_string(v->wrong));
			continue;
		}
		sql = dashboard_sql(v, v->chart != VIEW_TABLE, &why);
		if (sql)
			json_array_append_new(panels, panel(v, sql, json_array_size(panels)));
		else
			json_array_append_new(left_out,
				json_sprintf("the view '%s' is omitted: %s", v->name, why));
	}
	return json_pack("{s:s, s:s, s:[s], s:i, s:b, s:s, s:{s:s, s:s}, s:{s:o}, s:o}", "title",
		"culprit", "uid", "culprit-shipped", "tags", "culprit", "schemaVersion", 39,
		"editable", 1, "timezone", "browser", "time", "from", "now-1h", "to", "now",
		"templating", "list", variables(database), "panels", panels);
}
