/* Runs a detector program in namespaces, where it sees only its input. */
#include "diag/judge/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/lua/luax.h"

enum { NOBODY = 65534, REPORT = 3, MIB = 1 << 20 };
enum { SPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS };

static const char STARTING[] = "starting it";

/* A child's failure, reported to its parent. */
struct report {
	int code;
	char what[120];
};

static void confine_refuse(const char *what, int code) __attribute__((noreturn));

static void confine_refuse(const char *what, int code)
{
	struct report r = {.code = code};

	snprintf(r.what, sizeof(r.what), "%s", what);
	if (fd_write_all(REPORT, &r, sizeof(r))) {
		/* The parent has ended. */
	}
	_exit(127);
}

static void must(int rc, const char *what)
{
	if (rc < 0)
		confine_refuse(what, errno);
}

static void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd, path);
	must((int)write(fd, text, strlen(text)), path);
	close(fd);
}

/* Maps nobody in the user namespace to the caller outside it. */
static void map_user(uid_t uid, gid_t gid)
{
	char map[64];

	write_map("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%d %u 1", NOBODY, uid);
	write_map("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%d %u 1", NOBODY, gid);
	write_map("/proc/self/gid_map", map);
}

/* Mounts a folder or file of the host below the new root; ignores one that does not exist. */
static void confine_show(const char *folder, const char *path, bool read_only)
{
	char place[256], target[256];
	struct statvfs fs;
	struct stat st;
	ssize_t n;

	snprintf(place, sizeof(place), "%s%s", folder, path);
	if (lstat(path, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(path, target, sizeof(target) - 1);
		must((int)n, path);
		target[n] = 0;
		must(symlink(target, place), path);
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		must(mkdir(place, 0755), path);
	} else {
		int fd = open(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		must(fd, path);
		close(fd);
	}
	must(mount(path, place, NULL, MS_BIND | MS_REC, NULL), path);
	/* A user namespace may change a mount only if it repeats the mount's flags. */
	if (read_only && !statvfs(place, &fs))
		must(mount(NULL, place, NULL,
			     MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID |
				     (fs.f_flag &
					     (ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_NODIRATIME |
						     ST_RELATIME)),
			     NULL),
			path);
}

/* A copy hides path, owner and times. */
static void copy_program(const char *program, const char *copy)
{
	char buf[65536];
	int in = open(program, O_RDONLY | O_CLOEXEC),
	    out = open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t n;

	must(in, "reading the program");
	must(out, "copying the program");
	while ((n = read(in, buf, sizeof(buf))) > 0)
		must(fd_write_all(out, buf, (size_t)n), "copying the program");
	must((int)n, "reading the program");
	must(fchmod(out, 0755), "copying the program");
	close(in);
	close(out);
}

static void make_tree(const char *folder, const char *program)
{
	static const char *const system[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32", "/etc/alternatives", "/etc/ld.so.cache", NULL};
	static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/urandom", NULL};
	static const char *const own[] = {"/etc", "/dev", "/detector", "/tmp", NULL};
	char path[512];

	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "making mounts private");
	must(mount("detector", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755"),
		"mounting a tmpfs");
	for (int i = 0; own[i]; i++) {
		snprintf(path, sizeof(path), "%s%s", folder, own[i]);
		must(mkdir(path, 0755), path);
	}
	/* 'path' is the last one, /tmp: the only writable folder. */
	must(mount("detector", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=1777"),
		"mounting a tmpfs");
	for (int i = 0; system[i]; i++)
		confine_show(folder, system[i], true);
	for (int i = 0; devices[i]; i++)
		confine_show(folder, devices[i], false);
	snprintf(path, sizeof(path), "%s/detector/run", folder);
	copy_program(program, path);
	must(chdir(folder), "entering its folder");
	must((int)syscall(SYS_pivot_root, ".", "."), "changing the root");
	must(umount2(".", MNT_DETACH), "leaving the old root");
	must(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL),
		"closing its root");
	must(chdir("/tmp"), "entering /tmp");
	must(sethostname("detector", 8), "setting the host name");
}

static void limit(int resource, rlim_t value)
{
	struct rlimit now;

	/* Keep a lower hard limit. */
	if (getrlimit(resource, &now) == 0 && now.rlim_max < value)
		value = now.rlim_max;
	must(setrlimit(resource, &(struct rlimit){value, value}), "setting limits");
}

#if defined(__x86_64__)
enum { NATIVE = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { NATIVE = AUDIT_ARCH_AARCH64 };
#else
#error "confine.c: unknown AUDIT_ARCH of this machine"
#endif

/* Keyrings belong to a user, not to a namespace: the next run would find keys left there. */
static void forbid_keys(void)
{
	static struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		/* x32 numbers start here. */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_add_key, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_request_key, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_keyctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), "forbidding it keyrings");
}

static void become(const char *path, char *name, bool root)
{
	char *const argv[] = {name, NULL}, *const env[] = {NULL};
	sigset_t none;

	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, 60);
	/* Limits written memory; programs reserve more address space than they use. */
	limit(RLIMIT_DATA, (rlim_t)LUAX_MEMORY_MIB * MIB);
	limit(RLIMIT_AS, (rlim_t)4096 * MIB);
	limit(RLIMIT_FSIZE, 64 * MIB);
	limit(RLIMIT_NOFILE, 256);
	if (root) {
		must(setgroups(0, NULL), "dropping groups");
		must(setresgid(NOBODY, NOBODY, NOBODY), "becoming nobody");
		must(setresuid(NOBODY, NOBODY, NOBODY), "becoming nobody");
	}
	limit(RLIMIT_NPROC, 1024); /* counts all processes of the user */
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving privileges up");
	forbid_keys();
	must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "binding its life to its parent's");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	umask(022);
	execve(path, argv, env);
	confine_refuse(STARTING, errno);
}

