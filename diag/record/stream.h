/*
 * A stream reads one trace log, once, and tells its consumers of each record what it means to the
 * cluster. It keeps the descriptor table, the threads and their names, so that no consumer has to.
 *
 *     struct stream_spec spec = {.servers = servers, .n_servers = 4, .owner = OWNER_SERVER};
 *     stream_new("s1.fs.trace", &spec, &stream, &e);
 *     metrics_attach(metrics, stream, &e);
 *     events_attach(events, stream, &e);
 *     stream_run(stream, &e);
 *     stream_free(stream);
 *
 * Sockets. With a port, a server's clients are the sockets at its service address. Without one
 * (port 0: a server whose ports change, or that has several), they are its address's stream sockets
 * that it accepted, i.e. whose local port is one on which a traced process listens, except those
 * from an address of any server of the cluster: heartbeats and replication come from there. So a
 * client on a server's host is not seen as a client of such servers; and a client's connections to
 * any port of a server's address count as that server's, those to another service on its host (a
 * monitor) too.
 *
 * Order. For each record the stream first calls 'feed' of every consumer, in the order in which
 * they were added, and then applies the record to its tables. So feed sees
 *   - the descriptors as they were before the record: a close still finds what it closes, an exit
 *     the descriptors of the process that ends (item_each_ending lists both);
 *   - the last call and the last wait of each thread as they were before the record;
 *   - the threads' names as they are after it: a record that names a thread is shown under the
 *     new name.
 *
 * To add a consumer, write a <noun>_attach that fills a struct stream_consumer and passes it to
 * stream_add before stream_run. Ask the item what a record is about (item_object, item_fd); keep
 * state for a connection in an array indexed by object.id and clear it in item_each_ending. Then
 * call the new <noun>_attach in diag/derive/derive.c, which reads the logs of a run.
 */
#ifndef CULPRIT_DIAG_RECORD_STREAM_H
#define CULPRIT_DIAG_RECORD_STREAM_H

#include "diag/record/fdtable.h"
#include "diag/record/log.h"

/* A server of the traced cluster. */
struct stream_server {
	const char *name;
	struct sockaddr_storage address; /* where its clients reach it; port 0: any port */
	const char *storage;             /* folder of its file objects, file or device; or NULL */
	uint64_t storage_device; /* number of the block device that is its storage; else 0 */
};

/* Whose log it is. */
enum stream_owner { OWNER_UNKNOWN, OWNER_SERVER, OWNER_DAEMON, OWNER_APP };

/* The cluster, and the log's place in it. Zero: nothing is known about the cluster. */
struct stream_spec {
	const struct stream_server *servers; /* borrowed, like all below */
	size_t n_servers;
	enum stream_owner owner; /* a server, a client's file system daemon, an application */
	int32_t index;           /* of the server or client that the log comes from */
	const char *mount;       /* OWNER_APP: folder of the file system, or NULL */
	int64_t clock_offset_ns; /* this node's clock minus the orchestrator's; not applied here */
};

/* A thread that made a call, or that a record named. */
struct stream_thread {
	uint64_t last_call; /* number of the record of its last call; 0: none */
	uint64_t last_poll; /* so, of its last call that waits for descriptors */
	uint32_t tid;
	enum { THREAD_LIVE, THREAD_GONE } state; /* private */
	bool named;
	char name[16];
};

struct stream;

/* One record and what it is about. Valid inside feed. */
struct stream_item {
	const struct record *record;
	/* RECORD_CALL: NULL if the number is not known, which is of class CALL_OTHER. Of an
	 * asynchronous operation (RECORD_ASYNC_NR): the call that does the same. */
	const struct call_info *call;
	bool async;
	const struct stream_thread *thread; /* RECORD_CALL: who made it */
	const struct stream *stream;
	const struct fd_state *fd; /* private: use item_fd */
	bool fd_found;             /* private */
	unsigned classes;          /* private */
};

