/*
 * Descriptor table: what each descriptor of each process means now. Feed it the records of one log
 * in their order; record.h gives the rules. Memory grows with the descriptors that are open at
 * once. Readers of a log use a stream (stream.h), which keeps one.
 */
#ifndef CULPRIT_DIAG_RECORD_FDTABLE_H
#define CULPRIT_DIAG_RECORD_FDTABLE_H

#include "diag/record/record.h"

struct fdtable;

/* What a descriptor, or a record, is to the cluster (stream.h decides it). */
enum object_kind {
	OBJECT_UNKNOWN, /* not decided, or no descriptor */
	/* Regular file below the storage folder of the log's server, or the block device or file
	 * that is its storage. */
	OBJECT_STORAGE_FILE,
	OBJECT_STORAGE, /* that folder itself, or a directory or special file below it */
	OBJECT_MOUNT,   /* at or below the mount of the log's application */
	OBJECT_SERVICE, /* socket that serves a client of the log's server (stream.h) */
	OBJECT_PEER,    /* socket connected to the service of server 'server' */
	OBJECT_SOCKET,  /* any other socket */
	OBJECT_OTHER,   /* any other file */
};

struct object {
	enum object_kind kind;
	uint32_t server; /* of all kinds but MOUNT, SOCKET and OTHER: index of the server */
	uint32_t id;     /* SERVICE, PEER: small number that no other open socket of the log has */
};

struct fd_state {
	struct record_fd now; /* the last record; its path is the table's */
	struct object object; /* the stream's; zero whenever the meaning has changed */
	uint32_t mark;        /* so is this; stream_mark */
};

struct fdtable *fdtable_new(void); /* NULL: out of memory */
void fdtable_free(struct fdtable *t);

/* Applies a RECORD_FD or RECORD_PROCESS, ignores others. 0 or -ENOMEM. */
int fdtable_feed(struct fdtable *t, const struct record *rec);

/* Meaning of 'fd' in thread group 'pid', or NULL if it is not open or not known. Valid until the
 * next record about that process is fed. O(1). */
struct fd_state *fdtable_get(const struct fdtable *t, uint32_t pid, int32_t fd);

/* Calls 'fn' for every open descriptor of 'pid', in no order. 'fn' must not feed. */
void fdtable_each(const struct fdtable *t, uint32_t pid,
	void (*fn)(void *ctx, const struct fd_state *s), void *ctx);

/* So, for those of all processes. */
void fdtable_all(
	const struct fdtable *t, void (*fn)(void *ctx, const struct fd_state *s), void *ctx);

#endif
