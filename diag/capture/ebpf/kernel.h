/*
 * What the programs read of the kernel: names and types alone. Where each field lies is found out
 * when they are loaded (CO-RE), so that the build needs no kernel's BTF and the binary runs on
 * other kernels. Structures hold the few fields that are used.
 */
#ifndef CULPRIT_DIAG_EBPF_KERNEL_H
#define CULPRIT_DIAG_EBPF_KERNEL_H

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
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_sock {
	u32 inet_saddr;
};

struct socket {
	short type;
	struct sock *sk;
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

struct bpf_iter__task {
	struct task_struct *task;
};

#if defined(__TARGET_ARCH_x86)
#define NR_GETPPID 110
struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9, bx, cx, bp;
};
#elif defined(__TARGET_ARCH_arm64)
#define NR_GETPPID 173
struct pt_regs {
	unsigned long regs[31];
	unsigned long orig_x0;
};
#endif

#pragma clang attribute pop

enum {
	IFMT = 0170000,
	IFSOCK = 0140000,
	IFREG = 0100000,
	IFBLK = 0060000,
	FLAG_APPEND = 02000,
	SIGNAL_GROUP_EXIT = 4,
	THREAD_COMPAT = 2, /* x86: TS_COMPAT */
	SOCKFS = 0x534F434B,
	INET = 2,
	INET6 = 10,
	UNIX = 1,
	TCP_LISTENING = 10,
	ANON_INODES = 0x09041934,
	AGAIN = 11,
	INTERRUPTED = 4,
	PEEK = 2,
	CLASS_READ = 1,
	CLASS_WRITE = 2,
	CLASS_COPY = 3,
	CLASS_POLL = 6, /* enum call_class */
	FD_NONE = 0,
	FD_DISK = 1,
	FD_SERVER = 2,
	FD_CLIENT = 3,
	FD_OTHERS = 4, /* enum fd_class */
};

#endif
