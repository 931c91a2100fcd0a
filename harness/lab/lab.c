/* Builds, describes and removes a lab. */
#include "harness/lab/lab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"
#include "harness/lab/recipe.h"

#define BUILD_S 600

static volatile pid_t builder;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signo)
{
	interrupted = signo;
	if (builder > 0)
		kill(builder, SIGKILL);
}

enum folder {
	FOLDER_NONE, /* no folder, or an empty one */
	FOLDER_BARE, /* only a lab's lock */
	FOLDER_LAB,
};

/* Which of these it is; -EEXIST if it is not a lab's. */
static int folder_look(const char *dir, struct err *e)
{
	bool lock = false, other = false;
	DIR *folder = opendir(dir);
	struct dirent *d;

	if (!folder)
		return errno == ENOENT ? FOLDER_NONE
				       : err_errno(e, -errno, "cannot open '%s'", dir);
	while ((d = readdir(folder))) {
		if (!strcmp(d->d_name, "lock"))
			lock = true;
		else if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			other = true;
	}
	closedir(folder);
	if (lock || !other)
		return !lock ? FOLDER_NONE : other ? FOLDER_LAB : FOLDER_BARE;
	err_set(e, -EEXIST, "'%s' is not empty and not a lab's folder; choose another with --dir",
		dir);
	return err_blame(e, ERR_USAGE, -EEXIST);
}

static int need_root(const char *command, struct err *e)
{
	if (!geteuid())
		return 0;
	err_set(e, -EPERM,
		"a lab needs root for its namespaces and processes; try 'sudo culprit lab %s'",
		command);
	return err_blame(e, ERR_USAGE, -EPERM);
}

/* Are there processes or control groups of a lab in 'dir'? Its folder may be gone. */
static bool haunted(const char *dir)
{
	pid_t *pids = NULL;
	int n = proc_find_tagged(LAB_TAG, dir, false, &pids);

	free(pids);
	return n > 0 || groups_there(dir);
}

/* Called with the lock held. 1: this very lab is up. 0: the folder is free. -EAGAIN: the remains
 * of a lab were removed, together with the lock. */
static int clear_way(const struct lab_options *o, struct err *e)
{
	struct lab_options there;
	json_t *state = NULL;
	char why[256];
	bool whole;
	int rc = folder_look(o->dir, e);

	if (rc < 0)
		return rc;
	if (rc == FOLDER_BARE && !haunted(o->dir))
		return 0;
	whole = !lab_options_load(o->dir, &there, NULL) && !state_load(o->dir, &state, NULL) &&
		state_whole(&there, state, why);
	json_decref(state);
	if (whole && lab_options_same(o, &there))
		return 1;
	if (whole)
		return err_set(e, -EEXIST,
			"a lab with other options is up in '%s'; 'culprit lab down' takes it down",
			o->dir);
	rc = sweep(o->dir, SWEEP_ALL, e);
	return rc ? err_blame(e, ERR_HARNESS, rc) : -EAGAIN;
}

/* Waits until a child has ended; returns its exit code (128+signal). */
static int await_exit(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Removes what a failed 'up' has made but its logs, and says where they are. Somebody who
 * interrupts it does not want them. */
static void clear_failed(const char *dir, int rc, struct err *e)
{
	struct err left, first = *e;

	if (sweep(dir, rc == -EINTR ? SWEEP_ALL : SWEEP_BUT_LOGS, &left))
		err_set(e, rc, "%.500s; and not everything that was made could be removed: %.400s",
			first.text, left.text);
	else if (rc != -EINTR)
		err_set(e, rc, "%.850s (logs: '%.100s/log'; the next 'up' or 'down' removes them)",
			first.text, dir);
}

static int oversee(const struct lab_options *o, struct err *e)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = on_interrupt}, was[3];
	struct child build = {.sock = -1};
	int rc;

	interrupted = 0;
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &act, &was[i]);
	/* All processes of the lab inherit it; this one must not carry it. */
	setenv(LAB_TAG, o->dir, 1);
	rc = child_start(&build, o->dir, "build", NULL, 0, NULL, lab_path(o->dir, "build.log"), e);
	unsetenv(LAB_TAG);
	if (!rc) {
		builder = build.pid;
		if (interrupted)
			kill(builder, SIGKILL);
		/* Ready, it ends: that is no failure to be heard of. */
		rc = child_wait_ready(&build, 1, NULL, 0, BUILD_S, e);
		if (rc)
			kill(build.pid, SIGKILL);
		await_exit(build.pid);
		builder = 0;
		close(build.sock);
	}
	if (interrupted)
		rc = err_set(e, -EINTR, "interrupted");
	if (rc)
		clear_failed(o->dir, rc, e);
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &was[i], NULL);
	return rc;
}

