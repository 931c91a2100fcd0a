/*
 * Logs sent elsewhere: their records as rows of the query's tables (diag/query/columns.h), in
 * batches of whole blocks, to a sink: a file of JSON lines, or ClickHouse (sender.h).
 */
#ifndef CULPRIT_DIAG_SHIP_SHIP_H
#define CULPRIT_DIAG_SHIP_SHIP_H

#include <signal.h>

#include "diag/query/columns.h"

/* What a log is, to a store. */
struct ship_subject {
	const struct query_log *log;
	const struct log_head *head;
	int64_t id;          /* ship_log_id */
	int64_t ordinal;     /* among the logs of its run, or of the command line */
	const char *made_of; /* NULL: records; else the table whose rows it is, "requests" */
};

/* Records of the log, and what became of them. */
struct ship_counts {
	uint64_t blocks, records;
	uint64_t before;   /* records that the sink had already */
	uint64_t sent;     /* records that it has got now: rows */
	uint64_t plain;    /* records that are rows of no table: marks */
	uint64_t lost;     /* records that the tracer could not write */
	bool whole;        /* read to its end */
	bool grows;        /* read to its last whole block: it is being written */
	char problem[512]; /* neither: why not */
};

/* Where rows go to. All return 0 or a negative errno, which ends the shipping. */
struct ship_sink {
	void *ctx;
	/* A log begins; '*from': the first block that the sink has not got. */
	int (*begin)(void *ctx, const struct ship_subject *s, uint64_t *from, struct err *e);
	int (*row)(void *ctx, const struct query_table *t, struct query_row *row, struct err *e);
	/* The rows since the last batch are those of the blocks up to, without, 'to'. */
	int (*batch)(void *ctx, uint64_t to, struct err *e);
	int (*end)(void *ctx, const struct ship_counts *c, struct err *e);
};

struct ship_spec {
	uint64_t batch_blocks;                    /* of a batch */
	const volatile sig_atomic_t *interrupted; /* not 0: stop; or NULL */
};

/* Sends the rows of one log. A log that is damaged or cut short is sent up to there, and told in
 * 'counts'. Errors: those of opening the log, and of the sink; -EINTR. */
int ship_log(const struct query_log *log, int64_t ordinal, const struct ship_spec *spec,
	const struct ship_sink *sink, struct ship_counts *counts, struct err *e);

/*
 * The same in steps, for a log that is being written: ship_more sends what has come since, in
 * batches of whole blocks, as often as it is called; '*ended': nothing more will come. ship_end
 * tells the sink how far it got. The sink serves one log at a time. ship_open: -EAGAIN where the
 * log has no whole block yet, which gives it its identity.
 */
struct ship;
int ship_open(const struct query_log *log, int64_t ordinal, const struct ship_spec *spec,
	const struct ship_sink *sink, struct ship **out, struct err *e);
int ship_more(struct ship *s, bool *ended, struct err *e);
int ship_end(struct ship *s, struct ship_counts *counts, struct err *e);
void ship_close(struct ship *s); /* NULL is fine */

/* What a log is known by wherever it lies: from its head and its first block; above 0. */
int ship_log_id(const char *path, int64_t *id, struct err *e);
/* Such a number of a text. */
int64_t ship_text_id(const char *text);

/* ---- ship_lines.c ---- */

/* JSON lines as a sink of logs: {"table":"events","time_ns":...}, one row a line, without columns
 * that have no value. */

struct ship_lines;

/* 'path' "-": standard output. A file is there only once it is whole: ship_lines_end. */
int ship_lines_new(const char *path, struct ship_lines **out, struct err *e);
struct ship_sink ship_lines_sink(struct ship_lines *l);
/* Puts the file in its place if 'rc' is 0; returns what outfile_close does. */
int ship_lines_end(struct ship_lines *l, int rc, struct err *e);
void ship_lines_free(struct ship_lines *l); /* NULL is fine */

/* ---- ship_follow.c ---- */

/* culprit ship --follow: logs that are being written, shipped as they grow. */

struct ship_follow;

/* What the follower needs of the command. */
struct ship_followed {
	void *ctx;
	const struct ship_spec *spec;
	/* A sink for one log, in '*sink', to be given back by 'close'. */
	int (*open)(void *ctx, struct ship_sink *sink, struct err *e);
	void (*close)(void *ctx, struct ship_sink *sink);
	/* A log has been sent to its end. */
	void (*tell)(void *ctx, const char *name, const struct ship_counts *c);
};

struct ship_follow *ship_follow_new(const struct ship_followed *f);
void ship_follow_free(struct ship_follow *s);

/* Adds the logs whose names are not known yet; they are borrowed. */
void ship_follow_add(struct ship_follow *s, const struct query_log *logs, size_t n);

/* Sends what has come since the last time. '*left': so many logs are being written. */
int ship_follow_step(struct ship_follow *s, size_t *left, struct err *e);

#endif
