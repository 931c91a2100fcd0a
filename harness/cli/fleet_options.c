/* Options of the detector 'fleet'. */
#include "harness/cli/diagnose.h"

#include <errno.h>
#include <stdlib.h>

#define AT(field) offsetof(struct fleet_given, field)

/* "1e-4" or "1/10000" */
static int set_alarms(void *field, const char *text, struct err *e)
{
	double *alarms = field, n;
	char *end;

	*alarms = strtod(text, &end);
	if (end != text && *end == '/') {
		const char *below = end + 1;

		n = strtod(below, &end);
		*alarms = end != below && n > 0 ? *alarms / n : 0;
	}
	if (end != text && !*end && *alarms >= 1e-12 && *alarms <= 0.1)
		return 0;
	return err_set(e, -EINVAL,
		"takes a rate from 1e-12 to 0.1, such as 1e-4 or 1/10000, not '%s'", text);
}

const struct option_row fleet_rows[] = {
	{"metric", 0, OPTION_LIST, AT(metrics), "DECLARATION",
		"what a metric is, such as 'read_time kind=amount per=reads unit=ms' or 'mbps "
		"worse=less'; the words are in diag/detectors/README.md. May be repeated. What is "
		"not declared is guessed from the name, and the guess is printed"},
	{"metrics", 0, OPTION_TEXT, AT(metrics_file), "FILE",
		"read such declarations from this file, one a line"},
	{"false-alarms", 0, OPTION_CALL, AT(alarms), "RATE",
		"accept so many false alarms per series and week (default: 1/10000)",
		.set = set_alarms},
	{"least", 0, OPTION_QUANTITY, AT(least), "RATIO",
		"report from this ratio to the peers on (default: 1.15)", 1.001, 1e6, UNIT_NONE},
	{"shortest", 0, OPTION_QUANTITY, AT(shortest_pct), "PERCENT",
		"report from this share of the time on (default: 0.5%)", 1e-6, 100, UNIT_PERCENT},
	{"memory", 0, OPTION_QUANTITY, AT(memory_bytes), "SIZE",
		"memory for the samples; if they need more, neighbours in time are joined "
		"(default: 320MiB)",
		1 << 20, 1LL << 40, UNIT_BYTES},
	{0},
};

int fleet_options_fill(const struct fleet_given *given, struct fleet_options *o,
	struct metric_models *models, struct err *e)
{
	int rc = given->metrics_file ? metric_declare_file(models, given->metrics_file, e) : 0;

	for (size_t i = 0; i < given->metrics.n && !rc; i++) {
		rc = metric_declare(models, given->metrics.v[i], e);
		if (rc)
			err_prefix(e, rc, "--metric '%s'", given->metrics.v[i]);
	}
	if (rc)
		return rc;
	*o = fleet_defaults;
	o->models = models;
	if (given->alarms > 0)
		o->alarms = given->alarms;
	if (given->least > 0)
		o->least = given->least;
	if (given->shortest_pct > 0)
		o->shortest = given->shortest_pct / 100;
	if (given->memory_bytes > 0)
		o->memory_bytes = (size_t)given->memory_bytes;
	return 0;
}

const char *fleet_options_given(const struct fleet_given *given)
{
	return given->metrics.n           ? "metric"
		: given->metrics_file     ? "metrics"
		: given->alarms > 0       ? "false-alarms"
		: given->least > 0        ? "least"
		: given->shortest_pct > 0 ? "shortest"
		: given->memory_bytes > 0 ? "memory"
					  : NULL;
}
