/* Starts a program that runs until the fault is undone. */
#include "faults/primitives/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/target.h"
#include "harness/base/clock.h"
#include "harness/base/proc.h"

extern char **environ;

static void close_between(unsigned from, unsigned to)
{
	if (from > to || !close_range(from, to, 0))
		return;
	/* Before Linux 5.9. */
	for (unsigned fd = from; fd <= to && fd < (unsigned)sysconf(_SC_OPEN_MAX); fd++)
		close((int)fd);
}

void process_close_others(const int *keep, size_t n)
{
	unsigned from = 3;

	for (;;) {
		unsigned next = ~0u;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= (int)from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next == ~0u)
			break;
		close_between(from, next - 1);
		from = next + 1;
	}
	close_between(from, ~0u);
}

void process_detach(const char *name, const int *keep, size_t n)
{
	static const int ignored[] = {
		SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP};
	int null = open("/dev/null", O_RDWR);

	setsid();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	process_close_others(keep, n);
	prctl(PR_SET_NAME, name);
	if (chdir("/"))
		_exit(1);
}

void process_default_signals(void)
{
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Our environment, then 'extra', then the tag. Never freed: only the child calls this. */
static char **make_environ(const json_t *extra, const char *tag)
{
	size_t n = 0, room, used = 0;
	const char *key;
	json_t *value;
	char **env;

	while (environ[n])
		n++;
	room = n + json_object_size(extra) + 2;
	env = calloc(room, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(environ[i], "=");
		bool replaced = !strncmp(environ[i], PROCESS_TAG "=", sizeof(PROCESS_TAG));

		json_object_foreach((json_t *)extra, key, value) {
			replaced |= strlen(key) == len && !strncmp(environ[i], key, len);
		}
		if (!replaced)
			env[used++] = environ[i];
	}
	json_object_foreach((json_t *)extra, key, value) {
		if (asprintf(&env[used++], "%s=%s", key, json_string_value(value)) < 0)
			return NULL;
	}
	if (asprintf(&env[used++], PROCESS_TAG "=%s", tag) < 0)
		return NULL;
	return env;
}

/* -1: 'to' would still be the agent's own channel, so the program must not run. */
static int put_fd(int from, int to, int flags)
{
	int fd = from >= 0 ? from : open("/dev/null", flags);

	return fd == to ? fcntl(fd, F_SETFD, 0) : dup2(fd, to);
}

static _Noreturn void child(const struct process_spec *s, int gate, int failed)
{
	const int keep[] = {gate, failed, s->pass, s->in, s->out, s->err};
	char **env, go;
	int code;

	/* Also the other ends of the gate, of the guard's socket and of the standby's pipe: those
	 * end with the agent, not with this child. */
	process_close_others(keep, sizeof(keep) / sizeof(keep[0]));
	setsid();
	process_default_signals();
	env = make_environ(s->env, s->tag);
	while ((code = (int)read(gate, &go, 1)) < 0 && errno == EINTR)
		;
	if (code == 0)
		_exit(125);
	if (code == 1 && !env)
		errno = ENOMEM;
	if (code == 1 && env && put_fd(s->in, 0, O_RDONLY) >= 0 &&
		put_fd(s->out, 1, O_WRONLY) >= 0 && put_fd(s->err, 2, O_WRONLY) >= 0 &&
		(s->pass < 0 || fcntl(s->pass, F_SETFD, 0) >= 0) && !chdir(s->cwd ? s->cwd : "/"))
		execvpe(s->argv[0], (char *const *)s->argv, env);
	code = errno;
	if (write(failed, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

int process_fork(
	const struct process_spec *s, struct process_gate *g, json_t **inverse, struct err *e)
{
	int gate[2] = {-1, -1}, failed[2] = {-1, -1}, rc = 0;
	json_t *inv = NULL;
	uint64_t ticks;
	pid_t pid = -1;

	if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		rc = -errno;
	if (pid == 0)
		child(s, gate[0], failed[1]);
	rc = rc ?: proc_start_time(pid, &ticks);
	if (!rc &&
		!(inv = json_pack("{s:s, s:i, s:I, s:f}", "tag", s->tag, "pid", (int)pid,
			  "start_ticks", (json_int_t)ticks, "grace_s", s->grace_s)))
		rc = -ENOMEM;
	fd_close(gate[0]);
	fd_close(failed[1]);
	if (!rc) {
		*g = (struct process_gate){.pid = pid, .open = gate[1], .failed = failed[0]};
		*inverse = inv;
		return 0;
	}
	fd_close(gate[1]);
	fd_close(failed[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return err_errno(e, rc, "cannot start '%s'", s->argv[0]);
}

void process_abandon(struct process_gate *g)
{
	close(g->open);
	close(g->failed);
	waitpid(g->pid, NULL, 0);
}

int process_release(struct process_gate *g, const char *name, struct err *e)
{
	int code = 0, rc = 0;
	ssize_t n = 0;

	if (write(g->open, "", 1) != 1)
		code = errno;
	while (!code && (n = read(g->failed, &code, sizeof(code))) < 0 && errno == EINTR)
		;
	if (n < 0)
		code = errno;
	if (code)
		rc = err_errno(e, -code, "cannot run '%s'", name);
	close(g->open);
	close(g->failed);
	if (rc) {
		/* If reading failed, the program may run after all. */
		kill(g->pid, SIGKILL);
		waitpid(g->pid, NULL, 0);
	}
	return rc;
}

struct process_inverse {
	const char *tag;
	struct target first; /* what was started */
	double grace_s;
};

static int inverse_read(const json_t *inverse, struct process_inverse *out, struct err *e)
{
	if (json_unpack((json_t *)inverse, "{s:s, s:F}", "tag", &out->tag, "grace_s",
		    &out->grace_s) < 0 ||
		!strchr(out->tag, '/') || target_read(inverse, &out->first, NULL))
		return err_set(e, -EBADMSG, "the inverse of a process is damaged");
	return 0;
}

/* Sends 'signo' (0: only looks) to all that are left; the count, or -errno. '*who' gets one of
 * them. */
static int signal_all(const struct process_inverse *inv, int signo, pid_t *who)
{
	auto_free pid_t *pids = NULL;
	int n = proc_find_tagged(PROCESS_TAG, inv->tag, false, &pids), found = 0, alive;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (pids[i] == getpid())
			continue;
		*who = pids[i];
		found++;
		kill(pids[i], signo);
	}
	/* At its gate, or in the middle of its exec, it does not show the tag yet. */
	alive = target_alive(&inv->first, NULL);
	if (alive > 0) {
		*who = inv->first.pid;
		kill(*who, signo);
	}
	return alive < 0 ? alive : found + alive;
}

/* Until two looks in a row find none: one just forked may not have been listed yet. */
static int wait_gone(const struct process_inverse *inv, int signo, double timeout_s, pid_t *who)
{
	double deadline = clock_mono_s() + timeout_s;
	int clear = 0;

	while (clear < 2) {
		int n = signal_all(inv, signo, who);

		if (n < 0)
			return n;
		clear = n ? 0 : clear + 1;
		if (clear < 2 && !procfs_nap(deadline) && n)
			return -EBUSY;
	}
	return 0;
}

static int look_failed(const struct process_inverse *inv, int rc, struct err *e)
{
	return err_errno(e, rc, "cannot look for the processes of %s", inv->tag);
}

static int process_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct process_inverse inv;
	pid_t who = 0;
	int rc = inverse_read(inverse, &inv, e);

	if (rc)
		return rc;
	if (inv.grace_s > 0 && signal_all(&inv, SIGTERM, &who) > 0) {
		*was_there = true;
		wait_gone(&inv, 0, inv.grace_s, &who);
	}
	rc = wait_gone(&inv, SIGKILL, 5, &who);
	if (rc == -EBUSY)
		return err_set(e, rc, "process %d of %s survives SIGKILL", (int)who, inv.tag);
	if (rc)
		return look_failed(&inv, rc, e);
	*was_there = *was_there || who;
	return 0;
}

static int process_verify(const json_t *inverse, struct err *e)
{
	struct process_inverse inv;
	pid_t who;
	int rc = inverse_read(inverse, &inv, e);

	if (rc)
		return rc;
	rc = signal_all(&inv, 0, &who);
	if (rc > 0)
		return err_set(e, -EBUSY, "process %d of %s is still there", (int)who, inv.tag);
	return rc ? look_failed(&inv, rc, e) : 0;
}

const struct primitive process_primitive = {
	.name = "process",
	.ends_with_boot = true,
	.undo = process_undo,
	.verify_undone = process_verify,
};
