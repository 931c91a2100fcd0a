/*
 * The interface between the programs in the kernel and the agent. Every event begins with struct
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
	RULES = 512,       /* limit of call numbers */
	PARTS_MAX = 4096,  /* bytes of a path */
	PARTS_DEPTH = 128, /* folders and mounts that a path may go through */
	BIAS_CALLS = 200,
	DESCRIBED = 1 << 16,   /* entries for descriptors */
	FIXED_FILES = 1 << 30, /* RECORD_FIXED_FILES */
	NR_FOREIGN = (int)0x80000000,
};

/* The effect of a call on descriptors: as in diag/capture/ptrace/fds.c. */
enum fd_action {
	ACT_NONE,
	ACT_RESULT,     /* the result is a new descriptor */
	ACT_PAIR,       /* argument 0 points to two new descriptors */
	ACT_SOCKETPAIR, /* argument 3 */
	ACT_CLOSE,
	ACT_CLOSE_RANGE,
	ACT_FCNTL,
	ACT_BIND, /* and connect: the descriptor has a new address */
	ACT_CONNECT,
	ACT_RECVMSG, /* may receive descriptors */
	ACT_RECVMMSG,
	ACT_SUBMIT, /* asynchronous operations: async.h */
	ACT_REAP,
	ACT_DESTROY,
	ACT_RING, /* io_uring_enter, if its operations are not seen */
	ACT_MAP,  /* mmap */
};

/* Where a reading call has the length that it asks for: nowhere, its third argument, a vector of
 * buffers, or a message header with a vector. MESSAGES: each message has the number of bytes
 * moved. */
enum asked_kind { ASKED_NONE, ASKED_LENGTH, ASKED_VECTOR, ASKED_HEADER, ASKED_MESSAGES };

enum offset_kind { OFFSET_NONE, OFFSET_POSITION, OFFSET_ARGUMENT, OFFSET_POINTER, OFFSET_SEEK };

/* How to handle a call; one rule for each number, constant after loading. */
struct call_rule {
	u8 selected;
	u8 action; /* enum fd_action */
	u8 class;  /* enum call_class */
	u8 offset; /* enum offset_kind */
	s8 fd;     /* index of the argument, or -1; likewise the following */
	s8 offset_arg;
	s8 path, path2;
	s8 dir, dir2; /* descriptors that the paths are relative to */
	s8 flags;     /* of recv*: may contain MSG_PEEK */
	u8 asked;     /* enum asked_kind */
	s8 fd2;       /* COPY: the target of the bytes */
	u8 buffer;    /* enum asked_kind: place of the bytes that it moves */
	u8 kind;      /* enum choice_kind; 0: depends on its descriptor */
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
	u64 at_ns; /* end of the event, the order of records */
	u32 pid, tid;
	u32 lost; /* events lost on this CPU since the previous one */
	u8 type, flags;
	u16 cpu;
};

enum {
	EV_UNFINISHED = 1,
	EV_SILENT = 2, /* not selected, but it changes descriptors */
	EV_POSITIONED = 4,
	EV_TIMED = 8,
	EV_REFUSED = 16, /* a seccomp filter refused it, regardless of its result */
};

struct ev_call {
	struct ev h;
	u64 start_ns;
	u64 args[6];
	s64 result, offset;
	u32 nr, asked;
	u64 cpu_ns, cpu_call_ns; /* as in record_call; 0: not recorded */
	u32 file, pad; /* ev_fd.file of its descriptor when it began; 0: unknown, or none */
};

enum { FLOW_HEAD = 32 /* RECORD_HEAD */ };

/* A call that moved bytes on a TCP socket or /dev/fuse, in a log of flows; begins like an EV_CALL.
 * Without a head it ends before the head. */
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
	char text[]; /* one after the other */
};

enum {
	FD_GONE = 1,   /* unlinked */
	FD_PSEUDO = 2, /* no path, a name */
	FD_CUT = 4,
	FD_CHECKED = 8,   /* no call of this thread has changed it, according to its events */
	FD_CLOSED = 16,   /* not open: only with FD_CHECKED */
	FD_EXPECTED = 32, /* the end of a request announced the change: only with FD_CHECKED */
};

