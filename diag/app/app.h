/*
 * Application traces: the calls of a parallel application's processes on files, their computing in
 * between, and which process waited for which (Mesnier et al. 2007). A trace is one file, without
 * data; `culprit capture` writes it, `culprit replay` repeats its calls.
 *
 * Ranks are processes that made at least one call on a file below the root. They are numbered from
 * 0 by the tree of processes: a parent before its children, children in the order of their start.
 * Each rank has threads, numbered from 0 over all ranks; a rank's threads have consecutive numbers.
 * A thread is a sequence of operations (ops).
 *
 * An edge makes an op wait until another thread has completed a number of its ops. Edges form no
 * cycle: the reader refuses a trace with one. Between the end of the previous op (or the start of
 * the application) and the op's own start, the thread computed for 'compute_ns' on the processor,
 * and was away for 'away_ns': it slept, or used files that are not below the root. Time spent
 * waiting for messages of other threads is in neither: edges represent it.
 *
 * Files have paths relative to the root, without "..", ".", empty parts; "" is the root itself. In
 * an anonymised trace each part of a path is 16 digits of its salted hash, without a suffix.
 *
 * Handles are open files, numbered from 1 over the whole trace; 0 means none. A successful APP_OPEN
 * makes a handle, and APP_CLOSE drops it for the thread's process. A descriptor that was
 * duplicated, inherited or received from another process keeps its handle. A handle with 'before'
 * has no APP_OPEN: it was open when the process started, so the replay opens it before it begins.
 */
#ifndef CULPRIT_DIAG_APP_APP_H
#define CULPRIT_DIAG_APP_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

enum {
	APP_VERSION = 1,
	APP_PATH = 4096,       /* longest path with its NUL; also comment and root */
	APP_NAME = 64,         /* name of a rank or node with its NUL */
	APP_RANKS = 65536,     /* at most */
	APP_THREADS = 1 << 18, /* at most */
	APP_FILES = 1 << 22,   /* at most */
	APP_HANDLES = 1 << 26, /* at most */
	APP_EDGES = 1 << 12,   /* at most, of one op */
	APP_SALT = 16,         /* bytes */
};

#define APP_NO_FILE UINT32_MAX

enum app_call {
	/* file, flags (O_* of the captured machine), mode; result: 0; handle: the new one */
	APP_OPEN = 1,
	APP_CLOSE,     /* handle */
	APP_READ,      /* handle, offset, size; result: bytes. At the file position */
	APP_WRITE,     /* likewise */
	APP_PREAD,     /* likewise, with the offset as argument: pread64, preadv, preadv2 */
	APP_PWRITE,    /* likewise */
	APP_SEEK,      /* handle; result: the new position */
	APP_FSYNC,     /* handle */
	APP_FDATASYNC, /* handle */
	APP_TRUNCATE,  /* file, handle (0: by path); size: the new size */
	APP_STAT,      /* file, handle (0: by path); also access, statx and similar */
	APP_UNLINK,    /* file */
	APP_RENAME,    /* file, file2 */
	APP_MKDIR,     /* file, mode */
	APP_RMDIR,     /* file */
	APP_READDIR,   /* handle; result: bytes */
	APP_FALLOCATE, /* handle, offset, size, flags: mode of fallocate */
	APP_CALLS,     /* the number of calls plus one */
};

/* Is the path relative, and does it stay below the root, as paths of files must? */
bool app_path_ok(const char *path);

/* "pwrite"; "?" for an unknown number. */
const char *app_call_name(unsigned call);

struct app_edge {
	uint32_t thread; /* another thread than the op's */
	uint64_t ops;    /* how many it must have completed, 1 or more */
};

/* One operation. Numbers that a call does not use are 0, but 'offset' is -1. */
struct app_op {
	uint8_t call;                 /* enum app_call */
	uint32_t file;                /* APP_NO_FILE: none */
	uint32_t file2;               /* APP_RENAME: the new name's; else APP_NO_FILE */
	uint32_t handle;              /* 0: none */
	uint32_t flags;               /* APP_OPEN, APP_FALLOCATE */
	uint32_t mode;                /* APP_OPEN with O_CREAT, APP_MKDIR */
	int64_t offset;               /* where it began, also for calls at the file position */
	uint64_t size;                /* bytes asked for; APP_TRUNCATE: the new size */
	int64_t result;               /* value, or negative errno */
	int64_t start_ns;             /* since the trace's start; -1: not recorded */
	int64_t took_ns;              /* -1: not recorded */
	uint64_t compute_ns, away_ns; /* between the previous op and this one */
	uint32_t n_edges;             /* at most APP_EDGES */
	const struct app_edge *edges; /* sorted by thread, each once; valid until the next op */
};

/* The end of an op that has times. */
static inline int64_t app_op_end(const struct app_op *op)
{
	return op->took_ns > INT64_MAX - op->start_ns ? INT64_MAX : op->start_ns + op->took_ns;
}

struct app_file {
	const char *path;
	int64_t before; /* size when the capture began; -1: no such file */
	int64_t after;  /* size when it ended; -1: no such file */
	bool directory;
};

struct app_handle {
	uint32_t file;
	uint32_t flags; /* O_* of its open */
	uint32_t rank;  /* opened it, or had it first */
	bool before;    /* no op opens it */
};

struct app_thread {
	uint32_t rank;
	uint32_t tid; /* on the traced node */
	uint64_t ops;
};

