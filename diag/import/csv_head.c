/* Reads a CSV header: which columns are times, members, groups and metrics. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag/import/csv_impl.h"
#include "diag/import/number.h"
#include "harness/base/alloc.h"
#include "harness/base/near.h"

static const uint32_t none = UINT32_MAX;

static const char *const zone_names[] = {"tz", "timezone", "time_zone", NULL};
/* In the order of preference. Names of members are ordered from the narrowest to the widest thing,
 * so that of "host" and "disk" the disk is the member, and the host its group. */
static const char *const time_names[] = {"time", "timestamp", "ts", "datetime", "date", "epoch",
	"@timestamp", "_time", "unix_time", "utc", NULL};
static const char *const member_names[] = {"member", "disk", "disk_name", "disk_id", "device",
	"dev", "drive", "osd", "osd_id", "brick", "volume", "serial_number", "serial", "worker",
	"rank", "pod", "vm", "instance", "instance_id", "server", "node", "node_id", "host",
	"hostname", "machine", "ip", "name", NULL};
static const char *const metric_names[] = {
	"metric", "metric_name", "__name__", "measurement", "_field", "variable", NULL};
static const char *const value_names[] = {"value", "_value", "val", NULL};
/* From the widest to the narrowest. */
static const char *const group_names[] = {"region", "datacenter", "dc", "zone", "cluster", "rack",
	"enclosure", "group", "ip", "machine", "node_id", "node", "server", "host", "hostname",
	"vm", "pod", "instance", "instance_id", "worker", "rank", NULL};

