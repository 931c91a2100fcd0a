/*
 * Metrics: from a trace log to one number a second (001, sections 4 and 6).
 *
 *   dread   service time of reads on a server's file objects
 *   dwrite  service time of writes on a server's file objects
 *   nsread  time that a server takes to read one whole request from a client
 *   ncread  time that a client daemon takes to read one whole response from a server
 *
 * dread, dwrite, nsread belong to the server whose log it is; ncread to the server
 * at the other end of the socket. All are kept as sums (count, total, maximum), so that
 * seconds can be averaged and logs added without loss.
 *
 * dread, dwrite: every call that reads (read pread64 readv preadv preadv2) or writes and
 * did not fail, on a regular file below the server's storage. No file below it is left
 * out, the file system's own bookkeeping included: which files are bookkeeping is not
 * for a black box to know, and on a GlusterFS 10.3 brick it is one short write and read of
 * .glusterfs/health_check in 30 s. Not seen: sendfile and its kin, io_submit, io_uring.
 *
 * nsread, ncread: what one message is, is taken from how it is read, not from its bytes.
 *   - A message begins with the first read that brings data after the one before has
 *     ended, and lasts from the start of that read to the end of its last read.
 *   - A read that fails with EAGAIN: the reader wanted more, so the message goes on with the
 *     next data on this descriptor, whichever thread reads it and however much later.
 *   - A reader that, without EAGAIN since its last data, waits for descriptors
 *     (epoll_wait, poll, select), or itself writes to this socket, or leaves the next read to
 *     another thread, had what it wanted: the message is whole.
 *   - A message whose end was not seen (end of log, socket closed, end of stream) is left out.
 * So it is for readers that ask for a length known from a header and no more. GlusterFS does:
 * 4 bytes of record mark, up to 1024, then exactly the rest, EAGAIN or not; one message a
 * wake-up; any of its poller threads goes on with a partial message. Of 4,733 messages (128 KiB
 * writes and reads, small files, 4 writers at once, 100 Mbit/s, with and without 5 % loss) the rule
 * delimited 4,733 as the lengths in their record marks do (strace, both sides). A 128 KiB
 * request of a single writer came in some 75 reads and took 9.2 ms on the average, 34 ms with
 * 5 % of the server's packets dropped, while one read call took tens of microseconds in either
 * case: hence messages, not calls.
 *
 * A log of sums (RECORD_SUM) gives the same metrics from what the kernel has added up already:
 * dread and dwrite from reads and writes on selected files, the tracer having been told the storage
 * as its path (without any, every file counts); nsread and ncread from messages, which the tracer
 * delimits by the rule above. What of them failed is left out. A sum covers one second of its
 * node's clock and goes whole to the second here that it overlaps most. A log that has sums is
 * measured by them alone: calls in it are not counted a second time.
 *
 * A log of readings (RECORD_READING, reading.h) gives one metric a reading. A server's own log
 * gives those under the reading's name: what it read of itself, and of its ends of its clients'
 * connections (the sockets that it accepted): 'count' is the number of devices, interfaces or
 * clients, 'sum' is over them, 'max' the largest of them. A client's log gives those of its
 * connections to a server's service (its address and port; others are ignored) to that server,
 * under "client_" and the reading's name: count is the number of clients, max the largest client's.
 * So a server that is bad to all has a max well below its sum, a single bad client has a max near
 * the sum. Of several connections between the same two, a COUNT is their sum, a LEVEL their mean.
 * As with sums, a second of the node's clock goes whole to the second here that it overlaps most. A
 * second that was not read has no sample, which is not a zero. Values are rounded to 1e-9 of their
 * unit.
 *
 * Times are what the tracer saw, its own cost included (log_head.bias_ns is not subtracted):
 * it is the same for all that are compared.
 */
#ifndef CULPRIT_DIAG_METRICS_H
#define CULPRIT_DIAG_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "diag/record/reading.h"
#include "harness/base/err.h"

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
	METRIC_SERVICE_TIMES = METRIC_NCREAD +
		1, /* those below are service times: dread, dwrite, nsread, ncread */
};

const char *metric_name(enum metric m);       /* "dread", "disk_queue_s", "client_tcp_rtt_s" */
const char *metric_unit(enum metric m);       /* "s" */
const char *metric_definition(enum metric m); /* one sentence */
int metric_from_name(const char *name, enum metric *m); /* 0, or -ENOENT */

struct sample {
	enum metric metric;
	uint32_t server; /* index into metrics_spec.servers */
	int32_t second;  /* since metrics_spec.start_ns; the second in which the event ended */
	uint64_t count;
	double sum_s, max_s; /* service time in seconds; of a reading, its value in its own unit */
	uint64_t bytes;      /* 0 of a reading */
};

struct metrics_server {
	const char *name;
	struct sockaddr_storage address; /* of its service: address and port (port 0: any) */
	const char *storage;             /* path prefix of its file objects, a folder */
};

struct metrics_spec {
	const struct metrics_server *servers; /* copied */
	size_t n_servers;
	int64_t start_ns; /* second 0 begins here, CLOCK_REALTIME of the orchestrator */
	int32_t seconds;  /* events outside 0 .. seconds-1 are left out */
	int32_t self;     /* index of the server whose log this is, or -1 for a client daemon's */
	int64_t clock_offset_ns; /* this node's clock minus the orchestrator's; subtracted */
};

struct metrics;

/* -EINVAL for a spec that makes no sense. */
int metrics_new(const struct metrics_spec *spec, struct metrics **out, struct err *e);

/* Whose log the next one is; so that the logs of all nodes can be added to one 'struct metrics'. */
int metrics_node(struct metrics *m, int32_t self, int64_t clock_offset_ns, struct err *e);

/* Reads a whole log and adds it. Memory grows with seconds, servers, metrics that occur and open
 * descriptors, not with the log. '*lost' (may be NULL) gets the log's count of lost records.
 * -EBADMSG: damaged or cut short; 'm' is good for freeing only. */
int metrics_add_log(struct metrics *m, const char *path, uint64_t *lost, struct err *e);

/* The samples with count > 0, ordered by metric, server, second; owned by 'm', valid until the next
 * call on it. Returns their number. */
size_t metrics_samples(struct metrics *m, const struct sample **out);
void metrics_free(struct metrics *m);

#endif
