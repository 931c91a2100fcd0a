/*
 * Metrics: from trace logs to one number a second for each server (Kasick et al. 2009, sections 4
 * and 6). 'culprit list metrics' prints their names, units and definitions.
 *
 *   dread   service time of reads on the server's file objects
 *   dwrite  service time of writes on the server's file objects
 *   nsread  time that the server takes to read one whole request from a client
 *   ncread  time that a client takes to read one whole response from the server
 *   nsbulk  like nsread, for bulk data that is sent apart from its request
 *   ncbulk  like ncread, for bulk data that is sent apart from its response
 *
 * dread, dwrite and ns... come from the server's own log, nc... from the clients'. Each second
 * keeps the count, total and maximum of the events that ended in it, so that seconds can be
 * averaged and logs added without loss. Times include the tracer's own cost (log_head.bias_ns),
 * which is the same for all servers that are compared.
 *
 * Calls. dread and dwrite count every call that reads (read pread64 readv preadv preadv2) or
 * writes, did not fail, and is on a regular file below the server's storage folder, or on the block
 * device or file that is its storage, by whatever name it was opened (devices are identified by
 * number). The file system's own bookkeeping also counts, because a black box cannot distinguish
 * it; on a GlusterFS 10.3 brick it is one short write and read in 30 s. sendfile and
 * similar calls are not seen.
 *
 * Asynchronous operations of io_submit and io_uring count like the calls that do the same; the
 * io_submit and io_getevents around them do not count. The service time of io_submit's operations
 * ends at the io_getevents that delivers the event: it is exact if a thread waits there, else too
 * long. For io_uring it ends at the completion (diag/capture/ebpf/async.h). The ptrace tracer does
 * not see operations of io_uring, and the log says so.
 *
 * Messages. nsread and ncread measure requests and responses: Kasick et al. time "a single PVFS
 * request (response)". nsbulk and ncbulk measure the bulk data defined in the file system's Lua
 * file (PVFS's flows; harness/fs/README.md). The reads of the process show where a message begins
 * and ends; its bytes are not examined:
 *   - A message begins with the first read that brings data after the end of the previous message.
 *     It lasts from the start of that read to the end of its last read.
 *   - A read that fails with EAGAIN wanted more: the message continues with the next data on this
 *     descriptor, on any thread and at any later time. Exception: if the read asks for the length
 *     of the message's first read, and not for the remainder of the last one, it begins anew, and
 *     the message was whole before it (readers that drain a socket).
 *   - If a read got n of N bytes and the next one asks for exactly N - n, the message continues, on
 *     any thread, even after waits or writes in between. A reader with a fixed buffer asks for
 *     the buffer's length again instead. If it appends to bytes that it could not use yet, it also
 *     asks for the remainder: inside a message.
 *   - The remainder N - n is certainly wanted if N differs from the length of the message's first
 *     read: N was then taken from the message itself. The message continues until N - n more bytes
 *     have arrived, whatever later reads ask for. (The remainder of the first read may be unused
 *     room in a buffer, which no reader waits for.)
 *   - Otherwise the message is whole when, since its last data, the reader waits for descriptors
 *     (epoll_wait, poll, select) or writes to the socket, or another thread reads next.
 *   - A message whose end is not in the log (end of the log, close, end of stream) does not count.
 *     A short read at the end of the log is such a message, unless its thread has answered.
 * The length that readv and recvmsg ask for is the sum over their buffers (record_call.asked). Logs
 * of version 3 lack it; their calls count as without a remainder. Reads with MSG_PEEK do not count,
 * because they take no bytes.
 *
 * Compared with the true boundaries (record marks of GlusterFS, headers of OrangeFS 2.10), traced
 * by strace under dd and PostMark, one server, 100 Mbit/s, without and with 5 % receive loss on the
 * server:
 *
 *                                 messages   EAGAIN alone      with the remainder
 *                                            made   right      made   right
 *   OrangeFS server                   1826   2324    1729      1831    1819
 *   OrangeFS client                   1922   2792    1825      1921    1921
 *   OrangeFS server, loss             1691   1949    1643      1690    1690
 *   OrangeFS client, loss             1723   1882    1690      1722    1722
 *   GlusterFS brick                1358   1357    1357      1357    1357
 *   GlusterFS client               1358   1357    1357      1357    1357
 *   GlusterFS brick, loss          1265   1264    1264      1264    1264
 *   GlusterFS client, loss         1265   1264    1264      1264    1264
 *   Ceph OSD                        553      0       0       446     426
 *   Ceph client                     673      0       0       665     658
 *   Ceph OSD, loss                  259      0       0       216     208
 *   Ceph client, loss               536      0       0       523     514
 *
 * Ceph 16.2 speaks msgr 2.1: its MESSAGE frames were counted, also under small files. Its reader
 * has a buffer of 4096 bytes and reads until EAGAIN, so that EAGAIN alone finds no end. The
 * messages that are not right are joined, never cut: one read brought the end of a frame and the
 * beginning of the next, or many small frames (319 bytes, from the MDS). Without strace (eBPF, dd
 * with 128 KiB), a frame's last 4 KiB came through the buffer in pieces: 50 of 96 replies were
 * right on the client, 30 of 96 with loss. With the rule of certain remainders all of them are
 * right.
 *
 * In each row of OrangeFS and GlusterFS one message is open at the end of the log, or its end is
 * not visible. Six more differ: OrangeFS's server read the header (24 bytes) of a large message
 * before a buffer was posted for it. The body, read later by another thread, became a separate
 * message. Without strace, which slows clients down, this happened to 13 of 16 pieces of 128 KiB
 * that a client wrote. With loss the mean of OrangeFS's nsread went from 1.3 to 2.9 ms (by EAGAIN
 * alone, from 0.8 to 0.8 ms).
 *
 * Requests and responses against bulk data, by size, without strace (ci/bench/boundaries.c on
 * logs of flows with heads, 29 November 2026: 3 servers, 2 clients, dd and PostMark, receive loss
 * of 5 % on one server). Right: begins and ends in the true calls, and has the true kind.
 *
 *                                 requests, responses          bulk data
 *                                 there    made   right    there    made   right
 *   OrangeFS server               18840   18840   18840     2784    2784    2690
 *   OrangeFS client               21057   21053   21053     3072    3070    3070
 *   OrangeFS server, loss         14018   14018   14018     2208    2208    2165
 *   OrangeFS client, loss         15813   15809   15809     2688    2685    2685
 *   GlusterFS brick               62819   62819   62819
 *   GlusterFS client              62819   62819   62819
 *   GlusterFS brick, loss         31553   31553   31553
 *   GlusterFS client, loss        31553   31553   31553
 *
 * The others are open at the end of a log, or are bulk data that begins too late: its header came
 * before a buffer was posted, and was read separately.
 *
 * Limits. A reader that asks for its buffer's whole length again in the middle of a message cuts
 * the message where it waits. Ceph does so if at most 4096 bytes of a frame are left when it begins
 * to read a part of it, and these bytes arrive in several packets: the first packet of a short
 * frame looks like a frame. A reader with a ring buffer that is never emptied also asks for the
 * remainder after a whole message, which joins messages. Messages that one thread reads without
 * waiting in between count as one.
 *
 * Messages are measured because single calls hide the fault: a 128 KiB request took 75 reads and
 * 9.2 ms, and 34 ms with 5 % packet loss, while a read call took tens of microseconds in both
 * cases.
 *
 * If the log has heads (mode "flow"), the header's kind marks bulk data, else the message's size:
 * PVFS sends up to 16 KiB at once (eager), and more only when the receiver has asked for it
 * (rendezvous). If a message is not longer than a header, its data were read separately, and it
 * does not count.
 *
 * Sums. A log of RECORD_SUM gives the same metrics from sums that the tracer made: dread and dwrite
 * from reads and writes on selected files (the tracer has the storage folder as its filter; without
 * a filter every file counts), the others from messages, which the tracer has classified. Failed
 * calls are left out. Each sum covers one second of the node's clock and counts in the second that
 * it overlaps most. In a log with sums, calls do not count.
 *
 * Readings. A log of RECORD_READING (reading.h) gives one metric for each reading:
 *   server's log   under the reading's name: the node's devices and interfaces, and the sockets
 *                  that the server accepted. count: devices, interfaces or clients; sum: over them;
 *                  max: the largest.
 *   client's log   under "client_" and the name: the client's connections to the server's service
 *                  address. count: clients; max: the largest client.
 * So a server that is bad for all clients has a max far below its sum; with one bad client the max
 * is near the sum. Several connections between the same two nodes count as one: a COUNT is their
 * sum, a LEVEL their mean. Readings of a single processor or interface are in no metric. Readings
 * count in the second that they overlap most; a second without a reading has no sample, which is
 * not a zero. Values are rounded to 1e-9 of their unit.
 */