static int confine_wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The first process of the namespace ignores signals without a handler, so it starts the program as
 * a second one. */
static void init(const char *program, const char *folder, char *name, bool root)
	__attribute__((noreturn));

static void init(const char *program, const char *folder, char *name, bool root)
{
	pid_t pid;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "binding its life to its parent's");
	make_tree(folder, program);
	pid = fork();
	must(pid, "fork");
	if (!pid)
		become("/detector/run", name, root);
	close_range(0, REPORT, 0);
	_exit(confine_wait_for(pid));
}

/* Runs in the child; never returns. */
static void child(const char *program, const char *folder, bool trust, uid_t uid, gid_t gid)
{
	const char *base = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
	char name[256];
	pid_t pid;

	snprintf(name, sizeof(name), "%s", base);
	must(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "binding its life to its parent's");
	must(setsid(), "leaving the terminal");
	if (unshare(SPACES | (uid ? CLONE_NEWUSER : 0)) < 0) {
		if (!trust)
			confine_refuse("namespaces", EPERM);
		must(chdir(folder), "entering its folder");
		become(program, name, !uid);
	}
	if (uid)
		map_user(uid, gid);
	pid = fork();
	must(pid, "fork");
	if (!pid)
		init(program, folder, name, !uid);
	close_range(0, REPORT, 0);
	_exit(confine_wait_for(pid));
}

/* Keeps descriptors 0, 1, 2 and the report's; closes all others. */
static void arrange(int in, int out, int error, int report)
{
	int fds[4] = {in, out, error, report};

	/* First move all out of the way of the target numbers. */
	for (int i = 0; i < 4; i++)
		fds[i] = fcntl(fds[i], F_DUPFD, 10);
	for (int i = 0; i < 4; i++)
		if (dup2(fds[i], i) < 0)
			_exit(127);
	fcntl(REPORT, F_SETFD, FD_CLOEXEC);
	close_range(REPORT + 1, ~0U, 0);
}

/* Reads the first line of a script, without "#!" and newline. False: not a script. */
static bool read_shebang(const char *program, char *line, size_t size)
{
	FILE *f = fopen(program, "re");
	bool script = f && fgets(line, (int)size, f) && !strncmp(line, "#!", 2);

	if (f)
		fclose(f);
	if (script) {
		line[strcspn(line, "\n")] = '\0';
		memmove(line, line + 2, strlen(line + 2) + 1);
	}
	return script;
}

