/* culprit trace-control: an order to a capture that 'culprit trace --inventory' runs. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/live/orders.h"

/* All nodes write, then their logs are fetched. */
static const double patience_s = 900;

static char *trace_control_join(int n, char **words)
{
	char *line = alloc_copy(words[0]);

	for (int i = 1; i < n; i++) {
		char *longer = alloc_format("%s %s", line, words[i]);

		free(line);
		line = longer;
	}
	return line;
}

static int trace_control_run(const struct call *c)
{
	auto_free char *line = trace_control_join(c->n - 1, c->args + 1);
	char answer[ORDER_ANSWER];
	struct err e = {0};

	if (order_send(c->args[0], line, patience_s, answer, &e))
		return cmd_error("trace-control", &e, ERR_USAGE);
	if (!strncmp(answer, "refused: ", 9))
		return cmd_fail("trace-control", CULPRIT_EXIT_USAGE, "%s", answer + 9);
	if (!strncmp(answer, "failed: ", 8))
		return cmd_fail("trace-control", CULPRIT_EXIT_INVALID, "%s", answer + 8);
	text_print_clean(stdout, answer);
	putchar('\n');
	return CULPRIT_EXIT_OK;
}

const struct command trace_control_command = {.name = "trace-control",
	.summary = "tell a capture on a cluster what to do while it runs",
	.arguments = "FOLDER write [REASON]\nFOLDER on|off\nFOLDER filter WORD ...\n"
		     "FOLDER status|stop",
	.about = "Gives an order to the 'culprit trace --inventory' that writes to FOLDER, and "
		 "waits until it is done on all nodes.\n\n"
		 "write: what the tracers keep now (--ring) becomes FOLDER/cells/NNNN.1. off, on: "
		 "no calls are recorded, or they are again; processes and descriptors are followed "
		 "all the time. filter: which calls are recorded from now on, in place of those "
		 "before: process=NAME|PID,... calls=network,disk,fuse,metadata,other "
		 "client=ADDRESS,... path=PREFIX,... or none (everything); all words must hold; "
		 "%20 is a blank in a path, %2c a comma. The logs say what was recorded since "
		 "when. status: how it goes. stop: the capture ends, and writes.",
	.examples = "culprit trace-control DIR write\n"
		    "culprit trace-control DIR filter calls=disk,network client=10.0.0.7\n"
		    "culprit trace-control DIR filter none",
	.exits = "0 done; 2 refused, or no such capture runs; 3 it failed on a node: nodes may "
		 "record different things then, as their logs say.",
	ARGUMENTS(2, INT_MAX),
	.run = trace_control_run};
