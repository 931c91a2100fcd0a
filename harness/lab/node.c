/* Pid 1 of a node, and the switch between the nodes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
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
#include "harness/lab/recipe.h"

#define LAB_ETC "/run/etc" /* in the node's own /run */

static void mount_at(const char *source, const char *target, const char *type, unsigned long flags,
	const char *data)
{
	child_try(mount(source, target, type, flags, data), "cannot mount %s on '%s'",
		type ? type : source, target);
}

static void device(const char *path, mode_t mode, dev_t dev)
{
	child_try(mknod(path, mode, dev) < 0 ? -1 : chmod(path, mode & 07777),
		"cannot make device '%s'", path);
}

/* The node's own /dev, whose only block devices are the node's. */
static void make_dev(const struct lab_node *n)
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

	mount_at("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755");
	for (size_t i = 0; i < sizeof(chars) / sizeof(chars[0]); i++)
		device(chars[i].path, S_IFCHR | 0666, makedev(chars[i].major, chars[i].minor));
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		child_try(
			symlink(links[i].target, links[i].path), "cannot make '%s'", links[i].path);
	for (int fd = LAB_STORAGE_FD; n->role == ROLE_SERVER && fd <= LAB_SPARE_FD; fd++) {
		struct stat st;

		child_try(fstat(fd, &st), "cannot look at the disk");
		device(loop_path(fd).s, S_IFBLK | 0660, st.st_rdev);
	}
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 01777);
	mount_at("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,mode=620,ptmxmode=666");
	mount_at("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
}

/* Binds 'name' (absolute, or in folder 'fd') to 'target'. Through the descriptor the folder is
 * reached even when its path has been mounted over. */
static void bind_from(int fd, const char *name, const char *target)
{
	int file = child_try(
		openat(fd, name, O_PATH | O_CLOEXEC), "cannot open the lab's '%s'", name);

	mount_at(lab_path("/proc/self/fd", "%d", file).s, target, NULL, MS_BIND, NULL);
	close(file);
}

/* 'to' becomes a copy of the file 'name' (absolute, or in folder 'fd'). */
static void copy_from(int fd, const char *name, const char *to, mode_t mode)
{
	int file = child_try(
		openat(fd, name, O_PATH | O_CLOEXEC), "cannot open the lab's '%s'", name);
	char *text = NULL;
	size_t size;

	child_must(file_read(lab_path("/proc/self/fd", "%d", file).s, &text, &size, &child_err));
	child_must(file_write_atomic(to, mode, text, size, &child_err));
	free(text);
	close(file);
}

/* A copy of the machine's /etc in the node's own memory. A file must not be bound over one of
 * the machine's: when a package manager there renames a new file over that, the kernel detaches
 * what is mounted on it, in every namespace (since Linux 3.18). Of the machine's own files cp
 * may miss those that are replaced in that very moment, which is no failure. */
static void make_etc(int lab)
{
	static const char *const copy[] = {"cp", "-a", "/etc/.", LAB_ETC, NULL};

	child_must(file_mkdirs(LAB_ETC, 0755, &child_err));
	if (proc_run_ok(copy, 60, NULL, &child_err) && access(LAB_ETC "/passwd", R_OK) < 0)
		child_must(-EIO);
	copy_from(lab, "hosts", LAB_ETC "/hosts", 0644);
	copy_from(lab, LAB_NODE_RUN "/shadow", LAB_ETC "/shadow", 0600);
	copy_from(lab, LAB_NODE_RUN "/hostname", LAB_ETC "/hostname", 0644);
	mount_at(LAB_ETC, "/etc", NULL, MS_BIND, NULL);
}

/* Of its disk's file system a server sees the control file, and no other node's. Taken before the
 * disks are unmounted here, and put in its place once there is one. -1: the node has no disk. */