/* 'feed' and 'finish' return 0 or a negative errno, which ends the reading; they fill 'e' then.
 * 'finish' is called after the last record of a log that is whole, 'free' in any case, by
 * stream_free. 'finish' and 'free' may be NULL. */
struct stream_consumer {
	int (*feed)(void *ctx, struct stream_item *item, struct err *e);
	int (*finish)(void *ctx, struct err *e);
	void (*free)(void *ctx);
	unsigned classes; /* calls that feed sees: 1 << enum call_class, ORed; 0: all calls */
	bool names; /* it asks for names: the stream then keeps those of threads that ended, too */
};

enum { STREAM_CONSUMERS = 8 };

/* Opens the log 'path' ("-": standard input). '*spec' is copied, what it points to must live as
 * long as the stream. Errors as log_reader_new, -EINVAL for a server that does not exist. */
int stream_new(
	const char *path, const struct stream_spec *spec, struct stream **out, struct err *e);
void stream_free(struct stream *s);

/* At most STREAM_CONSUMERS; '*c' is copied. 'ctx' goes to each of its functions. */
void stream_add(struct stream *s, const struct stream_consumer *c, void *ctx);

/* Reads the whole log. Errors as log_next, and those of the consumers; what was fed before the
 * damage stays with the consumers. Memory grows with open descriptors and threads, not with the
 * log. */
int stream_run(struct stream *s, struct err *e);

/* One step of stream_run, for readers of several logs at once: the next record, fed to the
 * consumers, in '*item'; the stream applies it to its tables with the next call only, so until then
 * the item's functions answer as inside feed. 1; 0 after the last record ('finish' is not called);
 * else errors as stream_run. */
int stream_next(struct stream *s, struct stream_item **item, struct err *e);

/* Where records come from that are in no log. 'next' returns as log_next. */
struct stream_source {
	int (*next)(void *ctx, const struct record **rec, struct err *e);
	void *ctx;
};

/* A stream of such records; '*source' and '*head' are copied. Errors as stream_new. */
int stream_over(const struct stream_source *source, const struct log_head *head,
	const struct stream_spec *spec, struct stream **out, struct err *e);

/* For a source that jumps, from its 'next': forgets descriptors, threads and their names. */
void stream_forget(struct stream *s);

/* A descriptor's number from a consumer that steps through the stream: 0 whenever the descriptor's
 * meaning has changed. 'f' is one that the item's functions return. */
uint32_t stream_mark(const struct fd_state *f);
void stream_set_mark(const struct fd_state *f, uint32_t mark);

const struct log_head *stream_head(const struct stream *s);
const struct stream_spec *stream_spec(const struct stream *s);
const struct call_arch *stream_arch(const struct stream *s); /* NULL: architecture not known */

/* Records lost so far: by the LOST records, or the END record's count if that is larger. */
uint64_t stream_lost(const struct stream *s);

/* What (pid, fd) means, or NULL if it is not open; as fdtable_get. */
const struct fd_state *stream_fd(const struct stream *s, uint32_t pid, int32_t fd);

/* Number of the record of the last wait for descriptors by 'tid'; 0: none. O(1). */
uint64_t stream_last_poll(const struct stream *s, uint32_t tid);

/* Name of a thread, else of its process ('tid' 0: of the process), or "". */
const char *stream_name(const struct stream *s, uint32_t pid, uint32_t tid);

/* The descriptor of a call (its first one), or the one that a RECORD_FD is about, before it.
 * NULL: the record has none, or it is not known. */
const struct fd_state *item_fd(struct stream_item *item);

/* What the record is about: the object of item_fd; of a RECORD_SUM, of the descriptors that it sums
 * up; of a RECORD_READING, of the sockets that it was read from. */
struct object item_object(struct stream_item *item);

/* Calls 'fn' for each descriptor whose meaning ends with this record: it is closed or replaced, or
 * its process starts, runs another program, or ends. */
void item_each_ending(
	const struct stream_item *item, void (*fn)(void *ctx, const struct fd_state *f), void *ctx);

#endif
