/*
 * What the programs in the kernel and the agent say to each other. Every event begins with struct
 * ev; times are CLOCK_MONOTONIC. Process and thread numbers are those of the agent's PID namespace.
 */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_SHARED_H
#define CULPRIT_DIAG_CAPTURE_EBPF_SHARED_H

#ifdef __bpf__
#include <linux/bpf.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s32 s32;
typedef __s64 s64;
#ifndef bool
#define bool _Bool
#define true 1
#define false 0
#endif
#ifndef NULL
#define NULL ((void *)0)
#endif
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;
#endif

enum {
	RULES = 512,       /* call numbers are below it */
	PARTS_MAX = 4096,  /* bytes of a path */
	PARTS_DEPTH = 128, /* folders and mounts that a path may go through */
	BIAS_CALLS = 200,
	DESCRIBED = 1 << 16,   /* places for descriptors */
	FIXED_FILES = 1 << 30, /* RECORD_FIXED_FILES */
	NR_FOREIGN = (int)0x80000000,
};

/* What a call does to descriptors: as in diag/capture/ptrace/fds.c. */
enum fd_action {
	ACT_NONE,
	ACT_RESULT,     /* the result is a new descriptor */
	ACT_PAIR,       /* a pointer to two new ones: argument 0 */
	ACT_SOCKETPAIR, /* argument 3 */
	ACT_CLOSE,
	ACT_CLOSE_RANGE,
	ACT_FCNTL,
	ACT_BIND, /* and connect: the descriptor has another address now */
	ACT_CONNECT,
	ACT_RECVMSG, /* may bring descriptors along */
	ACT_RECVMMSG,
	ACT_SUBMIT, /* asynchronous operations: async.h */
	ACT_REAP,
	ACT_DESTROY,
	ACT_RING, /* io_uring_enter, where its operations are not seen */
	ACT_MAP,  /* mmap */
};

/* Where a call that reads says how much it asks for: nowhere, its third argument, a vector of
 * buffers, a message header that has one. MESSAGES: it tells what it moved, in each message. */
enum asked_kind { ASKED_NONE, ASKED_LENGTH, ASKED_VECTOR, ASKED_HEADER, ASKED_MESSAGES };

enum offset_kind { OFFSET_NONE, OFFSET_POSITION, OFFSET_ARGUMENT, OFFSET_POINTER, OFFSET_SEEK };

/* What is to be done with a call; one a number, constant once the programs are loaded. */
struct call_rule {
	u8 selected;
	u8 action; /* enum fd_action */
	u8 class;  /* enum call_class */
	u8 offset; /* enum offset_kind */
	s8 fd;     /* index of the argument, or -1, as the following */
	s8 offset_arg;
	s8 path, path2;
	s8 dir, dir2; /* descriptors that the paths are relative to */
	s8 flags;     /* of recv*: MSG_PEEK may be in it */
	u8 asked;     /* enum asked_kind */
	s8 fd2;       /* COPY: where the bytes go */
	u8 buffer;    /* enum asked_kind: where the bytes are that it moves */
	u8 kind;      /* enum choice_kind; 0: what its descriptor says */
	u8 pad;
};

enum ev_type {
	EV_CALL = 1,
	EV_PATHS,
	EV_FD,
	EV_START,
	EV_EXEC,
	EV_EXIT,
	EV_SIGNAL,
	EV_ASYNC,
	EV_NAME,
	EV_FUSE,
};

struct ev {
	u64 at_ns; /* when it had ended: the order of records */
	u32 pid, tid;
	u32 lost; /* events lost on this CPU since the one before */
	u8 type, flags;
	u16 cpu;
};

enum {
	EV_UNFINISHED = 1,
	EV_SILENT = 2, /* not selected, but it changes descriptors */
	EV_POSITIONED = 4,
	EV_TIMED = 8,
	EV_REFUSED = 16, /* a filter of seccomp kept it from the kernel, whatever its result says */
};

struct ev_call {
	struct ev h;
	u64 start_ns;
	u64 args[6];
	s64 result, offset;
	u32 nr, asked;
	u64 cpu_ns, cpu_call_ns; /* as in record_call; 0: not recorded */
	u32 file, pad; /* ev_fd.file of its descriptor when it began; 0: not known, or none */
};

enum { FLOW_HEAD = 32 /* RECORD_HEAD */ };

/* A call that moved bytes on a TCP socket or /dev/fuse, in a log of flows; an EV_CALL, too. Without
 * a head it ends before that. */
struct ev_flow {
	struct ev_call c;
	u32 position; /* with EV_POSITIONED */
	u8 head_size, pad[3];
	u8 head[FLOW_HEAD];
};

enum { FLOW_BARE = sizeof(struct ev_flow) - FLOW_HEAD };

/* Path arguments of the call that this thread is in; comes before it. */
struct ev_paths {
	struct ev h;
	u32 size[2]; /* with NUL; 0: none */
	char text[]; /* one behind the other */
};

enum {
	FD_GONE = 1,   /* unlinked */
	FD_PSEUDO = 2, /* no path, a name */
	FD_CUT = 4,
	FD_CHECKED = 8,   /* no call of this thread has changed it, as far as its events say */
	FD_CLOSED = 16,   /* it is not open: only with FD_CHECKED */
	FD_EXPECTED = 32, /* the end of a request told of the change: only with FD_CHECKED */
};

