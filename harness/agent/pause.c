/*
 * culprit-agent pause stops servers again and again, for signal.pause (faults/primitives/signal.h).
 * The agent has journalled the inverse of all that it does: it is killed first, then the servers
 * continue. It reads from its standard input
 *
 *	{"servers": [inverse of signal_stop, ...], "pause_s": 0.3, "every_s": 1}
 *
 * and keeps in the file that is its standard output one line of JSON, always of the same length:
 * what it has done so far.
 */
#include <stdio.h>
#include <unistd.h>

#include "faults/primitives/signal.h"
#include "harness/agent/programs.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"

static void note(const struct signal_pauses *p)
{
	char line[120];
	int n = snprintf(line, sizeof(line),
		"{\"stops\":%10lu, \"stopped_s\":%20.6f, \"whole_s\":%20.6f}\n", p->stops,
		p->stopped_s, p->whole_s);

	/* Without it the fault is not verified: that is enough of a complaint. */
	if (pwrite(STDOUT_FILENO, line, (size_t)n, 0) != n)
		perror("culprit-agent pause: cannot write");
}

int pause_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent pause <FILE\n\n"
		"Stops servers for a part of the time; an agent starts it, and its guard undoes "
		"it.\n";
	auto_json json_t *what = NULL;
	struct err e = {""};

	(void)argv;
	if (argc == 1)
		what = json_loadf(stdin, 0, NULL);
	if (!json_array_size(jget(what, "servers")) || jget_real(what, "pause_s") <= 0) {
		fputs(usage, stderr);
		return 2;
	}
	signal_pause(jget(what, "servers"), jget_real(what, "pause_s"), jget_real(what, "every_s"),
		note, &e);
	fprintf(stderr, "culprit-agent pause: %s\n", e.text);
	return 1;
}