static int take_control(const struct lab_options *o, const struct lab_node *n)
{
	if (n->role != ROLE_SERVER)
		return -1;
	return child_try(open_tree(AT_FDCWD, lab_path(o->dir, "disk/%s/control", n->name).s,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
		"cannot take the disk's control file");
}

static void put_control(int control)
{
	if (control < 0)
		return;
	child_must(file_write_atomic(LAB_CONTROL, 0600, "", 0, &child_err));
	child_try(move_mount(control, "", AT_FDCWD, LAB_CONTROL, MOVE_MOUNT_F_EMPTY_PATH),
		"cannot mount '%s'", LAB_CONTROL);
	close(control);
}

/* The folders that a node writes to are in memory of its own and go with it. */
static void make_mounts(const struct lab_options *o, const struct lab_node *n)
{
	static const struct {
		const char *path, *mode;
	} own[] = {{"/run", "mode=755"}, {"/tmp", "mode=1777"}, {"/srv", "mode=755"},
		{"/mnt", "mode=755"}, {"/root", "mode=700"}, {"/var/lib", "mode=755"},
		{"/var/log", "mode=755"}, {"/var/tmp", "mode=1777"}};
	static const char *const folders[] = {
		"/run/sshd", "/run/lock", LAB_NODE_RUN, LAB_STORAGE, LAB_MOUNT, "/var/lib/culprit"};
	int control = take_control(o, n),
	    dir = child_try(
		    open(o->dir, O_PATH | O_DIRECTORY | O_CLOEXEC), "cannot open '%s'", o->dir);

	lab_each(server, o, o->servers)
		umount2(lab_path(o->dir, "disk/%s", server.name).s, MNT_DETACH);
	mount_at("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		mount_at("tmpfs", own[i].path, "tmpfs", MS_NOSUID | MS_NODEV, own[i].mode);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		child_must(file_mkdirs(folders[i], 0755, &child_err));
	bind_from(dir, lab_path("node", "%s", n->name).s, LAB_NODE_RUN);
	child_must(file_mkdirs(LAB_NODE_RUN "/log", 0755, &child_err));
	bind_from(dir, lab_path("log", "%s", n->name).s, LAB_NODE_RUN "/log");
	put_control(control);
	make_etc(dir);
	close(dir);
	make_dev(n);
}

/* No background initialisation afterwards: the disk must be idle when nobody uses it. */
static void make_storage(const char *device)
{
	const char *const argv[] = {"mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=16", "-E",
		"nodiscard,lazy_itable_init=0,lazy_journal_init=0", device, NULL};

	child_must(proc_run_ok(argv, 60, NULL, &child_err));
	mount_at(device, LAB_STORAGE, "ext4", MS_NOATIME, "errors=remount-ro");
	child_try(rmdir(LAB_STORAGE "/lost+found"), "cannot empty '%s'", LAB_STORAGE);
}

static void start_sshd(void)
{
	static const char *const argv[] = {"/usr/sbin/sshd", "-D", "-f",
		LAB_NODE_RUN "/sshd_config", "-E", LAB_NODE_RUN "/log/sshd.log", NULL};

	pid_t pid = child_try(fork(), "cannot start sshd");

	programs_add("sshd", pid);
	if (pid)
		return;
	/* sshd must be started by its full path, because it executes itself again. */
	setsid();
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static void start_server(struct recipe *r, const struct lab_options *o, const struct lab_node *n)
{
	struct lab_path device = loop_path(LAB_STORAGE_FD);
	const char *storage = recipe_raw_storage(r) ? device.s : LAB_STORAGE;

	if (!recipe_raw_storage(r))
		make_storage(device.s);
	child_must(recipe_step(r, "format", o, n, storage, &child_err)
			?: recipe_step(r, "start_server", o, n, storage, &child_err));
}

static void start_file_system(
	struct recipe *r, const struct lab_options *o, const struct lab_node *n)
{
	if (n->manager) {
		child_must(recipe_step(r, "start_manager", o, n, NULL, &child_err));
	} else if (n->role == ROLE_SERVER) {
		start_server(r, o, n);
	} else if (n->role == ROLE_CLIENT && recipe_has(r, "start_client")) {
		child_must(recipe_step(r, "start_client", o, n, NULL, &child_err)
				?: recipe_await(r, o, n, &child_err)
				?: client_try_file(n->name, &child_err));
	}
}

void node_main(const struct lab_options *o, const struct lab_node *n)
{
	struct recipe *recipe;

	errno = -groups_enter(o, n);
	child_try(-errno, "cannot enter the node's control group");
	child_try(chdir("/"), "cannot enter '/'");
	umask(022);
	for (int fd = LAB_STORAGE_FD; fd <= LAB_SPARE_FD; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	child_try(sethostname(n->name, strlen(n->name)), "cannot set the host name");
	/* Now: the node's own folders may hide the file. */
	child_must(recipe_open(o, &recipe, &child_err));
	child_wait();
	network_node(o, n);
	make_mounts(o, n);
	start_sshd();
	child_ready();
	child_wait();
	start_file_system(recipe, o, n);
	recipe_free(recipe);
	child_ready();
	child_wait_with_programs(n);
	child_commit();
	for (;;) {
		siginfo_t info;

		/* pid 1 must stay even when there is no child to reap. */
		if (waitid(P_ALL, 0, &info, WEXITED) < 0 && errno == ECHILD)
			pause();
	}
}

void switch_main(const struct lab_options *o)
{
	child_wait();
	network_switch(o);
	child_settle();
	for (;;)
		pause();
}
