/* Takes the undo journal over if the guard dies. */
#include "harness/agent/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "harness/agent/journal.h"
#include "harness/agent/programs.h"
#include "harness/agent/shield.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/units.h"

#define RETRY_S 30   /* how long an undo that fails is tried again */
#define END_S 5      /* for a killed agent, or a standby that is told to end */
#define LOOK_MS 50   /* how often the standby looks at the journal once the guard is dead */
#define UNIT_MS 500  /* how often the unit does */
#define WORDS_MAX 32 /* of the command that makes the unit */

static const char name[] = "culprit-standby";

/* ---- taking over ---- */

enum journal_state { GONE, HELD, FREE };

/* FREE: nobody undoes it or adds to it, since whoever held it is dead. */
static enum journal_state look_at(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return GONE;
	return !flock(fd, LOCK_SH | LOCK_NB) ? FREE : errno == EWOULDBLOCK ? HELD : GONE;
}

/* It might be in the middle of an act. */
static void end_agent(const struct target *agent)
{
	double deadline = clock_mono_s() + END_S;

	while (target_alive(agent, NULL) > 0 && clock_mono_s() < deadline) {
		kill(agent->pid, SIGKILL);
		procfs_nap(deadline);
	}
}

/* '*opened' tells whether it could be read: -EWOULDBLOCK if somebody else undoes it. */
static int take_over(const struct standby_duty *d, bool *opened, struct err *e)
{
	struct journal *j;
	int rc = journal_open(d->journal, 0, &j, e);

	*opened = !rc;
	if (rc)
		return rc == -ENOENT || rc == -EXDEV ? 0 : rc;
	end_agent(&d->agent);
	shield_lower();
	return journal_finish(j, RETRY_S, NULL, e);
}

/* Naps. True: a byte has come, which says that the session ends in order. */
static bool told_to_end(int *life, int nap_ms)
{
	struct pollfd p = {.fd = *life, .events = POLLIN};
	char byte;
	ssize_t n;

	if (poll(&p, 1, nap_ms) <= 0)
		return false;
	n = read(*life, &byte, 1);
	if (n == 0)
		*life = -1;
	return n > 0;
}

/* Until the journal is gone, or nobody is left to undo it: then does so. 'life' may be -1. */
static int keep_vigil(const struct standby_duty *d, int life, int nap_ms, struct err *e)
{
	double free_since = 0;

	while (!told_to_end(&life, nap_ms)) {
		enum journal_state state = look_at(d->journal);
		double now = clock_mono_s();
		bool opened;
		int rc;

		if (state == GONE)
			return 0;
		if (state == HELD || !free_since)
			free_since = state == FREE ? now : 0;
		if (state == HELD ||
			(target_alive(&d->agent, NULL) > 0 && now - free_since < d->lease_s))
			continue;
		rc = take_over(d, &opened, e);
		/* Without memory for it, say. */
		if (!rc || opened || now - free_since > d->lease_s + RETRY_S)
			return rc;
		if (rc == -EWOULDBLOCK)
			free_since = 0;
	}
	return 0;
}

/* ---- the unit ---- */

/* systemd replaces these in a unit's command. */
static bool is_plain(const char *path)
{
	return !strpbrk(path, "$%");
}

static _Noreturn void run_systemd_run(const struct standby_duty *d)
{
	char unit[NAME_MAX + 32], pid[16], ticks[32], lease[32];
	const char *argv[WORDS_MAX] = {"systemd-run", "--quiet", "--collect", "--no-block", unit,
		"--description=culprit: undoes a session that was killed",
		"--property=Restart=on-failure", "--property=RestartSec=200ms",
		"--property=StartLimitIntervalSec=60", "--property=StartLimitBurst=20",
		"--property=DefaultDependencies=no", "--property=OOMScoreAdjust=-1000",
		/* A server that its undo starts stays when the unit ends. */
		"--property=KillMode=process", "--"};
	const char *base = strrchr(d->journal, '/') + 1;
	size_t n = 0;

	while (argv[n])
		n++;
	for (const char *const *word = self_argv(); *word; word++)
		argv[n++] = *word;
	snprintf(unit, sizeof(unit), "--unit=culprit-standby-%.*s", (int)strcspn(base, "."), base);
	snprintf(pid, sizeof(pid), "%d", (int)d->agent.pid);
	snprintf(ticks, sizeof(ticks), "%llu", (unsigned long long)d->agent.ticks);
	snprintf(lease, sizeof(lease), "%.3fs", d->lease_s);
	memcpy(argv + n,
		(const char *[]){
			"standby", "--agent", pid, "--ticks", ticks, "--lease", lease, d->journal},
		8 * sizeof(*argv));
	process_default_signals();
	shield_lower();
	execvp(argv[0], (char **)argv);
	_exit(127);
}

