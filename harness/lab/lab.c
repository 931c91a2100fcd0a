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
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

#define BUILD_S 300

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
	FOLDER_FOREIGN, /* not a lab's */
};

static int folder_look(const char *dir, enum folder *what, struct err *e)
{
	bool lock = false, other = false;
	DIR *folder = opendir(dir);
	struct dirent *d;

	*what = FOLDER_NONE;
	if (!folder)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "cannot open '%s'", dir);
	while ((d = readdir(folder))) {
		if (!strcmp(d->d_name, "lock"))
			lock = true;
		else if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			other = true;
	}
	closedir(folder);
	if (lock)
		*what = other ? FOLDER_LAB : FOLDER_BARE;
	else if (other)
		*what = FOLDER_FOREIGN;
	return 0;
}

static int foreign(const char *dir, struct err *e)
{
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

/* Are there processes of a lab in 'dir'? Its folder may be gone. */
static bool haunted(const char *dir)
{
	pid_t *pids = NULL;
	int n = proc_find_tagged(LAB_TAG, dir, false, &pids);

	free(pids);
	return n > 0;
}

/* Called with the lock held. 1: this very lab is up. 0: the folder is free. -EAGAIN: the remains
 * of a lab were removed, together with the lock. */
static int clear_way(const struct lab_options *o, struct err *e)
{
	struct lab_options there;
	json_t *state = NULL;
	enum folder what;
	char why[64];
	bool whole;
	int rc = folder_look(o->dir, &what, e);

	if (rc)
		return rc;
	if (what == FOLDER_BARE && !haunted(o->dir))
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
	rc = sweep(o->dir, e);
	return rc ? err_blame(e, ERR_HARNESS, rc) : -EAGAIN;
}

static int oversee(const struct lab_options *o, struct err *e)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = on_interrupt}, was[3];
	struct child build = {.sock = -1};
	struct err left;
	char log[PATH_MAX + 32];
	int rc, status;

	snprintf(log, sizeof(log), "%s/build.log", o->dir);
	interrupted = 0;
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &act, &was[i]);
	/* All processes of the lab inherit it; this one must not carry it. */
	setenv(LAB_TAG, o->dir, 1);
	rc = child_start(&build, o->dir, "build", NULL, 0, NULL, log, e);
	unsetenv(LAB_TAG);
	if (!rc) {
		builder = build.pid;
		if (interrupted)
			kill(builder, SIGKILL);
		rc = child_wait_ready(&build, 1, BUILD_S, e);
		if (rc)
			kill(build.pid, SIGKILL);
		while (waitpid(build.pid, &status, 0) < 0 && errno == EINTR)
			;
		builder = 0;
		close(build.sock);
	}
	if (interrupted)
		rc = err_set(e, -EINTR, "interrupted");
	if (rc && sweep(o->dir, &left)) {
		struct err first = *e;

		err_set(e, rc, "%.500s; and not everything that was made could be removed: %.400s",
			first.text, left.text);
	}
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], &was[i], NULL);
	return rc;
}

/* Makes and locks the folder, and removes the remains of a lab. 0, or 1: this very lab is up. */
static int take_folder(const struct lab_options *o, int *lock, struct err *e)
{
	enum folder what;
	int rc;

	for (;;) {
		rc = folder_look(o->dir, &what, e);
		if (!rc && what == FOLDER_FOREIGN)
			rc = foreign(o->dir, e);
		if (!rc)
			rc = file_mkdirs(o->dir, 0755, e);
		if (!rc)
			rc = state_lock(o->dir, true, lock, e);
		if (rc)
			return rc;
		rc = clear_way(o, e);
		if (rc >= 0)
			return rc;
		close(*lock);
		*lock = -1;
		if (rc != -EAGAIN)
			return rc;
	}
}

int lab_up(const struct lab_options *o, struct err *e)
{
	struct err ignored;
	int lock = -1, rc;

	rc = lab_options_check(o, e);
	if (!rc)
		rc = lab_prerequisites(e);
	if (!rc)
		rc = take_folder(o, &lock, e);
	if (rc) {
		if (rc < 0)
			err_blame(e, ERR_USAGE, rc);
		goto out;
	}
	rc = network_check(o, e);
	if (rc)
		err_blame(e, ERR_USAGE, rc);
	else
		rc = lab_options_save(o, e);
	if (rc)
		sweep(o->dir, &ignored);
	else
		rc = oversee(o, e);
out:
	if (lock >= 0)
		close(lock);
	return rc;
}

int lab_down(const char *dir, struct err *e)
{
	enum folder what;
	int lock = -1, rc = need_root("down", e);

	if (!rc)
		rc = folder_look(dir, &what, e);
	if (rc)
		return rc;
	if (what == FOLDER_FOREIGN)
		return foreign(dir, e);
	if (what == FOLDER_NONE && !haunted(dir)) {
		if (rmdir(dir) < 0 && errno != ENOENT)
			return err_errno(e, -errno, "cannot remove '%s'", dir);
		return 1;
	}
	if (what != FOLDER_NONE)
		rc = state_lock(dir, false, &lock, e);
	if (rc)
		return rc == -ENOENT ? 1 : rc;
	rc = sweep(dir, e);
	if (lock >= 0)
		close(lock);
	return rc;
}

