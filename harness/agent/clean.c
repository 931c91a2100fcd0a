/*
 * What earlier sessions left is undone before the hello, by a process of its own: an undo that
 * takes minutes (a file-system check) goes on after it, whatever becomes of us, while the node says
 * that it is quarantined.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "harness/agent/agent.h"
#include "harness/agent/journal.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define PATIENCE_S 5 /* orchestrators give a hello 10 s */

static _Noreturn void cleaner(int out, const char *state)
{
	json_t *cleaned = json_array(), *unclean = json_array(), *both;
	int null = open("/dev/null", O_RDWR);
	char *text;

	setsid();
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, signo == SIGCHLD ? SIG_DFL : SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	process_close_others(&out, 1);
	prctl(PR_SET_NAME, "culprit-cleaner");
	journal_clean_left(state, cleaned, unclean);
	both = json_pack("{s:O, s:O}", "cleaned", cleaned, "unclean", unclean);
	text = json_dumps(both, JSON_COMPACT);
	/* Nobody may be listening any more. */
	if (text && fd_write_all(out, text, strlen(text)))
		_exit(1);
	_exit(0);
}

/* True at the end of what it says. */
static bool take(int fd, char **text, size_t *size)
{
	char buf[4096], *more;
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n <= 0)
		return n == 0 || errno != EINTR;
	more = realloc(*text, *size + (size_t)n);
	if (more) {
		*text = more;
		memcpy(more + *size, buf, (size_t)n);
		*size += (size_t)n;
	}
	return false;
}

void clean_left(struct agent *a, json_t *cleaned, json_t *unclean, json_t *quarantined)
{
	double patience = clock_mono_s() + PATIENCE_S;
	bool working = false, ended = false;
	json_t *both = NULL;
	char *text = NULL;
	size_t size = 0;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		journal_clean_left(a->state, cleaned, unclean);
		return;
	}
	if (pid == 0)
		cleaner(p[1], a->state);
	close(p[1]);
	while (!ended) {
		struct pollfd f = {.fd = p[0], .events = POLLIN};

		guard_beat(a->guard);
		if (poll(&f, 1, 100) > 0) {
			ended = take(p[0], &text, &size);
			continue;
		}
		if (clock_mono_s() < patience)
			continue;
		json_array_clear(quarantined);
		if (!journal_quarantined(a->state, a->session, quarantined, &working, NULL) &&
			working)
			break;
	}
	close(p[0]);
	both = size ? json_loadb(text, size, 0, NULL) : NULL;
	json_array_extend(cleaned, json_object_get(both, "cleaned"));
	json_array_extend(unclean, json_object_get(both, "unclean"));
	json_decref(both);
	free(text);
	/* Its own guard may be at it, too. */
	for (;;) {
		struct timespec nap = {.tv_nsec = 50000000};

		json_array_clear(quarantined);
		if (journal_quarantined(a->state, a->session, quarantined, &working, NULL) ||
			!working || clock_mono_s() > patience)
			break;
		guard_beat(a->guard);
		nanosleep(&nap, NULL);
	}
}

int op_quarantine(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *list = json_array();
	bool working;
	int rc;

	(void)args;
	rc = journal_quarantined(a->state, a->session, list, &working, e);
	if (!rc)
		agent_answer(
			a, id, json_pack("{s:O, s:b}", "quarantined", list, "working", working));
	json_decref(list);
	return rc;
}
