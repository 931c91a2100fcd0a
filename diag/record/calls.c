#include "diag/record/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* CALL_NAMES_x86_64 and CALL_NAMES_aarch64: lists of {number, "name"} by number, which
 * the Makefile takes from the kernel's headers. */
#include "call_names.h"

/* What the headers do not say. Calls that are not here have a name and nothing else. */
static const struct meaning {
	const char *names; /* separated by spaces */
	enum call_class class;
	int8_t fd, fd2;
	const char *args;
} meanings[] = {
	{"read", CALL_READ, 0, -1, "f fd,p buf,d count"},
	{"pread64", CALL_READ, 0, -1, "f fd,p buf,d count,q offset"},
	{"readv", CALL_READ, 0, -1, "f fd,p iov,d iovcnt"},
	{"preadv", CALL_READ, 0, -1, "f fd,p iov,d iovcnt,q offset"},
	{"preadv2", CALL_READ, 0, -1, "f fd,p iov,d iovcnt,q offset,x offset_high,x flags"},
	{"recvfrom", CALL_READ, 0, -1, "f fd,p buf,d len,x flags,p addr,p addrlen"},
	{"recvmsg", CALL_READ, 0, -1, "f fd,p msg,x flags"},
	{"recvmmsg", CALL_READ, 0, -1, "f fd,p msgvec,d vlen,x flags,p timeout"},
	{"getdents64 getdents", CALL_OTHER, 0, -1, "f fd,p dirp,d count"},
	{"write", CALL_WRITE, 0, -1, "f fd,p buf,d count"},
	{"pwrite64", CALL_WRITE, 0, -1, "f fd,p buf,d count,q offset"},
	{"writev", CALL_WRITE, 0, -1, "f fd,p iov,d iovcnt"},
	{"pwritev", CALL_WRITE, 0, -1, "f fd,p iov,d iovcnt,q offset"},
	{"pwritev2", CALL_WRITE, 0, -1, "f fd,p iov,d iovcnt,q offset,x offset_high,x flags"},
	{"sendto", CALL_WRITE, 0, -1, "f fd,p buf,d len,x flags,p addr,d addrlen"},
	{"sendmsg", CALL_WRITE, 0, -1, "f fd,p msg,x flags"},
	{"sendmmsg", CALL_WRITE, 0, -1, "f fd,p msgvec,d vlen,x flags"},
	{"vmsplice", CALL_WRITE, 0, -1, "f fd,p iov,d iovcnt,x flags"},
	{"sendfile", CALL_COPY, 1, 0, "f out_fd,f in_fd,p offset,d count"},
	{"splice copy_file_range", CALL_COPY, 0, 2,
		"f fd_in,p off_in,f fd_out,p off_out,d len,x flags"},
	{"tee", CALL_COPY, 0, 1, "f fd_in,f fd_out,d len,x flags"},
	{"open", CALL_OPEN, -1, -1, "n pathname,O flags,o mode"},
	{"openat", CALL_OPEN, 0, -1, "F dirfd,n pathname,O flags,o mode"},
	{"openat2", CALL_OPEN, 0, -1, "F dirfd,n pathname,p how,d size"},
	{"open_by_handle_at", CALL_OPEN, 0, -1, "F mount_fd,p handle,x flags"},
	{"creat", CALL_OPEN, -1, -1, "n pathname,o mode"},
	{"dup", CALL_OPEN, 0, -1, "f oldfd"},
	{"dup2", CALL_OPEN, 0, -1, "f oldfd,f newfd"},
	{"dup3", CALL_OPEN, 0, -1, "f oldfd,f newfd,x flags"},
	{"pipe", CALL_OPEN, -1, -1, "p pipefd"},
	{"pipe2", CALL_OPEN, -1, -1, "p pipefd,x flags"},
	{"socket", CALL_OPEN, -1, -1, "d domain,x type,d protocol"},
	{"socketpair", CALL_OPEN, -1, -1, "d domain,x type,d protocol,p sv"},
	{"accept", CALL_OPEN, 0, -1, "f fd,p addr,p addrlen"},
	{"accept4", CALL_OPEN, 0, -1, "f fd,p addr,p addrlen,x flags"},
	{"epoll_create", CALL_OPEN, -1, -1, "d size"},
	{"epoll_create1 memfd_secret inotify_init1 userfaultfd", CALL_OPEN, -1, -1, "x flags"},
	{"eventfd", CALL_OPEN, -1, -1, "d initval"},
	{"eventfd2", CALL_OPEN, -1, -1, "d initval,x flags"},
	{"memfd_create", CALL_OPEN, -1, -1, "p name,x flags"},
	{"timerfd_create", CALL_OPEN, -1, -1, "d clockid,x flags"},
	{"signalfd", CALL_OPEN, 0, -1, "f fd,p mask,d size"},
	{"signalfd4", CALL_OPEN, 0, -1, "f fd,p mask,d size,x flags"},
	{"inotify_init", CALL_OPEN, -1, -1, ""},
	{"fanotify_init", CALL_OPEN, -1, -1, "x flags,x event_f_flags"},
	{"pidfd_open", CALL_OPEN, -1, -1, "d pid,x flags"},
	{"pidfd_getfd", CALL_OPEN, 0, -1, "f pidfd,d targetfd,x flags"},
	{"io_uring_setup", CALL_OPEN, -1, -1, "d entries,p params"},
	{"perf_event_open", CALL_OPEN, -1, -1, "p attr,d pid,d cpu,f group_fd,x flags"},
	{"mq_open", CALL_OPEN, -1, -1, "p name,x oflag,o mode,p attr"},
	{"fsopen", CALL_OPEN, -1, -1, "p fsname,x flags"},
	{"fspick open_tree", CALL_OPEN, 0, -1, "F dirfd,n path,x flags"},
	{"fsmount", CALL_OPEN, 0, -1, "f fsfd,x flags,x attr_flags"},
	{"landlock_create_ruleset", CALL_OPEN, -1, -1, "p attr,d size,x flags"},
	{"close", CALL_CLOSE, 0, -1, "f fd"},
	{"close_range", CALL_CLOSE, -1, -1, "d first,d last,x flags"},
	{"poll", CALL_POLL, -1, -1, "p fds,d nfds,d timeout"},
	{"ppoll", CALL_POLL, -1, -1, "p fds,d nfds,p timeout,p sigmask,d size"},
	{"select", CALL_POLL, -1, -1, "d nfds,p readfds,p writefds,p exceptfds,p timeout"},
	{"pselect6", CALL_POLL, -1, -1,
		"d nfds,p readfds,p writefds,p exceptfds,p timeout,p sigmask"},
	{"epoll_wait", CALL_POLL, 0, -1, "f epfd,p events,d maxevents,d timeout"},
	{"epoll_pwait", CALL_POLL, 0, -1, "f epfd,p events,d maxevents,d timeout,p sigmask,d size"},
	{"epoll_pwait2", CALL_POLL, 0, -1,
		"f epfd,p events,d maxevents,p timeout,p sigmask,d size"},
	{"io_uring_enter", CALL_POLL, 0, -1,
		"f fd,d to_submit,d min_complete,x flags,p sig,d size"},
	{"fsync fdatasync syncfs", CALL_SYNC, 0, -1, "f fd"},
	{"sync_file_range", CALL_SYNC, 0, -1, "f fd,d offset,d nbytes,x flags"},
	{"sync", CALL_SYNC, -1, -1, ""},
	{"msync", CALL_SYNC, -1, -1, "p addr,d length,x flags"},
	{"connect bind", CALL_OTHER, 0, -1, "f fd,p addr,d addrlen"},
	{"listen", CALL_OTHER, 0, -1, "f fd,d backlog"},
	{"shutdown", CALL_OTHER, 0, -1, "f fd,d how"},
	{"getsockname getpeername", CALL_OTHER, 0, -1, "f fd,p addr,p addrlen"},
	{"getsockopt", CALL_OTHER, 0, -1, "f fd,d level,d optname,p optval,p optlen"},
	{"setsockopt", CALL_OTHER, 0, -1, "f fd,d level,d optname,p optval,d optlen"},
	{"epoll_ctl", CALL_OTHER, 0, 2, "f epfd,d op,f fd,p event"},
	{"ioctl", CALL_OTHER, 0, -1, "f fd,x request,x arg"},
	{"fcntl", CALL_OTHER, 0, -1, "f fd,d cmd,x arg"},
	{"flock", CALL_OTHER, 0, -1, "f fd,d operation"},
	{"lseek", CALL_OTHER, 0, -1, "f fd,d offset,d whence"},
	{"ftruncate", CALL_OTHER, 0, -1, "f fd,d length"},
	{"truncate", CALL_OTHER, -1, -1, "n path,d length"},
	{"fallocate", CALL_OTHER, 0, -1, "f fd,x mode,d offset,d len"},
	{"fadvise64", CALL_OTHER, 0, -1, "f fd,d offset,d len,d advice"},
	{"readahead", CALL_OTHER, 0, -1, "f fd,d offset,d count"},
	{"fstat newfstat", CALL_OTHER, 0, -1, "f fd,p statbuf"},
	{"fstatfs", CALL_OTHER, 0, -1, "f fd,p buf"},
	{"fchmod", CALL_OTHER, 0, -1, "f fd,o mode"},
	{"fchown", CALL_OTHER, 0, -1, "f fd,d owner,d group"},
	{"fchdir", CALL_OTHER, 0, -1, "f fd"},
	{"fgetxattr", CALL_OTHER, 0, -1, "f fd,p name,p value,d size"},
	{"fsetxattr", CALL_OTHER, 0, -1, "f fd,p name,p value,d size,x flags"},
	{"flistxattr", CALL_OTHER, 0, -1, "f fd,p list,d size"},
	{"fremovexattr", CALL_OTHER, 0, -1, "f fd,p name"},
	{"timerfd_settime", CALL_OTHER, 0, -1, "f fd,x flags,p new,p old"},
	{"timerfd_gettime", CALL_OTHER, 0, -1, "f fd,p value"},
	{"inotify_add_watch", CALL_OTHER, 0, -1, "f fd,n pathname,x mask"},
	{"newfstatat", CALL_OTHER, 0, -1, "F dirfd,n pathname,p statbuf,x flags"},
	{"statx", CALL_OTHER, 0, -1, "F dirfd,n pathname,x flags,x mask,p statxbuf"},
	{"faccessat", CALL_OTHER, 0, -1, "F dirfd,n pathname,x mode"},
	{"faccessat2", CALL_OTHER, 0, -1, "F dirfd,n pathname,x mode,x flags"},
	{"readlinkat", CALL_OTHER, 0, -1, "F dirfd,n pathname,p buf,d size"},
	{"mkdirat fchmodat", CALL_OTHER, 0, -1, "F dirfd,n pathname,o mode"},
	{"mknodat", CALL_OTHER, 0, -1, "F dirfd,n pathname,o mode,x dev"},
	{"unlinkat", CALL_OTHER, 0, -1, "F dirfd,n pathname,x flags"},
	{"fchownat", CALL_OTHER, 0, -1, "F dirfd,n pathname,d owner,d group,x flags"},
	{"utimensat", CALL_OTHER, 0, -1, "F dirfd,n pathname,p times,x flags"},
	{"linkat renameat2", CALL_OTHER, 0, 2, "F olddirfd,n oldpath,F newdirfd,n newpath,x flags"},
	{"renameat", CALL_OTHER, 0, 2, "F olddirfd,n oldpath,F newdirfd,n newpath"},
	{"symlinkat", CALL_OTHER, 1, -1, "n target,F newdirfd,n linkpath"},
	{"mmap", CALL_OTHER, 4, -1, "p addr,d length,x prot,x flags,f fd,d offset"},
	{"stat lstat", CALL_OTHER, -1, -1, "n pathname,p statbuf"},
	{"statfs", CALL_OTHER, -1, -1, "n pathname,p buf"},
	{"access", CALL_OTHER, -1, -1, "n pathname,x mode"},
	{"chdir chroot swapoff", CALL_OTHER, -1, -1, "n path"},
	{"mkdir chmod", CALL_OTHER, -1, -1, "n pathname,o mode"},
	{"rmdir unlink acct", CALL_OTHER, -1, -1, "n pathname"},
	{"rename link", CALL_OTHER, -1, -1, "n oldpath,n newpath"},
	{"symlink", CALL_OTHER, -1, -1, "n target,n linkpath"},
	{"readlink", CALL_OTHER, -1, -1, "n pathname,p buf,d size"},
	{"getxattr lgetxattr", CALL_OTHER, -1, -1, "n path,p name,p value,d size"},
	{"setxattr lsetxattr", CALL_OTHER, -1, -1, "n path,p name,p value,d size,x flags"},
	{"lchown chown", CALL_OTHER, -1, -1, "n pathname,d owner,d group"},
	{"removexattr lremovexattr", CALL_OTHER, -1, -1, "n path,p name"},
	{"listxattr llistxattr", CALL_OTHER, -1, -1, "n path,p list,d size"},
	{"mknod", CALL_OTHER, -1, -1, "n pathname,o mode,x dev"},
	{"utime utimes", CALL_OTHER, -1, -1, "n pathname,p times"},
	{"futimesat", CALL_OTHER, 0, -1, "F dirfd,n pathname,p times"},
	{"name_to_handle_at", CALL_OTHER, 0, -1, "F dirfd,n pathname,p handle,p mount_id,x flags"},
	{"fanotify_mark", CALL_OTHER, 0, 3, "f fanotify_fd,x flags,x mask,F dirfd,n pathname"},
	{"move_mount", CALL_OTHER, 0, 2, "F from_dirfd,n from_path,F to_dirfd,n to_path,x flags"},
	{"mount_setattr", CALL_OTHER, 0, -1, "F dirfd,n pathname,x flags,p attr,d size"},
	{"mount", CALL_OTHER, -1, -1, "n source,n target,p fstype,x flags,p data"},
	{"umount2", CALL_OTHER, -1, -1, "n target,x flags"},
	{"pivot_root", CALL_OTHER, -1, -1, "n new_root,n put_old"},
	{"swapon", CALL_OTHER, -1, -1, "n path,x flags"},
	{"umask", CALL_OTHER, -1, -1, "o mask"},
	{"getcwd", CALL_OTHER, -1, -1, "p buf,d size"},
	{"execve", CALL_OTHER, -1, -1, "n pathname,p argv,p envp"},
	{"execveat", CALL_OTHER, 0, -1, "F dirfd,n pathname,p argv,p envp,x flags"},
	{"exit exit_group", CALL_OTHER, -1, -1, "d status"},
	{"fork vfork rt_sigreturn pause getpid getppid gettid getuid geteuid getgid getegid "
	 "sched_yield",
		CALL_OTHER, -1, -1, ""},
	{"clone3", CALL_OTHER, -1, -1, "p args,d size"},
	{"wait4", CALL_OTHER, -1, -1, "d pid,p status,x options,p rusage"},
	{"waitid", CALL_OTHER, -1, -1, "d idtype,d id,p info,x options,p rusage"},
	{"kill", CALL_OTHER, -1, -1, "d pid,s signal"},
	{"tkill", CALL_OTHER, -1, -1, "d tid,s signal"},
	{"tgkill", CALL_OTHER, -1, -1, "d tgid,d tid,s signal"},
	{"rt_sigaction", CALL_OTHER, -1, -1, "s signal,p act,p oldact,d size"},
	{"rt_sigprocmask", CALL_OTHER, -1, -1, "d how,p set,p oldset,d size"},
	{"brk", CALL_OTHER, -1, -1, "p addr"},
	{"munmap", CALL_OTHER, -1, -1, "p addr,d length"},
	{"mprotect", CALL_OTHER, -1, -1, "p addr,d length,x prot"},
	{"madvise", CALL_OTHER, -1, -1, "p addr,d length,d advice"},
	{"futex", CALL_OTHER, -1, -1, "p uaddr,x op,d val,p timeout,p uaddr2,x val3"},
	{"nanosleep", CALL_OTHER, -1, -1, "p req,p rem"},
	{"clock_nanosleep", CALL_OTHER, -1, -1, "d clockid,x flags,p req,p rem"},
	{"clock_gettime", CALL_OTHER, -1, -1, "d clockid,p tp"},
	{"setfsuid", CALL_OTHER, -1, -1, "d uid"},
	{"setfsgid", CALL_OTHER, -1, -1, "d gid"},
	{"prlimit64", CALL_OTHER, -1, -1, "d pid,d resource,p new,p old"},
	{"getrandom", CALL_OTHER, -1, -1, "p buf,d len,x flags"},
	{"set_tid_address", CALL_OTHER, -1, -1, "p tidptr"},
	{"set_robust_list", CALL_OTHER, -1, -1, "p head,d len"},
};

