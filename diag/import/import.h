/*
 * Series from files and servers, sample by sample: a reader of one format (csv.c, prometheus.c ...)
 * gives each sample to a sink and keeps no sample, so memory depends on the number of series only.
 *
 * A series is one metric of one member: a disk, a server, an OSD. Members are compared with the
 * other members of their group; groups may be nested (rack, host).
 */
#ifndef CULPRIT_DIAG_IMPORT_IMPORT_H
#define CULPRIT_DIAG_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

enum { IMPORT_GROUPS_MAX = 4, IMPORT_NAME_MAX = 200 };

/* Texts are UTF-8, not empty, without characters that control a terminal or the direction of text,
 * and at most IMPORT_NAME_MAX bytes; the reader has checked this with import_name, and owns
 * them. */
struct series_key {
	const char *metric, *member;
	const char *group[IMPORT_GROUPS_MAX]; /* from the widest (rack) to the narrowest (host) */
	size_t n_groups;                      /* the same for all series of an input */
};

/* The receiver of samples. Each function returns 0, or a negative errno with a sentence that the
 * reader completes with file and line; then the reader stops. */
struct import_sink {
	void *ctx;
	/* Returns the number of a series, the same for the same key in every input. Readers ask
	 * once for each series and remember the number. */
	int (*series)(void *ctx, const struct series_key *key, uint32_t *id, struct err *e);
	/* 'time_s' is finite, since the Unix epoch or the input's own zero. 'value' is NAN if the
	 * input marks it as missing. */
	int (*sample)(void *ctx, uint32_t id, double time_s, double value, struct err *e);
	/* Receives an input's declaration of a metric: "read_ms unit=ms worse=more"
	 * (diag/fleet/metric.h). NULL: such lines are not checked. */
	int (*metric)(void *ctx, const char *declaration, struct err *e);
};

/* How to read an input; all zero: find out. */
struct import_options {
	const char *format; /* "csv", "sar", "iostat", "ceph", "prometheus-text" ...; or NULL */
	const char *time, *member;  /* names of columns or labels; NULL: find out */
	const char *metric, *value; /* columns of the long form; NULL: find out */
	/* from the widest to the narrowest; NULL at the end */
	const char *group[IMPORT_GROUPS_MAX];
	const char *const *metrics; /* read only these metrics; NULL: all */
	size_t n_metrics;
	const char *only_metric; /* the metric's name if the input has none; NULL: "value" */
	bool settled;            /* a later piece of an input: its keys may not change */
	double from_s, to_s;     /* samples outside are skipped; both 0: none skipped */
};

/* How the input was understood, for the user. All texts are allocated; import_said_clear frees. */
struct import_said {
	char *form;   /* "long CSV: time in ms, member in column 'disk', groups in 'host'" */
	char **notes; /* "12 rows repeat a time of their series" ...; n_notes of these */
	size_t n_notes;
	/* Columns that became part of the key because rows repeated a time without them; NULL: no
	 * column. */
	char *member, *group[IMPORT_GROUPS_MAX];
	uint64_t samples, missing; /* given to the sink; those without a value */
	char *partial;             /* why existing samples may be missing; NULL: complete */
};
void import_said_clear(struct import_said *said);

/* Reads a file ("-": standard input) of any known format, also compressed by gzip or zstd. Errors:
 * -EINVAL with "FILE:LINE: sentence" for bad input, -EIO, -ENOENT ...; the sink's error, completed
 * in the same way. Wrong input has the class ERR_SCENARIO. '*said' (may be NULL) is zero at
 * first. */
int import_file(const char *path, const struct import_options *o, const struct import_sink *sink,
	struct import_said *said, struct err *e);

/* One row for each format, in the order in which they are tried on a file's first bytes. */
struct import_format {
	const char *name;    /* "csv" */
	const char *summary; /* one line for help and messages */
	/* Do the first bytes (decompressed, NUL-terminated) look like this format? */
	bool (*looks)(const char *head, size_t size);
	/* 'f' gives the decompressed text; messages call it 'source'. */
	int (*read)(FILE *f, const char *source, const struct import_options *o,
		const struct import_sink *sink, struct import_said *said, struct err *e);
};
extern const struct import_format import_formats[]; /* ended by a NULL name */

/* May 'text' name a metric, a member or a group? */
bool import_name(const char *text);
/* Adds a note to '*said' (may be NULL), unless it has the same note already. */
void import_note(struct import_said *said, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Like import_note; the data is also partial for this reason. */
void import_note_partial(struct import_said *said, const char *why);

/* Reads a whole text as a time: Unix seconds (with fraction), or ISO 8601 ("2026-11-22T14:00:00Z",
 * with offset or a zone as in import_zone, with a blank instead of T, with fraction; without a zone
 * it is UTC). -EINVAL. Numbers without unit are multiplied by 'unit_s'. */
int import_time(const char *text, double unit_s, double *time_s);

/* The offset of a zone from UTC: "CET", "+01", "+0100", "+01:00". False: unknown, or an ambiguous
 * abbreviation ("CST"). */
bool import_zone(const char *text, int *offset_s);

#endif
