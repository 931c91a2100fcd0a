#include "harness/lab/lab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/internal.h"

#define BUILD_S 300

static volatile pid_t builder;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signo)
{
	interrupted = signo;
	if (builder > 0)
		kill(builder, SIGKILL);
}

/* A lab's folder, an empty one and none at all are fine; anybody else's is not. */
static int folder_check(const char *dir, bool *exists, bool *empty, struct err *e)
{
	char path[PATH_MAX + 16];
	struct dirent *d;
	bool lock, other = false;
	DIR *folder = opendir(dir);

	*exists = folder != NULL;
	*empty = true;
	if (!folder)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "cannot open '%s'", dir);
	while ((d = readdir(folder)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			other = true;
	closedir(folder);
	snprintf(path, sizeof(path), "%s/lock", dir);
	lock = !access(path, F_OK);
	if (other && !lock)
		return err_set(e, -EEXIST, "'%s' is not empty and not a lab's folder; choose another with --dir", dir);
	*empty = !lock;
	return 0;
}

/* 1: just this lab is up. 0: nothing of it is left, after a sweep if need be. */
static int clear_way(const struct lab_options *o, struct err *e)
{
	struct lab_options there;
	json_t *state = NULL;
	int rc;

	if (lab_options_load(o->dir, &there, NULL))
		return 0;
	if (!state_load(o->dir, &state, NULL) && !state_dead(state)) {
		json_decref(state);
		if (lab_options_same(o, &there))
			return 1;
		return err_set(e, -EEXIST,
			       "a lab with other options is up in '%s'; 'culprit lab down' takes it down", o->dir);
	}
	json_decref(state);
	rc = sweep(o->dir, e);
	return rc ? rc : -EAGAIN;
}

static int oversee(const struct lab_options *o, struct err *e)
{
	struct sigaction act = {.sa_handler = on_interrupt}, was_int, was_term, was_hup;
	struct child build = {.sock = -1};
	struct err ignored;
	char log[PATH_MAX + 32];
	int rc, status;

	snprintf(log, sizeof(log), "%s/build.log", o->dir);
	interrupted = 0;
	sigaction(SIGINT, &act, &was_int);
	sigaction(SIGTERM, &act, &was_term);
	sigaction(SIGHUP, &act, &was_hup);
	/* Inherited by all that the lab starts; this process itself does not count as tagged. */
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
		rc = err_set(e, -EINTR, "interrupted; nothing is left of the lab");
	if (rc && sweep(o->dir, &ignored))
		rc = err_set(e, rc, "and '%s' is not all clean: %.400s", o->dir, ignored.text);
	sigaction(SIGINT, &was_int, NULL);
	sigaction(SIGTERM, &was_term, NULL);
	sigaction(SIGHUP, &was_hup, NULL);
	return rc;
}

int lab_up(const struct lab_options *o, struct err *e)
{
	bool exists, empty;
	int lock = -1, rc;

	rc = lab_options_check(o, e);
	if (!rc)
		rc = lab_prerequisites(e);
	while (!rc) {
		rc = folder_check(o->dir, &exists, &empty, e);
		if (!rc)
			rc = file_mkdirs(o->dir, 0755, e);
		if (!rc)
			rc = state_lock(o->dir, true, &lock, e);
		if (rc)
			return rc;
		rc = clear_way(o, e);
		if (rc != -EAGAIN)
			break;
		/* What was there is swept, its lock with it. */
		close(lock);
		lock = -1;
		rc = 0;
	}
	if (rc == 0) {
		rc = network_check(o, e);
		if (!rc)
			rc = lab_options_save(o, e);
		if (rc) {
			struct err ignored;

			sweep(o->dir, &ignored);
		} else {
			rc = oversee(o, e);
		}
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

int lab_down(const char *dir, struct err *e)
{
	bool exists, empty;
	int lock = -1, rc;

	if (geteuid())
		return err_set(e, -EPERM, "a lab can only be taken down by root; try 'sudo culprit lab down'");
	rc = folder_check(dir, &exists, &empty, e);
	if (rc)
		return rc;
	if (empty) {
		if (exists && rmdir(dir) < 0)
			return err_errno(e, -errno, "cannot remove '%s'", dir);
		return 1;
	}
	rc = state_lock(dir, false, &lock, e);
	if (rc)
		return rc == -ENOENT ? 1 : rc;
	rc = sweep(dir, e);
	close(lock);
	return rc;
}

static json_t *describe_nodes(const struct lab_options *o, const json_t *state)
{
	json_t *nodes = json_array();

	for (unsigned i = 0; i < lab_node_count(o); i++) {
		struct lab_node n = lab_node_at(o, i);
		pid_t pid = state_pid(state, n.name);

		json_array_append_new(nodes, json_pack("{ss ss ss so}", "name", n.name, "role",
						       lab_role_name(n.role), "address", n.address, "pid",
						       pid ? json_integer(pid) : json_null()));
	}
	return nodes;
}

int lab_status(const char *dir, json_t **out, struct err *e)
{
	char inventory[PATH_MAX + 32];
	struct lab_options o;
	json_t *state = NULL;
	const char *dead;
	bool exists, empty;
	int rc = folder_check(dir, &exists, &empty, e);

	if (rc && rc != -EEXIST)
		return rc;
	if (rc || empty) {
		*out = json_pack("{ss ss}", "state", "none", "dir", dir);
		return *out ? 0 : err_errno(e, -ENOMEM, "no status");
	}
	if (lab_options_load(dir, &o, NULL) || state_load(dir, &state, NULL)) {
		*out = json_pack("{ss ss ss}", "state", "broken", "dir", dir, "why", "it is only half built");
		return *out ? 0 : err_errno(e, -ENOMEM, "no status");
	}
	dead = state_dead(state);
	snprintf(inventory, sizeof(inventory), "%s/inventory.lua", dir);
	*out = json_pack("{ss ss sO ss so so}", "state", dead ? "broken" : "up", "dir", dir, "since",
			 json_object_get(state, "since"), "inventory", inventory, "options", lab_options_json(&o),
			 "nodes", describe_nodes(&o, state));
	if (*out && dead)
		json_object_set_new(*out, "why", json_sprintf("%s is dead", dead));
	json_decref(state);
	return *out ? 0 : err_errno(e, -ENOMEM, "no status");
}

/* In a fork: becomes a process of the node. */
static void __attribute__((noreturn)) enter(int pidfd, char **argv)
{
	pid_t pid;
	int status;

	if (setns(pidfd, CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS) < 0 || chdir("/") < 0) {
		perror("culprit lab exec: cannot enter the node");
		_exit(126);
	}
	/* A pid namespace is entered by children only. */
	pid = fork();
	if (pid == 0) {
		execvp(argv[0], argv);
		fprintf(stderr, "culprit lab exec: cannot run '%s': %s\n", argv[0], strerror(errno));
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
	int rc, pidfd = -1, status;
	pid_t pid;

	if (geteuid())
		return err_set(e, -EPERM, "a lab's nodes can only be entered by root; try 'sudo culprit lab exec'");
	rc = state_load(dir, &state, e);
	if (!rc)
		rc = lab_options_load(dir, &o, e);
	if (!rc)
		rc = lab_node_find(&o, node, &n, e);
	if (rc)
		goto out;
	pid = state_pid(state, node);
	pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (pidfd < 0) {
		rc = err_set(e, -ESRCH, "node '%s' is dead; 'culprit lab up' makes the lab anew", node);
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

static bool program_there(const char *name)
{
	static const char *const folders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin",
					      "/bin"};
	char path[64];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

int lab_prerequisites(struct err *e)
{
	static const struct {
		const char *program, *package;
	} needs[] = {
		{"ip", "iproute2"}, {"tc", "iproute2"}, {"mkfs.ext4", "e2fsprogs"}, {"sshd", "openssh-server"},
		{"glusterfs", "glusterfs-client"}, {"glusterfsd", "glusterfs-server"},
	};
	static const char *const devices[] = {"/dev/fuse", "/dev/loop-control"};

	if (geteuid())
		return err_set(e, -EPERM, "a lab needs root for its namespaces and mounts; try 'sudo culprit lab up'");
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (!program_there(needs[i].program))
			return err_set(e, -ENOENT, "there is no '%s' here; try 'apt-get install %s'", needs[i].program,
				       needs[i].package);
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		int fd = open(devices[i], O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return err_set(e, -ENODEV, "'%s' cannot be used (%s); try 'modprobe %s'", devices[i],
				       strerror(errno), i ? "loop" : "fuse");
		close(fd);
	}
	return 0;
}
