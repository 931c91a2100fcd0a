/*
 * Rows of tables that are made of all logs of an attempt (diag/flow).
 *
 * 'requests': a row is a request between a client and a server. Times are moved to the
 * orchestrator's clock. 'failures': a row is a call of a server on a file that failed. Times are
 * those of the calls' records.
 */
#ifndef CULPRIT_DIAG_QUERY_REQUESTS_H
#define CULPRIT_DIAG_QUERY_REQUESTS_H

#include "diag/query/columns.h"

struct request_row {
	uint64_t number;
	int64_t time_ns;
	const char *client, *server, *procedure, *disk_bound, *fuse_bound, *fuse, *thread, *call,
		*path, *missing; /* NULL: none, or not known */
	int64_t program, procedure_number, id, connection;
	/* -1: not known (flow_request_parts) */
	int64_t total_ns, there_ns, waiting_ns, disk_ns, answering_ns, back_ns;
	int64_t fuse_ns, daemon_ns, call_ns; /* -1: none */
	int64_t call_bytes, answer_bytes;
	int64_t disk_calls, disk_bytes, disk_errors;
	int64_t pid, tid; /* of the client's thread that sent it; -1: not known */
	int64_t offset;   /* of the application's call; -1: none */
	bool doubtful;
};

/* Makes 'row', of which 'log' and 'head' are set, one of this request; 'item' and 'record' serve
 * it. */
void request_row_show(struct query_row *row, const struct request_row *r, struct stream_item *item,
	struct record *record);

struct failure_row {
	uint64_t number;
	int64_t time_ns, clock_ns; /* clock_ns: the node's clock minus the orchestrator's */
	const char *node, *call, *class, *error, *device, *by, *request, *client, *fuse,
		*fuse_error, *app_thread, *app_call, *app_path; /* NULL: none, or not known */
	int64_t pid, tid, inode;
	int64_t offset, app_offset; /* -1: none */
	int64_t app_pid, app_tid;   /* -1: no application's call is known */
	int64_t app_result, app_time_ns;
	bool again;
};

/* The same of a failure. */
void failure_row_show(struct query_row *row, const struct failure_row *f, struct stream_item *item,
	struct record *record);

#endif