/* A descriptor is open and means this. */
struct ev_fd {
	struct ev h;
	u64 ino, magic, peer; /* peer: as in record_fd */
	u32 file, pad;        /* which open file this is, of this descriptor of this process */
	u32 dev,
		generation; /* dev as the kernel has it: 12 bits, 20 bits; as struct file_tag has */
	s32 fd;
	u16 mode;
	u16 sock_type, family, sock_flags;
	u16 local_port, remote_port; /* INET, INET6; network order */
	u8 local[16], remote[16];
	u32 size;         /* of text */
	u16 unix_size[2]; /* UNIX: bytes of local and remote sockaddr_un in text */
	/* Path: NUL-ended names from the last one up to the root. */
	char text[];
};

struct ev_process {
	struct ev h;
	u32 parent, former; /* former: EXEC, the number that the thread had before */
	s32 status;         /* EXIT */
	u32 group_dead;     /* EXIT: it was the last thread */
	char name[16];
};

struct ev_signal {
	struct ev h;
	u32 signo;
	u32 deadly; /* no handler: may be the end of the process */
};

/* A request of the kernel's FUSE client begins, made by this traced thread; or it ended, and this
 * thread ended it (process and thread may be 0 then). */
struct ev_fuse {
	struct ev h;
	u64 unique, nodeid;
	u32 dev, opcode; /* dev as in ev_fd */
	s32 error;
	u32 ended;
};

/* An asynchronous operation has ended; of the thread that submitted it. */
struct ev_async {
	struct ev h;
	u64 start_ns;
	u64 args[4]; /* of the call that does the same */
	s64 result;
	u32 nr, pad; /* that call's number */
};

/* What RECORD_SUM is kept by in the kernel. Addresses in network order. */
struct sum_key {
	u32 second, pid;
	u32 dev; /* DISK: as the kernel has it */
	u16 family, local_port, remote_port;
	u8 class, fd_class, messages, selected; /* messages: enum counted */
	u8 pad[2];
	u8 local[16], remote[16];
};

enum counted { COUNTED_CALLS, COUNTED_MESSAGES, COUNTED_BULK };

enum { SUM_HISTOGRAM = 40 };

struct sum {
	u64 count, errors, failed, failed_ns, bytes, total_ns, max_ns;
	u32 histogram[SUM_HISTOGRAM];
};

/* A message under way: diag/derive/message.h, whose rule this is. */
struct message_key {
	u32 pid;
	s32 fd;
};

struct message_state {
	u64 start_ns, end_ns; /* of the first and the last read that brought data */
	u64 bytes;            /* 0: none under way */
	u32 first, left;      /* asked for by its first read; not got by its last */
	u32 need;             /* known to be wanted still */
	u32 tid;              /* who read last */
	u8 wanted_more, answered, exact;
	struct sum_key key; /* but for its second */
};

/* An operation that is under way: of io_submit by the address of its iocb, of io_uring by that of
 * the kernel's request. */
struct async_key {
	u64 address;
	u32 pid, ring; /* ring: io_uring's; pid is 0 then */
};

struct async_op {
	u64 start_ns, context;
	u64 args[4];
	u32 pid, tid, nr;
	u32 pad;
	struct sum_key key; /* but for its second; io_uring: made at the end */
};

enum { ASYNC_CALLS = 9 };

enum { PREFIXES = 16, PREFIX_MAX = 256 };

/* A path that the filter selects by. Of a block device: 'dev' is its number, 'ino' is 0. */
struct prefix {
	u64 ino;
	u32 dev, size; /* size: of its text, which has no slash at its end */
};

enum { FILTER_PIDS = 64, FILTER_NAMES = 16, FILTER_NAME = 16, FILTER_CLIENTS = 16 };
/* As in diag/capture/choice.h. */
enum { KIND_NETWORK = 1, KIND_DISK = 2, KIND_FUSE = 4, KIND_METADATA = 8, KIND_OTHER = 16 };

/* Which calls are recorded; all zero: all. */
struct filter {
	u32 calls; /* KIND_*; 0: all */
	u32 n_pids, n_names, n_clients, n_prefixes;
	u32 pids[FILTER_PIDS];
	u64 names[FILTER_NAMES][FILTER_NAME / 8];
	u64 clients[FILTER_CLIENTS][2]; /* IPv6; IPv4 mapped */
	struct prefix prefixes[PREFIXES];
	char prefix_text[PREFIXES][PREFIX_MAX];
};

/* One CPU's account. */
struct account {
	u64 pending; /* lost, and not told yet in an event */
	u64 lost;    /* ever */
};

/* As enum unseen of diag/record/record.h. */
enum { NOT_RINGS, NOT_REQUESTS, NOT_MAPPINGS, NOT_FOREIGN, UNSEEN_KINDS };

enum iter_mode { ITER_LEARN, ITER_ATTACH, ITER_DESCRIBE, ITER_LEAVE };
enum { TARGET_COMMAND = 1 /* silent until its exec */, TARGET_BIAS = 2 };

#endif