/* Does not wait for systemd, which may hang. */
static void start_unit(const struct standby_duty *d)
{
	pid_t pid;

	if (access("/run/systemd/system", F_OK) < 0 || geteuid() != 0 || !is_plain(d->journal))
		return;
	pid = fork();
	if (pid == 0) {
		if (fork() == 0)
			run_systemd_run(d);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

int standby_program_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent standby --agent PID --ticks N --lease S JOURNAL\n\n"
		"Waits until JOURNAL is gone; or until nobody holds it and process PID, which was\n"
		"started at N, is dead or silent for the lease, and then undoes what it holds. An "
		"agent\n"
		"has systemd run this, where there is a systemd.\n";
	unsigned long pid = 0, ticks = 0;
	struct standby_duty d = {.lease_s = 10};
	const struct program_option options[] = {{"agent", option_count, &pid},
		{"ticks", option_count, &ticks}, {"lease", option_time, &d.lease_s}, {0}};
	int code = 0, first = program_options(argc, argv, options, 1, usage, &code), rc;
	struct err e;

	if (first < 0)
		return code;
	d.journal = argv[first];
	d.agent = (struct target){.pid = (pid_t)pid, .ticks = ticks};
	prctl(PR_SET_NAME, name);
	shield_raise();
	rc = keep_vigil(&d, -1, UNIT_MS, &e);
	/* Ends well all the same: systemd would start it again, and the next contact retries. */
	if (rc)
		fprintf(stderr, "culprit-agent standby: %s\n", e.text);
	return 0;
}

/* ---- the twin ---- */

static _Noreturn void standby_main(const struct standby_duty *d, int life, int tie, bool unit)
{
	struct pollfd p[] = {{.fd = life, .events = POLLIN}, {.fd = tie, .events = POLLIN}};
	struct err e;
	char byte;

	process_detach(name, (int[]){life, tie}, 2);
	shield_raise();
	if (unit)
		start_unit(d);
	while (poll(p, 2, -1) < 0)
		;
	/* A byte on the tie: the guard has finished, and nothing is left. */
	if (p[1].revents && read(tie, &byte, 1) > 0)
		_exit(0);
	_exit(keep_vigil(d, life, LOOK_MS, &e) ? 1 : 0);
}

int standby_start(struct standby *s, const struct standby_duty *d, int life, bool unit)
{
	int pair[2];
	pid_t pid;

	s->started_s = clock_mono_s();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		standby_main(d, life, pair[1], unit);
	close(pair[1]);
	if (pid < 0) {
		int rc = -errno;

		close(pair[0]);
		return rc;
	}
	s->pid = pid;
	s->tie = pair[0];
	return 0;
}

void standby_lost(struct standby *s)
{
	if (!s->pid)
		return;
	waitpid(s->pid, NULL, 0);
	close(s->tie);
	s->pid = 0;
	s->tie = -1;
}

void standby_end(struct standby *s)
{
	struct pollfd p = {.fd = s->tie, .events = POLLIN};

	if (!s->pid)
		return;
	/* Its end of the tie ends when it does. */
	if (send(s->tie, "", 1, MSG_NOSIGNAL) != 1 || poll(&p, 1, END_S * 1000) <= 0)
		kill(s->pid, SIGKILL);
	standby_lost(s);
}
