/*
 * The calls that stop at a supervisor (seccomp user notification) in a capture by throttling:
 * possible calls on files, and calls that start and end processes.
 */
#ifndef CULPRIT_DIAG_CAPTURE_TRAPPED_H
#define CULPRIT_DIAG_CAPTURE_TRAPPED_H

#include <stdint.h>
#include <sys/syscall.h>

enum trapped_kind {
	TRAPPED_FD = 1,  /* argument 0 is a descriptor */
	TRAPPED_PATH,    /* argument 0 is a path */
	TRAPPED_PATH_AT, /* argument 0 is a folder's descriptor, argument 1 a path */
	TRAPPED_FORK,    /* flags in argument 0 (clone), or none (fork, vfork) */
	TRAPPED_CLONE3,  /* argument 0 points to the flags */
	TRAPPED_EXIT,
};

struct trapped_call {
	int nr;
	uint8_t kind; /* enum trapped_kind */
};

static const struct trapped_call trapped_calls[] = {
#ifdef SYS_open
	{SYS_open, TRAPPED_PATH},
	{SYS_creat, TRAPPED_PATH},
	{SYS_stat, TRAPPED_PATH},
	{SYS_lstat, TRAPPED_PATH},
	{SYS_access, TRAPPED_PATH},
	{SYS_unlink, TRAPPED_PATH},
	{SYS_rename, TRAPPED_PATH},
	{SYS_mkdir, TRAPPED_PATH},
	{SYS_rmdir, TRAPPED_PATH},
	{SYS_getdents, TRAPPED_FD},
	{SYS_fork, TRAPPED_FORK},
	{SYS_vfork, TRAPPED_FORK},
#endif
#ifdef SYS_renameat
	{SYS_renameat, TRAPPED_PATH_AT},
#endif
#ifdef SYS_newfstatat
	{SYS_newfstatat, TRAPPED_PATH_AT},
#endif
	{SYS_openat, TRAPPED_PATH_AT},
	{SYS_openat2, TRAPPED_PATH_AT},
	{SYS_truncate, TRAPPED_PATH},
	{SYS_statx, TRAPPED_PATH_AT},
	{SYS_faccessat, TRAPPED_PATH_AT},
	{SYS_faccessat2, TRAPPED_PATH_AT},
	{SYS_unlinkat, TRAPPED_PATH_AT},
	{SYS_renameat2, TRAPPED_PATH_AT},
	{SYS_mkdirat, TRAPPED_PATH_AT},
	{SYS_close, TRAPPED_FD},
	{SYS_read, TRAPPED_FD},
	{SYS_readv, TRAPPED_FD},
	{SYS_pread64, TRAPPED_FD},
	{SYS_preadv, TRAPPED_FD},
	{SYS_preadv2, TRAPPED_FD},
	{SYS_write, TRAPPED_FD},
	{SYS_writev, TRAPPED_FD},
	{SYS_pwrite64, TRAPPED_FD},
	{SYS_pwritev, TRAPPED_FD},
	{SYS_pwritev2, TRAPPED_FD},
	{SYS_lseek, TRAPPED_FD},
	{SYS_fsync, TRAPPED_FD},
	{SYS_fdatasync, TRAPPED_FD},
	{SYS_ftruncate, TRAPPED_FD},
	{SYS_fstat, TRAPPED_FD},
	{SYS_getdents64, TRAPPED_FD},
	{SYS_fallocate, TRAPPED_FD},
	{SYS_clone, TRAPPED_FORK},
	{SYS_clone3, TRAPPED_CLONE3},
	{SYS_exit_group, TRAPPED_EXIT},
};

enum { TRAPPED_CALLS = sizeof(trapped_calls) / sizeof(trapped_calls[0]) };

/* `culprit-agent throttled --fd N -- COMMAND ...`: sends a listener for these calls over the socket
 * N, closes it, and executes the command. */
int throttled_main(int argc, char **argv);

#endif
