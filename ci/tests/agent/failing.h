/*
 * Fixture for tests in which one allocation or system call fails. Functions of the same name here
 * replace the calls of our code and of the libraries below it. Plan and place are shared with
 * forked children, whose calls count too; those of programs that they execute do not.
 *
 * A place is the n-th call, or, where code polls and the number is not fixed, the first call from
 * one chain of callers.
 */
#ifndef CULPRIT_CI_TESTS_AGENT_FAILING_H
#define CULPRIT_CI_TESTS_AGENT_FAILING_H

#include "ci/tests/agent/agent_peer.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define MAX_CHAINS 4096
#define CHAIN_DEPTH 24

struct plan {
	atomic_bool armed, met;
	atomic_int left; /* calls until the one that fails */
	bool by_chain;
	uint64_t wanted; /* the chain that fails; 0: none, they are collected */
	atomic_int chains;
	uint64_t chain[MAX_CHAINS];
	void *top;     /* chains end here */
	char name[16]; /* of the one that failed */
};

static struct plan *plan;

/* Who calls: addresses are the same in all children. */
static uint64_t callers(void)
{
	void *chain[CHAIN_DEPTH];
	int n = backtrace(chain, CHAIN_DEPTH);
	uint64_t hash = 14695981039346656037u;

	for (int i = 1; i < n && chain[i] != plan->top; i++)
		hash = (hash ^ (uintptr_t)chain[i]) * 1099511628211u;
	return hash | 1;
}

static bool chain_fails(void)
{
	static bool within;
	bool it = false;
	uint64_t who;
	int n;

	if (within)
		return false;
	within = true;
	who = callers();
	if (plan->wanted) {
		it = who == plan->wanted && !atomic_load(&plan->met);
	} else {
		n = atomic_load(&plan->chains);
		while (n && plan->chain[n - 1] != who)
			n--;
		if (!n && (n = atomic_fetch_add(&plan->chains, 1)) < MAX_CHAINS)
			plan->chain[n] = who;
	}
	within = false;
	return it;
}

static bool fails(const char *name)
{
	if (!plan || !atomic_load(&plan->armed))
		return false;
	if (plan->by_chain ? !chain_fails() : atomic_fetch_sub(&plan->left, 1) != 1)
		return false;
	snprintf(plan->name, sizeof(plan->name), "%s", name);
	atomic_store(&plan->met, true);
	return true;
}

static void *real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		_exit(99);
	return f;
}

