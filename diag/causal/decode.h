/*
 * Logs of `culprit-agent trace --mode flow --causal` as what counts for causality: operations on
 * files below the root, and messages between threads. Messages are bytes of a channel, from one
 * place in it to another: of a TCP connection's direction by its sequence numbers, of a Unix
 * socket's and a pipe's by adding up; and units for what is no bytes: a thread was made, ended, was
 * woken. Of several logs, records come about in the order of their times, each log's in its own
 * order.
 *
 * The numbers of threads and processes are the same each time that logs are decoded; those of
 * files, handles and channels are if the same processes are left out.
 */
#ifndef CULPRIT_DIAG_CAUSAL_DECODE_H
#define CULPRIT_DIAG_CAUSAL_DECODE_H

#include "diag/app/app.h"
#include "diag/causal/causal.h"
#include "diag/record/stream.h"
#include "harness/base/map.h"

enum event_kind { EVENT_OP, EVENT_SEND, EVENT_RECEIVE };

struct causal_event {
	uint8_t kind;
	uint32_t thread;
	union {
		struct app_op op;
		struct {
			uint32_t channel;
			uint64_t from, to;
		};
	};
};

typedef int (*event_fn)(void *ctx, const struct causal_event *ev, struct err *e);

struct decode_process {
	uint32_t pid, parent, child; /* parent: index, its own if none; child: number among its */
	uint32_t children, depth;
	uint32_t *handles, *former; /* by descriptor; former: before its exec */
	uint32_t n_handles, n_former;
	char *cwd;
	char name[16];
	uint32_t memory; /* the process whose shared anonymous memory it inherited, and one; 0 */
	uint64_t ops;
	uint32_t log;
	bool launcher;
	uint32_t session; /* the launcher's child that it comes from, and one; 0: none */
	bool ended;
};

struct decode_thread {
	uint32_t process, tid;
	uint64_t cpu_ns; /* at the end of its last call */
	uint64_t compute_ns, away_ns;
	bool fruitless; /* its last call looked for messages and found none */
	uint64_t ops;
};

struct decode_channel {
	uint64_t sent, received; /* up to here */
	/* TCP: the first position, of 64 bits, and the newest one that was received, and sent; 0:
	 * none yet. */
	uint64_t first, newest[2];
	uint32_t from; /* TCP: the log whose node sends, by its address, and one; 0: not known */
};

struct decode_opening {
	uint32_t thread;
	int32_t fd;
	struct app_op op;
};

/* A mapping that others may see. */
struct decode_mapping {
	char *path; /* of System V: "segment", and its number */
	uint32_t process;
};

struct call_rule_of; /* private */

/* What is decoded. */
struct decode_input {
	const struct causal_log *logs; /* borrowed */
	size_t n_logs;
	/* By number of the process: of whom nothing but begin and end counts; or NULL. */
	const bool *dropped;
	uint32_t n_dropped;
	int64_t start_ns; /* of an earlier reading; 0: when the first log's first process began */
};

struct decode_log {
	const struct causal_log *of;
	struct stream *stream;
	struct stream_item *item; /* the next one; NULL: there is none */
	int64_t at_ns;            /* its place among the logs */
	uint32_t node;
	bool addressed;
	uint8_t address[16];
	const struct call_rule_of *rules[512];
};

struct decode {
	const struct decode_input *in;
	struct decode_log *logs, *log; /* log: of the record that is decoded */
	size_t n_logs;
	event_fn fn;
	void *ctx;
	struct decode_process **processes;
	struct decode_thread *threads;
	char **files;
	bool *directories;          /* of files: seen as one */
	struct app_handle *handles; /* rank: index of the process */
	struct decode_channel *channels;
	struct decode_opening *opening;
	struct decode_mapping *mappings;
	uint32_t n_processes, n_threads, n_files, n_handles, n_channels, n_opening, n_mappings;
	struct map pids, tids, names, keys, peers;
	int64_t start_ns, end_ns;
	uint64_t not_captured, messages;
	uint64_t calls, lost;
	char path[2 * APP_PATH];
};

/* Roots and folders are absolute, without links, "." and "..". 'd' is cleared first; 'fn' may look
 * at it. */
int decode_run(
	struct decode *d, const struct decode_input *in, event_fn fn, void *ctx, struct err *e);
void decode_clear(struct decode *d);

/* What the parts share. Numbers of processes, threads, sockets: of the node of d->log. */
struct decode_process *decode_process_of(struct decode *d, uint32_t pid);
/* Of the process or thread 'n' on that node, for a table. */
static inline uint64_t decode_key(const struct decode *d, uint32_t n)
{
	return (uint64_t)d->log->node << 32 | n;
}
/* Index of a process that there is. */
uint32_t decode_process_index(const struct decode *d, uint32_t pid);
bool decode_dropped(const struct decode *d, uint32_t pid);
/* An IP address as 16 bytes. */
void decode_address(const struct sockaddr_storage *a, uint8_t out[16]);
int decode_life(struct decode *d, const struct record_process *r, struct err *e);
uint32_t decode_thread_of(struct decode *d, uint32_t pid, uint32_t tid);
uint32_t decode_file(struct decode *d, const char *path); /* APP_NO_FILE: not below the root */
/* The call's file; its folder's if the path is empty. */
uint32_t decode_call_file(struct decode *d, struct stream_item *item, bool second);
int decode_descriptor(struct decode *d, const struct record_fd *f, struct err *e);
uint32_t decode_handle(struct decode_process *p, int32_t fd);
/* Is it the last of the process's descriptors with this handle? */
bool decode_last(const struct decode_process *p, int32_t fd);
void decode_set_handle(struct decode_process *p, int32_t fd, uint32_t handle);
uint32_t decode_new_handle(
	struct decode *d, uint32_t file, uint32_t flags, uint32_t process, bool before);
void decode_chdir(struct decode *d, struct stream_item *item);
/* Messages of a call, of a thread's begin and end. */
int decode_messages(struct decode *d, struct stream_item *item, uint32_t thread, struct err *e);
int decode_born(struct decode *d, uint32_t thread, struct err *e);
int decode_gone(struct decode *d, uint32_t thread, struct err *e);
int decode_emit(struct decode *d, const struct causal_event *ev, struct err *e);
void decode_note_peer(struct decode *d, const struct record_fd *f);
/* A mapping of memory that processes share. */
void decode_note_mapping(struct decode *d, struct stream_item *item);
/* So, of System V. */
void decode_note_segment(struct decode *d, struct stream_item *item);
/* Do two processes with operations share memory? 'shares', of all processes, is set for these. */
bool decode_shares(const struct decode *d, bool *shares);

#endif
