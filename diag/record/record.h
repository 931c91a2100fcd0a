/*
 * Trace records: what every tracer writes and every reader reads. They carry what the "sclog" and
 * "fdlog" of Kasick et al. 2009 (section 4) do, in one stream, so that a descriptor's meaning is
 * known before the first call that uses it.
 *
 * Times are in nanoseconds. 'start_ns' is CLOCK_REALTIME at the start of the event, so that nodes
 * can be compared; durations are of CLOCK_MONOTONIC. Records stand in the order in which the events
 * ended.
 *
 * Descriptor tables (fdtable.h keeps one):
 *   - RECORD_FD open: (pid, fd) now means this, whatever it meant before;
 *   - RECORD_FD not open: it means nothing any more; the record follows the call that closed it;
 *   - RECORD_PROCESS START or EXEC of a group leader (pid == tid): the table of pid is empty, and
 *     a RECORD_FD follows for each descriptor that is inherited or survives;
 *   - RECORD_PROCESS EXIT of a group leader: the table of pid is gone.
 * Threads share the table of their group. Two groups that share one table (clone with CLONE_FILES
 * and without CLONE_THREAD) are recorded as if each had its own, and a thread that has a table of
 * its own (unshare) as if it had that of its group. So that each call nevertheless refers to the
 * file that the kernel says, a tracer compares at the beginning of a call, and writes a RECORD_FD
 * before it when (pid, fd) is something else than the records say.
 *
 * A thread that calls execve has the leader's number afterwards, also in the record of that call.
 *
 * Positions (record_call.positioned). They are read when the call has returned:
 *   - exact, if no other thread sends (or receives) on the socket at that moment; else never before
 *     the call's own last byte, but perhaps behind bytes of the others;
 *   - 'position' minus 'result' is where the call began, except that a receive passes over an
 *     urgent byte without counting it;
 *   - bytes between two calls that nobody moved were moved unseen: by io_uring, sendmmsg or
 *     recvmmsg, a 32-bit program, a process that is not traced, or in a record that was lost;
 *   - calls without one: on Unix, UDP and MPTCP sockets, with TLS in the kernel, with MSG_PEEK,
 *     MSG_OOB or MSG_ERRQUEUE, and those that did not return;
 *   - a firewall between the ends that rewrites sequence numbers makes them differ.
 * Heads are gathered from the first eight buffers of a call, when it has returned. sendfile, splice
 * and a receive with MSG_TRUNC have none, nor has what a FUSE daemon splices or takes by io_uring.
 */
#ifndef CULPRIT_DIAG_RECORD_RECORD_H
#define CULPRIT_DIAG_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum record_type {
	RECORD_CALL = 1, /* a system call that returned, or was cut short */
	RECORD_SIGNAL,   /* a signal was delivered to a thread */
	RECORD_FD,       /* a descriptor now means this, or is closed */
	RECORD_PROCESS,  /* a process or thread started, changed its program, or ended */
	RECORD_LOST,     /* records were lost here */
	RECORD_END,      /* the tracer ended in order; a log without it was cut short */
	RECORD_SUM,      /* sums over many calls of one second */
	RECORD_READING,  /* what a sampler read from the kernel for one second */
	RECORD_FUSE,     /* a request of the kernel's FUSE client began or ended */
	RECORD_MARK,     /* what the tracer records from here on was changed */
	RECORD_UNSEEN,   /* what happened under trace, and is not in this log */
};

/* Bit in record_call.nr: the number belongs to another architecture than the log's (a 32-bit
 * program on a 64-bit kernel), so it has no name. */
#define RECORD_FOREIGN_NR 0x80000000u

/* Bit in record_call.nr: no call, but an asynchronous operation on a file or block device, of
 * io_submit or io_uring, that does what the call of this number does (pread64, pwrite64, preadv,
 * pwritev, fsync, fdatasync), with its arguments and result. 'tid' submitted it; the service time
 * is from its submission to its end as far as it can be seen (diag/capture/ebpf/async.h).
 * Unfinished: its process or its context ended, or the tracer left. */
#define RECORD_ASYNC_NR 0x40000000u

/* In place of a descriptor, added to its slot: a file that is registered with a ring of io_uring
 * (IOSQE_FIXED_FILE). A RECORD_FD says what it is, as of descriptors; processes with several rings
 * may have several files under one slot, each of which is told before it is used. */
enum { RECORD_FIXED_FILES = 1 << 30 };

enum { RECORD_HEAD = 32 };