#ifndef CULPRIT_DIAG_DERIVE_METRICS_H
#define CULPRIT_DIAG_DERIVE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "diag/record/reading.h"
#include "harness/base/err.h"

struct bulk_rule;
struct message;
struct stream;

enum metric {
	METRIC_DREAD,
	METRIC_DWRITE,
	METRIC_NSREAD,
	METRIC_NCREAD,
	METRIC_NSBULK,
	METRIC_NCBULK,
#define METRIC_ENUM(e, name, unit, kind, definition) METRIC_##e,
	READINGS(METRIC_ENUM) /* METRIC_NIC_RECEIVED, ... : in the order of enum reading */
#undef METRIC_ENUM
#define METRIC_ENUM(e, name, unit, kind, definition) METRIC_CLIENT_##e,
	READINGS_TCP(METRIC_ENUM) /* METRIC_CLIENT_TCP_SENT, ... */
#undef METRIC_ENUM
	METRIC_COUNT,
	METRIC_COMPARED = METRIC_NCREAD + 1,      /* detectors compare those below as they are */
	METRIC_SERVICE_TIMES = METRIC_NCBULK + 1, /* the metrics below this are service times */
};

const char *metric_name(enum metric m);       /* "dread", "disk_queue_s", "client_tcp_rtt_s" */
const char *metric_unit(enum metric m);       /* "s" */
const char *metric_definition(enum metric m); /* one sentence */
int metric_from_name(const char *name, enum metric *m); /* 0, or -ENOENT */

