/* culprit-agent replay: an application's calls, done again (harness/replayer/replayer.h). */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agent/programs.h"
#include "harness/base/file.h"
#include "harness/replayer/replayer.h"

static bool option_mode(const char *value, void *into)
{
	enum replay_mode *mode = into;

	for (int i = 0; i < REPLAY_MODES; i++) {
		if (!strcmp(value, replay_mode_names[i])) {
			*mode = (enum replay_mode)i;
			return true;
		}
	}
	return false;
}

static bool replay_number(const char *value, double least, double most, double *into)
{
	char *end;

	*into = strtod(value, &end);
	return end > value && !*end && *into >= least && *into <= most;
}

static bool option_speed(const char *value, void *into)
{
	return replay_number(value, 1e-3, 1e6, into);
}

static bool option_share(const char *value, void *into)
{
	return replay_number(value, 0, 1, into);
}

static bool option_seconds(const char *value, void *into)
{
	return replay_number(value, 0.1, 1e6, into);
}

static bool option_yes(const char *value, void *into)
{
	*(bool *)into = !strcmp(value, "yes");
	return *(bool *)into || !strcmp(value, "no");
}

/* "prepare", "remove", "loop", or a number of passes. */
struct work {
	struct replayer_options o;
	bool remove;
};

static bool option_do(const char *value, void *into)
{
	struct work *w = into;

	w->remove = !strcmp(value, "remove");
	w->o.prepare_only = !strcmp(value, "prepare");
	w->o.passes = 0;
	return w->remove || w->o.prepare_only || !strcmp(value, "loop") ||
		option_count(value, &w->o.passes);
}

static void *wait_signals(void *peers)
{
	sigset_t set;
	int signo;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &signo);
	peers_stop(peers);
	return NULL;
}

static int agent_replay_run(struct work *w, bool linked, double stall_s, struct err *e)
{
	struct peers *peers = NULL;
	pthread_t waiter;
	sigset_t set;
	int rc;

	if (w->remove)
		return file_remove_tree(w->o.root, e);
	/* Before the first thread: one that does not block them would be ended by them. */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	rc = peers_new(linked ? 0 : -1, stall_s, &peers, e);
	if (rc)
		return rc;
	rc = -pthread_create(&waiter, NULL, wait_signals, peers);
	if (rc) {
		peers_free(peers);
		return err_errno(e, rc, "cannot wait for signals");
	}
	rc = replayer_run(&w->o, peers, e);
	pthread_cancel(waiter);
	pthread_join(waiter, NULL);
	peers_free(peers);
	return rc;
}

int replay_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent replay --root DIR [--do PASSES|loop|prepare|remove] [--mode "
		"causal|afap|think|wall]\n"
		"       [--speed X] [--cpu SHARE] [--stall SECONDS] [--linked yes|no] [--series "
		"yes|no] TRACE\n\n"
		"Does again, on dummy files below DIR, what a captured application did to its "
		"files: once, PASSES\n"
		"times, or until SIGINT; or only makes the files, or removes DIR. With --linked "
		"this is one of\n"
		"several nodes, which speak over standard input (PROTOCOL.md, link). Prints a line "
		"of JSON for\n"
		"each pass, with the bytes over time where --series is given.\n";
	struct work w = {.o = {.speed = 1, .cpu = 1, .passes = 1, .out = stdout}};
	double stall_s = 60;
	bool linked = false;
	const struct program_option options[] = {{"root", option_text, &w.o.root},
		{"do", option_do, &w}, {"mode", option_mode, &w.o.mode},
		{"speed", option_speed, &w.o.speed}, {"cpu", option_share, &w.o.cpu},
		{"stall", option_seconds, &stall_s}, {"linked", option_yes, &linked},
		{"series", option_yes, &w.o.series}, {0}};
	struct err e = {""};
	int code, rc, first = program_options(argc, argv, options, 1, usage, &code);

	if (first < 0)
		return code;
	if (!w.o.root || w.o.root[0] != '/' || !w.o.root[1]) {
		fputs("culprit-agent replay: --root must be the absolute path of a folder\n",
			stderr);
		return 2;
	}
	w.o.trace = argv[first];
	rc = agent_replay_run(&w, linked, stall_s, &e);
	/* That somebody wanted it to end is no failure. */
	if (!rc || (rc == -ECANCELED && !w.o.prepare_only))
		return 0;
	fprintf(stderr, "culprit-agent replay: %s\n", e.text);
	return 1;
}
