/*
 * culprit-agent delay holds packets back, for packets.delay (faults/primitives/delay.h). Its
 * standard input is the netlink socket of a queue, its argument
 *
 *	{"queue": 51200, "latency_s": 0.02, "jitter_s": 0, "rate": 0, "buffer_s": 0}
 *
 * and it keeps in the file that is its standard output one line of JSON, always of the same length:
 * what it has done so far.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "faults/primitives/delay.h"
#include "harness/agent/programs.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"

static void note_totals(const struct delay_totals *t)
{
	char line[240];
	int n = snprintf(line, sizeof(line),
		"{\"seconds\":%20.6f, \"packets\":%20" PRIu64 ", \"bytes\":%20" PRIu64
		", \"waited_s\":%20.6f, \"dropped\":%20" PRIu64 "}\n",
		t->seconds, t->packets, t->bytes, t->waited_s, t->dropped);

	/* Without it the fault is not verified: that is enough of a complaint. */
	if (pwrite(STDOUT_FILENO, line, (size_t)n, 0) != n)
		perror("culprit-agent delay: cannot write");
}

int delay_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent delay JSON <SOCKET >FILE\n\n"
		"Delays the packets of a queue; an agent starts it, and its guard ends it.\n";
	auto_json json_t *what = argc == 2 ? json_loads(argv[1], 0, NULL) : NULL;
	const struct delay_spec s = {.latency_s = jget_real(what, "latency_s"),
		.jitter_s = jget_real(what, "jitter_s"),
		.rate = jget_real(what, "rate"),
		.buffer_s = jget_real(what, "buffer_s")};
	struct err e = {""};
	int rc;

	if (!jget_int(what, "queue") || s.latency_s + s.rate <= 0) {
		fputs(usage, stderr);
		return 2;
	}
	rc = delay_serve(STDIN_FILENO, (uint16_t)jget_int(what, "queue"), &s, note_totals, &e);
	if (rc)
		fprintf(stderr, "culprit-agent delay: %s\n", e.text);
	return rc ? 1 : 0;
}
