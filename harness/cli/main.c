#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/cli/cmd.h"

static const struct command commands[] = {
	{"lab", cmd_lab, "bring a small real cluster up on this machine, or down"},
	{"run", cmd_run, "run a scenario on a cluster and print its table"},
	{"resume", cmd_resume, "go on with a run that was interrupted"},
	{"status", cmd_status, "how far a run is, from another shell"},
	{"table", cmd_table, "print the scores of a run"},
	{"report", cmd_report,
		"write a run as one HTML file: matrix, charts, verdicts, provenance"},
	{"remeasure", cmd_remeasure, "reduce a recorded run's traces again, as this program does"},
	{"rescore", cmd_rescore, "judge a recorded run anew and score it, without a cluster"},
	{"diagnose", cmd_diagnose, "what detectors say of a run, or of anyone's time series"},
	{"samples", cmd_samples, "print what was measured in a run, as CSV"},
	{"corpus", cmd_corpus, "pack a run's measurements, to judge them anywhere"},
	{"new", cmd_new, "write a template of a fault, workload or detector"},
	{"list", cmd_list, "what faults, workloads and detectors there are"},
	{"log", cmd_log, "print a trace log"},
	{"trace", cmd_trace, "trace processes by hand"},
	{"doctor", cmd_doctor, "what is missing here or on the nodes, and what to do"},
	{"undo", cmd_undo, "clean nodes of what a run that was cut off has left"},
	{NULL, NULL, NULL},
};

int cmd_fail(const char *name, int code, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "culprit %s: ", name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return code;
}

static void usage(FILE *f)
{
	const struct command *c;

	fputs("usage: culprit COMMAND [ARGUMENT ...]\n\n"
	      "Injects a known fault into one server of a storage cluster under load,\n"
	      "lets diagnosers look at what was traced, and scores what they say.\n\n",
		f);
	for (c = commands; c->name; c++)
		fprintf(f, "  %-10s %s\n", c->name, c->summary);
	fputs("\n'culprit COMMAND --help' says more of each.\n"
	      "Exit codes: 0 all as expected; 1 a detector fell short; 2 usage or input error;\n"
	      "3 no valid result could be had.\n",
		f);
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		usage(stderr);
		return CULPRIT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return CULPRIT_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("culprit " CULPRIT_VERSION);
		return CULPRIT_EXIT_OK;
	}
	for (c = commands; c->name; c++)
		if (!strcmp(c->name, argv[1]))
			return c->run(argc - 1, argv + 1);
	fprintf(stderr, "culprit: there is no command '%s'; 'culprit help' lists them\n", argv[1]);
	return CULPRIT_EXIT_USAGE;
}
