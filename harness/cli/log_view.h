/*
 * culprit log's inside: what is known while a log is read, what is wanted of it, and the three ways
 * to show it.
 */
#ifndef CULPRIT_CLI_LOG_VIEW_H
#define CULPRIT_CLI_LOG_VIEW_H

#include <stdio.h>

#include "diag/record/fdtable.h"
#include "diag/record/log.h"

enum { VIEW_MAX_CALLS = 1024, VIEW_MAX_PATHS = 16, VIEW_ADDRESS = 160 };

/* What a row of the summary stands for; several are joined. */
enum view_by { BY_CALL = 1, BY_PATH = 2, BY_PROCESS = 4, BY_ERROR = 8, BY_FILE = 16 };

struct totals;

struct view {
	const struct call_arch *arch;
	struct fdtable *fds;
	struct thread_name *names;
	size_t n_names, room_names;
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

/* Takes note of a record, before it is shown. 0 or -ENOMEM. */
int view_feed(struct view *v, const struct record *rec);
void view_clear(struct view *v);

bool view_wants(const struct view *v, const struct record *rec);

/* Name of a thread (else of its process), or "". */
const char *view_thread_name(const struct view *v, uint32_t pid, uint32_t tid);

/* Time, process and thread that a record belongs to; tid 0 where it is the process's. */
void record_where(const struct record *rec, int64_t *start_ns, uint32_t *pid, uint32_t *tid);

bool call_failed(const struct record_call *c);
const char *call_error_name(int64_t result); /* NULL if there is none */

/* The file that a call is about: its descriptor's path, or its first path argument, made absolute
 * where its folder is known. NULL: none. In 'out', or valid until the next record. */
const char *call_file(
	const struct view *v, const struct record_call *c, bool second, char *out, size_t size);

/* "10.0.0.1:24007", "[::1]:80", "/run/x.sock", "@abstract", or "" where there is none; returns
 * 'out'. */
const char *format_address(const struct sockaddr_storage *a, char out[VIEW_ADDRESS]);
const char *format_peer(
	const struct sockaddr_storage *a, char out[VIEW_ADDRESS]); /* so, without port 0 */
const char *format_peers(
	const struct record_sum *s, char out[2 * VIEW_ADDRESS]); /* "10.0.0.1:24007 -> 10.0.0.2" */
void format_clock(int64_t ns, char *out, size_t size);           /* "12:01:02.000345", UTC */
const char *fd_class_name(unsigned class);                       /* "server" */
const char *fd_class_words(unsigned class);                      /* "server socket" */

/* An estimate from powers of two: linear inside a bucket, and never above 'max_ns'. 'q' in 0 .. 1;
 * 0 if there is none. */
double histogram_quantile_ns(const uint64_t histogram[SUM_BUCKETS], double q, uint64_t max_ns);
unsigned histogram_bucket(uint64_t ns);

void text_head(const struct log_head *h);
void text_record(const struct view *v, const struct record *rec);

void json_head(const struct log_head *h);
void json_record(const struct view *v, const struct record *rec);

/* The summary: rows of what calls and sums came to. 0 or -ENOMEM. */
int totals_add(struct view *v, const struct record *rec);
void totals_print(struct view *v);
void totals_free(struct totals *t);

/* Its part for readings; '*all' is made by the first. 0 or -ENOMEM. */
struct readings;
int readings_add(struct readings **all, const struct record_reading *r);
void readings_print(const struct readings *t);
void readings_free(struct readings *t);

#endif
