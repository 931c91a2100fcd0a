/* The command 'dashboard': writes views as a Grafana dashboard. */
#include <string.h>

#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/web/serve/dashboard.h"

struct options {
	bool grafana;
	const char *views, *database, *output;
};

static int write_out(const char *path, const json_t *dashboard, struct err *e)
{
	struct file_text t;
	int rc = file_text_open(&t, e);

	if (rc)
		return rc;
	json_dumpf(dashboard, t.f, JSON_INDENT(2));
	fputc('\n', t.f);
	return file_text_save(&t, path, 0644, e);
}

/* Compiles the queries that ask for no run's own tables: those need a run. */
static int check_views(struct views *views, struct err *e)
{
	const struct query_spec spec = {.params = view_params};
	struct query *q = NULL;
	int rc = query_new(&spec, &q, e);

	for (size_t i = 0; !rc && i < views->n; i++)
		if (!views->v[i].of_runs && !views->v[i].wrong)
			view_check(&views->v[i], q);
	query_free(q);
	return rc;
}

static int dashboard_run(const struct call *c)
{
	const struct options *o = c->options;
	auto_json json_t *dashboard = NULL, *left_out = json_array();
	struct views views = {0};
	const json_t *why;
	struct err e;
	size_t i;
	int rc;

	if (!o->grafana)
		return cmd_fail(
			"dashboard", CULPRIT_EXIT_USAGE, "for which program? give --grafana");
	if (!*o->database ||
		o->database[strspn(o->database,
			"abcdefghijklmnopqrstuvwxyz"
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")])
		return cmd_fail("dashboard", CULPRIT_EXIT_USAGE,
			"--database takes letters, digits and _, not '%s'", o->database);
	rc = views_read(o->views, &views, &e) ?: check_views(&views, &e);
	if (!rc) {
		dashboard = dashboard_grafana(&views, o->database, left_out);
		rc = write_out(o->output, dashboard, &e);
	}
	json_array_foreach(left_out, i, why)
		if (!rc)
			cmd_fail("dashboard", 0, "%s", json_string_value(why));
	views_clear(&views);
	return rc ? cmd_error("dashboard", &e, ERR_USAGE) : CULPRIT_EXIT_OK;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"grafana", 0, OPTION_FLAG, AT(grafana), NULL, "for Grafana"},
	{"output", 'o', OPTION_TEXT, AT(output), "FILE", "default: standard output"},
	{"database", 0, OPTION_TEXT, AT(database), "NAME",
		"the database that the dashboard shows at first (default: culprit)"},
	{"views", 0, OPTION_TEXT, AT(views), "DIR",
		"folder of your views (default: ~/.config/culprit/views)"},
	{0},
};

const struct command dashboard_command = {.name = "dashboard",
	.summary = "the views of 'culprit serve' as a dashboard of Grafana on ClickHouse",
	.about = "Writes a dashboard as JSON, to be imported in Grafana, for a database that "
		 "'culprit ship' filled, through the data source grafana-clickhouse-datasource. "
		 "A panel is a view of 'culprit serve': culprit's own and yours. Data source, "
		 "database and attempt are variables of the dashboard; its time range is the "
		 "recording's.\n\n"
		 "Times are whole seconds; p50 and p99 are exact. Views of what is not shipped as "
		 "a table are left out, and named. Views of yours may use only what SQLite and "
		 "ClickHouse share.",
	.examples = "culprit dashboard --grafana -o culprit.json\n"
		    "culprit dashboard --grafana --database myrun --views ./views",
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.database = "culprit", .output = "-"},
	.run = dashboard_run};
