/* Options that name a Prometheus server and a query. */
#include "harness/cli/diagnose.h"

#include <errno.h>

#define AT(field) offsetof(struct prometheus_given, field)

const struct option_row prometheus_rows[] = {
	{"prometheus", 0, OPTION_TEXT, AT(url), "URL",
		"ask this server, such as https://HOST:9090; Thanos, Mimir and VictoriaMetrics "
		"answer, too"},
	{"query", 0, OPTION_LIST, AT(queries), "[NAME=]PROMQL",
		"ask for these series; NAME becomes the metric's name (default: the series' own). "
		"May be repeated"},
	{"step", 0, OPTION_QUANTITY, AT(step_s), "TIME", "distance of two samples (default: 15s)",
		.min = 0.001, .unit = UNIT_SECONDS},
	{"token-file", 0, OPTION_TEXT, AT(token_file), "FILE", "this file holds the bearer token"},
	{"password-file", 0, OPTION_TEXT, AT(password_file), "FILE",
		"this file holds USER:PASSWORD"},
	{"ca", 0, OPTION_TEXT, AT(ca_file), "FILE",
		"certificates (PEM) that may sign the server's (default: the system's)"},
	{"cert", 0, OPTION_TEXT, AT(cert_file), "FILE", "the client's certificate (PEM)"},
	{"key", 0, OPTION_TEXT, AT(key_file), "FILE",
		"its private key (PEM; default: in the file of --cert)"},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"the longest wait for one answer (default: 30s)", .min = 0.1, .max = 3600,
		.unit = UNIT_SECONDS},
	{0},
};

int prometheus_options_fill(const struct prometheus_given *given, const struct import_options *how,
	struct prometheus_options *o, struct err *e)
{
	const char *alone = given->queries.n ? "query"
		: given->step_s > 0          ? "step"
		: given->token_file          ? "token-file"
		: given->password_file       ? "password-file"
		: given->ca_file             ? "ca"
		: given->cert_file           ? "cert"
		: given->key_file            ? "key"
		: given->timeout_s > 0       ? "timeout"
					     : NULL;

	if (!given->url && alone)
		return err_blame(
			e, ERR_USAGE, err_set(e, -EINVAL, "--%s needs --prometheus URL", alone));
	if (!given->url)
		return 1;
	if (!given->queries.n)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL,
				"--prometheus needs --query PROMQL, such as --query "
				"'rate(node_disk_read_time_seconds_total[1m])'"));
	*o = (struct prometheus_options){.url = given->url,
		.queries = given->queries.v,
		.n_queries = given->queries.n,
		.step_s = given->step_s,
		.timeout_s = given->timeout_s,
		.token_file = given->token_file,
		.password_file = given->password_file,
		.ca_file = given->ca_file,
		.cert_file = given->cert_file,
		.key_file = given->key_file};
	if (how)
		o->how = *how;
	return 0;
}
