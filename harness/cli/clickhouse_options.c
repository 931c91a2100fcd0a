/* Options of commands that talk to ClickHouse. */
#include "harness/cli/subject.h"

#include "harness/run/signals.h"

#define AT(field) offsetof(struct clickhouse_given, field)

const struct option_row clickhouse_rows[] = {
	{"password-file", 0, OPTION_TEXT, AT(password_file), "FILE",
		"this file holds USER:PASSWORD (default: CULPRIT_CLICKHOUSE_USER and "
		"CULPRIT_CLICKHOUSE_PASSWORD of the environment, else none)"},
	{"ca", 0, OPTION_TEXT, AT(ca_file), "FILE",
		"certificates (PEM) that may sign the server's (default: the system's)"},
	{0},
};

int clickhouse_given_open(const struct clickhouse_given *given, const char *url, double timeout_s,
	struct clickhouse **out, struct err *e)
{
	const struct clickhouse_options how = {.url = url,
		.timeout_s = timeout_s,
		.password_file = given->password_file,
		.ca_file = given->ca_file,
		.stop = signals_catch()};

	return clickhouse_open(&how, out, e);
}
