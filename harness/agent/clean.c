/*
 * What earlier sessions left is undone before the hello, by a child: an undo that takes minutes (a
 * file-system check) goes on after the hello, even if this agent dies, and the node is quarantined
 * in the meantime.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "harness/agent/journal.h"
#include "harness/agent/ops.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define PATIENCE_S 5 /* orchestrators give a hello 10 s */

static _Noreturn void cleaner(int out, const char *state)
{
	json_t *cleaned = json_array(), *unclean = json_array();
	char *text;

	process_detach("culprit-cleaner", &out, 1);
	journal_clean_left(state, cleaned, unclean);
	text = json_dumps(
		json_pack("{s:o, s:o}", "cleaned", cleaned, "unclean", unclean), JSON_COMPACT);
	/* Nobody may be listening any more. */
	_exit(text && fd_write_all(out, text, strlen(text)) ? 1 : 0);
}

/* Is a slow undo of another session under way? 'list' gets them. */
static bool still_working(struct agent *a, json_t *list)
{
	bool working;

	json_array_clear(list);
	return !journal_quarantined(a->state, a->session, list, &working, NULL) && working;
}

void clean_left(struct agent *a, json_t *cleaned, json_t *unclean, json_t *quarantined)
{
	double patience = clock_mono_s() + PATIENCE_S;
	auto_json json_t *both = NULL;
	struct bytes said = {0};
	bool ended = false;
	ssize_t n;
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
			n = bytes_read(&said, p[0]);
			ended = n <= 0 && n != -EINTR;
		} else if (clock_mono_s() >= patience) {
			ended = still_working(a, quarantined);
		}
	}
	close(p[0]);
	both = json_loadb(said.data ?: "", said.size, 0, NULL);
	json_array_extend(cleaned, jget(both, "cleaned"));
	json_array_extend(unclean, jget(both, "unclean"));
	free(said.data);
	/* The guard of the session that left it may be undoing it as well. */
	do
		guard_beat(a->guard);
	while (still_working(a, quarantined) && procfs_nap(patience));
}

int op_quarantine(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_json json_t *list = json_array();
	bool working;
	int rc = journal_quarantined(a->state, a->session, list, &working, e);

	(void)args;
	if (!rc)
		agent_answer(
			a, id, json_pack("{s:O, s:b}", "quarantined", list, "working", working));
	return rc;
}
