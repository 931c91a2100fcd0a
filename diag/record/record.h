/*
 * Trace records: written by every tracer, read by every reader. They combine the "sclog" and
 * "fdlog" of Kasick et al. 2009 (section 4) in one stream, so that a descriptor's meaning is known
 * before the first call that uses it.
 *
 * Times are in nanoseconds. 'start_ns' is CLOCK_REALTIME at the start of the event, so that nodes
 * can be compared; durations are of CLOCK_MONOTONIC. Records are in the order in which the events
 * ended.
 *
 * Descriptor tables (fdtable.h keeps one):
 *   - RECORD_FD open: (pid, fd) has this meaning from now on;
 *   - RECORD_FD not open: (pid, fd) is closed; the record follows the call that closed it;
 *   - RECORD_PROCESS START or EXEC of a group leader (pid == tid): the table of pid is empty, and
 *     a RECORD_FD follows for each descriptor that is inherited or survives;
 *   - RECORD_PROCESS EXIT of a group leader: the table of pid is gone.
 * Threads share the table of their group. If two groups share one table (clone with CLONE_FILES and
 * without CLONE_THREAD), each is recorded with a separate table; a thread with a separate table
 * (unshare) is recorded with its group's. To keep each call's file correct nevertheless, a tracer
 * compares at the start of a call, and writes a RECORD_FD before it if (pid, fd) differs from the
 * records.
 *
 * After execve, the calling thread has the leader's number, also in the record of that call.
 *
 * Positions (record_call.positioned) are read when the call has returned:
 *   - they are exact if no other thread sends (or receives) on the socket at that moment; else
 *     never before the call's own last byte, but perhaps after bytes of other threads;
 *   - 'position' minus 'result' is where the call began, except that a receive skips an urgent byte
 *     without counting it;
 *   - bytes between two calls that no call moved were moved unseen: by io_uring, sendmmsg or
 *     recvmmsg, a 32-bit program, an untraced process, or in a lost record;
 *   - calls without a position: on Unix, UDP and MPTCP sockets, with TLS in the kernel, with
 *     MSG_PEEK, MSG_OOB or MSG_ERRQUEUE, and calls that did not return;
 *   - a firewall between the ends that rewrites sequence numbers makes the two ends differ.
 * Heads are gathered from the first eight buffers of a call after it has returned. sendfile, splice
 * and a receive with MSG_TRUNC have no head, nor has data that a FUSE daemon splices or takes by
 * io_uring.
 */
#ifndef CULPRIT_DIAG_RECORD_RECORD_H
#define CULPRIT_DIAG_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum record_type {
	RECORD_CALL = 1, /* a system call that returned, or was cut short */
	RECORD_SIGNAL,   /* a signal was delivered to a thread */
	RECORD_FD,       /* a descriptor was opened, changed or closed */
	RECORD_PROCESS,  /* a process or thread started, changed its program, or ended */
	RECORD_LOST,     /* records were lost here */
	RECORD_END,      /* the tracer ended properly; without it the log was cut short */
	RECORD_SUM,      /* sums over many calls of one second */
	RECORD_READING,  /* a value that a sampler read from the kernel for one second */
	RECORD_FUSE,     /* a request of the kernel's FUSE client began or ended */
	RECORD_MARK,     /* the selection of calls to record was changed */
	RECORD_UNSEEN,   /* traced activity that is missing in this log */
};

/* Bit in record_call.nr: the number belongs to another architecture than the log's (a 32-bit
 * program on a 64-bit kernel), so it has no name. */
#define RECORD_FOREIGN_NR 0x80000000u

/* Bit in record_call.nr: not a call, but an asynchronous operation of io_submit or io_uring on a
 * file or block device. It has the number, arguments and result of the call that does the same
 * (pread64, pwrite64, preadv, pwritev, fsync, fdatasync). 'tid' submitted it; the service time is
 * from its submission to its end as far as that is visible (diag/capture/ebpf/async.h). Unfinished:
 * its process or its context ended, or the tracer detached. */
#define RECORD_ASYNC_NR 0x40000000u

/* Added to the slot of a file that is registered with a ring of io_uring (IOSQE_FIXED_FILE), in
 * place of a descriptor. A RECORD_FD describes the file, as for descriptors. In processes with
 * several rings a slot may have several files; a RECORD_FD comes before each use of another one. */
enum { RECORD_FIXED_FILES = 1 << 30 };

enum { RECORD_HEAD = 32 };

