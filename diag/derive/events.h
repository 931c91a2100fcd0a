/*
 * Events: a small table of failures, slow calls and silent connections, derived from trace logs for
 * semantic diagnosis (Kasick et al. 2009, section 7).
 *
 *   server-error   failed calls of a server: call, errno, place (see Places)
 *   server-signal  signals that reached a server
 *   server-end     a server's process ended: by which signal, or with which status
 *   app-error      failed calls of an application on the mount or on a path (see Places)
 *   app-slow       such calls of an application that took 1 s or longer or never returned
 *   link-quiet     an interval in which no data moved between a client daemon and a server
 *   link-end       the connection to a server ended, or could not be made
 *   app-done       successful calls of an application on a file on the mount: those that change
 *                  data (write, ftruncate, fallocate, fsync ...) and close
 *
 * Bursts. Failures, and successes, with the same call, errno and place that are at most 1 s apart
 * are one event, with a count and the times of the first and the last. A moment inside a burst is
 * at most 0.5 s from one of its calls, so comparisons over windows of 1 s and more lose nothing.
 * The table grows with seconds and kinds of events, not with calls. Interrupted calls (EINTR and
 * the kernel's restart codes) have not failed.
 *
 * Data. For a server's failed calls that change data on its storage, a burst also has the bytes
 * that they asked to write, and how many of the calls the server repeated with success within 10 s
 * (twice the kernel's interval of writing back). A repetition covers the same range of the same
 * file, also in pieces, or sets the same length. The bytes of repeated calls are subtracted. A
 * failed fsync reports its error only once, and no later success brings the data back, so it counts
 * as never repeated. The log lacks the length of a vectored write: its bytes are 0, and a success
 * from the same position on repeats it.
 *
 * Links. The paper's rule needs the last call of a client daemon to each server at the moment when
 * an application's call failed or took too long. That moment depends on the detector's time limit,
 * so the table must answer for any moment. It lists the intervals in which no data moved: those of
 * 0.5 s or more while a request has no answer, of 5 s or more while no request is open, and all
 * while the connection is down. Outside these intervals the link is busy, or will be soon. Data
 * moves when a read or write call on the socket returns more than 0.
 *   state "answered"  no request is open
 *   state "waiting"   at least 'waiting' requests are open
 *   state "ended"     end of stream, an error, a close, or a connection that could not be made. It
 *                     lasts until data moves again.
 * Requests are open in an interval if
 *   - the last transfer before it is a write (the paper's rule) that began after the last read had
 *     ended, so no read can have brought its answer; or
 *   - the last transfer is a read, and so is the first one after the interval: the server owed
 *     something; or
 *   - the last transfer is a read, the interval lasts until the connection or the log ends, and
 *     more requests than answers were counted: a client that sends several requests ahead, as
 *     GlusterFS does, may have read one answer last and still wait for the others.
 * If the last transfer is a read and the next one a write, the link was idle: a waiting client
 * sends nothing new, and if it does, the next interval begins with a write. The count then restarts
 * at 0. If it was above 0 at most idle intervals, this daemon's counts mean nothing, and the third
 * case is left out: Ceph's messenger sends several requests by one write and takes several answers
 * by one read. Unanswered pings and keep-alives leave a waiting link waiting. A protocol whose
 * clients acknowledge every answer by a separate write would seem to wait while idle; GlusterFS's
 * and OrangeFS's do not, nor do Ceph's to OSDs, whose connections are 'lossy'. A request is a
 * write. The rest of a request that did not fit into the socket does not count again: a write that
 * is the next call of the same thread and continues at the address where the last one stopped, or
 * that follows EAGAIN in the middle of a request. An answer is a message as delimited in metrics.h.
 * If there are more answers than requests, no request is open.
 *
 * Places. What a call was about: "storage" (below the server's storage folder), "mount" (below the
 * client's mount), "socket", "memory", "process", "path" and "other". A call that has no known
 * descriptor and takes a path (openat, rename) is "path"; the path itself is not examined.
 *
 * A log of sums yields only signals and ends of processes: all other events need calls.
 */
#ifndef CULPRIT_DIAG_DERIVE_EVENTS_H
#define CULPRIT_DIAG_DERIVE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

struct stream;

enum event_kind {
	EVENT_SERVER_ERROR,
	EVENT_SERVER_SIGNAL,
	EVENT_SERVER_END,
	EVENT_APP_ERROR,
	EVENT_APP_SLOW,
	EVENT_LINK_QUIET,
	EVENT_LINK_END,
	EVENT_APP_DONE,
	EVENT_KINDS,
};

enum event_place {
	PLACE_NONE,
	PLACE_STORAGE,
	PLACE_MOUNT,
	PLACE_SOCKET,
	PLACE_MEMORY,
	PLACE_PROCESS,
	PLACE_PATH,
	PLACE_OTHER
};
enum link_state { LINK_NONE, LINK_ANSWERED, LINK_WAITING, LINK_ENDED };

/* Times in seconds since events_new's start_ns, on the orchestrator's clock. Texts are
 * constants. */
struct event {
	enum event_kind kind;
	int32_t server, client; /* index, or -1 */
	/* Ends of the first and the last call; app-slow: start and end of the call; link-quiet: end
	 * of the call before the interval, and of the call after it (or of the log). */
	double first_s, last_s;
	uint64_t count;
	uint64_t redone;   /* server-error: calls that were repeated with success */
	uint64_t bytes;    /* see Data; app-done: bytes written */
	const char *call;  /* "openat"; NULL: not about a call */
	const char *error; /* "EMFILE", "EOF"; NULL: no error */
	enum event_place place;
	enum link_state state; /* link-quiet */
	uint32_t waiting;      /* link-quiet: requests without an answer */
	double longest_s;      /* service time of the longest call */
	bool open;             /* app-slow: it never returned; link-quiet: until the log's end */
	const char *signal;    /* "KILL"; server-end: NULL if it exited by itself */
	int32_t status;        /* server-end: exit code */
};

const char *event_kind_name(enum event_kind k);
const char *event_place_name(enum event_place p); /* NULL for none */
const char *link_state_name(enum link_state s);   /* NULL for none */

struct events;

/* Second 0 begins at 'start_ns' (CLOCK_REALTIME of the orchestrator). Events outside 0 .. seconds
 * are left out. -EINVAL without a server or a second. */
int events_new(
	size_t n_servers, int64_t start_ns, int32_t seconds, struct events **out, struct err *e);
void events_free(struct events *s);

/* Makes 's' a consumer of the stream, which adds that log to the table: of a server, an application
 * or a client daemon, according to its stream_spec. One stream at a time. -EINVAL for an unknown
 * architecture. After an error of the stream, 's' may only be freed. Memory grows with the failures
 * in the log. */
int events_attach(struct events *s, struct stream *stream, struct err *e);

/* Returns the number of events so far, and lists them by first_s; owned by 's', valid until its
 * next call. */
size_t events_list(struct events *s, const struct event **out);

#endif
