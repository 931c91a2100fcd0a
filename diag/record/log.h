/*
 * Trace logs as files: writer and reader. The layout is described in layout.h.
 */
#ifndef CULPRIT_DIAG_LOG_LOG_H
#define CULPRIT_DIAG_LOG_LOG_H

#include "diag/record/calls.h"
#include "diag/record/record.h"
#include "harness/base/err.h"

/* What is said once, at the head of a log. */
struct log_head {
	uint32_t version;
	char arch[16];   /* "x86_64", "aarch64": gives the call numbers their meaning */
	char tracer[16]; /* "ptrace", "ebpf" */
	char host[65];
	char boot_id[37];
	int64_t start_ns; /* CLOCK_REALTIME */
	int64_t bias_ns;  /* median service time that this tracer, here, gives a call that does
			     * nothing: what tracing adds to each service_ns; 0 if not measured */
};

struct log_writer;

/* Makes 'path' (mode 0600; -EEXIST if it is there). */
int log_writer_new(const char *path, const char *tracer, struct log_writer **out, struct err *e);

/* Puts 'ns' into the head as bias_ns; before the first record. */
void log_writer_bias(struct log_writer *w, int64_t ns);

/* Appends; sets rec->number. Buffered: at most one second or 64 KiB behind the file. */
int log_write(struct log_writer *w, struct record *rec, struct err *e);

/* Brings the file up to date; for tracers' idle moments. */
int log_flush(struct log_writer *w, struct err *e);

/* Writes the END record with 'lost' as total, syncs and frees 'w' even in case of errors.
 * A full disk is an error here at the latest. */
int log_writer_end(struct log_writer *w, uint64_t lost, struct err *e);

/* Frees without END (the log then counts as cut short). NULL is fine. */
void log_writer_free(struct log_writer *w);

struct log_reader;

/* Opens 'path', or standard input for "-". Memory use is constant. -EINVAL when it is no log,
 * or of a version that this program does not know, with what to do. */
int log_reader_new(const char *path, struct log_reader **out, struct err *e);
const struct log_head *log_reader_head(const struct log_reader *r);

/* 1 and '*rec' (owned by the reader, valid until the next call), 0 after the last one,
 * -EBADMSG with the byte offset where the log is damaged or cut short. Everything before
 * the damage has been returned by then. */
int log_next(struct log_reader *r, const struct record **rec, struct err *e);
void log_reader_free(struct log_reader *r);

/* Looks at the end of the log alone: 0 and its END record, '*bytes' (may be NULL) its size;
 * -EBADMSG when there is none, that is, when the tracer did not end in order. */
int log_read_end(const char *path, struct record_end *end, uint64_t *bytes, struct err *e);

#endif
