/*
 * culprit log: the user's selection, and the three forms of output (text, JSON, totals).
 */
#ifndef CULPRIT_DIAG_LOG_LOG_VIEW_H
#define CULPRIT_DIAG_LOG_LOG_VIEW_H

#include <stdio.h>

#include "diag/record/describe.h"

enum { VIEW_MAX_CALLS = 1024, VIEW_MAX_PATHS = 16, VIEW_ADDRESS = ADDRESS_TEXT, VIEW_TAG = 96 };

/* Keys of a row of --summary; may be combined. */
enum view_by { BY_CALL = 1, BY_PATH = 2, BY_PROCESS = 4, BY_ERROR = 8, BY_FILE = 16 };

struct totals;

struct log_view {
	const struct stream *stream;
	struct totals *totals;

	bool json, summary, errors, tags;
	bool some_calls, want_call[VIEW_MAX_CALLS];
	unsigned by; /* enum view_by, ORed; 0: no grouping */
	const char *calls;
	uint32_t pid;     /* process or thread; 0: all */
	const char *name; /* of the process or thread; NULL: all */
	const char *paths[VIEW_MAX_PATHS];
	size_t n_paths;
};

/* Does the user's selection include this record? */
bool view_wants(const struct log_view *v, struct stream_item *item);

/* Formats an address; port 0 is left out. */
const char *format_peer(const struct sockaddr_storage *a, char out[VIEW_ADDRESS]);
/* relation of a reading to its peer: "from" */
const char *reading_relation(int family, bool accepted);
const char *format_peers(
	const struct record_sum *s, char out[2 * VIEW_ADDRESS]); /* "10.0.0.1:24007 -> 10.0.0.2" */
const char *format_tag(const struct file_tag *t, char out[VIEW_TAG]); /* "8:1|77|12:01:02.000345" */
void format_clock(int64_t ns, char *out, size_t size);                /* "12:01:02.000345", UTC */
const char *fd_class_words(unsigned class);                           /* "server socket" */

/* Estimates a quantile from a histogram with buckets of powers of two: linear inside a bucket, at
 * most 'max_ns'. 'q' in 0 .. 1; 0 for an empty histogram. */
double histogram_quantile_ns(const uint64_t histogram[SUM_BUCKETS], double q, uint64_t max_ns);
unsigned histogram_bucket(uint64_t ns);

void text_head(const struct log_head *h);
void text_record(const struct log_view *v, struct stream_item *item);

void json_head(const struct log_head *h);
void json_record(struct stream_item *item);

/* --summary: totals of calls and sums. */
void totals_add(struct log_view *v, struct stream_item *item);
void totals_print(struct log_view *v);
void totals_free(struct totals *t);

/* --summary of readings: '*rows' is a tree of tsearch, NULL at first; readings_print frees its
 * rows. */
void readings_add(void **rows, const struct record_reading *r);
void readings_print(const void *rows);

/* Finds the row of such a tree that equals 'want', of 'size' bytes; adds a copy if there is
 * none. */
void *row_find(
	void **rows, const void *want, size_t size, int (*compare)(const void *, const void *));

#endif
