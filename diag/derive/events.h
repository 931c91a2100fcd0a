/*
 * Events: from trace logs to a small table of failures, slow calls and silent connections, for
 * semantic diagnosis (Kasick et al. 2009, section 7).
 *
 *   server-error   failed calls of a server: call, errno, what the call was about
 *   server-signal  signals that reached a server
 *   server-end     a server's process ended: by which signal, or with which status
 *   app-error      failed calls of an application on the mount, or on a path (see Places)
 *   app-slow       calls of an application, likewise, that took 1 s or longer or never returned
 *   link-quiet     a stretch in which no data moved between a client daemon and a server
 *   link-end       the connection to a server ended, or could not be made
 *   app-done       calls of an application that succeeded, on a file on the mount: those that
 *                  change data (write, ftruncate, fallocate, fsync ...) and close
 *
 * Bursts. Failures, and successes, with the same call, errno and place that are at most 1 s apart
 * are one event, with a count and the times of the first and the last. A moment inside a burst is
 * then at most 0.5 s from one of its calls, so comparisons over windows of 1 s and more lose
 * nothing. The table grows with seconds and kinds of events, not with calls. Calls that were
 * interrupted (EINTR and the kernel's restart codes) have not failed.
 *
 * Data. Of a server's failed calls that change data on its storage, a burst also has the bytes that
 * were to be written and how many calls the server repeated with success within 10 s (twice the
 * kernel's interval of writing back): the same range of the same file, also in pieces, or the same
 * new length. The bytes of those are subtracted. What fsync says is said once: no later success
 * brings the data back, so it counts as never repeated. The length of a vectored write is not in
 * the log: its bytes are 0, and a success from the same position on is its repetition.
 *
 * Links. The rule of the paper needs the last call of a client daemon to each server at the moment
 * when an application's call failed or took too long. That moment depends on the detector's time
 * limit. So the table holds what answers the question for any moment: the stretches in which no
 * data moved, if they last 0.5 s while a request has no answer, 5 s while none is open, or at all
 * while the connection is down. At a moment outside these stretches the link is busy, or will be
 * soon. Data moves when a read or write call on the socket returns more than 0.
 *   state "answered"  no request is open
 *   state "waiting"   'waiting' requests or more are open
 *   state "ended"     end of stream, an error, a close, or a connection that could not be made. It
 *                     lasts until data moves again.
 * Requests are open in a stretch if
 *   - the last transfer before it is a write (the paper's rule) that began after the last read had
 *     ended: nothing can have answered it; or
 *   - the last one is a read, and so is the first one after it: the server owed something; or
 *   - the last one is a read, the stretch lasts until the connection or the log ends, and more
 *     requests than answers were counted: a client that sends several requests ahead, as GlusterFS
 *     does, may have read one answer last and still wait for the others.
 * If the last transfer is a read and the next one a write, the link was at rest: whoever waits does
 * not ask anew, and one who does has the next stretch begin with a write. The count starts at 0
 * again. Where it was above 0 in most stretches of rest, this daemon's counts tell nothing: Ceph's
 * messenger sends several requests by one write and takes several answers by one read. Then the
 * third case is left out. Pings and keep-alives that nobody answers leave a waiting link waiting. A
 * protocol whose clients acknowledge every answer by a write of its own would seem to wait at rest;
 * GlusterFS's and OrangeFS's do not, nor do Ceph's to OSDs, whose connections are 'lossy'.
 * A request is a write. The rest of a request that did not fit into the socket does not count
 * again: a write that is the next call of the same thread and continues at the address where the
 * last one stopped, or that follows EAGAIN in the middle of a request. An answer is a message as
 * metrics.h delimits it. More answers than requests count as none open.
 *
 * Places. What a call was about: "storage" (below the server's storage folder), "mount" (below the
 * client's mount), "socket", "memory", "process", "path" and "other". A call that has no known
 * descriptor and takes a path (openat, rename) is "path"; the path itself is not examined.
 *
 * A log of sums gives signals and ends of processes only: the rest needs calls.
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
	 * of the call before the stretch, and of the one after it (or of the log). */
	double first_s, last_s;
	uint64_t count;
	uint64_t redone;   /* server-error: of these calls, so many were repeated with success */
	uint64_t bytes;    /* see Data; app-done: written */
	const char *call;  /* "openat"; NULL: the event is about no call */
	const char *error; /* "EMFILE", "EOF"; NULL: nothing failed */
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

/* Makes 's' a consumer of the stream, and so adds that log to the table: of a server, an
 * application or a client daemon, as its stream_spec says. One stream at a time. -EINVAL if the
 * log's architecture is not known. If the stream then fails, 's' is good for freeing only. Memory
 * grows with the failures in the log. */
int events_attach(struct events *s, struct stream *stream, struct err *e);

/* All events so far, ordered by first_s; owned by 's', valid until the next call on it. Returns how
 * many there are. */
size_t events_list(struct events *s, const struct event **out);

#endif