struct sample {
	enum metric metric;
	uint32_t server; /* index into stream_spec.servers */
	int32_t second;  /* since metrics_new's start_ns; the one in which the event ended */
	uint64_t count;
	double sum_s, max_s; /* service time in seconds; of a reading, its value in its own unit */
	uint64_t bytes;      /* of a reading 0 */
};

struct metrics;

/* Second 0 begins at 'start_ns' (CLOCK_REALTIME of the orchestrator); events that end outside 0 ..
 * seconds-1 are left out. -EINVAL without a server or a second. */
int metrics_new(
	size_t n_servers, int64_t start_ns, int32_t seconds, struct metrics **out, struct err *e);

/* Sets which messages of later logs are bulk data; copies 'rule'. Default: no message. */
void metrics_bulk(struct metrics *m, const struct bulk_rule *rule);

/* Calls 'fn' for each whole message (message.h) of later logs when it ends; not in a log of
 * sums. */
void metrics_tell(struct metrics *m, void (*fn)(void *ctx, const struct message *one), void *ctx);

/* Makes 'm' a consumer of 's', which adds that log to the metrics: of a server or a client daemon,
 * or of one of their samplers. One stream at a time. -EINVAL for an unknown architecture. After an
 * error of the stream, 'm' may only be freed. Memory grows with seconds, servers, metrics that
 * occur and open connections, not with the log. */
int metrics_attach(struct metrics *m, struct stream *s, struct err *e);

/* Lists the samples with count > 0 by metric, server, second, and returns their number; owned by
 * 'm', valid until its next call. */
size_t metrics_samples(struct metrics *m, const struct sample **out);
void metrics_free(struct metrics *m);

#endif
