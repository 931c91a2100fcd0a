#include "harness/base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"

#define OUTPUT_MAX (1u << 20)
#define IN_EXEC_MAX_S 2

static pid_t start(const char *const argv[], int out_fd, int err_pipe[2])
{
	pid_t pid = fork();

	if (pid)
		return pid;
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	/* Never with the input and output of ours, which may be a protocol's. */
	if (null >= 0 && dup2(null, 0) >= 0 && dup2(out_fd, 1) >= 0 && dup2(out_fd, 2) >= 0)
		execvp(argv[0], (char *const *)argv);
	int code = errno;

	if (write(err_pipe[1], &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

static int collect(int fd, double deadline, char *buf, size_t *len)
{
	char scrap[4096];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		double left = deadline ? deadline - clock_mono_s() : 3600;
		ssize_t n;
		int ready = left <= 0 ? 0 : poll(&p, 1, (int)(left * 1000) + 1);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0 && deadline)
			return -ETIMEDOUT;
		if (ready == 0)
			continue;
		if (*len < OUTPUT_MAX)
			n = read(fd, buf + *len, OUTPUT_MAX - *len);
		else
			n = read(fd, scrap, sizeof(scrap));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (*len < OUTPUT_MAX)
			*len += (size_t)n;
	}
}

static int wait_until(pid_t pid, double deadline, int *status)
{
	for (;;) {
		struct timespec nap = {.tv_nsec = 2000000};
		pid_t got = waitpid(pid, status, deadline ? WNOHANG : 0);

		if (got == pid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (deadline && clock_mono_s() > deadline)
			return -ETIMEDOUT;
		if (got == 0)
			nanosleep(&nap, NULL);
	}
}

int proc_run(const char *const argv[], double timeout_s, char **output, struct err *e)
{
	int out[2] = {-1, -1}, fail[2] = {-1, -1}, rc, status, code = 0;
	double deadline = timeout_s > 0 ? clock_mono_s() + timeout_s : 0;
	char *buf = malloc(OUTPUT_MAX + 1);
	size_t len = 0;
	pid_t pid;

	if (!buf || pipe2(out, O_CLOEXEC) < 0 || pipe2(fail, O_CLOEXEC) < 0) {
		rc = err_errno(e, -errno, "cannot run '%s'", argv[0]);
		goto done;
	}
	pid = start(argv, out[1], fail);
	if (pid < 0) {
		rc = err_errno(e, -errno, "cannot run '%s'", argv[0]);
		goto done;
	}
	close(out[1]);
	close(fail[1]);
	out[1] = fail[1] = -1;
	if (read(fail[0], &code, sizeof(code)) != (ssize_t)sizeof(code))
		code = 0;
	rc = collect(out[0], deadline, buf, &len);
	if (!rc)
		rc = wait_until(pid, deadline, &status);
	if (rc) {
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
		rc = err_set(e, rc, "'%s' did not end within %g s", argv[0], timeout_s);
	} else if (code) {
		rc = err_errno(e, -code, "cannot run '%s'", argv[0]);
	} else {
		rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
done:
	for (int i = 0; i < 2; i++) {
		if (out[i] >= 0)
			close(out[i]);
		if (fail[i] >= 0)
			close(fail[i]);
	}
	if (buf)
		buf[len] = '\0';
	if (output)
		*output = buf;
	else
		free(buf);
	return rc;
}

int proc_run_ok(const char *const argv[], double timeout_s, char **output, struct err *e)
{
	char *text = NULL, command[512] = "", *line;
	int rc = proc_run(argv, timeout_s, &text, e);

	if (rc > 0) {
		size_t n = 0;

		for (int i = 0; argv[i] && n < sizeof(command); i++)
			n += (size_t)snprintf(
				command + n, sizeof(command) - n, "%s%s", i ? " " : "", argv[i]);
		for (n = text ? strlen(text) : 0; n && text[n - 1] == '\n'; n--)
			text[n - 1] = '\0';
		line = text ? strrchr(text, '\n') : NULL;
		rc = err_set(e, -EIO, "'%s' ended with %d: %.300s", command, rc,
			line ? line + 1 : (text && *text ? text : "it printed nothing"));
	}
	if (output)
		*output = text;
	else
		free(text);
	return rc;
}

/* Ended before we opened its file, or before we read it; or not ours to look at. Anything else (no
 * memory, no descriptor left) says nothing about it. */
static bool is_gone(int rc)
{
	return rc == -ENOENT || rc == -ESRCH || rc == -EACCES || rc == -EPERM;
}

int proc_start_time(pid_t pid, uint64_t *ticks)
{
	char path[64], *text = NULL, *p, state;
	unsigned long long value;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	rc = file_read(path, &text, NULL, NULL);
	if (rc)
		return is_gone(rc) ? -ESRCH : rc;
	/* The name in parentheses may itself hold spaces and parentheses. */
	p = strrchr(text, ')');
	rc = -ESRCH;
	if (p &&
		sscanf(p + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			&state, &value) == 2 &&
		state != 'Z' && state != 'X') {
		*ticks = value;
		rc = 0;
	}
	free(text);
	return rc;
}

/* Between the new address space and its first page a process in exec shows no environment
 * (env_start, field 50 of its stat, is 0), and on a busy machine that can last. So does a kernel
 * thread or one that exits, which their flags (field 9) tell. */
static bool in_exec(pid_t pid)
{
	unsigned long env_start = 1;
	char path[64], *text, *p, state;
	unsigned flags;
	bool is = false;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, &text, NULL, NULL))
		return false;
	p = strrchr(text, ')');
	if (p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 && state != 'Z' &&
		state != 'X' && !(flags & (0x4 /* PF_EXITING */ | 0x200000 /* PF_KTHREAD */))) {
		/* Field 3 follows the parenthesis and one blank. */
		for (int field = 2; p && field < 50; field++)
			p = strchr(p + 1, ' ');
		is = p && sscanf(p, " %lu", &env_start) == 1 && env_start == 0;
	}
	free(text);
	return is;
}

/* Of what is not ours to look at we are not shown field 50. */
static bool may_look(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &st) && (geteuid() == 0 || st.st_uid == geteuid());
}

