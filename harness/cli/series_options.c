/* Options that say how series from elsewhere are read. */
#include "harness/cli/diagnose.h"

#include <errno.h>
#include <string.h>

#include "harness/base/near.h"
#include "harness/cli/cmd.h"

#define AT(field) offsetof(struct series_options, field)

const struct option_row series_rows[] = {
	{"format", 0, OPTION_TEXT, AT(how.format), "FORMAT",
		"csv, sar, sadf, iostat, ceph, prometheus-json or prometheus-text (default: by "
		"the first bytes)"},
	{"time", 0, OPTION_TEXT, AT(how.time), "COLUMN",
		"column of times: ISO 8601, or numbers whose unit is told by its name (_s, _ms, "
		"_us, _ns) or by their size. Found by itself: time, timestamp, ts, date ..."},
	{"member", 0, OPTION_TEXT, AT(how.member), "COLUMN",
		"column or label that names the disk, server or OSD. Found by itself: member, "
		"disk, device, osd, server, host, instance ..."},
	{"group", 0, OPTION_LIST, AT(groups), "COLUMN",
		"column or label whose members are peers; repeated from the widest (rack) to the "
		"narrowest (host). Found by itself: rack, host ..."},
	{"metric-column", 0, OPTION_TEXT, AT(how.metric), "COLUMN",
		"column that names the metric, if a row has one value (default: metric)"},
	{"value-column", 0, OPTION_TEXT, AT(how.value), "COLUMN",
		"column of the values, if a row has one (default: value)"},
	{"only", 0, OPTION_LIST, AT(only), "METRIC",
		"read only this metric; may be repeated (default: all)"},
	{"metric-name", 0, OPTION_TEXT, AT(how.only_metric), "NAME",
		"name of the metric, if a file has one column a member (default: the file's "
		"name)"},
	{0},
};

static int check_format(const char *command, const char *format)
{
	const char *names[32];
	char list[300] = "", hint[96];
	size_t n = 0, length = 0;

	for (; import_formats[n].name && n < 31; n++) {
		names[n] = import_formats[n].name;
		length += (size_t)snprintf(
			list + length, sizeof(list) - length, "%s%s", n ? ", " : "", names[n]);
		if (!strcmp(names[n], format))
			return 0;
	}
	names[n] = NULL;
	cmd_fail(command, CULPRIT_EXIT_USAGE, "there is no format '%s'; there are %s%s", format,
		list, near_hint(format, names, hint));
	return -EINVAL;
}

int series_options_check(const char *command, struct series_options *o)
{
	if (o->groups.n > IMPORT_GROUPS_MAX) {
		cmd_fail(command, CULPRIT_EXIT_USAGE, "--group may be given at most %d times",
			IMPORT_GROUPS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < IMPORT_GROUPS_MAX; i++)
		o->how.group[i] = i < o->groups.n ? o->groups.v[i] : NULL;
	o->how.metrics = o->only.v;
	o->how.n_metrics = o->only.n;
	if (o->how.only_metric && !import_name(o->how.only_metric)) {
		cmd_fail(command, CULPRIT_EXIT_USAGE,
			"--metric-name takes a name of UTF-8, of at most %d bytes",
			IMPORT_NAME_MAX);
		return -EINVAL;
	}
	return o->how.format ? check_format(command, o->how.format) : 0;
}

const char *series_options_given(const struct series_options *o)
{
	const struct import_options *how = &o->how;

	return how->format         ? "format"
		: how->time        ? "time"
		: how->member      ? "member"
		: o->groups.n      ? "group"
		: how->metric      ? "metric-column"
		: how->value       ? "value-column"
		: o->only.n        ? "only"
		: how->only_metric ? "metric-name"
				   : NULL;
}
