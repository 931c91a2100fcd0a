/* The agent's commands. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "diag/capture/capture.h"
#include "diag/capture/trapped.h"
#include "harness/agent/programs.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{"serve", serve_main, "perform requests on standard input (harness/agent/PROTOCOL.md)"},
	{"trace", trace_main, "record the system calls of processes"},
	{"file", file_main, "carry a file over standard input and output"},
	{"files", files_main, "list the files below a folder, with their sizes"},
	{"loop", loop_main, "run a command again and again until told to stop"},
	{"sink", sink_main, "take and drop what one host sends"},
	{"send", send_main, "send zeros to a port"},
	{"cpu", cpu_main, "keep processors busy"},
	{"memory", memory_main, "hold memory"},
	{"read", read_main, "read a disk again and again"},
	{"pause", pause_main, "stop servers again and again (started by signal.pause)"},
	{"delay", delay_main, "hold packets back (started by packets.delay)"},
	{"standby", standby_program_main, "undo what a killed session leaves (a unit of systemd)"},
	{"throttled", throttled_main, "run a command whose calls on files a supervisor delays"},
	{"replay", replay_main, "do again what a captured application did to its files"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

int main(int argc, char **argv)
{
	struct err e;

	/* Started through the loader, the process would have its name. */
	prctl(PR_SET_NAME, "culprit-agent");
	if (self_init(argv[0], &e)) {
		fprintf(stderr, "culprit-agent: %s\n", e.text);
		return 3;
	}
	for (size_t i = 0; argc > 1 && i < N_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		puts("culprit-agent " CULPRIT_VERSION);
		return 0;
	}
	fputs("usage: culprit-agent COMMAND ...\n\n", stderr);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(stderr, "  %-9s %s\n", commands[i].name, commands[i].summary);
	return 2;
}
