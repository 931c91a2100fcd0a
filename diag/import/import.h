/*
 * Series from elsewhere, sample by sample: a reader of one format (csv.c, prometheus.c ...) gives
 * each sample to a sink, and keeps none of them. So memory depends on the number of series, not of
 * samples.
 *
 * A series is one metric of one member: a disk, a server, an OSD. Members are compared with the
 * other members of their group; groups may lie in groups (rack, host).
 */
#ifndef CULPRIT_DIAG_IMPORT_IMPORT_H
#define CULPRIT_DIAG_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

enum { IMPORT_GROUPS_MAX = 4, IMPORT_NAME_MAX = 200 };

/* Texts are UTF-8 without characters that control a terminal or the direction of text, not empty,
 * and at most IMPORT_NAME_MAX bytes; the reader has checked this with import_name. They are the
 * reader's own. */
struct series_key {
	const char *metric, *member;
	const char *group[IMPORT_GROUPS_MAX]; /* from the widest (rack) to the narrowest (host) */
	size_t n_groups;                      /* the same for all series of an input */
};

/* Where samples go. Each function returns 0, or a negative errno with a sentence that the reader
 * completes with file and line; then the reader stops. */
struct import_sink {
	void *ctx;
	/* The number of a series, the same for the same key in every input. Readers ask once a
	 * series and remember. */
	int (*series)(void *ctx, const struct series_key *key, uint32_t *id, struct err *e);
	/* 'time_s' since the Unix epoch, or since any zero that the input has; finite. 'value' is
	 * NAN where the input says that there is none. */
	int (*sample)(void *ctx, uint32_t id, double time_s, double value, struct err *e);
	/* What an input says of a metric: "read_ms unit=ms worse=more" (diag/fleet/metric.h). NULL:
	 * such lines are checked by nobody. */
	int (*metric)(void *ctx, const char *declaration, struct err *e);
};

/* How an input is to be read; all zero: find out. */
struct import_options {
	const char *format; /* "csv", "sar", "iostat", "ceph", "prometheus-text" ...; or NULL */
	const char *time, *member;            /* columns or labels of this name; NULL: find out */
	const char *metric, *value;           /* columns of the long form; NULL: find out */
	const char *group[IMPORT_GROUPS_MAX]; /* from the widest to the narrowest; NULL ends */
	const char *const *metrics;           /* take only these metrics; NULL: all */
	size_t n_metrics;
	const char *only_metric; /* the metric's name where the input has none; NULL: "value" */
	bool settled;            /* a later piece of an input: its keys may not change */
	double from_s, to_s;     /* samples outside are skipped; both 0: none are */
};

/* What was understood, to be told to the user. All texts are allocated; import_said_clear frees. */
struct import_said {
	char *form;   /* "long CSV: time in ms, member in column 'disk', groups in 'host'" */
	char **notes; /* "12 rows repeat a time of their series" ...; n_notes of them */
	size_t n_notes;
	/* Columns that became the key because rows repeated a time without them; NULL: none did. */
	char *member, *group[IMPORT_GROUPS_MAX];
	uint64_t samples, missing; /* given to the sink; of them without a value */
	char *partial;             /* why samples may be missing that exist; NULL: none should */
};
void import_said_clear(struct import_said *said);

/* Reads a file ("-": standard input) of any format known here, also compressed by gzip or zstd.
 * Errors: -EINVAL with "FILE:LINE: sentence" for what is not allowed, -EIO, -ENOENT ...; what the
 * sink returned, completed in the same way. The class is ERR_SCENARIO where the input is wrong.
 * '*said' (may be NULL) is zero at first. */
int import_file(const char *path, const struct import_options *o, const struct import_sink *sink,
	struct import_said *said, struct err *e);

/* One row a format, in the order in which they are tried on a file's first bytes. */
struct import_format {
	const char *name;    /* "csv" */
	const char *summary; /* one line for help and messages */
	/* Whether the first bytes (without compression, NUL-terminated) look like this format. */
	bool (*looks)(const char *head, size_t size);
	/* 'f' gives the text without compression; messages call it 'source'. */
	int (*read)(FILE *f, const char *source, const struct import_options *o,
		const struct import_sink *sink, struct import_said *said, struct err *e);
};
extern const struct import_format import_formats[]; /* ended by a NULL name */

/* Whether 'text' may name a metric, a member or a group. */
bool import_name(const char *text);
/* A note for '*said' (may be NULL); nothing if it has the same note already. */
void import_note(struct import_said *said, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* As import_note; and the data is partial for this reason as well. */
void import_note_partial(struct import_said *said, const char *why);

/* Whole text as a time: Unix seconds (with fraction), ISO 8601 ("2026-11-22T14:00:00Z", with
 * offset or a zone as in import_zone, with a blank instead of T, with fraction; without a zone it
 * is UTC). -EINVAL. Numbers without unit are multiplied by 'unit_s'. */
int import_time(const char *text, double unit_s, double *time_s);

/* How far a zone is ahead of UTC: "CET", "+01", "+0100", "+01:00". false: not known, or the
 * abbreviation means several ("CST"). */
bool import_zone(const char *text, int *offset_s);

#endif
