/* What the files of the reduction share; not for others. */
#ifndef CULPRIT_DIAG_SEMANTIC_IMPL_H
#define CULPRIT_DIAG_SEMANTIC_IMPL_H

#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "diag/derive/events.h"

struct burst; /* the newest event of one (call, error, place) of this log */
struct links; /* a client daemon's traffic with each server */

struct events {
	struct metrics_server *servers;
	size_t n_servers;
	int64_t start_ns;
	int32_t seconds;

	struct event *events;
	size_t n, room;

	/* Of the log that is being read. */
	int32_t server, client; /* whose it is; the other is -1 */
	int64_t offset_ns;
	const char *folder; /* storage or mount, without a slash at its end */
	const struct call_arch *arch;
	struct fdtable *fds;
	struct burst *bursts;
	size_t n_bursts;
	struct links *links;       /* NULL unless it is a daemon's log */
	size_t first_slow, n_slow; /* its app-slow events stand side by side */
	bool calls;                /* it has any */
	double last_s;             /* of the last record */
};

/* Seconds since the start, on the orchestrator's clock. */
double events_time(const struct events *s, int64_t ns);

/* Appends one; -ENOMEM. Events that lie outside are left out without a word. */
int events_put(struct events *s, const struct event *ev);

/* Adds one failure (or signal) to the burst it belongs to, or begins one. */
int burst_add(struct events *s, const struct event *ev);

/* Links. A call on a socket to 'server'; after it, every call of the log; a thread that went; a
 * descriptor of a socket to 'server' that was closed; the end of the log. 0 or -ENOMEM. */
int links_new(struct events *s);
void links_free(struct links *l);
int link_call(
	struct events *s, size_t server, const struct record *rec, const struct call_info *info);
int links_note(struct events *s, const struct record *rec, const struct call_info *info);
void links_forget(struct events *s, uint32_t tid);
int link_closed(struct events *s, size_t server, uint32_t pid, int32_t fd, double at_s);
int links_finish(struct events *s);

/* "EMFILE" for -EMFILE; "EUNKNOWN" for one that has no name. */
const char *error_name(int64_t result);

#endif
