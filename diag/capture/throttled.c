/* Runs a command whose calls on files stop at a supervisor, which lets them continue. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "diag/capture/capture.h"
#include "diag/capture/launch.h"
#include "diag/capture/trapped.h"

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "unknown seccomp architecture of this machine"
#endif

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* Linux 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* Calls of 32-bit programs have other numbers: they pass. */
static unsigned short make_filter(struct sock_filter *f)
{
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < TRAPPED_CALLS; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)trapped_calls[i].nr, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return n;
}

/* A call that waits for the supervisor keeps waiting when a non-fatal signal comes; kernels before
 * 5.19 restart it. */
static int install(void)
{
	struct sock_filter code[2 * TRAPPED_CALLS + 5];
	struct sock_fprog program = {.len = make_filter(code), .filter = code};
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	return fd;
}

static int send_listener(int socket, int listener)
{
	char byte = 'l';
	struct iovec data = {&byte, 1};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &listener, sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int failed(const char *what, const char *subject)
{
	fprintf(stderr, "culprit-agent throttled: cannot %s '%s': %s\n", what, subject,
		strerror(errno));
	return TRACE_EXIT_NOT_WHOLE;
}

int throttled_main(int argc, char **argv)
{
	int socket, listener;
	char *end;

	if (argc < 5 || strcmp(argv[1], "--fd") || strcmp(argv[3], "--")) {
		fputs("usage: culprit-agent throttled --fd N -- COMMAND [ARGUMENT ...]\n", stderr);
		return TRACE_EXIT_USAGE;
	}
	socket = (int)strtol(argv[2], &end, 10);
	if (*end || end == argv[2] || socket < 3)
		return failed("use the descriptor", argv[2]);
	listener = install();
	if (listener < 0)
		return failed("set up a seccomp listener for", argv[4]);
	/* From here on every close and write stops at the supervisor, which has the listener once
	 * this is sent. */
	if (send_listener(socket, listener))
		_exit(TRACE_EXIT_NOT_WHOLE);
	close(listener);
	close(socket);
	usual_signals();
	execvp(argv[4], argv + 4);
	failed("run", argv[4]);
	return TRACE_EXIT_NO_PROGRAM;
}
