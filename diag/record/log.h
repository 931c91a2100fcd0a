/*
 * Trace logs as files: writer and reader. layout.h describes the layout.
 */
#ifndef CULPRIT_DIAG_RECORD_LOG_H
#define CULPRIT_DIAG_RECORD_LOG_H

#include "diag/record/calls.h"
#include "diag/record/record.h"
#include "harness/base/err.h"

/* What a log is of, in its head. Logs of older versions, and of tracers that have no modes, say
 * nothing. */
enum log_how {
	LOG_EVENTS = 1,
	LOG_SUMS = 2,
	LOG_FLOW = 3,
	LOG_MODE = 15,   /* mask of those three */
	LOG_HEADS = 16,  /* flow: with heads */
	LOG_CAUSAL = 64, /* flow: with processor times, and peers of Unix sockets */
	LOG_RING = 32, /* a flight recorder's: it begins where it had to, not when the tracer did */
};

/* Head of a log. */
struct log_head {
	uint32_t version;
	char arch[16];   /* "x86_64", "aarch64": gives the call numbers their meaning */
	char tracer[16]; /* "ptrace", "ebpf" */
	char host[65];
	char boot_id[37];
	int64_t start_ns; /* CLOCK_REALTIME */
	int64_t bias_ns;  /* median service_ns of a call that does nothing, under this tracer on
			   * this host: what tracing adds to each call; 0 if not measured */
	uint32_t how;     /* enum log_how */
};

struct log_writer;

/* Creates 'path' with mode 0600. -EEXIST if it exists. */
int log_writer_new(const char *path, const char *tracer, struct log_writer **out, struct err *e);

/* Sets bias_ns of the head; before the first record. */
void log_writer_bias(struct log_writer *w, int64_t ns);

/* Sets 'how' of the head; before the first record. log_writer_keep adds LOG_RING. */
void log_writer_how(struct log_writer *w, uint32_t how);

/* Appends a record and sets rec->number (0: it was dropped, see log_writer_bound). The file is at
 * most one second or 64 KiB behind. */
int log_write(struct log_writer *w, struct record *rec, struct err *e);

/* Writes RECORD_UNSEEN for what these totals have grown by since the last time. */
int log_unseen(struct log_writer *w, const uint64_t totals[UNSEEN_COUNT], struct err *e);

/* Writes what is buffered; for idle moments of a tracer. */
int log_flush(struct log_writer *w, struct err *e);

/* Writes the END record with 'lost' as total, to which it adds what it dropped, syncs, and frees
 * 'w' even in case of errors. A full disk is an error here at the latest. */
int log_writer_end(struct log_writer *w, uint64_t lost, struct err *e);

/*
 * A flight recorder: from now on only the last 'keep_ns' are kept, in memory, in whole blocks and
 * up to the newest record; less, if that is more than 'most_bytes'. Before the first record. Its
 * file holds nothing but its head until log_writer_end writes what is kept then.
 */
int log_writer_keep(struct log_writer *w, int64_t keep_ns, size_t most_bytes, struct err *e);

/* Writes what is kept now as a whole log, 'path', which is there only once it is whole. It begins
 * with a START of each process and thread and the descriptors that there were then. -EEXIST. */
int log_writer_dump(struct log_writer *w, const char *path, struct err *e);

/*
 * A log that somebody takes away while it is written: what has been taken becomes a hole in the
 * file (fallocate), from byte LOG_KEPT on. Where more than 'most_bytes' have not been taken,
 * records of calls, signals, requests, sums and readings are dropped, and counted: in a LOST record
 * as soon as there is room again, and in END. What descriptors and names mean is kept, up to twice
 * that; beyond it writing fails with -ENOBUFS. log_flush looks whether there is room. Before the
 * first record.
 */
enum { LOG_KEPT = 4096 };
void log_writer_bound(struct log_writer *w, uint64_t most_bytes);

/* Frees without END: the log then counts as cut short. NULL is fine. */
void log_writer_free(struct log_writer *w);

struct log_reader;

/* Opens 'path', or standard input for "-". Memory use is constant. -EINVAL if it is no log, or of
 * another version; the message then names both versions and what to do. */
int log_reader_new(const char *path, struct log_reader **out, struct err *e);

/* A log that begins at byte 'base' of the file and continues to its end. */
int log_reader_inside(const char *path, uint64_t base, struct log_reader **out, struct err *e);

/* What is read of calls. BRIEF leaves out arguments, offset, what they asked for, position, head
 * and paths, which takes half the time. MOVED does so but in blocks with calls of which
 * call_moved() needs more. Before the first record of a block. */
enum log_detail { LOG_WHOLE, LOG_BRIEF, LOG_MOVED };
void log_reader_detail(struct log_reader *r, enum log_detail detail);

/* Goes on at byte 'offset' of the log, where a block begins that has 'before' records before it; if
 * it has not, log_next says that the log is damaged. -ESPIPE: not a file. */
int log_reader_seek(struct log_reader *r, uint64_t offset, uint64_t before, struct err *e);

/* Where reading is. Bytes are counted from the beginning of the log. */
struct log_place {
	uint64_t block;   /* of the last record */
	uint64_t next;    /* the block behind that one */
	uint32_t left;    /* records of the block that are still to come */
	uint64_t records; /* read, or passed over, in all */
};
struct log_place log_reader_place(const struct log_reader *r);

const struct log_head *log_reader_head(const struct log_reader *r);

/* 1 and the next record in '*rec' (owned by the reader, valid until the next call); 0 after the
 * last one; -EBADMSG, with the byte offset, where the log is damaged or cut short. Everything
 * before the damage has been returned by then. A log that is being written (growing.h) ends behind
 * its last whole block: 0, and later calls return what has come in the meantime. */
int log_next(struct log_reader *r, const struct record **rec, struct err *e);

/* Has the END record been read? If not, log_next returned 0 because the log is being written. */
bool log_reader_ended(const struct log_reader *r);
void log_reader_free(struct log_reader *r);

/* Reads the END record only, without the rest of the log. '*bytes' (may be NULL) gets the size of
 * the file. -EBADMSG if there is none: the tracer did not end in order. */
int log_read_end(const char *path, struct record_end *end, uint64_t *bytes, struct err *e);

#endif