static int explain_start(const char *program, int code, struct err *e)
{
	char line[512];
	const char *name = line;

	if (code == ENOEXEC)
		return err_set(e, -EINVAL,
			"%s:1: the detector has no interpreter: name one in its first line, "
			"'#!/usr/bin/python3'",
			program);
	if (code != ENOENT || !read_shebang(program, line, sizeof(line)))
		return err_errno(e, -code, "cannot start the detector '%s'", program);
	name += strspn(name, " \t");
	line[(size_t)(name - line) + strcspn(name, " \t\r")] = '\0';
	return err_set(e, -EINVAL,
		"%s:1: cannot start the detector: there is no interpreter '%s' (detectors see "
		"/usr, /bin and /lib)",
		program, name);
}

int confine_check(const char *program, struct err *e)
{
	char line[512];
	struct stat st;

	if (stat(program, &st) < 0)
		return err_errno(e, -errno, "cannot find the detector '%s'", program);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "the detector '%s' is %s, not a program", program,
			file_kind(st.st_mode));
	if (read_shebang(program, line, sizeof(line)) && *line && line[strlen(line) - 1] == '\r')
		return err_set(e, -EINVAL,
			"%s:1: its lines end with CR LF, so its interpreter is not found: run "
			"'sed -i \"s/\\r$//\" %s'",
			program, program);
	return 0;
}

static int explain(const struct report *r, const char *program, struct err *e)
{
	if (!strcmp(r->what, STARTING))
		return explain_start(program, r->code, e);

	if (!strcmp(r->what, "namespaces"))
		return err_set(e, -EPERM,
			"cannot confine the detector '%s': namespaces are not available here; run "
			"culprit as root, allow user namespaces, or trust the detector with "
			"--trust",
			program);
	return err_errno(e, -r->code, "cannot start the detector '%s': %s", program, r->what);
}

int confine_start(const char *program, int in, int out, int error, bool trust, struct confined *c,
	struct err *e)
{
	char *path = realpath(program, NULL);
	const char *tmp = getenv("TMPDIR");
	struct report r = {0};
	int report[2] = {-1, -1}, rc = 0;
	ssize_t n;

	c->pid = -1;
	if ((size_t)snprintf(c->folder, sizeof(c->folder), "%s/culprit-detector.XXXXXX",
		    tmp && *tmp == '/' ? tmp : "/tmp") >= sizeof(c->folder))
		snprintf(c->folder, sizeof(c->folder), "/tmp/culprit-detector.XXXXXX");
	if (!path)
		return err_errno(e, -errno, "cannot find the detector '%s'", program);
	if (!mkdtemp(c->folder) || pipe2(report, O_CLOEXEC) < 0) {
		rc = err_errno(e, -errno, "cannot make a folder for the detector '%s'", program);
		goto out;
	}
	if (trust && chmod(c->folder, 0711) < 0)
		rc = -errno;
	c->pid = fork();
	if (c->pid < 0) {
		rc = err_errno(e, -errno, "cannot start the detector '%s'", program);
		goto out;
	}
	if (!c->pid) {
		arrange(in, out, error, report[1]);
		child(path, c->folder, trust, geteuid(), getegid());
	}
	close(report[1]);
	report[1] = -1;
	/* The loop ends with the exec, or with a report. */
	while ((n = read(report[0], &r, sizeof(r))) < 0 && errno == EINTR)
		;
	if (n > 0)
		rc = explain(&r, program, e);
out:
	if (report[0] >= 0)
		close(report[0]);
	if (report[1] >= 0)
		close(report[1]);
	if (rc)
		confine_end(c, true);
	free(path);
	return rc;
}

int confine_end(struct confined *c, bool kill_it)
{
	int code = 0;

	if (c->pid > 0) {
		if (kill_it)
			kill(c->pid, SIGKILL);
		code = confine_wait_for(c->pid);
	}
	c->pid = -1;
	file_remove_tree(c->folder, NULL);
	return code;
}