/* Makes and locks the folder, and removes the remains of a lab. 0, or 1: this very lab is up. */
static int take_folder(const struct lab_options *o, int *lock, struct err *e)
{
	int rc;

	do {
		if (*lock >= 0)
			close(*lock);
		*lock = -1;
		rc = folder_look(o->dir, e);
		if (rc >= 0)
			rc = file_mkdirs(o->dir, 0755, e);
		if (!rc)
			rc = state_lock(o->dir, true, lock, e);
		if (!rc)
			rc = clear_way(o, e);
	} while (rc == -EAGAIN);
	return rc;
}

/* After 'su' the PATH may lack the sbin folders, which the lab needs. */
static void widen_path(void)
{
	const char *was = getenv("PATH");
	char *path = alloc_format("%s%s/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin",
		was ? was : "", was ? ":" : "");

	setenv("PATH", path, 1);
	free(path);
}

static int machine_prerequisites(struct err *e)
{
	static const struct {
		const char *program, *package;
	} needs[] = {
		{"ip", "iproute2"},
		{"tc", "iproute2"},
		{"mkfs.ext4", "e2fsprogs"},
		{"sshd", "openssh-server"},
	};
	static const char *const devices[] = {"/dev/fuse", "/dev/loop-control"};

	if (need_root("up", e))
		return -EPERM;
	widen_path();
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (lab_program(needs[i].program, needs[i].package, e))
			return -ENOENT;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		int fd = open(devices[i], O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return err_set(e, -ENODEV, "'%s' cannot be used (%s); try 'modprobe %s'",
				devices[i], strerror(errno), i ? "loop" : "fuse");
		close(fd);
	}
	return 0;
}

/* Loads the file system and completes the options from it. */
static int choose_file_system(struct lab_options *o, struct err *e)
{
	struct recipe *recipe = NULL;
	int rc = lab_options_check(o, e) ?: recipe_open(o, &recipe, e);

	rc = rc ?: recipe_complete(recipe, o, e) ?: recipe_programs(recipe, e);
	recipe_free(recipe);
	return rc;
}

