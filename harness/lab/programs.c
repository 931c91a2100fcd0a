/* The programs that a node's pid 1 has started for the lab: have they ended, and what did they say
 * last? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

#define PROGRAMS_MAX 16
#define LAST_LINES 5

static struct program {
	char name[48]; /* its log is log/NODE/NAME.log in the lab's folder */
	pid_t pid;
} programs[PROGRAMS_MAX];
static size_t n_programs;

void programs_add(const char *name, pid_t pid)
{
	struct program *p = &programs[n_programs];

	if (n_programs == PROGRAMS_MAX)
		return;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->pid = pid;
	n_programs++;
}

/* Appends where the log is, and its last lines, to 'text'. */
static void put_log(const struct lab_node *n, const struct program *p, char text[LAB_SAID_MAX])
{
	auto_free char *log = NULL;
	size_t used = strlen(text), room = LAB_SAID_MAX - used, size = 0, from;
	int lines = 0;

	if (file_read(lab_path(LAB_NODE_RUN "/log", "%s.log", p->name).s, &log, &size, NULL))
		return;
	while (size && log[size - 1] == '\n')
		log[--size] = '\0';
	for (from = size; from && lines < LAST_LINES; from--)
		lines += log[from - 1] == '\n';
	/* The loop stops before the newline that ends the line before. */
	from += lines == LAST_LINES;
	for (char *c = log + from; (c = strchr(c, '\n'));)
		*c = '|';
	if (!size) {
		snprintf(text + used, room, "; log/%s/%s.log is empty", n->name, p->name);
		return;
	}
	used += (size_t)snprintf(
		text + used, room, "; log/%s/%s.log ends with: ", n->name, p->name);
	/* The end says most. */
	if (used < LAB_SAID_MAX && size - from >= LAB_SAID_MAX - used)
		from = size - (LAB_SAID_MAX - used - 1);
	if (used < LAB_SAID_MAX)
		snprintf(text + used, LAB_SAID_MAX - used, "%s", log + from);
}

void child_describe_end(const siginfo_t *info, char text[64])
{
	if (info->si_code == CLD_EXITED)
		snprintf(text, 64, "ended with exit code %d", info->si_status);
	else
		snprintf(text, 64, "was killed by signal %d (%s)", info->si_status,
			sigabbrev_np(info->si_status) ?: "unknown");
}

static bool has_ended(const struct program *p, siginfo_t *info)
{
	info->si_pid = 0;
	return !waitid(P_PID, (id_t)p->pid, info, WEXITED | WNOHANG | WNOWAIT) && info->si_pid;
}

int programs_check(const struct lab_node *n, struct err *e)
{
	for (size_t i = 0; i < n_programs; i++) {
		char end[64], said[LAB_SAID_MAX] = "";
		siginfo_t info;

		if (!has_ended(&programs[i], &info) ||
			(info.si_code == CLD_EXITED && !info.si_status))
			continue;
		child_describe_end(&info, end);
		put_log(n, &programs[i], said);
		return err_set(e, -ECHILD, "'%s' %s%s", programs[i].name, end, said);
	}
	return 0;
}

void programs_last_words(const struct lab_node *n, char text[LAB_SAID_MAX])
{
	/* The first is sshd, which every node has. */
	const struct program *p = n_programs > 1 ? &programs[n_programs - 1] : NULL;
	siginfo_t info;

	*text = '\0';
	if (!p)
		return;
	if (has_ended(p, &info))
		snprintf(text, LAB_SAID_MAX, "; '%s' ended with exit code 0", p->name);
	put_log(n, p, text);
}