struct number {
	uint32_t nr;
	const char *name;
};

static const struct number names_x86_64[] = {CALL_NAMES_x86_64};
static const struct number names_aarch64[] = {CALL_NAMES_aarch64};

enum { MAX_NR = 1024 };

struct call_arch {
	const char *arch;
	const struct number *names;
	size_t n;
	struct call_info info[MAX_NR];
};

static struct call_arch archs[] = {
	{.arch = "x86_64", .names = names_x86_64, .n = COUNT(names_x86_64)},
	{.arch = "aarch64", .names = names_aarch64, .n = COUNT(names_aarch64)},
};

/* Counts the arguments, and notes which are paths and positions. */
static void read_args(struct call_info *info, const char *args)
{
	int8_t n = 0;

	for (; *args; n++) {
		if (*args == 'n' && info->path < 0)
			info->path = n;
		else if (*args == 'n')
			info->path2 = n;
		else if (*args == 'q')
			info->offset = n;
		args += strcspn(args, ",");
		args += *args == ',';
	}
	info->n_args = n;
}

/* Is 'name' one of 'names'? */
static bool is_among(const char *name, const char *names)
{
	size_t n = strlen(name), length;

	for (; *names; names += length + (names[length] == ' ')) {
		length = strcspn(names, " ");
		if (length == n && !memcmp(names, name, n))
			return true;
	}
	return false;
}

