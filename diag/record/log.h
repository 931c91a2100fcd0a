/*
 * Trace logs as files: writer and reader. layout.h describes the layout.
 */
#ifndef CULPRIT_DIAG_RECORD_LOG_H
#define CULPRIT_DIAG_RECORD_LOG_H

#include "diag/record/calls.h"
#include "diag/record/record.h"
#include "harness/base/err.h"

/* The kind of a log, in its head. Unset in logs of older versions and of tracers without modes. */
enum log_how {
	LOG_EVENTS = 1,
	LOG_SUMS = 2,
	LOG_FLOW = 3,
	LOG_MODE = 15,   /* mask of those three */
	LOG_HEADS = 16,  /* flow: with heads */
	LOG_CAUSAL = 64, /* flow: with processor times, and peers of Unix sockets */
	LOG_RING = 32,   /* a flight recorder's: begins later than the tracer did */
};

/* Head of a log. */
struct log_head {
	uint32_t version;
	char arch[16];   /* "x86_64", "aarch64": defines the call numbers */
	char tracer[16]; /* "ptrace", "ebpf" */
	char host[65];
	char boot_id[37];
	int64_t start_ns; /* CLOCK_REALTIME */
	/* Median service_ns of a call that does nothing, under this tracer on this host: the cost
	 * that tracing adds to each call; 0 if not measured. */
	int64_t bias_ns;
	uint32_t how; /* enum log_how */
};

struct log_writer;

/* Creates 'path' with mode 0600. -EEXIST if it exists. */
int log_writer_new(const char *path, const char *tracer, struct log_writer **out, struct err *e);

/* Sets bias_ns of the head. Call before the first record. */
void log_writer_bias(struct log_writer *w, int64_t ns);

/* Sets 'how' of the head. Call before the first record. log_writer_keep adds LOG_RING. */
void log_writer_how(struct log_writer *w, uint32_t how);

/* Appends a record and sets rec->number (0: dropped, see log_writer_bound). The file is at most one
 * second or 64 KiB behind. */
int log_write(struct log_writer *w, struct record *rec, struct err *e);

/* Writes RECORD_UNSEEN for the growth of these totals since the last call. */
int log_unseen(struct log_writer *w, const uint64_t totals[UNSEEN_COUNT], struct err *e);

/* Writes buffered records; call it when the tracer is idle. */
int log_flush(struct log_writer *w, struct err *e);

/* Writes the END record, whose loss is 'lost' plus the records dropped by the writer; syncs; always
 * frees 'w'. A full disk is reported here at the latest. */
int log_writer_end(struct log_writer *w, uint64_t lost, struct err *e);

/*
 * A flight recorder: from now on keeps only the last 'keep_ns' up to the newest record, in memory,
 * in whole blocks, and at most 'most_bytes'. Call before the first record. The file holds only its
 * head until log_writer_end writes the kept blocks.
 */
int log_writer_keep(struct log_writer *w, int64_t keep_ns, size_t most_bytes, struct err *e);

/* Writes the kept blocks as a whole log 'path', which appears when it is complete. It begins with a
 * START of each process and thread and the descriptors open at that time. -EEXIST. */
int log_writer_dump(struct log_writer *w, const char *path, struct err *e);

/*
 * A log that a reader takes away while it is written: the reader punches holes (fallocate) into the
 * file, from byte LOG_KEPT on. If more than 'most_bytes' have not been taken, records of calls,
 * signals, requests, sums and readings are dropped and counted: in a LOST record as soon as there
 * is room again, and in END. Records of descriptors and names are kept up to twice the limit; above
 * it writing fails with -ENOBUFS. log_flush checks for room. Call before the first record.
 */
enum { LOG_KEPT = 4096 };
void log_writer_bound(struct log_writer *w, uint64_t most_bytes);

/* Frees 'w' without END: the log counts as cut short. NULL is fine. */
void log_writer_free(struct log_writer *w);

struct log_reader;

/* Opens 'path', or standard input for "-". Memory use is constant. -EINVAL: not a log, or another
 * version; the message then names both versions and the remedy. */
int log_reader_new(const char *path, struct log_reader **out, struct err *e);

/* Opens a log that begins at byte 'base' of the file and continues to its end. */
int log_reader_inside(const char *path, uint64_t base, struct log_reader **out, struct err *e);

/* How much of each call is read. BRIEF skips arguments, offset, asked length, position, head and
 * paths, which halves the time. MOVED does so except in blocks with calls for which call_moved()
 * needs more. Call before the first record of a block. */
enum log_detail { LOG_WHOLE, LOG_BRIEF, LOG_MOVED };
void log_reader_detail(struct log_reader *r, enum log_detail detail);

/* Continues at byte 'offset' of the log, where a block must begin with 'before' records before it;
 * otherwise log_next reports damage. -ESPIPE: not a file. */
int log_reader_seek(struct log_reader *r, uint64_t offset, uint64_t before, struct err *e);

/* The reader's place. Bytes are counted from the beginning of the log. */
struct log_place {
	uint64_t block;   /* of the last record */
	uint64_t next;    /* the block after that one */
	uint32_t left;    /* records of the block still to be read */
	uint64_t records; /* read or skipped in total */
};
struct log_place log_reader_place(const struct log_reader *r);

const struct log_head *log_reader_head(const struct log_reader *r);

/* 1 and the next record in '*rec' (owned by the reader, valid until the next call); 0 after the
 * last record; -EBADMSG with the byte offset if the log is damaged or cut short, after all records
 * before the damage. A log that is being written (growing.h) ends at its last whole block: 0, and
 * later calls return records written since. */
int log_next(struct log_reader *r, const struct record **rec, struct err *e);

/* Has the END record been read? If not, log_next returned 0 because the log is being written. */
bool log_reader_ended(const struct log_reader *r);
void log_reader_free(struct log_reader *r);

/* Reads only the END record. '*bytes' (may be NULL) gets the size of the file. -EBADMSG without
 * one: the tracer did not end properly. */
int log_read_end(const char *path, struct record_end *end, uint64_t *bytes, struct err *e);

#endif
