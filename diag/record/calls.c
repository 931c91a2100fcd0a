/* Looks up system calls by number: name, class and arguments. */
#include "diag/record/calls.h"

#include <stddef.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* CALL_NAMES_x86_64 and CALL_NAMES_aarch64: lists of {number, "name"} by number, which
 * the Makefile takes from the kernel's headers. */
#include "call_names.h"

/* Classes and arguments, which the headers lack. Calls that are not listed have only a name. */
static const struct meaning {
	const char *names, *args; /* the names are separated by spaces */
	enum call_class class;
	/* Which descriptor arguments are fd and fd2. */
	enum { BOTH, SWAPPED, FIRST, NONE } about;
} meanings[] = {
	{"read", "f fd,p buf,d count", CALL_READ},
	{"pread64", "f fd,p buf,d count,q offset", CALL_READ},
	{"readv", "f fd,p iov,d iovcnt", CALL_READ},
	{"preadv", "f fd,p iov,d iovcnt,q offset", CALL_READ},
	{"preadv2", "f fd,p iov,d iovcnt,q offset,x offset_high,x flags", CALL_READ},
	{"recvfrom", "f fd,p buf,d len,x flags,p addr,p addrlen", CALL_READ},
	{"recvmsg", "f fd,p msg,x flags", CALL_READ},
	{"recvmmsg", "f fd,p msgvec,d vlen,x flags,p timeout", CALL_READ},
	{"getdents64 getdents", "f fd,p dirp,d count"},
	{"write", "f fd,p buf,d count", CALL_WRITE},
	{"pwrite64", "f fd,p buf,d count,q offset", CALL_WRITE},
	{"writev", "f fd,p iov,d iovcnt", CALL_WRITE},
	{"pwritev", "f fd,p iov,d iovcnt,q offset", CALL_WRITE},
	{"pwritev2", "f fd,p iov,d iovcnt,q offset,x offset_high,x flags", CALL_WRITE},
	{"sendto", "f fd,p buf,d len,x flags,p addr,d addrlen", CALL_WRITE},
	{"sendmsg", "f fd,p msg,x flags", CALL_WRITE},
	{"sendmmsg", "f fd,p msgvec,d vlen,x flags", CALL_WRITE},
	{"vmsplice", "f fd,p iov,d iovcnt,x flags", CALL_WRITE},
	{"sendfile", "f out_fd,f in_fd,p offset,d count", CALL_COPY, SWAPPED},
	{"splice copy_file_range", "f fd_in,p off_in,f fd_out,p off_out,d len,x flags", CALL_COPY},
	{"tee", "f fd_in,f fd_out,d len,x flags", CALL_COPY},
	{"open", "n pathname,O flags,o mode", CALL_OPEN},
	{"openat", "F dirfd,n pathname,O flags,o mode", CALL_OPEN},
	{"openat2", "F dirfd,n pathname,p how,d size", CALL_OPEN},
	{"open_by_handle_at", "F mount_fd,p handle,x flags", CALL_OPEN},
	{"creat", "n pathname,o mode", CALL_OPEN},
	{"dup", "f oldfd", CALL_OPEN},
	{"dup2", "f oldfd,f newfd", CALL_OPEN, FIRST},
	{"dup3", "f oldfd,f newfd,x flags", CALL_OPEN, FIRST},
	{"pipe", "p pipefd", CALL_OPEN},
	{"pipe2", "p pipefd,x flags", CALL_OPEN},
	{"socket", "d domain,x type,d protocol", CALL_OPEN},
	{"socketpair", "d domain,x type,d protocol,p sv", CALL_OPEN},
	{"accept", "f fd,p addr,p addrlen", CALL_OPEN},
	{"accept4", "f fd,p addr,p addrlen,x flags", CALL_OPEN},
	{"epoll_create", "d size", CALL_OPEN},
	{"epoll_create1 memfd_secret inotify_init1 userfaultfd", "x flags", CALL_OPEN},
	{"eventfd", "d initval", CALL_OPEN},
	{"eventfd2", "d initval,x flags", CALL_OPEN},
	{"memfd_create", "p name,x flags", CALL_OPEN},
	{"timerfd_create", "d clockid,x flags", CALL_OPEN},
	{"signalfd", "f fd,p mask,d size", CALL_OPEN},
	{"signalfd4", "f fd,p mask,d size,x flags", CALL_OPEN},
	{"inotify_init", "", CALL_OPEN},
	{"fanotify_init", "x flags,x event_f_flags", CALL_OPEN},
	{"pidfd_open", "d pid,x flags", CALL_OPEN},
	{"pidfd_getfd", "f pidfd,d targetfd,x flags", CALL_OPEN},
	{"io_uring_setup", "d entries,p params", CALL_OPEN},
	{"perf_event_open", "p attr,d pid,d cpu,f group_fd,x flags", CALL_OPEN, NONE},
	{"mq_open", "p name,x oflag,o mode,p attr", CALL_OPEN},
	{"fsopen", "p fsname,x flags", CALL_OPEN},
	{"fspick open_tree", "F dirfd,n path,x flags", CALL_OPEN},
	{"fsmount", "f fsfd,x flags,x attr_flags", CALL_OPEN},
	{"landlock_create_ruleset", "p attr,d size,x flags", CALL_OPEN},
	{"close", "f fd", CALL_CLOSE},
	{"close_range", "d first,d last,x flags", CALL_CLOSE},
	{"poll", "p fds,d nfds,d timeout", CALL_POLL},
	{"ppoll", "p fds,d nfds,p timeout,p sigmask,d size", CALL_POLL},
	{"select", "d nfds,p readfds,p writefds,p exceptfds,p timeout", CALL_POLL},
	{"pselect6", "d nfds,p readfds,p writefds,p exceptfds,p timeout,p sigmask", CALL_POLL},
	{"epoll_wait", "f epfd,p events,d maxevents,d timeout", CALL_POLL},
	{"epoll_pwait", "f epfd,p events,d maxevents,d timeout,p sigmask,d size", CALL_POLL},
	{"epoll_pwait2", "f epfd,p events,d maxevents,p timeout,p sigmask,d size", CALL_POLL},
	{"io_uring_enter", "f fd,d to_submit,d min_complete,x flags,p sig,d size", CALL_POLL},
	{"fsync fdatasync syncfs", "f fd", CALL_SYNC},
	{"io_setup", "d nr_events,p ctx"},
	{"io_destroy", "x ctx"},
	{"io_submit", "x ctx,d nr,p iocbpp"},
	{"io_cancel", "x ctx,p iocb,p result"},
	{"io_getevents", "x ctx,d min_nr,d nr,p events,p timeout"},
	{"io_pgetevents", "x ctx,d min_nr,d nr,p events,p timeout,p sig"},
	{"sync_file_range", "f fd,d offset,d nbytes,x flags", CALL_SYNC},
	{"sync", "", CALL_SYNC},
	{"msync", "p addr,d length,x flags", CALL_SYNC},
	{"connect bind", "f fd,p addr,d addrlen"},
	{"listen", "f fd,d backlog"},
	{"shutdown", "f fd,d how"},
	{"getsockname getpeername", "f fd,p addr,p addrlen"},
	{"getsockopt", "f fd,d level,d optname,p optval,p optlen"},
	{"setsockopt", "f fd,d level,d optname,p optval,d optlen"},
	{"epoll_ctl", "f epfd,d op,f fd,p event"},
	{"ioctl", "f fd,x request,x arg"},
	{"fcntl", "f fd,d cmd,x arg"},
	{"flock", "f fd,d operation"},
	{"lseek", "f fd,d offset,d whence"},
	{"ftruncate", "f fd,d length"},
	{"truncate", "n path,d length"},
	{"fallocate", "f fd,x mode,d offset,d len"},
	{"fadvise64", "f fd,d offset,d len,d advice"},
	{"readahead", "f fd,d offset,d count"},
	{"fstat newfstat", "f fd,p statbuf"},
	{"fstatfs", "f fd,p buf"},
	{"fchmod", "f fd,o mode"},
	{"fchown", "f fd,d owner,d group"},
	{"fchdir", "f fd"},
	{"fgetxattr", "f fd,p name,p value,d size"},
	{"fsetxattr", "f fd,p name,p value,d size,x flags"},
	{"flistxattr", "f fd,p list,d size"},
	{"fremovexattr", "f fd,p name"},
	{"timerfd_settime", "f fd,x flags,p new,p old"},
	{"timerfd_gettime", "f fd,p value"},
	{"inotify_add_watch", "f fd,n pathname,x mask"},
	{"newfstatat", "F dirfd,n pathname,p statbuf,x flags"},
	{"statx", "F dirfd,n pathname,x flags,x mask,p statxbuf"},
	{"faccessat", "F dirfd,n pathname,x mode"},
	{"faccessat2", "F dirfd,n pathname,x mode,x flags"},
	{"readlinkat", "F dirfd,n pathname,p buf,d size"},
	{"mkdirat fchmodat", "F dirfd,n pathname,o mode"},
	{"mknodat", "F dirfd,n pathname,o mode,x dev"},
	{"unlinkat", "F dirfd,n pathname,x flags"},
	{"fchownat", "F dirfd,n pathname,d owner,d group,x flags"},
	{"utimensat", "F dirfd,n pathname,p times,x flags"},
	{"linkat renameat2", "F olddirfd,n oldpath,F newdirfd,n newpath,x flags"},
	{"renameat", "F olddirfd,n oldpath,F newdirfd,n newpath"},
	{"symlinkat", "n target,F newdirfd,n linkpath"},
	{"mmap", "p addr,d length,x prot,x flags,f fd,d offset"},
	{"stat lstat", "n pathname,p statbuf"},
	{"statfs", "n pathname,p buf"},
	{"access", "n pathname,x mode"},
	{"chdir chroot swapoff", "n path"},
	{"mkdir chmod", "n pathname,o mode"},
	{"rmdir unlink acct", "n pathname"},
	{"rename link", "n oldpath,n newpath"},
	{"symlink", "n target,n linkpath"},
	{"readlink", "n pathname,p buf,d size"},
	{"getxattr lgetxattr", "n path,p name,p value,d size"},
	{"setxattr lsetxattr", "n path,p name,p value,d size,x flags"},
	{"lchown chown", "n pathname,d owner,d group"},
	{"removexattr lremovexattr", "n path,p name"},
	{"listxattr llistxattr", "n path,p list,d size"},
	{"mknod", "n pathname,o mode,x dev"},
	{"utime utimes", "n pathname,p times"},
	{"futimesat", "F dirfd,n pathname,p times"},
	{"name_to_handle_at", "F dirfd,n pathname,p handle,p mount_id,x flags"},
	{"fanotify_mark", "f fanotify_fd,x flags,x mask,F dirfd,n pathname"},
	{"move_mount", "F from_dirfd,n from_path,F to_dirfd,n to_path,x flags"},
	{"mount_setattr", "F dirfd,n pathname,x flags,p attr,d size"},
	{"mount", "n source,n target,p fstype,x flags,p data"},
	{"umount2", "n target,x flags"},
	{"pivot_root", "n new_root,n put_old"},
	{"swapon", "n path,x flags"},
	{"umask", "o mask"},
	{"getcwd", "p buf,d size"},
	{"execve", "n pathname,p argv,p envp"},
	{"execveat", "F dirfd,n pathname,p argv,p envp,x flags"},
	{"exit exit_group", "d status"},
	{"fork vfork rt_sigreturn pause getpid getppid gettid getuid geteuid getgid "
	 "getegid sched_yield",
		""},
	{"clone3", "p args,d size"},
	{"wait4", "d pid,p status,x options,p rusage"},
	{"waitid", "d idtype,d id,p info,x options,p rusage"},
	{"kill", "d pid,s signal"},
	{"tkill", "d tid,s signal"},
	{"tgkill", "d tgid,d tid,s signal"},
	{"rt_sigaction", "s signal,p act,p oldact,d size"},
	{"rt_sigprocmask", "d how,p set,p oldset,d size"},
	{"brk", "p addr"},
	{"munmap", "p addr,d length"},
	{"mprotect", "p addr,d length,x prot"},
	{"madvise", "p addr,d length,d advice"},
	{"futex", "p uaddr,x op,d val,p timeout,p uaddr2,x val3"},
	{"nanosleep", "p req,p rem"},
	{"clock_nanosleep", "d clockid,x flags,p req,p rem"},
	{"clock_gettime", "d clockid,p tp"},
	{"setfsuid", "d uid"},
	{"setfsgid", "d gid"},
	{"prlimit64", "d pid,d resource,p new,p old"},
	{"getrandom", "p buf,d len,x flags"},
	{"set_tid_address", "p tidptr"},
	{"set_robust_list", "p head,d len"},
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

/* Counts the arguments, and notes which are descriptors, paths and offsets. */
static void read_args(struct call_info *info, const char *args)
{
	int8_t n = 0;

	for (; *args; n++) {
		switch (*args) {
		case 'f':
		case 'F': *(info->fd < 0 ? &info->fd : &info->fd2) = n; break;
		case 'n': *(info->path < 0 ? &info->path : &info->path2) = n; break;
		case 'q': info->offset = n; break;
		case 'x': info->flags = strncmp(args, "x flags", 7) ? info->flags : n; break;
		}
		args += strcspn(args, ",");
		args += *args == ',';
	}
	info->n_args = n;
}

static bool calls_is_among(const char *name, const char *names)
{
	size_t n = strlen(name), length;

	for (; *names; names += length + (names[length] == ' ')) {
		length = strcspn(names, " ");
		if (length == n && !memcmp(names, name, n))
			return true;
	}
	return false;
}

static void calls_describe(struct call_info *info, const char *name)
{
	*info = (struct call_info){.name = name,
		.fd = -1,
		.fd2 = -1,
		.path = -1,
		.path2 = -1,
		.offset = -1,
		.flags = -1,
		.n_args = -1};
	for (size_t i = 0; i < COUNT(meanings); i++) {
		const struct meaning *m = &meanings[i];

		if (!calls_is_among(name, m->names))
			continue;
		info->class = m->class;
		info->args = m->args;
		read_args(info, m->args);
		if (m->about == SWAPPED) {
			info->fd2 = info->fd;
			info->fd = 1;
		} else if (m->about != BOTH) {
			info->fd2 = -1;
			info->fd = m->about == FIRST ? info->fd : -1;
		}
		break;
	}
	info->messages = calls_is_among(name, "sendmmsg recvmmsg");
	if (strncmp(name, "recv", 4) != 0)
		info->flags = -1;
}

/* Runs before main, so that the tables need no lock. */
__attribute__((constructor)) static void fill(void)
{
	for (size_t a = 0; a < COUNT(archs); a++)
		for (size_t i = 0; i < archs[a].n; i++)
			if (archs[a].names[i].nr < MAX_NR)
				calls_describe(&archs[a].info[archs[a].names[i].nr],
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