/* A descriptor is open and has this meaning. */
struct ev_fd {
	struct ev h;
	u64 ino, magic, peer; /* peer: as in record_fd */
	u32 file, pad;        /* identifies the open file of this descriptor of this process */
	u32 dev, generation; /* dev in the kernel's form: 12 bits, 20 bits; as in struct file_tag */
	s32 fd;
	u16 mode;
	u16 sock_type, family, sock_flags;
	u16 local_port, remote_port; /* INET, INET6; network order */
	u8 local[16], remote[16];
	u32 size;         /* of text */
	u16 unix_size[2]; /* UNIX: bytes of local and remote sockaddr_un in text */
	/* Path: NUL-terminated names from the last one up to the root. */
	char text[];
};

struct ev_process {
	struct ev h;
	u32 parent, former; /* former: EXEC, the thread's previous number */
	s32 status;         /* EXIT */
	u32 group_dead;     /* EXIT: it was the last thread */
	char name[16];
};

struct ev_signal {
	struct ev h;
	u32 signo;
	u32 deadly; /* no handler: may end the process */
};

/* A request of the kernel's FUSE client, made by this traced thread, begins; or a request has
 * ended, and this thread ended it (process and thread may be 0 then). */
struct ev_fuse {
	struct ev h;
	u64 unique, nodeid;
	u32 dev, opcode; /* dev as in ev_fd */
	s32 error;
	u32 ended;
};

/* An asynchronous operation has ended; with the thread that submitted it. */
struct ev_async {
	struct ev h;
	u64 start_ns;
	u64 args[4]; /* of the call that does the same */
	s64 result;
	u32 nr, pad; /* that call's number */
};

/* The key of a RECORD_SUM in the kernel. Addresses in network order. */
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

/* A message in progress, by the rule of diag/derive/message.h. */
struct message_key {
	u32 pid;
	s32 fd;
};

struct message_state {
	u64 start_ns, end_ns; /* of the first and the last read that brought data */
	u64 bytes;            /* 0: no message */
	u32 first, left;      /* asked for by its first read; missing after its last read */
	u32 need;             /* bytes known to be wanted still */
	u32 tid;              /* thread of the last read */
	u8 wanted_more, answered, exact;
	struct sum_key key; /* without the second */
};

/* A pending operation: of io_submit by the address of its iocb, of io_uring by the address of the
 * kernel's request. */
struct async_key {
	u64 address;
	u32 pid, ring; /* ring: io_uring's; then pid is 0 */
};

struct async_op {
	u64 start_ns, context;
	u64 args[4];
	u32 pid, tid, nr;
	u32 pad;
	struct sum_key key; /* without the second; io_uring: made at the end */
};

enum { ASYNC_CALLS = 9 };

enum { PREFIXES = 16, PREFIX_MAX = 256 };

/* A path that the filter selects by. For a block device 'dev' is its number and 'ino' is 0. */
struct prefix {
	u64 ino;
	u32 dev, size; /* size: of its text, without a slash at its end */
};

enum { FILTER_PIDS = 64, FILTER_NAMES = 16, FILTER_NAME = 16, FILTER_CLIENTS = 16 };
/* As in diag/capture/choice.h. */
enum { KIND_NETWORK = 1, KIND_DISK = 2, KIND_FUSE = 4, KIND_METADATA = 8, KIND_OTHER = 16 };

/* The selection of calls; all zero: all. */
struct filter {
	u32 calls; /* KIND_*; 0: all */
	u32 n_pids, n_names, n_clients, n_prefixes;
	u32 pids[FILTER_PIDS];
	u64 names[FILTER_NAMES][FILTER_NAME / 8];
	u64 clients[FILTER_CLIENTS][2]; /* IPv6; IPv4 mapped */
	struct prefix prefixes[PREFIXES];
	char prefix_text[PREFIXES][PREFIX_MAX];
};

/* Losses of one CPU. */
struct account {
	u64 pending; /* lost, and not reported in an event yet */
	u64 lost;    /* total */
};

/* As enum unseen of diag/record/record.h. */
enum { NOT_RINGS, NOT_REQUESTS, NOT_MAPPINGS, NOT_FOREIGN, UNSEEN_KINDS };

enum iter_mode { ITER_LEARN, ITER_ATTACH, ITER_DESCRIBE, ITER_LEAVE };
enum { TARGET_COMMAND = 1 /* silent until its exec */, TARGET_BIAS = 2 };

#endif
