/*
 * Runs a test program in new namespaces, so that several run side by side: new PID, network and
 * mount namespaces, in which /proc is the namespace's, and /run and /var/lib/culprit are empty
 * tmpfs. What a failing test leaves behind goes with them. Folders in /tmp are the test's to name
 * (mkdtemp); loop devices are the whole machine's.
 */
#ifndef CULPRIT_CI_TESTS_NAMESPACES_H
#define CULPRIT_CI_TESTS_NAMESPACES_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void namespaces_fill(void)
{
	mkdir("/var/lib/culprit", 0700);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("proc", "/proc", "proc", 0, NULL) ||
		mount("tmpfs", "/run", "tmpfs", 0, "mode=0755") ||
		mount("tmpfs", "/var/lib/culprit", "tmpfs", 0, "mode=0700")) {
		perror("cannot mount in a namespace of the test's own");
		_exit(1);
	}
}

/* Runs 'tests' as PID 2 of the new namespaces, and returns its exit code; where there can be none,
 * prints a TAP skip and returns 0. Ends with its parent. */
static inline int in_own_namespaces(int (*tests)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	if (unshare(CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS) < 0) {
		printf("1..0 # SKIP cannot make namespaces: %s\n", strerror(errno));
		return 0;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		pid_t runner;

		/* Nothing is left if the runner kills the test for its time. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		namespaces_fill();
		runner = fork();
		if (runner == 0)
			exit(tests());
		for (;;) {
			pid_t got = wait(&status);

			if (got == runner || (got < 0 && errno == ECHILD))
				_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
	}
	waitpid(pid, &status, 0);
	/* _exit: nothing can be started here any more, which what runs at exit might want. */
	fflush(stdout);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

#endif