bool csv_time_name(const char *name, double *unit_s)
{
	static const struct {
		const char *end;
		double unit_s;
	} units[] = {{"_s", 1}, {"_ms", 1e-3}, {"_us", 1e-6}, {"_ns", 1e-9}, {"", 0}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		for (const char *const *t = time_names; *t; t++) {
			size_t n = strlen(*t);

			if (!strncasecmp(name, *t, n) && !strcasecmp(name + n, units[i].end)) {
				*unit_s = units[i].unit_s;
				return true;
			}
		}
	return false;
}

static bool in_list(const char *name, const char *const list[])
{
	for (; *list; list++)
		if (!strcasecmp(name, *list))
			return true;
	return false;
}

bool csv_member_name(const char *name)
{
	return in_list(name, member_names);
}

bool csv_holds_others(const char *name)
{
	return in_list(name, group_names);
}

/* The unit that a column's name ends with, or 0. */
static double unit_of(const char *name)
{
	static const char *const ends[] = {"_s", "_ms", "_us", "_ns"};
	static const double units[] = {1, 1e-3, 1e-6, 1e-9};
	size_t n = strlen(name);

	for (size_t i = 0; i < 4; i++) {
		size_t k = strlen(ends[i]);

		if (n > k && !strcasecmp(name + n - k, ends[i]))
			return units[i];
	}
	return 0;
}

char csv_separator(const char *line, size_t n)
{
	static const char list[] = ",;\t|";
	size_t count[4] = {0}, best = 0;
	bool quoted = false;

	for (size_t i = 0; i < n; i++) {
		const char *s = line[i] ? strchr(list, line[i]) : NULL;

		quoted ^= line[i] == '"';
		if (s && !quoted)
			count[s - list]++;
	}
	for (size_t i = 1; i < 3; i++)
		best = count[i] > count[best] ? i : best;
	/* The byte '|' also occurs in names: "get|put". */
	best = count[best] ? best : 3;
	return count[best] ? list[best] : '\0';
}

/* "'time', 'sda', 'sdb' and 7 more" */
static char *list_names(const struct csv_table *t)
{
	size_t size, shown = t->n_columns > 12 ? 10 : t->n_columns;
	char *text;
	FILE *f = alloc_text(&text, &size);

	for (size_t i = 0; i < shown; i++)
		fprintf(f, "%s'%.40s'", i ? ", " : "", t->names[i]);
	if (shown < t->n_columns)
		fprintf(f, " and %zu more", t->n_columns - shown);
	fclose(f);
	return text;
}

static int no_column(const struct csv_table *t, const char *name, struct err *e)
{
	const char **names = alloc_zero(t->n_columns + 1, sizeof(*names));
	char *list = list_names(t), hint[96];
	int rc;

	memcpy(names, t->names, t->n_columns * sizeof(*names));
	rc = err_set(e, -EINVAL, "there is no column '%.60s'; the columns are %s%s", name, list,
		near_hint(name, names, hint));
	free(names);
	free(list);
	return rc;
}

/* Has the user given this column a role? */
static bool is_named(const struct import_options *o, const char *name)
{
	const char *const names[] = {o->time, o->member, o->metric, o->value};

	for (size_t i = 0; i < 4; i++)
		if (names[i] && !strcmp(names[i], name))
			return true;
	for (size_t g = 0; g < IMPORT_GROUPS_MAX && o->group[g]; g++)
		if (!strcmp(o->group[g], name))
			return true;
	return false;
}

/* The column named 'wanted' by the user, or the first existing one of 'usual' that has no other
 * role by name. */
static int find_column(const struct csv_table *t, const struct import_options *o,
	const char *wanted, const char *const usual[], uint32_t *column, struct err *e)
{
	*column = none;
	for (uint32_t i = 0; wanted && i < t->n_columns; i++)
		if (!strcmp(t->names[i], wanted))
			*column = i;
	if (wanted)
		return *column == none ? no_column(t, wanted, e) : 0;
	for (; usual && *usual && *column == none; usual++)
		for (uint32_t i = 0; i < t->n_columns && *column == none; i++)
			if (!strcasecmp(t->names[i], *usual) && !is_named(o, t->names[i]))
				*column = i;
	return 0;
}

static int find_time(struct csv_table *t, const struct import_options *o, struct err *e)
{
	const char *wanted = o->time;
	char *list;
	int rc;

	t->time = none;
	if (wanted) {
		rc = find_column(t, o, wanted, NULL, &t->time, e);
		t->unit_s = unit_of(wanted);
		return rc;
	}
	for (const char *const *name = time_names; *name && t->time == none; name++)
		for (uint32_t i = 0; i < t->n_columns && t->time == none; i++)
			if (!strncasecmp(t->names[i], *name, strlen(*name)) &&
				!is_named(o, t->names[i]) && csv_time_name(t->names[i], &t->unit_s))
				t->time = i;
	if (t->time != none)
		return 0;
	list = list_names(t);
	rc = err_set(e, -EINVAL,
		"there is no column of times (time, time_ms, timestamp ...); name it by --time; "
		"the columns are %s",
		list);
	free(list);
	return rc;
}

static bool is_group(const struct csv_table *t, uint32_t column)
{
	for (size_t g = 0; g < t->n_groups; g++)
		if (t->group[g] == column)
			return true;
	return false;
}

/* The groups named by the user, or the columns with these names (the narrowest four). A column
 * 'model' is the widest: disks of one model are peers, in the same host or elsewhere. */
static int find_groups(struct csv_table *t, const struct import_options *o, struct err *e)
{
	static const char *const model[] = {"model", NULL};
	uint32_t c = none;
	int rc = 0;

	for (; t->n_groups < IMPORT_GROUPS_MAX && o->group[t->n_groups] && !rc; t->n_groups++)
		rc = find_column(t, o, o->group[t->n_groups], NULL, &t->group[t->n_groups], e);
	if (rc || t->n_groups || t->member == none)
		return rc;
	for (const char *const *name = group_names; *name; name++) {
		const char *const one[] = {*name, NULL};

		find_column(t, o, NULL, one, &c, e);
		if (c == none || c == t->member || c == t->metric)
			continue;
		if (t->n_groups == IMPORT_GROUPS_MAX)
			memmove(t->group, t->group + 1, --t->n_groups * sizeof(*t->group));
		t->group[t->n_groups++] = c;
	}
	find_column(t, o, NULL, model, &c, e);
	if (c != none && c != t->member && c != t->metric && t->n_groups < IMPORT_GROUPS_MAX) {
		memmove(t->group + 1, t->group, t->n_groups++ * sizeof(*t->group));
		t->group[0] = c;
	}
	return 0;
}

/* Checks that no column has two roles. */
static int check_roles(const struct csv_table *t, uint32_t value, struct err *e)
{
	uint32_t all[4 + IMPORT_GROUPS_MAX] = {t->time, t->member, t->metric, value};

	memcpy(all + 4, t->group, t->n_groups * sizeof(*all));
	for (size_t i = 0; i < 4 + t->n_groups; i++)
		for (size_t k = 0; k < i; k++)
			if (all[i] != none && all[i] == all[k])
				return err_set(e, -EINVAL,
					"column '%.60s' cannot be two things at once (time, "
					"member, group, metric, value)",
					t->names[all[i]]);
	return 0;
}

/* Grafana's export of rows, Series;Time;Value: the series is the member. In other files a column of
 * this name may be a metric. */
static const char *grafana_series(const struct csv_table *t, uint32_t value)
{
	for (size_t i = 0; i < t->n_columns && value != none && t->n_columns == 3; i++)
		if (t->metric == none && !strcasecmp(t->names[i], "series"))
			return t->names[i];
	return NULL;
}

static int find_roles(
	struct csv_table *t, const struct import_options *o, uint32_t *value, struct err *e)
{
	int rc = find_time(t, o, e);

	if (!rc)
		rc = find_column(t, o, NULL, zone_names, &t->zone, e);
	if (!rc)
		rc = find_column(t, o, o->metric, metric_names, &t->metric, e);
	if (!rc)
		rc = find_column(t, o, o->value, value_names, value, e);
	if (!rc)
		rc = find_column(
			t, o, o->member ?: grafana_series(t, *value), member_names, &t->member, e);
	if (!rc)
		rc = find_groups(t, o, e);
	if (!rc)
		rc = check_roles(t, *value, e);
	if (rc)
		return rc;
	/* Telegraf's tables have a column for each metric, and one with their kind. */
	if (t->metric != none && *value == none && !o->metric && t->member != none &&
		!strcasecmp(t->names[t->metric], "measurement"))
		t->metric = none;
	if (t->metric != none && *value == none)
		return err_set(e, -EINVAL,
			"there is a column '%.60s' of metrics, but none of values; name it by "
			"--value-column",
			t->names[t->metric]);
	if (t->metric != none && t->member == none)
		return err_set(e, -EINVAL,
			"there is no column of members (disk, server, host ...); name it by "
			"--member");
	t->form = t->metric != none ? CSV_LONG : t->member != none ? CSV_COLUMNS : CSV_WIDE;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void set_keys(struct csv_table *t)
{
	t->keys = alloc_zero(IMPORT_GROUPS_MAX + 2, sizeof(*t->keys));
	if (t->metric != none)
		t->keys[t->n_keys++] = t->metric;
	if (t->member != none)
		t->keys[t->n_keys++] = t->member;
	for (size_t g = 0; g < t->n_groups; g++)
		t->keys[t->n_keys++] = t->group[g];
	qsort(t->keys, t->n_keys, sizeof(*t->keys), by_number);
	t->keys_adjacent = true;
	for (size_t i = 1; i < t->n_keys; i++)
		t->keys_adjacent = t->keys_adjacent && t->keys[i] == t->keys[i - 1] + 1;
}

static bool chosen(const struct import_options *o, const char *metric)
{
	for (size_t i = 0; i < o->n_metrics; i++)
		if (!strcmp(o->metrics[i], metric))
			return true;
	return !o->n_metrics;
}

bool csv_collectl_name(const char *name, char *member, const char **metric)
{
	const char *colon = *name == '[' ? strchr(name, ':') : NULL;
	const char *end = colon ? strchr(colon, ']') : NULL;

	if (!end || end == colon + 1 || !end[1] || end - colon > IMPORT_NAME_MAX)
		return false;
	memcpy(member, colon + 1, (size_t)(end - colon - 1));
	member[end - colon - 1] = '\0';
	*metric = end + 1;
	return true;
}

static int check_collectl(struct csv_table *t, struct err *e)
{
	char member[IMPORT_NAME_MAX + 1];
	const char *metric;
	bool date = false;

	for (size_t i = 0; i < t->n_columns; i++) {
		t->collectl |= csv_collectl_name(t->names[i], member, &metric);
		date |= !strcasecmp(t->names[i], "date");
	}
	return t->collectl && date
		? err_set(e, -EINVAL,
			  "this is output of collectl with dates and times in two columns; print "
			  "it with collectl -P -oU --sep ,")
		: 0;
}

/* Columns of each table of InfluxDB that number its tables and repeat the query. */
static const char *const influx_names[] = {"result", "table", "_start", "_stop", NULL};

static bool is_influx(const struct csv_table *t)
{
	return t->n_columns > 3 && !*t->names[0] && !strcmp(t->names[1], "result") &&
		!strcmp(t->names[2], "table");
}

/* Does a column hold samples? For the forms without a metric column. */
static bool holds_samples(const struct csv_table *t, const struct import_options *o, uint32_t i,
	struct import_said *said)
{
	char member[IMPORT_NAME_MAX + 1];
	const char *metric;
	double unit;

	if (i == t->time || i == t->member || is_group(t, i))
		return false;
	if (!*t->names[i]) {
		import_note(said, "column %u has no name and is ignored", i + 1);
		return false;
	}
	if (t->collectl && !csv_collectl_name(t->names[i], member, &metric)) {
		import_note(said, "column '%.60s' is not read: it names no device", t->names[i]);
		return false;
	}
	if (t->collectl)
		return chosen(o, metric);
	if (is_influx(t) && in_list(t->names[i], influx_names))
		return false;
	/* An OSD's number is not a sample; csv.c notes that it is not read. */
	if (t->form == CSV_COLUMNS && !o->n_metrics && csv_member_name(t->names[i]))
		return false;
	if (i == t->zone)
		return false;
	if (o->n_metrics && t->form == CSV_COLUMNS)
		return chosen(o, t->names[i]);
	if (csv_time_name(t->names[i], &unit)) {
		import_note(said, "column '%.60s' is not read: the times are in '%.60s'",
			t->names[i], t->names[t->time]);
		return false;
	}
	return true;
}

static int set_values(struct csv_table *t, const struct import_options *o, uint32_t value,
	struct import_said *said, struct err *e)
{
	t->values = alloc_zero(t->n_columns, sizeof(*t->values));
	if (t->form == CSV_LONG || o->value) {
		t->values[t->n_values++] = (struct csv_value){.column = value};
		return 0;
	}
	for (size_t i = 0; t->form == CSV_COLUMNS && i < o->n_metrics; i++) {
		uint32_t c;
		int rc = find_column(t, o, o->metrics[i], NULL, &c, e);

		if (rc)
			return rc;
	}
	for (uint32_t i = 0; i < t->n_columns; i++)
		if (holds_samples(t, o, i, said))
			t->values[t->n_values++] = (struct csv_value){.column = i,
				.state = t->form == CSV_COLUMNS && !o->n_metrics ? CSV_UNDECIDED
										 : CSV_NUMBERS};
	t->slashes = t->form == CSV_WIDE && t->n_groups < IMPORT_GROUPS_MAX;
	for (size_t i = 0; i < t->n_values && t->slashes; i++) {
		const char *name = t->names[t->values[i].column], *slash = strrchr(name, '/');

		t->slashes = slash && slash > name && slash[1];
	}
	return t->n_values ? 0
			   : err_set(e, -EINVAL, "there is no column of values, only the %s",
				     t->form == CSV_WIDE ? "times" : "times and names");
}

/* The metric's name if the file does not name it: the file's name up to the first '.'; or
 * "value". */
static void name_metric(struct csv_table *t, const char *source, const struct import_options *o)
{
	const char *stem = strrchr(source, '/');
	size_t n;

	stem = stem ? stem + 1 : source;
	n = strcspn(stem, ".");
	n = n < IMPORT_NAME_MAX ? n : IMPORT_NAME_MAX;
	if (o->only_metric) {
		stem = o->only_metric;
		n = strnlen(stem, IMPORT_NAME_MAX);
	}
	memcpy(t->only_metric, stem, n);
	if (!import_name(t->only_metric) || (!o->only_metric && !strcmp(source, "standard input")))
		strcpy(t->only_metric, "value");
	/* A single column of values takes a name given by the user. */
	if (t->form == CSV_COLUMNS && !(o->only_metric && t->n_values == 1))
		*t->only_metric = '\0';
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A number or a time: common in samples, rare in names of columns. */
static bool is_data(const char *text)
{
	double x;

	return number_read(text, strlen(text), &x) == NUMBER_OK ||
		iso_time_read(text, strlen(text), &x, NULL);
}

/* Is the first line a row of samples? So it is if all fields are data, or some are and no name is a
 * time's. */
static bool is_headless(const struct csv_table *t, const struct import_options *o)
{
	size_t data = 0, named = 0, filled = 0;
	double unit_s;

	for (size_t i = 0; i < t->n_columns; i++) {
		data += is_data(t->names[i]);
		filled += *t->names[i] != '\0';
		named += csv_time_name(t->names[i], &unit_s) ||
			(o->time && !strcmp(o->time, t->names[i]));
	}
	return data && (data == filled || !named);
}

/* A line of fio's write_lat_log and similar: time in ms, value, direction, block size, offset
 * ... */
static bool looks_fio(const struct csv_table *t)
{
	bool numbers = t->n_columns >= 4 && t->n_columns <= 6;

	for (size_t i = 0; i < t->n_columns && numbers; i++)
		numbers = !t->names[i][strspn(t->names[i], "0123456789")] || i > 3;
	return numbers && strlen(t->names[2]) == 1 && *t->names[2] <= '2';
}

static int check_headless(const struct csv_table *t, const struct import_options *o,
	const char *source, struct err *e)
{
	char *list;
	int rc;

	if (!is_headless(t, o))
		return 0;
	list = list_names(t);
	rc = looks_fio(t)
		? err_set(e, -EINVAL,
			  "the first line must name the columns; it holds %s. For each log of "
			  "fio: (echo time_ms,JOB; cut -d, -f1,2 '%.60s') >JOB.csv",
			  list, source)
		: err_set(e, -EINVAL,
			  "the first line must name the columns, such as 'time,host,disk,read_ms'; "
			  "it holds %s",
			  list);
	free(list);
	return rc;
}

static int check_twice(const struct csv_table *t, struct err *e)
{
	char **sorted = alloc_zero(t->n_columns, sizeof(*sorted));
	int rc = 0;

	memcpy(sorted, t->names, t->n_columns * sizeof(*sorted));
	qsort(sorted, t->n_columns, sizeof(*sorted), by_text);
	for (size_t i = 1; i < t->n_columns && !rc; i++)
		if (*sorted[i] && !strcmp(sorted[i - 1], sorted[i]))
			rc = err_set(e, -EINVAL, "column '%.60s' occurs twice", sorted[i]);
	free(sorted);
	return rc;
}

int csv_head(struct csv_table *t, const struct csv_rows *r, const char *source,
	const struct import_options *o, struct import_said *said, struct err *e)
{
	uint32_t value;
	int rc;

	t->n_columns = r->n_fields;
	t->names = alloc_zero(t->n_columns, sizeof(*t->names));
	for (size_t i = 0; i < t->n_columns; i++) {
		t->names[i] = alloc_zero(r->fields[i].n + 1, 1);
		csv_unquote(r, i, t->names[i], r->fields[i].n + 1);
	}
	rc = check_headless(t, o, source, e);
	if (!rc)
		rc = check_twice(t, e);
	if (!rc)
		rc = check_collectl(t, e);
	if (!rc)
		rc = find_roles(t, o, &value, e);
	if (!rc)
		rc = set_values(t, o, value, said, e);
	if (rc)
		return rc;
	set_keys(t);
	name_metric(t, source, o);
	if (t->form == CSV_WIDE && !t->collectl && !chosen(o, t->only_metric))
		return err_set(e, -EINVAL,
			"the only metric is called '%.60s' here (--metric-name sets it)",
			t->only_metric);
	return 0;
}

void csv_table_clear(struct csv_table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		free(t->names[i]);
	free(t->names);
	free(t->keys);
	free(t->values);
	*t = (struct csv_table){0};
}
