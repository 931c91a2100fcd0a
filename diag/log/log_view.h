/*
 * culprit log: what the user asked for, and the three forms of output (text, JSON, totals).
 */
#ifndef CULPRIT_DIAG_LOG_LOG_VIEW_H
#define CULPRIT_DIAG_LOG_LOG_VIEW_H

#include <stdio.h>

#include "diag/record/describe.h"

enum { VIEW_MAX_CALLS = 1024, VIEW_MAX_PATHS = 16, VIEW_ADDRESS = ADDRESS_TEXT, VIEW_TAG = 96 };

/* Keys of a row of --summary; several are joined. */
enum view_by { BY_CALL = 1, BY_PATH = 2, BY_PROCESS = 4, BY_ERROR = 8, BY_FILE = 16 };

struct totals;

struct log_view {
	const struct stream *stream;
	struct totals *totals;

	bool json, summary, errors, tags;
	bool some_calls, want_call[VIEW_MAX_CALLS];
	unsigned by; /* enum view_by, ORed; 0: as the log is */
	const char *calls;
	uint32_t pid;     /* process or thread; 0: all */
	const char *name; /* of the process or thread; NULL: all */
	const char *paths[VIEW_MAX_PATHS];
	size_t n_paths;
};

/* Does the user ask for this record? */
bool view_wants(const struct log_view *v, struct stream_item *item);

/* An address; without port 0. */
const char *format_peer(const struct sockaddr_storage *a, char out[VIEW_ADDRESS]);
const char *reading_relation(int family, bool accepted); /* a reading's to its peer: "from" */
const char *format_peers(
	const struct record_sum *s, char out[2 * VIEW_ADDRESS]); /* "10.0.0.1:24007 -> 10.0.0.2" */
const char *format_tag(const struct file_tag *t, char out[VIEW_TAG]); /* "8:1|77|12:01:02.000345" */
void format_clock(int64_t ns, char *out, size_t size);                /* "12:01:02.000345", UTC */
const char *fd_class_words(unsigned class);                           /* "server socket" */

/* An estimate from powers of two: linear inside a bucket, and never above 'max_ns'. 'q' in 0 .. 1;
 * 0 if there is none. */
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

/* --summary of readings: '*rows' is a tree of tsearch, NULL at first; its rows are freed as they
 * are. */
void readings_add(void **rows, const struct record_reading *r);
void readings_print(const void *rows);

/* The row in such a tree that is equal to 'want', of 'size' bytes; else a copy of it, added. */
void *row_find(
	void **rows, const void *want, size_t size, int (*compare)(const void *, const void *));

#endif
