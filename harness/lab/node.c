/* Pid 1 of a node, and the switch between the nodes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

static int mount_at(const char *source, const char *target, const char *type, unsigned long flags,
	const char *data, struct err *e)
{
	if (mount(source, target, type, flags, data) < 0)
		return err_errno(
			e, -errno, "cannot mount %s on '%s'", type ? type : source, target);
	return 0;
}

static int device(const char *path, mode_t mode, dev_t dev, struct err *e)
{
	if (mknod(path, mode, dev) < 0 || chmod(path, mode & 07777) < 0)
		return err_errno(e, -errno, "cannot make device '%s'", path);
	return 0;
}

/* The node's own /dev, whose only block devices are the node's. */
static int make_dev(const struct lab_node *n, struct err *e)
{
	static const struct {
		const char *path;
		unsigned minor, major;
	} chars[] = {
		{"/dev/null", 3, 1},
		{"/dev/zero", 5, 1},
		{"/dev/full", 7, 1},
		{"/dev/random", 8, 1},
		{"/dev/urandom", 9, 1},
		{"/dev/tty", 0, 5},
		{"/dev/fuse", 229, 10},
	};
	static const struct {
		const char *path, *target;
	} links[] = {
		{"/dev/fd", "/proc/self/fd"},
		{"/dev/stdin", "/proc/self/fd/0"},
		{"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"},
		{"/dev/ptmx", "pts/ptmx"},
	};
	int rc = mount_at("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755", e);

	for (size_t i = 0; i < sizeof(chars) / sizeof(chars[0]) && !rc; i++)
		rc = device(
			chars[i].path, S_IFCHR | 0666, makedev(chars[i].major, chars[i].minor), e);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]) && !rc; i++)
		if (symlink(links[i].target, links[i].path) < 0)
			rc = err_errno(e, -errno, "cannot make '%s'", links[i].path);
	for (int fd = LAB_STORAGE_FD; n->role == ROLE_SERVER && fd <= LAB_SPARE_FD && !rc; fd++) {
		char path[32];
		struct stat st;

		fstat(fd, &st);
		snprintf(path, sizeof(path), "/dev/loop%u", minor(st.st_rdev));
		rc = device(path, S_IFBLK | 0660, st.st_rdev, e);
	}
	if (rc)
		return rc;
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 01777);
	rc = mount_at("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,mode=620,ptmxmode=666", e);
	if (!rc)
		rc = mount_at("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", e);
	return rc;
}

/* Binds 'name' (absolute, or in folder 'fd') to 'target'. Through the descriptor the folder is
 * reached even when its path has been mounted over. */
static int bind_from(int fd, const char *name, const char *target, struct err *e)
{
	char source[64];
	int rc, file = openat(fd, name, O_PATH | O_CLOEXEC);

	if (file < 0)
		return err_errno(e, -errno, "cannot open the lab's '%s'", name);
	snprintf(source, sizeof(source), "/proc/self/fd/%d", file);
	rc = mount_at(source, target, NULL, MS_BIND, NULL, e);
	close(file);
	return rc;
}