struct record_call {
	uint64_t seq; /* order of starts, over all threads of this log */
	int64_t start_ns;
	int64_t service_ns; /* wall-clock service time */
	uint32_t pid, tid;  /* thread group and thread, as the traced node sees them */
	uint32_t nr;        /* number of the call on the log's architecture */
	/* No result: the thread died, or the tracer left, inside the call, or a filter of seccomp
	 * answered it with a signal. */
	bool unfinished;
	uint64_t args[6]; /* registers */
	/* Value, or negative errno. -512 .. -516: a signal or stop interrupted the call, and the
	 * kernel restarts it or the program sees EINTR. */
	int64_t result;
	/* Position in the file at which a read or write began, also of calls that do not name it;
	 * the new position after lseek. -1: none, or not recorded. */
	int64_t offset;
	/* Bytes that a readv or recvmsg asked for: the sum over its buffers, at most what the
	 * kernel moves at once. Of sendmmsg and recvmmsg, whose result is a number of messages: the
	 * bytes in these. 0: not known, or the arguments say it, or there is an offset. */
	uint32_t asked;
	/* In a log of flows, calls that moved bytes on a TCP socket: the connection's sequence
	 * number behind the last of them (tcp_sock.write_seq of a send, copied_seq of a receive,
	 * when the call returned; it wraps). The peer's call that moved the same byte has the same
	 * number there. */
	bool positioned;
	uint32_t position;
	/* In a log of flows with heads: the first bytes that the call moved on a TCP socket or on
	 * /dev/fuse, RECORD_HEAD at most. Valid until the next record. */
	uint8_t head_size;
	const uint8_t *head;
	/* In a log with processor times: for how long the thread had been on a processor, since it
	 * is traced, when the call began, and how long it was inside of it. */
	bool timed;
	uint64_t cpu_ns, cpu_call_ns;
	/* The call's path arguments (the second of rename, link ...) as given: relative ones start
	 * at the working directory or the call's directory descriptor. NULL: none, or not
	 * recorded. Valid until the next record. */
	const char *path, *path2;
};

struct record_signal {
	uint64_t seq;
	int64_t start_ns;
	uint32_t pid, tid;
	uint32_t signo;
	bool fatal; /* the process was killed by it */
};

enum fd_kind { FD_OTHER, FD_FILE, FD_DIR, FD_DEVICE, FD_PIPE, FD_SOCKET };

/*
 * Identity of a file, under any name and descriptor (the file tag of Esteves et al. 2023): device
 * and inode number, and when this log's tracer first met it. A new file that reuses the inode
 * number of a removed one has another 'first_ns'. Of a block device that was opened as a file:
 * 'device' is its own number (st_rdev), 'inode' is 0, whatever its special file is called.
 */
struct file_tag {
	uint64_t device; /* as st_dev; 0 with inode 0: not known, or no file */
	uint64_t inode;
	int64_t first_ns; /* CLOCK_REALTIME */
};

struct record_fd {
	int64_t start_ns;
	uint32_t pid; /* thread group whose table it is */
	int32_t fd;
	bool open; /* false: closed */
	enum fd_kind kind;
	/* Target of /proc/PID/fd/N: a path for files, "pipe:[N]", "anon_inode:..." .
	 * Points into the reader's buffer: valid until the next record is read. */
	const char *path;
	struct file_tag tag;
	/* FD_SOCKET: addresses, family AF_UNSPEC where there is none (yet). */
	struct sockaddr_storage local, remote;
	int sock_type; /* SOCK_STREAM, ... */
	/* In a log with processor times, of a Unix socket: inode number of the one that it is
	 * connected to (path: "socket:[INODE]"); 0: none, or not accepted yet. */
	uint64_t peer;
};

struct record_process {
	int64_t start_ns;
	uint32_t pid, tid, parent; /* parent: the thread group that made it, 0 if not known */
	/* NAME: the thread has another name now (prctl, /proc/PID/comm, or its parent's doing). */
	enum { PROCESS_START, PROCESS_EXEC, PROCESS_EXIT, PROCESS_NAME } what;
	int32_t status;   /* PROCESS_EXIT: as waitpid's */
	const char *name; /* program (comm); valid until the next record */
};

struct record_lost {
	int64_t start_ns;
	uint32_t cpu; /* where it is counted per CPU, else 0 */
	uint64_t count;
};

/* What a descriptor is to its process, in sums. */
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
 * with 'messages', the whole messages that it read (diag/derive/metrics.h defines them) and 'class'
 * CALL_READ.
 */