/* 1, 0, or -errno if that cannot be found out. */
static int carries(pid_t pid, const char *tag, size_t tag_len, bool prefix, double deadline)
{
	struct timespec nap = {.tv_nsec = 1000000};
	char path[64], *env = NULL, *p;
	bool found = false;
	size_t size = 0;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	while (!(rc = file_read(path, &env, &size, NULL)) && !size) {
		free(env);
		if (!may_look(pid) || !in_exec(pid) || clock_mono_s() > deadline)
			return 0;
		nanosleep(&nap, NULL);
	}
	if (rc)
		return is_gone(rc) ? 0 : rc;
	for (p = env; p < env + size && !found; p += strlen(p) + 1)
		found = !strncmp(p, tag, tag_len) && (prefix || p[tag_len] == '\0');
	free(env);
	return found;
}

int proc_find_tagged(const char *name, const char *value, bool prefix, pid_t **pids)
{
	struct dirent *d;
	pid_t *list = NULL;
	int n = 0, room = 0, tag_len;
	double deadline = clock_mono_s() + IN_EXEC_MAX_S;
	char *tag;
	DIR *dir;

	tag_len = asprintf(&tag, "%s=%s", name, value);
	if (tag_len < 0)
		return -ENOMEM;
	dir = opendir("/proc");
	if (!dir) {
		free(tag);
		return -errno;
	}
	while (n >= 0 && (d = readdir(dir))) {
		pid_t pid = (pid_t)atoi(d->d_name);
		uint64_t ticks;
		int rc;

		if (pid <= 0)
			continue;
		rc = carries(pid, tag, (size_t)tag_len, prefix, deadline);
		if (rc > 0)
			rc = proc_start_time(pid, &ticks) == 0;
		if (rc > 0 && n == room) {
			pid_t *more = realloc(list, (size_t)(room ? room * 2 : 16) * sizeof(*list));

			room = room ? room * 2 : 16;
			rc = more ? rc : -ENOMEM;
			list = more ? more : list;
		}
		if (rc > 0)
			list[n++] = pid;
		else if (rc < 0)
			n = rc;
	}
	closedir(dir);
	free(tag);
	if (n < 0)
		free(list);
	else
		*pids = list;
	return n;
}

int proc_kill_tagged(
	const char *name, const char *value, bool prefix, double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;
	int clear = 0;

	for (;;) {
		struct timespec nap = {.tv_nsec = 3000000};
		pid_t *pids = NULL, survivor = 0;
		int n = proc_find_tagged(name, value, prefix, &pids);

		for (int i = 0; i < n; i++) {
			if (pids[i] == getpid())
				continue;
			survivor = pids[i];
			kill(pids[i], SIGKILL);
		}
		free(pids);
		if (n < 0)
			return err_errno(e, n, "cannot look for processes with %s=%s", name, value);
		/* Twice: one just forked may be behind the reader of /proc. */
		clear = survivor ? 0 : clear + 1;
		if (clear == 2)
			return 0;
		if (survivor && clock_mono_s() > deadline)
			return err_set(e, -ETIMEDOUT, "process %d with %s=%s survives SIGKILL",
				(int)survivor, name, value);
		nanosleep(&nap, NULL);
	}
}
