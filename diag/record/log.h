/*
 * Trace logs as files: writer and reader. layout.h describes the layout.
 */
#ifndef CULPRIT_DIAG_LOG_LOG_H
#define CULPRIT_DIAG_LOG_LOG_H

#include "diag/record/calls.h"
#include "diag/record/record.h"
#include "harness/base/err.h"

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
};

struct log_writer;

/* Creates 'path' with mode 0600. -EEXIST if it exists. */
int log_writer_new(const char *path, const char *tracer, struct log_writer **out, struct err *e);

/* Sets bias_ns of the head; before the first record. */
void log_writer_bias(struct log_writer *w, int64_t ns);

/* Appends a record and sets rec->number. The file is at most one second or 64 KiB behind. */
int log_write(struct log_writer *w, struct record *rec, struct err *e);

/* Writes what is buffered; for idle moments of a tracer. */
int log_flush(struct log_writer *w, struct err *e);

/* Writes the END record with 'lost' as total, syncs, and frees 'w' even in case of errors. A full
 * disk is an error here at the latest. */
int log_writer_end(struct log_writer *w, uint64_t lost, struct err *e);

/* Frees without END: the log then counts as cut short. NULL is fine. */
void log_writer_free(struct log_writer *w);

struct log_reader;

/* Opens 'path', or standard input for "-". Memory use is constant. -EINVAL if it is no log, or of
 * another version; the message then names both versions and what to do. */
int log_reader_new(const char *path, struct log_reader **out, struct err *e);
const struct log_head *log_reader_head(const struct log_reader *r);

/* 1 and the next record in '*rec' (owned by the reader, valid until the next call); 0 after the
 * last one; -EBADMSG, with the byte offset, where the log is damaged or cut short. Everything
 * before the damage has been returned by then. */
int log_next(struct log_reader *r, const struct record **rec, struct err *e);
void log_reader_free(struct log_reader *r);

/* Reads the END record only, without the rest of the log. '*bytes' (may be NULL) gets the size of
 * the file. -EBADMSG if there is none: the tracer did not end in order. */
int log_read_end(const char *path, struct record_end *end, uint64_t *bytes, struct err *e);

#endif