static json_t *describe_nodes(const struct lab_options *o, const json_t *state)
{
	json_t *nodes = json_array();

	for (unsigned i = 0; i < lab_node_count(o); i++) {
		struct lab_node n = lab_node_at(o, i);
		pid_t pid = state_pid(state, n.name);

		json_array_append_new(nodes,
			json_pack("{ss ss ss so}", "name", n.name, "role", lab_role_name(n.role),
				"address", n.address, "pid",
				pid ? json_integer(pid) : json_null()));
	}
	return nodes;
}

int lab_status(const char *dir, json_t **out, struct err *e)
{
	char inventory[PATH_MAX + 32], host_link[IFNAMSIZ];
	struct lab_options o;
	json_t *state = NULL;
	enum folder what;
	char why[64];
	bool whole;
	int rc;

	rc = folder_look(dir, &what, e);
	if (rc)
		return rc;
	if ((what == FOLDER_NONE || what == FOLDER_FOREIGN) && !haunted(dir)) {
		*out = json_pack("{ss ss}", "state", "none", "dir", dir);
		return 0;
	}
	rc = need_root("status", e);
	if (rc)
		return rc;
	if (what != FOLDER_LAB || lab_options_load(dir, &o, NULL) ||
		state_load(dir, &state, NULL)) {
		*out = json_pack("{ss ss ss}", "state", "broken", "dir", dir, "why",
			"it is half built, or being built just now");
		return 0;
	}
	lab_host_link(dir, host_link);
	whole = state_whole(&o, state, why);
	snprintf(inventory, sizeof(inventory), "%s/inventory.lua", dir);
	*out = json_pack("{ss ss sO ss ss so so}", "state", whole ? "up" : "broken", "dir", dir,
		"since", json_object_get(state, "since"), "inventory", inventory, "link", host_link,
		"options", lab_options_json(&o), "nodes", describe_nodes(&o, state));
	if (!whole)
		json_object_set_new(*out, "why", json_string(why));
	json_decref(state);
	return 0;
}

/* In a forked child: becomes a process of the node. */
static void __attribute__((noreturn)) enter(int pidfd, char **argv)
{
	pid_t pid;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
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
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		_exit(126);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int lab_exec(const char *dir, const char *node, char **argv, struct err *e)
{
	struct lab_options o;
	struct lab_node n;
	json_t *state = NULL;
	int rc = need_root("exec", e), pidfd = -1, status;
	pid_t pid;

	if (!rc)
		rc = state_load(dir, &state, e);
	if (!rc)
		rc = lab_options_load(dir, &o, e);
	if (!rc)
		rc = lab_node_find(&o, node, &n, e);
	pid = rc ? 0 : state_pid(state, node);
	pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (!rc && pidfd < 0)
		rc = err_set(
			e, -ESRCH, "node '%s' is dead; 'culprit lab up' builds the lab anew", node);
	if (rc) {
		err_blame(e, ERR_USAGE, rc);
		goto out;
	}
	setenv(LAB_TAG, dir, 1);
	pid = fork();
	if (pid == 0)
		enter(pidfd, argv);
	unsetenv(LAB_TAG);
	if (pid < 0) {
		rc = err_errno(e, -errno, "cannot enter '%s'", node);
		goto out;
	}
	signal(SIGINT, SIG_IGN);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
out:
	if (pidfd >= 0)
		close(pidfd);
	json_decref(state);
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

static bool program_there(const char *name)
{
	char *folders = alloc_copy(getenv("PATH")), *rest;
	bool found = false;

	for (char *f = strtok_r(folders, ":", &rest); f && !found; f = strtok_r(NULL, ":", &rest)) {
		char path[PATH_MAX];

		found = snprintf(path, sizeof(path), "%s/%s", f, name) < (int)sizeof(path) &&
			!access(path, X_OK);
	}
	free(folders);
	return found;
}

int lab_prerequisites(struct err *e)
{
	static const struct {
		const char *program, *package;
	} needs[] = {
		{"ip", "iproute2"},
		{"tc", "iproute2"},
		{"mkfs.ext4", "e2fsprogs"},
		{"sshd", "openssh-server"},
		{"glusterfs", "glusterfs-client"},
		{"glusterfsd", "glusterfs-server"},
	};
	static const char *const devices[] = {"/dev/fuse", "/dev/loop-control"};

	if (need_root("up", e))
		return -EPERM;
	widen_path();
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (!program_there(needs[i].program))
			return err_set(e, -ENOENT,
				"there is no '%s' here; try 'apt-get install %s'", needs[i].program,
				needs[i].package);
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		int fd = open(devices[i], O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return err_set(e, -ENODEV, "'%s' cannot be used (%s); try 'modprobe %s'",
				devices[i], strerror(errno), i ? "loop" : "fuse");
		close(fd);
	}
	return 0;
}
