/*
 * Descriptor table: the current meaning of each descriptor of each process. Feed it the records of
 * one log in order; record.h gives the rules. Memory grows with the descriptors open at the same
 * time. Readers of a log use a stream (stream.h), which keeps a table.
 */
#ifndef CULPRIT_DIAG_RECORD_FDTABLE_H
#define CULPRIT_DIAG_RECORD_FDTABLE_H

#include "diag/record/record.h"

struct fdtable;

/* The role of a descriptor or record in the cluster, as classified by the stream (stream.h). */
enum object_kind {
	OBJECT_UNKNOWN, /* not classified, or no descriptor */
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
	uint32_t server; /* index; unused for MOUNT, SOCKET and OTHER */
	uint32_t id;     /* SERVICE, PEER: small number, unique among the log's open sockets */
};

struct fd_state {
	struct record_fd now; /* the last record; the table owns its path */
	struct object object; /* set by the stream; zero after each change of meaning */
	uint32_t mark;        /* likewise; stream_mark */
};

struct fdtable *fdtable_new(void); /* NULL: out of memory */
void fdtable_free(struct fdtable *t);

/* Applies a RECORD_FD or RECORD_PROCESS, ignores others. 0 or -ENOMEM. */
int fdtable_feed(struct fdtable *t, const struct record *rec);

/* The meaning of 'fd' in thread group 'pid', or NULL if it is not open or unknown. Valid until the
 * next record about that process is fed. O(1). */
struct fd_state *fdtable_get(const struct fdtable *t, uint32_t pid, int32_t fd);

/* Calls 'fn' for every open descriptor of 'pid', in any order. 'fn' must not feed. */
void fdtable_each(const struct fdtable *t, uint32_t pid,
	void (*fn)(void *ctx, const struct fd_state *s), void *ctx);

/* Likewise for all processes. */
void fdtable_all(
	const struct fdtable *t, void (*fn)(void *ctx, const struct fd_state *s), void *ctx);

#endif
