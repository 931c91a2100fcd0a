/* Shared by the files of the event table: events.c, event_links.c, event_data.c. */
#ifndef CULPRIT_DIAG_DERIVE_EVENTS_IMPL_H
#define CULPRIT_DIAG_DERIVE_EVENTS_IMPL_H

#include "diag/derive/events.h"
#include "diag/record/stream.h"

struct data_calls; /* a server's failed calls that change data */
struct links;      /* a client daemon's traffic with each server */

/* The newest event of one kind, call, error, signal, place and server in the log. */
struct burst {
	struct event key;
	size_t event; /* index; SIZE_MAX: outside the run, so left out */
};

struct events {
	size_t n_servers;
	int64_t start_ns;
	int32_t seconds;

	struct event *list;
	size_t n;

	/* Of the current log. */
	const struct stream *stream;
	int32_t server, client; /* the log's owner; the other is -1 */
	int64_t offset_ns;
	struct burst *bursts;
	size_t n_bursts;
	struct links *links;       /* only for a daemon's log */
	struct data_calls *data;   /* NULL until such a call fails */
	size_t first_slow, n_slow; /* its app-slow events are adjacent */
	bool calls;                /* it has calls */
	double end_s, last_s;      /* end of the current record; the latest so far */
};

/* Appends an event unless it is outside the run. */
void events_put(struct events *s, const struct event *ev);

/* Adds a failure, signal or success to its burst, or begins one. Returns the index of the event;
 * SIZE_MAX: outside the run. */
size_t burst_add(struct events *s, const struct event *ev);

void links_new(struct events *s);
void link_call(struct events *s, size_t server, const struct stream_item *item);
void link_closed(struct events *s, const struct object *o, const struct record_fd *f);
void links_finish(struct events *s); /* the log has ended */

/* How a call changes the data of the file at its first descriptor: a range; the length; it flushes
 * written data to disk; it is the last call that can report a write error. */
enum data_way { DATA_RANGE, DATA_LENGTH, DATA_SYNC, DATA_CLOSE, DATA_NONE };

enum data_way data_way(const struct call_info *info);

/* Bytes that a write asked to write; 0: unknown, or not a write. */
uint64_t data_asked(const struct record_call *c, const struct call_info *info);

/* A call of a server on its storage failed and is counted in 'event'; or it succeeded, and may
 * repeat a failed one. */
void data_failed(struct events *s, struct stream_item *item, size_t event);
void data_succeeded(struct events *s, struct stream_item *item);
void data_free(struct data_calls *d);

/* "EMFILE" for -EMFILE; "EUNKNOWN" for a number without a name. */
const char *error_name(int64_t result);

#endif