struct record_call {
	uint64_t seq; /* order of starts over all threads of this log */
	int64_t start_ns;
	int64_t service_ns; /* wall-clock service time */
	uint32_t pid, tid;  /* thread group and thread, as the traced node sees them */
	uint32_t nr;        /* number of the call on the log's architecture */
	/* No result: the thread died or the tracer detached inside the call, or a seccomp filter
	 * answered it with a signal. */
	bool unfinished;
	uint64_t args[6]; /* registers */
	/* Value, or negative errno. -512 .. -516: a signal or stop interrupted the call, and the
	 * kernel restarts it or the program sees EINTR. */
	int64_t result;
	/* File offset at which a read or write began, also if the call does not name it; the new
	 * offset after lseek. -1: none, or not recorded. */
	int64_t offset;
	/* Bytes that a readv or recvmsg asked for: the sum over its buffers, at most the kernel's
	 * limit for one call. For sendmmsg and recvmmsg, whose result is a number of messages: the
	 * bytes in these. 0: unknown, or given by the arguments, or there is an offset. */
	uint32_t asked;
	/* In a log of flows, for calls that moved bytes on a TCP socket: the connection's sequence
	 * number after the last byte (tcp_sock.write_seq of a send, copied_seq of a receive, read
	 * when the call returned; it wraps). The peer's call that moved the same byte has the same
	 * number there. */
	bool positioned;
	uint32_t position;
	/* In a log of flows with heads: the first bytes, at most RECORD_HEAD, that the call moved
	 * on a TCP socket or on /dev/fuse. Valid until the next record. */
	uint8_t head_size;
	const uint8_t *head;
	/* In a log with processor times: the thread's processor time, since it is traced, when the
	 * call began, and its processor time inside the call. */
	bool timed;
	uint64_t cpu_ns, cpu_call_ns;
	/* The call's path arguments (two of rename, link ...) as given: relative ones start at the
	 * working directory or the call's directory descriptor. NULL: none, or not recorded. Valid
	 * until the next record. */
	const char *path, *path2;
};

struct record_signal {
	uint64_t seq;
	int64_t start_ns;
	uint32_t pid, tid;
	uint32_t signo;
	bool fatal; /* it killed the process */
};

enum fd_kind { FD_OTHER, FD_FILE, FD_DIR, FD_DEVICE, FD_PIPE, FD_SOCKET };

/*
 * Identity of a file, under any name and descriptor (the file tag of Esteves et al. 2023): device
 * and inode number, and when this log's tracer first saw it. A new file that reuses the inode
 * number of a removed one has another 'first_ns'. For a block device opened as a file, 'device' is
 * its own number (st_rdev) and 'inode' is 0, by any name of its special file.
 */
struct file_tag {
	uint64_t device; /* as st_dev; 0 with inode 0: unknown, or not a file */
	uint64_t inode;
	int64_t first_ns; /* CLOCK_REALTIME */
};

struct record_fd {
	int64_t start_ns;
	uint32_t pid; /* thread group that owns the table */
	int32_t fd;
	bool open; /* false: closed */
	enum fd_kind kind;
	/* Target of /proc/PID/fd/N: a path for files, "pipe:[N]", "anon_inode:..." .
	 * Points into the reader's buffer: valid until the next record is read. */
	const char *path;
	struct file_tag tag;
	/* FD_SOCKET: addresses; family AF_UNSPEC if there is none (yet). */
	struct sockaddr_storage local, remote;
	int sock_type; /* SOCK_STREAM, ... */
	/* In a log with processor times, of a Unix socket: inode number of the socket that it is
	 * connected to (path: "socket:[INODE]"); 0: none, or not accepted yet. */
	uint64_t peer;
};

struct record_process {
	int64_t start_ns;
	uint32_t pid, tid, parent; /* parent: the thread group that made it, 0 if unknown */
	/* NAME: the thread has another name now (prctl, /proc/PID/comm, or set by its parent). */
	enum { PROCESS_START, PROCESS_EXEC, PROCESS_EXIT, PROCESS_NAME } what;
	int32_t status;   /* PROCESS_EXIT: as waitpid's */
	const char *name; /* program (comm); valid until the next record */
};

struct record_lost {
	int64_t start_ns;
	uint32_t cpu; /* if losses are counted per CPU, else 0 */
	uint64_t count;
};

/* The role of a descriptor for its process, in sums. */
enum fd_class {
	FD_CLASS_NONE,   /* the call has no descriptor */
	FD_CLASS_DISK,   /* regular file, or block device */
	FD_CLASS_SERVER, /* socket that was accepted */
	FD_CLASS_CLIENT, /* socket that was connected */
	FD_CLASS_OTHER,
	FD_CLASS_COUNT,
};

enum { SUM_BUCKETS = 40 };

/*
 * All calls of one class on descriptors of one class that a process ended within one second; or,
 * with 'messages', the whole messages (diag/derive/metrics.h) that it read, with 'class' CALL_READ.
 */