/* The folders that a node writes to are in memory of its own and go with it. */
static int make_mounts(const struct lab_options *o, const struct lab_node *n, struct err *e)
{
	static const struct {
		const char *path, *mode;
	} own[] = {{"/run", "mode=755"}, {"/tmp", "mode=1777"}, {"/srv", "mode=755"},
		{"/mnt", "mode=755"}, {"/root", "mode=700"}, {"/var/lib", "mode=755"},
		{"/var/log", "mode=755"}, {"/var/tmp", "mode=1777"}};
	static const char *const folders[] = {"/run/sshd", "/run/lock", "/run/gluster",
		LAB_NODE_RUN, LAB_STORAGE, LAB_MOUNT, "/var/log/glusterfs", "/var/lib/culprit"};
	char path[PATH_MAX + 32], node[32], log[32];
	const struct {
		const char *from, *to;
	} binds[] = {{node, LAB_NODE_RUN}, {log, LAB_NODE_RUN "/log"}, {"hosts", "/etc/hosts"},
		{LAB_NODE_RUN "/shadow", "/etc/shadow"},
		{LAB_NODE_RUN "/hostname", "/etc/hostname"}};
	int rc, dir = open(o->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_errno(e, -errno, "cannot open '%s'", o->dir);
	for (unsigned i = 0; i < o->servers; i++) {
		snprintf(path, sizeof(path), "%s/disk/%s", o->dir, lab_node_at(o, i).name);
		umount2(path, MNT_DETACH);
	}
	rc = mount_at("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, e);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && !rc; i++)
		rc = mount_at("tmpfs", own[i].path, "tmpfs", MS_NOSUID | MS_NODEV, own[i].mode, e);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !rc; i++)
		rc = file_mkdirs(folders[i], 0755, e);
	snprintf(node, sizeof(node), "node/%s", n->name);
	snprintf(log, sizeof(log), "log/%s", n->name);
	for (size_t i = 0; i < sizeof(binds) / sizeof(binds[0]) && !rc; i++) {
		rc = bind_from(dir, binds[i].from, binds[i].to, e);
		if (!rc && !i)
			rc = file_mkdirs(LAB_NODE_RUN "/log", 0755, e);
	}
	if (!rc)
		rc = make_dev(n, e);
	close(dir);
	return rc;
}

/* No background initialisation afterwards: the disk must be idle when nobody uses it. */
static int make_storage(struct err *e)
{
	struct stat st;
	char path[32];
	const char *const argv[] = {"mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=16", "-E",
		"nodiscard,lazy_itable_init=0,lazy_journal_init=0", path, NULL};
	int rc;

	fstat(LAB_STORAGE_FD, &st);
	snprintf(path, sizeof(path), "/dev/loop%u", minor(st.st_rdev));
	rc = proc_run_ok(argv, 60, NULL, e);
	if (!rc)
		rc = mount_at(path, LAB_STORAGE, "ext4", MS_NOATIME, "errors=remount-ro", e);
	if (!rc && rmdir(LAB_STORAGE "/lost+found") < 0)
		rc = err_errno(e, -errno, "cannot empty '%s'", LAB_STORAGE);
	return rc;
}

static int start_sshd(struct err *e)
{
	static const char *const argv[] = {"/usr/sbin/sshd", "-D", "-f",
		LAB_NODE_RUN "/sshd_config", "-E", LAB_NODE_RUN "/log/sshd.log", NULL};
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(e, -errno, "cannot start sshd");
	if (pid)
		return 0;
	/* sshd must be started by its full path, because it executes itself again. */
	setsid();
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static int set_up(const char *dir, const char *name, struct err *e)
{
	struct lab_options o;
	struct lab_node n;
	int rc;

	rc = lab_options_load(dir, &o, e);
	if (!rc)
		rc = lab_node_find(&o, name, &n, e);
	if (rc)
		return rc;
	if (sethostname(name, strlen(name)) < 0)
		return err_errno(e, -errno, "cannot set the host name");
	if (!child_wait(LAB_CONTROL_FD))
		return err_set(e, -EPIPE, "the builder is gone");
	rc = network_node(&o, &n, e);
	if (!rc)
		rc = make_mounts(&o, &n, e);
	if (!rc)
		rc = start_sshd(e);
	if (!rc && n.role == ROLE_SERVER)
		rc = make_storage(e);
	if (!rc && n.role == ROLE_SERVER)
		rc = gluster_brick(e);
	if (rc || n.role != ROLE_CLIENT)
		return rc;
	child_say(LAB_CONTROL_FD, "ready");
	if (!child_wait(LAB_CONTROL_FD))
		return err_set(e, -EPIPE, "the builder is gone");
	return gluster_client(&o, name, e);
}

int lab_node_main(const char *dir, const char *name)
{
	struct err e;
	int rc;

	child_begin(LAB_CONTROL_FD);
	if (chdir("/") < 0)
		return 1;
	umask(022);
	for (int fd = LAB_STORAGE_FD; fd <= LAB_SPARE_FD; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	rc = set_up(dir, name, &e);
	if (!child_settle(LAB_CONTROL_FD, rc, &e))
		return 1;
	for (;;) {
		siginfo_t info;

		/* pid 1 must stay even when there is no child to reap. */
		if (waitid(P_ALL, 0, &info, WEXITED) < 0 && errno == ECHILD)
			pause();
	}
}

int lab_switch_main(const char *dir)
{
	struct lab_options o;
	struct err e;
	int rc;

	child_begin(LAB_CONTROL_FD);
	rc = lab_options_load(dir, &o, &e);
	if (!rc && !child_wait(LAB_CONTROL_FD))
		return 1;
	if (!rc)
		rc = network_switch(&o, &e);
	if (!child_settle(LAB_CONTROL_FD, rc, &e))
		return 1;
	for (;;)
		pause();
}