static void describe(struct call_info *info, const char *name)
{
	*info = (struct call_info){.name = name,
		.fd = -1,
		.fd2 = -1,
		.path = -1,
		.path2 = -1,
		.offset = -1,
		.n_args = -1};
	for (size_t i = 0; i < COUNT(meanings); i++) {
		const struct meaning *m = &meanings[i];

		if (!is_among(name, m->names))
			continue;
		info->class = m->class;
		info->fd = m->fd;
		info->fd2 = m->fd2;
		info->args = m->args;
		read_args(info, m->args);
		return;
	}
}

/* Before main, so that tables need no lock. */
__attribute__((constructor)) static void fill(void)
{
	for (size_t a = 0; a < COUNT(archs); a++)
		for (size_t i = 0; i < archs[a].n; i++)
			if (archs[a].names[i].nr < MAX_NR)
				describe(&archs[a].info[archs[a].names[i].nr],
					archs[a].names[i].name);
}

const struct call_arch *call_arch(const char *arch)
{
	for (size_t a = 0; a < COUNT(archs); a++)
		if (!strcmp(archs[a].arch, arch))
			return &archs[a];
	return NULL;
}

const struct call_info *call_info(const struct call_arch *arch, uint32_t nr)
{
	return arch && nr < MAX_NR && arch->info[nr].name ? &arch->info[nr] : NULL;
}

const char *call_name(const char *arch, uint32_t nr)
{
	const struct call_info *info = call_info(call_arch(arch), nr);

	return info ? info->name : NULL;
}

int call_number(const char *arch, const char *name)
{
	const struct call_arch *a = call_arch(arch);

	for (uint32_t nr = 0; a && nr < MAX_NR; nr++)
		if (a->info[nr].name && !strcmp(a->info[nr].name, name))
			return (int)nr;
	return -1;
}

const char *call_class_name(enum call_class class)
{
	static const char *const names[CALL_CLASS_COUNT] = {
		"other", "read", "write", "copy", "open", "close", "poll", "sync"};

	return class < CALL_CLASS_COUNT ? names[class] : "?";
}
enum call_class call_class(const char *arch, uint32_t nr, int *fd)
{
	const struct call_info *info = call_info(call_arch(arch), nr);

	if (fd)
		*fd = info ? info->fd : -1;
	return info ? info->class : CALL_OTHER;
}