struct record_sum {
	int64_t start_ns; /* CLOCK_REALTIME: the whole second of this node's clock that it covers */
	uint32_t pid;
	uint8_t class;    /* enum call_class */
	uint8_t fd_class; /* enum fd_class */
	bool messages;    /* counts whole messages, not calls */
	bool bulk;        /* messages: bulk data, not requests or responses */
	/* disk: the file matches the tracer's path filter, or there is no filter */
	bool selected;
	uint64_t device; /* disk: as st_dev; of a block device its own number */
	/* SERVER, CLIENT of families INET, INET6. The port of the client's end is 0: sums do not
	 * distinguish ports of clients. */
	struct sockaddr_storage local, remote;
	uint64_t count;
	uint64_t errors;           /* of 'count': failed calls, without EAGAIN */
	uint64_t failed_ns;        /* of 'total_ns': failed calls, with EAGAIN */
	uint64_t failed;           /* of 'count': failed calls, with EAGAIN */
	uint64_t bytes;            /* moved by the calls */
	uint64_t total_ns, max_ns; /* service time; max_ns without failed calls */
	/* Successful calls that took 2^i <= ns < 2^(i+1); [0] also has 0 ns, and the last bucket
	 * all longer ones. */
	uint32_t histogram[SUM_BUCKETS];
};

/* One reading of one second (reading.h). Zeros are also written: a missing reading is unknown. */
struct record_reading {
	int64_t start_ns; /* CLOCK_REALTIME: the whole second of this node's clock that it covers */
	uint16_t what;    /* enum reading */
	/* TCP readings: the other end (port 0 if the socket was accepted). Else AF_UNSPEC, or
	 * AF_UNIX with the name of the one processor or interface that it covers:
	 * record_reading_thing. */
	struct sockaddr_storage peer;
	bool accepted;   /* TCP readings: the sockets were accepted, not connected */
	uint32_t count;  /* summed sockets, devices or interfaces */
	double sum, max; /* over these, in reading_unit */
};

/*
 * A request of a FUSE file system, as its kernel client sees it. 'unique' is in the header that the
 * daemon reads from /dev/fuse and in the header of its answer. Covers requests made by traced
 * threads, except FORGET and requests that wait for another thread to send them because too many
 * are pending.
 */
struct record_fuse {
	int64_t start_ns; /* of the begin or end */
	/* the application's thread; at the end: the thread that ended the request */
	uint32_t pid, tid;
	uint64_t unique; /* 0: begin on Linux 6.10 to 6.17, which does not give it yet */
	uint64_t nodeid;
	uint32_t device; /* minor number of the mount's st_dev; one for each mount */
	uint32_t opcode; /* FUSE_READ ... of linux/fuse.h */
	bool ended;
	int32_t error; /* at the end: 0 or a negative errno */
};

/*
 * The selection of calls to record was changed while the tracer ran, or was not everything at its
 * start. The newest mark applies; a log without marks has all calls. Calls left out are not lost,
 * and leave gaps in the positions of connections. Descriptors and processes are always recorded.
 * Shortly before 'start_ns', while the change is made, either selection may apply.
 */
struct record_mark {
	int64_t start_ns; /* the mark applies from here on */
	/* "on", "off" or "on filter ...", with the words of diag/capture/choice.h. Valid until the
	 * next record. */
	const char *text;
};

/* Activity that is missing in a log although no record was lost. */
enum unseen {
	UNSEEN_RINGS,    /* calls of io_uring whose operations the tracer does not see */
	UNSEEN_REQUESTS, /* io_uring requests except reads, writes, fsyncs of files, devices */
	UNSEEN_MAPPINGS, /* shared mappings of files: reads and writes through memory */
	UNSEEN_FOREIGN,  /* calls of 32-bit programs: without name, bytes and file */
	UNSEEN_CHANGES,  /* descriptors changed without a call; corrected at their next use */
	UNSEEN_COUNT,
};

/* The number since the last record of that kind, up to 'start_ns'. Tracers before version 7 of the
 * layout do not write it. */
struct record_unseen {
	int64_t start_ns;
	uint32_t what; /* enum unseen */
	uint64_t count;
};

struct record_end {
	int64_t start_ns;
	uint64_t records; /* written before this one */
	uint64_t lost;
};

struct record {
	enum record_type type;
	uint64_t number; /* 1, 2, 3 ... in this log */
	union {
		struct record_call call;
		struct record_signal signal;
		struct record_fd fd;
		struct record_process process;
		struct record_lost lost;
		struct record_end end;
		struct record_sum sum;
		struct record_reading reading;
		struct record_fuse fuse;
		struct record_mark mark;
		struct record_unseen unseen;
	};
};

/* Start and end of the event, CLOCK_REALTIME; process and thread, 0 if it has none. */
int64_t record_start_ns(const struct record *rec);
int64_t record_end_ns(const struct record *rec);
uint32_t record_pid(const struct record *rec);
uint32_t record_tid(const struct record *rec);

/* "cpu0", "eth0": the processor or interface of a reading for which the sampler also wrote the
 * total; else NULL. Valid as long as 'r'. */
const char *record_reading_thing(const struct record_reading *r);

#endif
