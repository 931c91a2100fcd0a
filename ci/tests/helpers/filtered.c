/*
 * Makes calls that filters of seccomp refuse, in a folder: unlink (EPERM), pwrite64 (returns 0,
 * writes nothing), close of descriptor 40 (EPERM, so that it stays open), getpgid (SIGSYS, which
 * is handled); getppid kills a process that it forks, getsid one of its threads.
 *
 *   filtered FOLDER
 *
 * Exits with 77 if the kernel has no such filters.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT = 40, NO_FILTERS = 77 };

#define REFUSE(call, action)                                                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)

static int filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_unlinkat, SECCOMP_RET_ERRNO | 1),
		REFUSE(SYS_pwrite64, SECCOMP_RET_ERRNO | 0),
		REFUSE(SYS_getpgid, SECCOMP_RET_TRAP),
		REFUSE(SYS_getppid, SECCOMP_RET_KILL_PROCESS),
		REFUSE(SYS_getsid, SECCOMP_RET_KILL_THREAD),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		REFUSE(AT, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void nothing(int signo)
{
	(void)signo;
}

static void *killed(void *arg)
{
	syscall(SYS_getsid, 0);
	return arg;
}

int main(int argc, char **argv)
{
	char path[4096];
	pthread_t thread;
	int fd;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s/kept", argv[1]);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, AT) < 0)
		return 1;
	signal(SIGSYS, nothing);
	if (filter())
		return NO_FILTERS;
	if (!unlinkat(AT_FDCWD, path, 0) || pwrite(fd, "12345", 5, 0) || !close(AT) ||
		write(AT, "12", 2) != 2)
		return 1;
	syscall(SYS_getpgid, 0);
	if (fork() == 0) {
		syscall(SYS_getppid);
		_exit(0);
	}
	wait(NULL);
	pthread_create(&thread, NULL, killed, NULL);
	pthread_join(thread, NULL);
	return 0;
}
