/*
 * The records of one log that someone asks for. What can be decided from a record alone is decided
 * here, before the stream (diag/record/stream.h) sees it; with an index (zones.h), before it is
 * read. The order of the records, and what the stream says of each, are the same with and without
 * an index.
 *
 *     struct scan_spec spec = {.state = true};
 *     scan_open(path, &stream_spec, &scan, &e);
 *     scan_filter_all(&spec.filter, 1u << RECORD_CALL);
 *     spec.filter.failed = true;
 *     scan_begin(scan, &spec, &e);
 *     while ((rc = scan_next(scan, &item, &e)) == 1)
 *             show(item);
 *     scan_close(scan);
 */
#ifndef CULPRIT_DIAG_QUERY_SCAN_H
#define CULPRIT_DIAG_QUERY_SCAN_H

#include "diag/query/zones.h"
#include "diag/record/stream.h"

enum { SCAN_IDS = 16 };

/* A set of processes or threads; 'n' 0: all of them. */
struct scan_ids {
	uint32_t id[SCAN_IDS];
	size_t n;
};

/* All that is asked for must hold of a record; scan_filter_all asks for nothing. */
struct scan_filter {
	unsigned types;         /* 1 << enum record_type, ORed */
	unsigned always;        /* so; these pass whatever else is asked */
	int64_t from_ns, to_ns; /* of start_ns, both included */
	struct scan_ids pids, tids;
	uint32_t either; /* process or thread; 0: all */
	/* Of calls; records of other types have none and pass. */
	bool some_calls, failed; /* only those in 'calls' (zone_call); only those that failed */
	uint64_t calls[ZONE_CALLS / 64];
	int64_t least_service_ns, most_service_ns, least_result, most_result;
};
void scan_filter_all(struct scan_filter *f, unsigned types);

/* Can an index spare reading? Else it is not worth making. */
bool scan_filter_selects(const struct scan_filter *f);

struct scan_spec {
	struct scan_filter filter;
	bool details; /* arguments, offsets, heads and paths of calls are asked for */
	bool moved;   /* of calls only what call_moved needs; 'details' has it, too */
	bool state;   /* descriptors and names are asked for: item_fd, stream_name ... */
	bool no_index;
	uint64_t index_least; /* bytes of a log that gets an index; 0: ZONES_LEAST */
	struct zones_stop stop;
};

struct scan;

/* Opens a log, "-" for standard input. Errors as stream_new. */
int scan_open(const char *path, const struct stream_spec *stream, struct scan **out, struct err *e);
void scan_close(struct scan *s); /* NULL is fine */

/* The stream of the log: its head, what it says of the record at hand. It has no other
 * consumers. */
struct stream *scan_stream(const struct scan *s);

/* Says what is asked for; once, before scan_next. -EINTR: 'stop' said so while an index was
 * made. */
int scan_begin(struct scan *s, const struct scan_spec *spec, struct err *e);

/* 1 and the next record that is asked for; else as log_next, or -EINTR. */
int scan_next(struct scan *s, struct stream_item **item, struct err *e);

/* Blocks that were read, and those that were passed over: what the index spared. */
struct scan_counts {
	uint64_t read, passed;
};
struct scan_counts scan_counts(const struct scan *s);

#endif
