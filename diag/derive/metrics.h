/*
 * Metrics: from trace logs to one number a second for each server (Kasick et al. 2009, sections 4
 * and 6). 'culprit list metrics' prints their names, units and definitions.
 *
 *   dread   service time of reads on the server's file objects
 *   dwrite  service time of writes on the server's file objects
 *   nsread  time that the server takes to read one whole request from a client
 *   ncread  time that a client takes to read one whole response from the server
 *
 * dread, dwrite and nsread come from the server's own log, ncread from the clients'. Each second
 * keeps the count, total and maximum of what ended in it, so that seconds can be averaged and logs
 * added without loss. Times include the tracer's own cost (log_head.bias_ns), which is the same for
 * all servers that are compared.
 *
 * Calls. dread and dwrite count every call that reads (read pread64 readv preadv preadv2) or
 * writes, did not fail, and is on a regular file below the server's storage folder. The file
 * system's own bookkeeping counts, too: a black box cannot tell it apart, and on a GlusterFS 10.3
 * brick it is one short write and read in 30 s. sendfile and its kin, io_submit and io_uring are
 * not seen.
 *
 * Messages. nsread and ncread measure requests and responses. Where one begins and ends follows
 * from how the process reads, not from the bytes:
 *   - A message begins with the first read that brings data after the end of the previous message.
 *     It lasts from the start of that read to the end of its last read.
 *   - A read that fails with EAGAIN wanted more: the message goes on with the next data on this
 *     descriptor, whichever thread reads it, however much later.
 *   - The message is whole when, without EAGAIN since its last data, the reader waits for
 *     descriptors (epoll_wait, poll, select), writes to the socket, or another thread reads next.
 *   - A message whose end is not in the log (end of the log, close, end of stream) does not count.
 * This suits readers that ask for a length known from a header and for no more, as GlusterFS does.
 * Of 4,733 GlusterFS messages (128 KiB writes and reads, small files, 4 writers at once, 100
 * Mbit/s, with and without 5 % loss) the rule delimited all as their record marks do. Messages are
 * measured because single calls hide the fault: a 128 KiB request took 75 reads and 9.2 ms, and
 * 34 ms with 5 % packet loss, while a read call took tens of microseconds in both cases.
 *
 * Sums. A log of RECORD_SUM gives the same metrics from sums that the tracer made: dread and dwrite
 * from reads and writes on selected files (the tracer was given the storage folder as its filter;
 * without a filter every file counts), nsread and ncread from messages. Calls that failed are left
 * out. Each sum covers one second of the node's clock and counts in the second that it overlaps
 * most. In a log that has sums the calls do not count.
 *
 * Readings. A log of RECORD_READING (reading.h) gives one metric for each reading:
 *   server's log   under the reading's name: the node's devices and interfaces, and the sockets
 *                  that the server accepted. count: devices, interfaces or clients; sum: over them;
 *                  max: the largest.
 *   client's log   under "client_" and the name: the client's connections to the server's service
 *                  address. count: clients; max: the largest client.
 * So a server that is bad for all clients has a max far below its sum; one bad client has a max
 * near the sum. Several connections between the same two nodes count as one: a COUNT is their sum,
 * a LEVEL their mean. Readings count in the second that they overlap most; a second without a
 * reading has no sample, which is not a zero. Values are rounded to 1e-9 of their unit.
 */
#ifndef CULPRIT_DIAG_METRICS_H
#define CULPRIT_DIAG_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "diag/record/reading.h"
#include "harness/base/err.h"

struct stream;

enum metric {
	METRIC_DREAD,
	METRIC_DWRITE,
	METRIC_NSREAD,
	METRIC_NCREAD,
#define METRIC_ENUM(e, name, unit, kind, definition) METRIC_##e,
	READINGS(METRIC_ENUM) /* METRIC_NIC_RECEIVED, ... : in the order of enum reading */
#undef METRIC_ENUM
#define METRIC_ENUM(e, name, unit, kind, definition) METRIC_CLIENT_##e,
	READINGS_TCP(METRIC_ENUM) /* METRIC_CLIENT_TCP_SENT, ... */
#undef METRIC_ENUM
	METRIC_COUNT,
	METRIC_SERVICE_TIMES = METRIC_NCREAD + 1, /* the metrics below this are service times */
};

const char *metric_name(enum metric m);       /* "dread", "disk_queue_s", "client_tcp_rtt_s" */
const char *metric_unit(enum metric m);       /* "s" */
const char *metric_definition(enum metric m); /* one sentence */
int metric_from_name(const char *name, enum metric *m); /* 0, or -ENOENT */

struct sample {
	enum metric metric;
	uint32_t server; /* index into stream_spec.servers */
	int32_t second;  /* since metrics_new's start_ns: the one in which the event ended */
	uint64_t count;
	double sum_s, max_s; /* service time in seconds; of a reading, its value in its own unit */
	uint64_t bytes;      /* of a reading 0 */
};

struct metrics;

/* Second 0 begins at 'start_ns' (CLOCK_REALTIME of the orchestrator); what ends outside 0 ..
 * seconds-1 is left out. -EINVAL without a server or a second. */
int metrics_new(
	size_t n_servers, int64_t start_ns, int32_t seconds, struct metrics **out, struct err *e);

/* Makes 'm' a consumer of 's', and so adds that log to what it has: of a server or a client daemon,
 * or of their samplers. One stream at a time. -EINVAL if the log's architecture is not known. If
 * the stream then fails, 'm' is good for freeing only. Memory grows with seconds, servers, metrics
 * that occur and open connections, not with the log. */
int metrics_attach(struct metrics *m, struct stream *s, struct err *e);

/* The samples with count > 0, ordered by metric, server, second; owned by 'm', valid until the next
 * call on it. Returns how many there are. */
size_t metrics_samples(struct metrics *m, const struct sample **out);
void metrics_free(struct metrics *m);

#endif
