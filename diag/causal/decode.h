/*
 * Decodes logs of `culprit-agent trace --mode flow --causal` into causal events: operations on
 * files below the root, and messages between threads. A message is a range of a channel. For a TCP
 * connection's direction the range comes from sequence numbers, for a Unix socket or pipe from a
 * count of bytes. Events without bytes are units: a thread was made, has ended, or was woken.
 * Records of several logs are merged by time; each log keeps its own order.
 *
 * Decoding the same logs again gives threads and processes the same numbers; files, handles and
 * channels as well, if the same processes are dropped.
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
	/* parent: index, its own if it has no parent; child: its number among the parent's
	 * children */
	uint32_t pid, parent, child;
	uint32_t children, depth;
	uint32_t *handles, *former; /* by descriptor; former: before its exec */
	uint32_t n_handles, n_former;
	char *cwd;
	char name[16];
	/* Index + 1 of the process whose shared anonymous memory it inherited; 0: none. */
	uint32_t memory;
	uint64_t ops;
	uint32_t log;
	bool launcher;
	/* Index + 1 of the launcher's child that it descends from; 0: none. */
	uint32_t session;
	bool ended;
};

struct decode_thread {
	uint32_t process, tid;
	uint64_t cpu_ns; /* at the end of its last call */
	uint64_t compute_ns, away_ns;
	bool fruitless; /* its last call polled for messages and found none */
	uint64_t ops;
};

struct decode_channel {
	uint64_t sent, received; /* bytes or units so far */
	/* TCP: the first position, extended to 64 bits, and the newest received and sent; 0: none
	 * yet. */
	uint64_t first, newest[2];
	/* TCP: index + 1 of the log whose node has the sender's address; 0: unknown. */
	uint32_t from;
};

struct decode_opening {
	uint32_t thread;
	int32_t fd;
	struct app_op op;
};

/* A mapping that other processes may share. */
struct decode_mapping {
	char *path; /* System V: "segment" and its number */
	uint32_t process;
};

struct call_rule_of; /* private */

struct decode_input {
	const struct causal_log *logs; /* borrowed */
	size_t n_logs;
	/* By process number: count only its begin and end. May be NULL. */
	const bool *dropped;
	uint32_t n_dropped;
	/* From an earlier pass; 0: when the first log's first process began. */
	int64_t start_ns;
};

struct decode_log {
	const struct causal_log *of;
	struct stream *stream;
	struct stream_item *item; /* the next record; NULL: at the end */
	int64_t at_ns;            /* its time in the merged order */
	uint32_t node;
	bool addressed;
	uint8_t address[16];
	const struct call_rule_of *rules[512];
};

struct decode {
	const struct decode_input *in;
	struct decode_log *logs, *log; /* log: the one of the current record */
	size_t n_logs;
	event_fn fn;
	void *ctx;
	struct decode_process **processes;
	struct decode_thread *threads;
	char **files;
	bool *directories;          /* of files: seen as a folder */
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

/* Roots and folders are absolute, without links, "." and "..". Clears 'd' first; 'fn' may read
 * it. */
int decode_run(
	struct decode *d, const struct decode_input *in, event_fn fn, void *ctx, struct err *e);
void decode_clear(struct decode *d);

/* For the other parts of the decoder. Numbers of processes, threads and sockets are those of
 * d->log's node. */
struct decode_process *decode_process_of(struct decode *d, uint32_t pid);
/* Table key of the process or thread 'n' of that node. */
static inline uint64_t decode_key(const struct decode *d, uint32_t n)
{
	return (uint64_t)d->log->node << 32 | n;
}
/* Index of an existing process. */
uint32_t decode_process_index(const struct decode *d, uint32_t pid);
bool decode_dropped(const struct decode *d, uint32_t pid);
void decode_address(const struct sockaddr_storage *a, uint8_t out[16]);
int decode_life(struct decode *d, const struct record_process *r, struct err *e);
uint32_t decode_thread_of(struct decode *d, uint32_t pid, uint32_t tid);
uint32_t decode_file(struct decode *d, const char *path); /* APP_NO_FILE: not below the root */
/* The call's file, or the file of its folder descriptor if the path is empty. */
uint32_t decode_call_file(struct decode *d, struct stream_item *item, bool second);
int decode_descriptor(struct decode *d, const struct record_fd *f, struct err *e);
uint32_t decode_handle(struct decode_process *p, int32_t fd);
/* Is 'fd' the only descriptor of the process with this handle? */
bool decode_last(const struct decode_process *p, int32_t fd);
void decode_set_handle(struct decode_process *p, int32_t fd, uint32_t handle);
uint32_t decode_new_handle(
	struct decode *d, uint32_t file, uint32_t flags, uint32_t process, bool before);
void decode_chdir(struct decode *d, struct stream_item *item);
/* Emit the messages of a call, and of a thread's begin and end. */
int decode_messages(struct decode *d, struct stream_item *item, uint32_t thread, struct err *e);
int decode_born(struct decode *d, uint32_t thread, struct err *e);
int decode_gone(struct decode *d, uint32_t thread, struct err *e);
int decode_emit(struct decode *d, const struct causal_event *ev, struct err *e);
void decode_note_peer(struct decode *d, const struct record_fd *f);
/* Notes a mapping of memory that processes share. */
void decode_note_mapping(struct decode *d, struct stream_item *item);
/* Likewise for System V segments. */
void decode_note_segment(struct decode *d, struct stream_item *item);
/* Do two processes with operations share memory? Sets 'shares', by process, for these. */
bool decode_shares(const struct decode *d, bool *shares);

#endif