struct record_sum {
	int64_t start_ns; /* CLOCK_REALTIME: the whole second of this node's clock that it covers */
	uint32_t pid;
	uint8_t class;    /* enum call_class */
	uint8_t fd_class; /* enum fd_class */
	bool messages;    /* whole messages are counted, not calls */
	bool bulk;        /* messages: of bulk data, and not requests or responses */
	bool selected;    /* disk: the file matches the tracer's path filter, or there is none */
	uint64_t device;  /* disk: as st_dev; of a block device its own number */
	/* SERVER, CLIENT of families INET, INET6. The port of the client's end is 0: sums do not
	 * tell clients' ports apart. */
	struct sockaddr_storage local, remote;
	uint64_t count;
	uint64_t errors;           /* of 'count': calls that failed, without EAGAIN */
	uint64_t failed_ns;        /* of 'total_ns': calls that failed, with EAGAIN */
	uint64_t failed;           /* of 'count': calls that failed, with EAGAIN */
	uint64_t bytes;            /* that the calls moved */
	uint64_t total_ns, max_ns; /* service time; max_ns without calls that failed */
	/* Calls that did not fail and took 2^i <= ns < 2^(i+1); [0] has 0 ns as well, and the last
	 * bucket all that took longer. */
	uint32_t histogram[SUM_BUCKETS];
};

/* One reading of one second (reading.h). Zeros are written, too: a missing reading is unknown. */
struct record_reading {
	int64_t start_ns; /* CLOCK_REALTIME: the whole second of this node's clock that it covers */
	uint16_t what;    /* enum reading */
	/* TCP readings: the other end (port 0 if the socket was accepted). Else AF_UNSPEC, or
	 * AF_UNIX with the name of the one thing that it is of: record_reading_thing. */
	struct sockaddr_storage peer;
	bool accepted;   /* TCP readings: the sockets were accepted, not connected */
	uint32_t count;  /* sockets, devices or interfaces that it is the sum of */
	double sum, max; /* over them, in reading_unit */
};

/*
 * A request of a FUSE file system, as its kernel client sees it. 'unique' is in the header that the
 * daemon reads from /dev/fuse and in that of its answer. Those that traced threads make; not those
 * that wait until another thread sends them, since too many are under way, and no FORGET.
 */
struct record_fuse {
	int64_t start_ns;  /* when it began or ended */
	uint32_t pid, tid; /* the application's thread; of an end: who ended it */
	uint64_t unique;   /* 0: Linux 6.10 to 6.17 do not tell it when a request begins */
	uint64_t nodeid;
	uint32_t device; /* minor number of the mount's st_dev; one for each mount */
	uint32_t opcode; /* FUSE_READ ... of linux/fuse.h */
	bool ended;
	int32_t error; /* of an end: 0 or a negative errno */
};

/*
 * What the tracer records was changed while it ran, or was less than everything at its start. The
 * newest mark holds; a log without marks has all calls. Calls that it leaves out are not lost, and
 * leave gaps in the positions of connections. Descriptors and processes are recorded all the time.
 * In the last moments before 'start_ns', while the change was made, calls may have been recorded by
 * either.
 */
struct record_mark {
	int64_t start_ns; /* from then on it holds */
	/* "on", "off" or "on filter ...", with the words of diag/capture/choice.h. Valid until the
	 * next record. */
	const char *text;
};

/* What is not in a log, though nothing was lost. */
enum unseen {
	UNSEEN_RINGS,    /* calls of io_uring where the tracer does not see what they do */
	UNSEEN_REQUESTS, /* requests of io_uring but reads, writes, fsyncs of files, devices */
	UNSEEN_MAPPINGS, /* shared mappings of files: reads and writes through memory */
	UNSEEN_FOREIGN,  /* calls of 32-bit programs: without name, bytes and file */
	UNSEEN_CHANGES,  /* descriptors that no call had changed; right again when they were used */
	UNSEEN_COUNT,
};

/* So many since the last record of that kind, up to 'start_ns'. Tracers of before version 7 of the
 * layout do not say it. */
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

/* Start and end of what a record tells, CLOCK_REALTIME; process and thread, 0 if it has none. */
int64_t record_start_ns(const struct record *rec);
int64_t record_end_ns(const struct record *rec);
uint32_t record_pid(const struct record *rec);
uint32_t record_tid(const struct record *rec);

/* "cpu0", "eth0": the one processor or interface that a reading is of, where the sampler also wrote
 * one of all together; else NULL. As long as 'r'. */
const char *record_reading_thing(const struct record_reading *r);

#endif
