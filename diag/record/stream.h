/*
 * A stream reads one trace log once, and tells its consumers the meaning of each record for the
 * cluster. It keeps the descriptor table, the threads and their names for all consumers.
 *
 *     struct stream_spec spec = {.servers = servers, .n_servers = 4, .owner = OWNER_SERVER};
 *     stream_new("s1.fs.trace", &spec, &stream, &e);
 *     metrics_attach(metrics, stream, &e);
 *     events_attach(events, stream, &e);
 *     stream_run(stream, &e);
 *     stream_free(stream);
 *
 * Sockets. With a port, a server's clients are the sockets at its service address. Without one
 * (port 0: the server has several ports, or they change), they are the stream sockets that it
 * accepted at its address: those whose local port is one on which a traced process listens. Sockets
 * from an address of any server of the cluster are left out, since heartbeats and replication come
 * from there. So a client on a server's host is not seen as a client of such servers. A client's
 * connections to any port of a server's address count as that server's, even those to another
 * service on its host, such as a monitor.
 *
 * Order. For each record the stream first calls 'feed' of every consumer, in the order in which
 * they were added, and then applies the record to its tables. So feed sees
 *   - the descriptors as they were before the record: a close still finds the closed descriptor, an
 *     exit those of the ending process (item_each_ending lists both);
 *   - the last call and the last wait of each thread as they were before the record;
 *   - the threads' names as they are after it: a record that names a thread is shown under the
 *     new name.
 *
 * To add a consumer, write a <noun>_attach that fills a struct stream_consumer and passes it to
 * stream_add before stream_run. Use item_object and item_fd to see what a record is about; keep
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

/* The kind of process whose log it is. */
enum stream_owner { OWNER_UNKNOWN, OWNER_SERVER, OWNER_DAEMON, OWNER_APP };

/* The cluster, and the log's place in it. Zero: an unknown cluster. */
struct stream_spec {
	const struct stream_server *servers; /* borrowed, like all below */
	size_t n_servers;
	enum stream_owner owner; /* a server, a client's file system daemon, an application */
	int32_t index;           /* of the server or client whose log it is */
	const char *mount;       /* OWNER_APP: folder of the file system, or NULL */
	int64_t clock_offset_ns; /* this node's clock minus the orchestrator's; not applied here */
};

/* A thread that made a call or was named by a record. */
struct stream_thread {
	uint64_t last_call; /* record number of its last call; 0: none */
	uint64_t last_poll; /* likewise, of its last call that waits for descriptors */
	uint32_t tid;
	enum { THREAD_LIVE, THREAD_GONE } state; /* private */
	bool named;
	char name[16];
};

struct stream;

/* One record and its meaning. Valid inside feed. */
struct stream_item {
	const struct record *record;
	/* RECORD_CALL: NULL for an unknown number, which is of class CALL_OTHER. For an
	 * asynchronous operation (RECORD_ASYNC_NR): the call that does the same. */
	const struct call_info *call;
	bool async;
	const struct stream_thread *thread; /* RECORD_CALL: the calling thread */
	const struct stream *stream;
	const struct fd_state *fd; /* private: use item_fd */
	bool fd_found;             /* private */
	unsigned classes;          /* private */
};

/* 'feed' and 'finish' return 0 or a negative errno, which ends the reading; then they fill 'e'.
 * 'finish' is called after the last record of a complete log; stream_free always calls 'free'.
 * 'finish' and 'free' may be NULL. */
struct stream_consumer {
	int (*feed)(void *ctx, struct stream_item *item, struct err *e);
	int (*finish)(void *ctx, struct err *e);
	void (*free)(void *ctx);
	unsigned classes; /* calls that feed sees: 1 << enum call_class, ORed; 0: all calls */
	bool names;       /* it uses names: the stream then also keeps those of ended threads */
};

enum { STREAM_CONSUMERS = 8 };

/* Opens the log 'path' ("-": standard input). Copies '*spec'; the memory it points to must live as
 * long as the stream. Errors as log_reader_new; -EINVAL for a server that does not exist. */
int stream_new(
	const char *path, const struct stream_spec *spec, struct stream **out, struct err *e);
void stream_free(struct stream *s);

/* At most STREAM_CONSUMERS; copies '*c'. Each of its functions gets 'ctx'. */
void stream_add(struct stream *s, const struct stream_consumer *c, void *ctx);

/* Reads the whole log. Errors as log_next, and those of the consumers, which keep what they were
 * fed before the damage. Memory grows with open descriptors and threads, not with the log. */
int stream_run(struct stream *s, struct err *e);

/* One step of stream_run, for readers of several logs at once: feeds the next record to the
 * consumers and returns it in '*item'. The stream applies the record to its tables in the next
 * call, so until then the item's functions answer as inside feed. 1; 0 after the last record
 * ('finish' is not called); else errors as stream_run. */
int stream_next(struct stream *s, struct stream_item **item, struct err *e);

/* A source of records that are in no log. 'next' returns as log_next. */
struct stream_source {
	int (*next)(void *ctx, const struct record **rec, struct err *e);
	void *ctx;
};

/* Opens a stream over such records; copies '*source' and '*head'. Errors as stream_new. */
int stream_over(const struct stream_source *source, const struct log_head *head,
	const struct stream_spec *spec, struct stream **out, struct err *e);

/* For a source that jumps, called from its 'next': forgets descriptors, threads and their names. */
void stream_forget(struct stream *s);

/* A number that a consumer stepping through the stream attaches to a descriptor: 0 after each
 * change of the descriptor's meaning. 'f' comes from the item's functions. */
uint32_t stream_mark(const struct fd_state *f);
void stream_set_mark(const struct fd_state *f, uint32_t mark);

const struct log_head *stream_head(const struct stream *s);
const struct stream_spec *stream_spec(const struct stream *s);
const struct call_arch *stream_arch(const struct stream *s); /* NULL: unknown architecture */

/* Records lost so far: from the LOST records, or from the END record if its count is larger. */
uint64_t stream_lost(const struct stream *s);

/* The meaning of (pid, fd), or NULL if it is not open; as fdtable_get. */
const struct fd_state *stream_fd(const struct stream *s, uint32_t pid, int32_t fd);

/* Record number of the last wait for descriptors by 'tid'; 0: none. O(1). */
uint64_t stream_last_poll(const struct stream *s, uint32_t tid);

/* Name of a thread, else of its process ('tid' 0: of the process), or "". */
const char *stream_name(const struct stream *s, uint32_t pid, uint32_t tid);

/* The descriptor of a call (its first one), or the descriptor of a RECORD_FD before the change.
 * NULL: the record has none, or it is unknown. */
const struct fd_state *item_fd(struct stream_item *item);

/* The object of a record: that of item_fd; for a RECORD_SUM, of the descriptors that it sums up;
 * for a RECORD_READING, of its sockets. */
struct object item_object(struct stream_item *item);

/* Calls 'fn' for each descriptor whose meaning ends with this record: it is closed or replaced, or
 * its process starts, executes another program, or ends. */
void item_each_ending(
	const struct stream_item *item, void (*fn)(void *ctx, const struct fd_state *f), void *ctx);

#endif