struct app_rank {
	uint32_t pid;
	const char *name; /* of the program */
	const char *node;
	uint32_t first_thread, n_threads;
};

enum app_method { APP_BY_MESSAGES = 1, APP_BY_THROTTLING = 2 }; /* bits */

/* About a trace as a whole. Strings live as long as the struct's owner. */
struct app_about {
	uint32_t version;
	int64_t start_ns;    /* CLOCK_REALTIME of the first process's start */
	uint64_t wall_ns;    /* run time of the application */
	uint32_t method;     /* enum app_method */
	const char *comment; /* the command, or the user's text */
	const char *root;    /* the folder that paths are relative to; "" if anonymised */
	const char *kernel;  /* release and architecture */
	bool anonymised;
	/* Calls on files below the root that are not in the trace: on mapped files, asynchronous,
	 * sendfile and similar. */
	uint64_t not_captured;
	bool shared_memory; /* ranks share memory: waits through it leave no message */
};

/* May ranks wait for each other in ways without an edge? Throttling finds waits through memory. */
static inline bool app_misses_waits(const struct app_about *a)
{
	return a->shared_memory && !(a->method & APP_BY_THROTTLING);
}

/*
 * Reading. app_open checks the whole trace before any of it is used: version, checksums, bounds,
 * references, and that edges form no cycle. The trace owns what the functions return. Memory: the
 * tables and at most one block (64 KiB) for each thread, not the ops.
 */
struct app_trace;

/* -EPROTONOSUPPORT: another version; -EBADMSG: damaged or truncated, with the byte; -ELOOP: a
 * cycle, with its ops ("rank 0 op 3 waits for rank 1 op 5 ..."); or the error of open. */
int app_open(const char *path, struct app_trace **out, struct err *e);
void app_free(struct app_trace *t); /* NULL is fine */

const struct app_about *app_about(const struct app_trace *t);
size_t app_n_files(const struct app_trace *t);
size_t app_n_handles(const struct app_trace *t);
size_t app_n_ranks(const struct app_trace *t);
size_t app_n_threads(const struct app_trace *t);
uint64_t app_n_ops(const struct app_trace *t);
uint64_t app_n_edges(const struct app_trace *t);
/* Did its ranks run on several nodes? */
bool app_several_nodes(const struct app_trace *t);
/* 16 hexadecimal digits that identify the trace: the checksums of its tables and its head. */
const char *app_id(const struct app_trace *t);
const struct app_file *app_file(const struct app_trace *t, uint32_t i);
const struct app_handle *app_handle(const struct app_trace *t, uint32_t number); /* from 1 */
const struct app_rank *app_rank(const struct app_trace *t, uint32_t i);
const struct app_thread *app_thread(const struct app_trace *t, uint32_t i);

/* The ops of one thread, in order. Several cursors may be open, also in several threads of the
 * caller, each used by one thread at a time (reads use pread). Free cursors before the trace. */
struct app_cursor;

int app_cursor_new(const struct app_trace *t, uint32_t thread, struct app_cursor **out);
/* 1 and the op, valid until the next call; 0 after the last one; a negative errno if the file has
 * changed since app_open. */
int app_next(struct app_cursor *c, struct app_op *op, struct err *e);
void app_cursor_free(struct app_cursor *c);

/* Do two runs have the same sequence of calls in each process: calls, files, offsets, sizes, flags,
 * success? -EDOM if not; 'e' names the first call that differs. */
int app_compare(const struct app_trace *a, const struct app_trace *b, struct err *e);

/*
 * Writes a trace with 'copies' times the ranks: that number of copies of the application at once.
 * Rank r of copy c is rank c * n + r; its files are those of the trace, below a separate folder
 * "copyC". Copies do not wait for each other. -E2BIG: more than a trace can hold, with the number.
 */
int app_scale(const struct app_trace *t, uint32_t copies, const char *path, struct err *e);

bool app_is_trace(const char *path);

/* Prints as text: ranks, files, then a line for each op, rank by rank; 'rank' UINT32_MAX: all
 * ranks. Escaped for terminals. */
int app_print(const struct app_trace *t, uint32_t rank, FILE *out, struct err *e);
/* Prints a summary: method, ranks, calls, bytes, computing, edges. */
int app_print_summary(const struct app_trace *t, FILE *out, struct err *e);

/*
 * Writing. Ops of several threads may be interleaved; those of one thread come in order. The file
 * gets its name only when app_finish returns 0; otherwise it is removed.
 */
struct app_writer;

int app_create(const char *path, struct app_writer **out, struct err *e);

/* Each returns the number of the new rank, thread, file or handle, counted from 0 (handles from 1).
 * Add all threads of a rank right after it. Strings are copied. */
int app_add_rank(struct app_writer *w, uint32_t pid, const char *name, const char *node);
int app_add_thread(struct app_writer *w, uint32_t rank, uint32_t tid);
int app_add_file(struct app_writer *w, const char *path, int64_t before, int64_t after, bool dir);
int app_add_handle(struct app_writer *w, const struct app_handle *h);

/* Copies 'op->edges'. -EINVAL: the op names a thread, file or handle that was not added. */
int app_put(struct app_writer *w, uint32_t thread, const struct app_op *op, struct err *e);

/* Writes the tables and completes the file. Ignores 'about->version'. Always frees 'w'. */
int app_finish(struct app_writer *w, const struct app_about *about, struct err *e);
void app_drop(struct app_writer *w); /* discards the file; NULL is fine */

#endif
