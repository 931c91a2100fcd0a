/*
 * Semantic reduction: from trace logs to a small table of events, what 001, section 7, looks at.
 *
 *   server-error  failed calls of a server: call, errno, what the call was about
 *   server-signal signals that reached a server
 *   server-end    a server's process ended: by which signal, or with which status
 *   app-error     failed calls of an application on the mount (or on a path, see below)
 *   app-slow      calls of an application on the mount that took a second or longer, or never
 *   returned
 *   link-quiet    nothing moved between a client daemon and a server: what moved last, and how long
 *   ago
 *   link-end      the connection to a server ended, or could not be made
 *
 * Bursts. Failures with the same call, errno and place, no further than 1 s apart, are one event
 * with a count and the times of the first and last. So a moment inside a burst is at most 0.5 s
 * from one of its failures, and comparing windows of 1 s and more with bursts loses nothing; the
 * table grows with seconds and with kinds of failures, not with calls.
 *
 * Links. 001 asks for the last completed call of a client daemon to each server at the moment when
 * an application's call failed or took too long. That moment depends on a detector's time limit, so
 * what is kept answers for any moment: the stretches in which no data moved on a link, with what
 * moved before them: those that last 0.5 s or longer while an answer is owed, 5 s or longer while
 * none is, and all of them while the connection is down. At a moment that no stretch covers, the
 * link is busy, or at rest for a while. Data moves when a read or write call on the socket returns
 * more than 0; EAGAIN is not an end of anything.
 *   state "answered": no request is without an answer
 *   state "waiting":  so many requests are; 001 takes the last call for this (a write that no read
 *   follows),
 *                     but a client that sends several requests ahead (GlusterFS does) reads the
 *                     answer to one
 *                     while others have none: in the first hang that was tried by hand, the last
 *                     call of both
 *                     clients to the stopped server was a read
 *   state "ended":    end of stream, an error, a close, or a connection that could not be made;
 *                     it lasts until data moves again, and is kept however short
 * A request is a write. The rest of a request that did not fit is not counted again: a write that
 * is the very next call of the thread that wrote before and goes on where that one stopped (by its
 * address and length), or that follows EAGAIN in the middle of a request. An answer is a message as
 * metrics.h delimits it. A balance that stays below 0 is set to 0.
 *
 * Places. What a call was about: "storage" (below the server's folder), "mount" (below the
 * client's), "socket", "memory", "process", "path" and "other". What paths as arguments say is not
 * looked at (older logs do not hold them): a failed open has no descriptor, and is "path" for
 * servers and applications alike.
 *
 * A log of sums (RECORD_SUM, no calls) gives what it holds: signals and ends of processes.
 * Failures, slow calls and links need calls; there are none of them then, and that is no error.
 *
 * Calls that were only interrupted (EINTR and the kernel's restart codes) have not failed.
 */
#ifndef CULPRIT_DIAG_SEMANTIC_H
#define CULPRIT_DIAG_SEMANTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

enum event_kind {
	EVENT_SERVER_ERROR,
	EVENT_SERVER_SIGNAL,
	EVENT_SERVER_END,
	EVENT_APP_ERROR,
	EVENT_APP_SLOW,
	EVENT_LINK_QUIET,
	EVENT_LINK_END,
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
	double first_s,
		last_s; /* ends of the first and the last call; app-slow: start and end of the call;
	                         * link-quiet: of the last call, and of the next (or the end of the log) */
	uint64_t count;
	const char *call;  /* "openat"; NULL where there is none */
	const char *error; /* "EMFILE", "EOF"; NULL where nothing failed */
	enum event_place place;
	enum link_state state; /* link-quiet */
	uint32_t waiting;      /* link-quiet: requests without an answer */
	double longest_s;      /* service time of the longest call */
	bool open;          /* app-slow: it never returned; link-quiet: until the end of the log */
	const char *signal; /* "KILL"; server-end: NULL if it exited by itself */
	int32_t status;     /* server-end: exit code */
};

const char *event_kind_name(enum event_kind k);
const char *event_place_name(enum event_place p); /* NULL for none */
const char *link_state_name(enum link_state s);   /* NULL for none */

struct events;

/* Events that lie outside 0 .. seconds are left out. 'servers' is copied; -EINVAL if there is
 * none. */
int events_new(const struct metrics_server *servers, size_t n_servers, int64_t start_ns,
	int32_t seconds, struct events **out, struct err *e);
void events_free(struct events *s);

/* Each reads one whole log. 'clock_offset_ns' is the node's clock minus the orchestrator's. Memory
 * grows with what the log says about failures, and with open descriptors. -EBADMSG: the log is
 * damaged or cut short; 's' is good for freeing only. */
int events_add_server(
	struct events *s, int32_t server, int64_t clock_offset_ns, const char *path, struct err *e);
int events_add_app(struct events *s, int32_t client, int64_t clock_offset_ns, const char *mount,
	const char *path, struct err *e);
int events_add_daemon(
	struct events *s, int32_t client, int64_t clock_offset_ns, const char *path, struct err *e);

/* All events so far, in the order of their first times; owned by 's', valid until the next call on
 * it. */
size_t events_list(struct events *s, const struct event **out);

#endif
