/*
 * The kernel's structures that the programs read: only names and types. The place of each field is
 * resolved at load time (CO-RE), so the build needs no kernel BTF and the binary runs on other
 * kernels. Structures have only the fields that are used.
 */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_KERNEL_H
#define CULPRIT_DIAG_CAPTURE_EBPF_KERNEL_H

#include "diag/capture/ebpf/shared.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct qstr {
	u32 len;
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	u32 i_rdev;
	struct super_block *i_sb;
	unsigned long i_ino;
	s64 i_size;
	u32 i_generation;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	void *private_data;
	struct inode *f_inode;
	unsigned int f_flags;
	struct path f_path;
	s64 f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *open_fds;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root, pwd;
};

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u16 skc_dport, skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	unsigned long skc_flags;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	struct socket *sk_socket;
};

struct inet_sock {
	u32 inet_saddr;
};

struct tcp_ulp_ops;

struct inet_connection_sock {
	const struct tcp_ulp_ops *icsk_ulp_ops;
};

struct tcp_sock {
	u32 rcv_nxt, copied_seq, write_seq;
};

struct socket {
	short type;
	struct sock *sk;
	struct file *file;
};

struct sockaddr_un {
	unsigned short sun_family;
};

struct unix_address {
	int len;
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct signal_struct {
	unsigned int flags;
	int group_exit_code;
	struct task_struct *group_exec_task; /* since 5.17 */
};

struct bpf_local_storage;

struct thread_info {
	u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	struct bpf_local_storage *bpf_storage;
	int exit_code;
	unsigned int flags;
	unsigned int in_execve : 1;
	int pid, tgid;
	char comm[16];
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
	struct fs_struct *fs;
	struct signal_struct *signal;
};

struct linux_binprm;
struct kernel_siginfo;

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct io_cqe {
	u64 user_data;
	s32 res;
	int fd; /* until the file is known */
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
};

/* The beginning of an io_kiocb's data, by its operation. */
struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

struct io_close {
	int fd;
};

struct io_sync {
	int flags;
};

struct pid_namespace {
	unsigned int level;
};

struct fuse_in_header {
	u32 opcode;
	u64 unique, nodeid;
	u32 pid;
};

struct fuse_out_header {
	s32 error;
};

struct fuse_conn {
	u32 dev;
	struct pid_namespace *pid_ns;
};

struct fuse_mount {
	struct fuse_conn *fc;
};

struct fuse_req {
	struct {
		struct fuse_in_header h;
	} in;
	struct {
		struct fuse_out_header h;
	} out;
	struct fuse_mount *fm;
};

struct bpf_iter__task {
	struct task_struct *task;
};

#if defined(__TARGET_ARCH_x86)
#define NR_GETPPID 110
struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9, bx, cx, bp, orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
#define NR_GETPPID 173
struct pt_regs {
	unsigned long regs[31];
	unsigned long orig_x0;
	s32 syscallno;
};
#endif

#pragma clang attribute pop

enum {
	IFMT = 0170000,
	IFSOCK = 0140000,
	IFDIR = 0040000,
	IFREG = 0100000,
	IFBLK = 0060000,
	IFCHR = 0020000,
	FLAG_APPEND = 02000,
	SIGNAL_GROUP_EXIT = 4,
	SIGNAL_SYS = 31,
	THREAD_COMPAT = 2,  /* x86: TS_COMPAT */
	IO_WORKER = 0x10,   /* PF_IO_WORKER: threads of io_uring */
	MAP_SHARING = 1,    /* MAP_SHARED, also contained in MAP_SHARED_VALIDATE */
	MAP_NO_FILE = 0x20, /* MAP_ANONYMOUS */
	TMPFS = 0x01021994,
	HUGETLBFS = 0x958458f6,
	SOCKFS = 0x534F434B,
	INET = 2,
	INET6 = 10,
	UNIX = 1,
	TCP_LISTENING = 10,
	PROTOCOL_TCP = 6,
	TYPE_STREAM = 1,
	/* in skc_flags, SOCK_DONE: FIN has arrived, and all data before it */
	FLAG_DONE = 1 << 1,
	DEV_FUSE = 10 << 20 | 229, /* /dev/fuse */
	ANON_INODES = 0x09041934,
	AGAIN = 11,
	INTERRUPTED = 4,
	PEEK = 2,
	OOB = 1,
	TRUNC = 0x20,
	ERRQUEUE = 0x2000,
	CLASS_READ = 1,
	CLASS_WRITE = 2,
	CLASS_COPY = 3,
	CLASS_SYNC = 7,
	CLASS_POLL = 6, /* enum call_class */
	FD_NONE = 0,
	FD_DISK = 1,
	FD_SERVER = 2,
	FD_CLIENT = 3,
	FD_OTHERS = 4, /* enum fd_class */
};

#endif