int lab_up(struct lab_options *o, struct err *e)
{
	struct err ignored;
	int lock = -1, rc = machine_prerequisites(e);

	rc = rc ?: choose_file_system(o, e) ?: take_folder(o, &lock, e);
	if (rc < 0)
		err_blame(e, ERR_USAGE, rc);
	if (!rc) {
		rc = network_check(o, e) ?: groups_check(o, e);
		if (rc)
			err_blame(e, ERR_USAGE, rc);
		else
			rc = lab_options_save(o, e);
		if (rc)
			sweep(o->dir, SWEEP_ALL, &ignored);
		else
			rc = oversee(o, e);
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

int lab_down(const char *dir, struct err *e)
{
	int lock = -1, what, rc = need_root("down", e);

	what = rc ? rc : folder_look(dir, e);
	if (what < 0)
		return what;
	if (what == FOLDER_NONE && !haunted(dir)) {
		if (rmdir(dir) < 0 && errno != ENOENT)
			return err_errno(e, -errno, "cannot remove '%s'", dir);
		return 1;
	}
	if (what != FOLDER_NONE)
		rc = state_lock(dir, false, &lock, e);
	if (rc)
		return rc == -ENOENT ? 1 : rc;
	rc = sweep(dir, SWEEP_ALL, e);
	if (lock >= 0)
		close(lock);
	return rc;
}

static json_t *describe_nodes(const struct lab_options *o, const json_t *state)
{
	json_t *nodes = json_array();

	lab_each(n, o, lab_node_count(o)) {
		pid_t pid = state_pid(state, n.name);

		json_array_append_new(nodes,
			json_pack("{ss ss ss so}", "name", n.name, "role", lab_role_name(&n),
				"address", n.address, "pid",
				pid ? json_integer(pid) : json_null()));
	}
	return nodes;
}

/* What clear_failed leaves. */
static bool only_logs(const char *dir)
{
	return !access(lab_path(dir, "log").s, F_OK) &&
		access(lab_path(dir, "options.json").s, F_OK) < 0;
}

int lab_status(const char *dir, json_t **out, struct err *e)
{
	char host_link[IFNAMSIZ];
	struct lab_options o;
	json_t *state = NULL;
	char why[256];
	bool whole;
	int rc, what = folder_look(dir, e);

	if (what < 0 && what != -EEXIST)
		return what;
	if (what <= FOLDER_NONE && !haunted(dir)) {
		*out = json_pack("{ss ss}", "state", "none", "dir", dir);
		return 0;
	}
	rc = need_root("status", e);
	if (rc)
		return rc;
	if (what != FOLDER_LAB || lab_options_load(dir, &o, NULL) ||
		state_load(dir, &state, NULL)) {
		*out = json_pack("{ss ss ss}", "state", "broken", "dir", dir, "why",
			only_logs(dir) ? "the last 'up' failed, and only its logs are left"
				       : "it is half built, or being built just now");
		return 0;
	}
	lab_host_link(dir, host_link);
	whole = state_whole(&o, state, why);
	*out = json_pack("{ss ss sO ss ss so so}", "state", whole ? "up" : "broken", "dir", dir,
		"since", jget(state, "since"), "inventory", lab_path(dir, "inventory.lua").s,
		"link", host_link, "options", lab_options_json(&o), "nodes",
		describe_nodes(&o, state));
	if (!whole)
		json_object_set_new(*out, "why", json_string(why));
	json_decref(state);
	return 0;
}

/* In a forked child: becomes a process of the node. */
static void __attribute__((noreturn))
enter(const struct lab_options *o, const struct lab_node *n, int pidfd, char **argv)
{
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	errno = -groups_enter(o, n);
	if (errno) {
		perror("culprit lab exec: cannot enter the node's control group");
		_exit(126);
	}
	if (setns(pidfd, CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS) < 0 ||
		chdir("/") < 0) {
		perror("culprit lab exec: cannot enter the node");
		_exit(126);
	}
	/* setns moves only later children into the pid namespace. */
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[0], argv);
		fprintf(stderr, "culprit lab exec: cannot run '%s': %s\n", argv[0],
			strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	signal(SIGINT, SIG_IGN);
	_exit(await_exit(pid));
}

int lab_exec(const char *dir, const char *node, char **argv, struct err *e)
{
	struct lab_options o;
	struct lab_node n;
	json_t *state = NULL;
	int rc = need_root("exec", e), pidfd = -1;
	pid_t pid;

	if (!rc)
		rc = state_load(dir, &state, e);
	if (!rc)
		rc = lab_options_load(dir, &o, e);
	if (!rc)
		rc = lab_node_find(&o, node, &n, e);
	pid = rc ? 0 : state_pid(state, node);
	json_decref(state);
	pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (!rc && pidfd < 0)
		rc = err_set(
			e, -ESRCH, "node '%s' is dead; 'culprit lab up' builds the lab anew", node);
	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	setenv(LAB_TAG, dir, 1);
	pid = fork();
	if (pid == 0)
		enter(&o, &n, pidfd, argv);
	rc = pid < 0 ? err_errno(e, -errno, "cannot enter '%s'", node) : 0;
	unsetenv(LAB_TAG);
	close(pidfd);
	if (rc)
		return rc;
	signal(SIGINT, SIG_IGN);
	rc = await_exit(pid);
	signal(SIGINT, SIG_DFL);
	return rc;
}

int lab_prerequisites(const char *fs, struct err *e)
{
	struct lab_options o = LAB_DEFAULTS;
	int rc = machine_prerequisites(e);

	snprintf(o.fs, sizeof(o.fs), "%s", fs);
	return rc ?: choose_file_system(&o, e);
}