#define TAKE(type, name, symbol, parameters, arguments, failure, code)                             \
	type name parameters;                                                                      \
	type name parameters                                                                       \
	{                                                                                          \
		static type(*next) parameters;                                                     \
                                                                                                   \
		if (!next)                                                                         \
			next = real(symbol);                                                       \
		if (fails(#name)) {                                                                \
			errno = code;                                                              \
			return failure;                                                            \
		}                                                                                  \
		return next arguments;                                                             \
	}

/* dlsym itself allocates, so these go by another name. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *malloc(size_t n)
{
	if (fails("malloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (fails("calloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	if (fails("realloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(p, n);
}

int open(const char *path, int flags, ...)
{
	static int (*next)(const char *, int, ...);
	va_list args;
	mode_t mode;

	if (!next)
		next = real("open64");
	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (fails("open")) {
		errno = EMFILE;
		return -1;
	}
	return next(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	static int (*next)(int, const char *, int, ...);
	va_list args;
	mode_t mode;

	if (!next)
		next = real("openat64");
	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (fails("openat")) {
		errno = EMFILE;
		return -1;
	}
	return next(dir, path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	va_list args;
	void *p;

	if (!next)
		next = real("ioctl");
	va_start(args, request);
	p = va_arg(args, void *);
	va_end(args);
	if (fails("ioctl")) {
		errno = EPERM;
		return -1;
	}
	return next(fd, request, p);
}

TAKE(pid_t, fork, "fork", (void), (), -1, EAGAIN)
TAKE(int, pipe2, "pipe2", (int p[2], int flags), (p, flags), -1, EMFILE)
TAKE(int, dup2, "dup2", (int a, int b), (a, b), -1, EBADF)
TAKE(int, chdir, "chdir", (const char *path), (path), -1, EACCES)
TAKE(ssize_t, read, "read", (int fd, void *p, size_t n), (fd, p, n), -1, EIO)
TAKE(ssize_t, write, "write", (int fd, const void *p, size_t n), (fd, p, n), -1, EIO)
TAKE(DIR *, opendir, "opendir", (const char *path), (path), NULL, EMFILE)
TAKE(int, kill, "kill", (pid_t pid, int signo), (pid, signo), -1, EPERM)
TAKE(int, prlimit, "prlimit64",
	(pid_t pid, enum __rlimit_resource r, const struct rlimit *a, struct rlimit *b),
	(pid, r, a, b), -1, EPERM)
TAKE(int, setrlimit, "setrlimit64", (enum __rlimit_resource r, const struct rlimit *l), (r, l), -1,
	EPERM)
TAKE(int, setresuid, "setresuid", (uid_t a, uid_t b, uid_t c), (a, b, c), -1, EAGAIN)
TAKE(int, execve, "execve", (const char *path, char *const *argv, char *const *env),
	(path, argv, env), -1, ENOMEM)
TAKE(ssize_t, readlink, "readlink", (const char *path, char *p, size_t n), (path, p, n), -1, ENOMEM)
TAKE(ssize_t, pread, "pread64", (int fd, void *p, size_t n, off_t at), (fd, p, n, at), -1, EIO)
TAKE(int, flock, "flock", (int fd, int how), (fd, how), -1, ENOLCK)
TAKE(int, syncfs, "syncfs", (int fd), (fd), -1, EIO)
TAKE(int, ftruncate, "ftruncate64", (int fd, off_t n), (fd, n), -1, EFBIG)
TAKE(int, unlink, "unlink", (const char *path), (path), -1, EIO)
TAKE(int, mknod, "mknod", (const char *path, mode_t mode, dev_t dev), (path, mode, dev), -1, EPERM)
TAKE(int, mkdirat, "mkdirat", (int dir, const char *path, mode_t mode), (dir, path, mode), -1,
	ENOSPC)
TAKE(int, symlinkat, "symlinkat", (const char *to, int dir, const char *path), (to, dir, path), -1,
	ENOSPC)
TAKE(int, mount, "mount",
	(const char *a, const char *b, const char *c, unsigned long flags, const void *data),
	(a, b, c, flags, data), -1, ENOMEM)
TAKE(int, umount2, "umount2", (const char *path, int flags), (path, flags), -1, ENOMEM)
TAKE(int, socket, "socket", (int a, int b, int c), (a, b, c), -1, EMFILE)
TAKE(int, bind, "bind", (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1, EADDRINUSE)
TAKE(ssize_t, sendto, "sendto",
	(int fd, const void *p, size_t n, int flags, const struct sockaddr *a, socklen_t size),
	(fd, p, n, flags, a, size), -1, ENOBUFS)
TAKE(ssize_t, recvmsg, "recvmsg", (int fd, struct msghdr *m, int flags), (fd, m, flags), -1,
	ENOBUFS)

/* In the function, never inlined, whose calls are examined: who called it is no part of a
 * chain. */
#define CHAINS_END_HERE() (plan->top = __builtin_return_address(0))

static int plan_make(void)
{
	void *first;

	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* It loads a library the first time. */
	backtrace(&first, 1);
	return plan == MAP_FAILED ? -1 : 0;
}

/* The call of that number, from 1, fails. */
static inline void arm(int place)
{
	atomic_store(&plan->met, false);
	atomic_store(&plan->left, place);
	plan->by_chain = false;
	atomic_store(&plan->armed, true);
}

/* The first call from that chain of callers fails; 0: the chains are collected. */
static inline void arm_chain(uint64_t wanted)
{
	atomic_store(&plan->met, false);
	plan->by_chain = true;
	plan->wanted = wanted;
	if (!wanted)
		atomic_store(&plan->chains, 0);
	atomic_store(&plan->armed, true);
}

static void disarm(void)
{
	atomic_store(&plan->armed, false);
}

#endif
