/* Private to diag/import/csv*.c. */
#ifndef CULPRIT_DIAG_IMPORT_CSV_IMPL_H
#define CULPRIT_DIAG_IMPORT_CSV_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/import/import.h"
#include "harness/base/map.h"

enum { CSV_ROW_MAX = 64 << 20, CSV_COLUMNS_MAX = 1 << 21 };

/* One field of a row, as it stands in the file: with its quotes, without blanks around it. */
struct csv_field {
	uint32_t at, n; /* from csv_rows.row on */
};

/* A text, row by row. Fields lie in a buffer, and are valid until the next row. */
struct csv_rows {
	FILE *f;
	char separator;
	bool stop[256]; /* bytes that may end a field */
	char *buffer;   /* followed by a NUL */
	size_t room;
	char *next, *end; /* what is not used yet */
	bool eof;
	const char *row;
	struct csv_field *fields;
	size_t n_fields, fields_room;
	unsigned long line;  /* of the row */
	unsigned long lines; /* up to the row's end */
	const char *wrong;   /* what is wrong with the row */
	bool ahead;          /* give only rows that are in the buffer */
	bool failed;         /* 'f' cannot be read; errno says why */
};

void csv_rows_init(struct csv_rows *r, FILE *f);
void csv_rows_clear(struct csv_rows *r);
void csv_rows_separator(struct csv_rows *r, char separator);
/* The next line, which stays to be read: for what stands before the table. NULL: there is none, or
 * 'wrong' says why. */
const char *csv_rows_line(struct csv_rows *r, size_t *n);
void csv_rows_skip_line(struct csv_rows *r);
/* Reads on until the buffer holds 'n' bytes that are not used yet, or all that is left. */
void csv_rows_ahead(struct csv_rows *r, size_t n);
/* The next row that is not empty. False: there is none, or 'wrong' says why. */
bool csv_rows_next(struct csv_rows *r);

/* Whether the row is the text's last line and has no end; then the data is partial, as is noted. */
bool csv_rows_cut_off(const struct csv_rows *r, struct import_said *said);

static inline const char *csv_text(const struct csv_rows *r, size_t field)
{
	return r->row + r->fields[field].at;
}

/* A field without its quotes, in 'out', as much as fits, with a NUL; the length of all of it. */
size_t csv_unquote(const struct csv_rows *r, size_t field, char *out, size_t size);

/* What a row's fields are. 'keys' are the columns of names; each of 'values' is one sample. */
enum csv_form { CSV_LONG, CSV_COLUMNS, CSV_WIDE };

enum csv_state { CSV_NUMBERS, CSV_UNDECIDED, CSV_TEXT };

struct csv_value {
	uint32_t column;
	enum csv_state state;
};

struct csv_table {
	enum csv_form form;
	char **names; /* of all columns, without quotes */
	size_t n_columns;
	uint32_t time, member, metric; /* columns; UINT32_MAX: none */
	uint32_t zone;                 /* of times without one */
	uint32_t group[IMPORT_GROUPS_MAX];
	size_t n_groups; /* of columns */
	bool collectl;   /* wide: columns are "[DSK:sda]RdWait" */
	bool slashes;    /* wide: the group is the part of the name before the last '/' */
	uint32_t *keys;  /* columns, in the order of the file */
	size_t n_keys;
	bool keys_adjacent; /* they follow one another */
	struct csv_value *values;
	size_t n_values;
	double unit_s;                         /* of the time; 0: to be guessed */
	char only_metric[IMPORT_NAME_MAX + 1]; /* where neither column nor head names it */
};

/* Finds out what the head says. 0, or -EINVAL with a sentence without file and line. */
int csv_head(struct csv_table *t, const struct csv_rows *r, const char *source,
	const struct import_options *o, struct import_said *said, struct err *e);
void csv_table_clear(struct csv_table *t);
/* Takes apart a column of collectl -P, "[DSK:sda]RdWait"; 'member' has IMPORT_NAME_MAX + 1
 * bytes. */
bool csv_collectl_name(const char *name, char *member, const char **metric);
/* Whether it is the name of a column of times; '*unit_s' is 0 if the name has no unit. */
bool csv_time_name(const char *name, double *unit_s);
/* Whether the column is the time, a part of the key, or the value of the long form. */
bool csv_has_role(const struct csv_table *t, uint32_t column);
/* Whether it is a usual name of a member's column, or of a thing that holds others, as a host. */
bool csv_member_name(const char *name);
bool csv_holds_others(const char *name);
/* The separator of a head line: the most frequent outside quotes, or 0. */
char csv_separator(const char *line, size_t n);

/* Columns for a table's key; the names are the table's. */
struct csv_roles {
	const char *member, *group[IMPORT_GROUPS_MAX];
	size_t n_groups;
	bool below; /* the member is below the one that the head gave */
	bool part;  /* the text continues behind what was examined */
};

/* Looks ahead from 'r' for rows that repeat a time of their series. 0: there are few or none; 1:
 * '*roles' separate them; -EINVAL with a sentence without file and line: the user has to say. */
int csv_repeats(const struct csv_table *t, struct csv_rows *r, const struct import_options *o,
	struct csv_roles *roles, struct import_said *said, struct err *e);

struct csv;
/* The same for what is too long to be examined ahead, in one pass: 'csv_repeats_row' is for each
 * row of 'key', 'csv_repeats_judge' for the end: -EINVAL with a sentence. */
void csv_repeats_row(struct csv *c, uint32_t key);
int csv_repeats_judge(struct csv *c);

/* The rows' keys, numbered in the order in which they came. */
struct csv_key {
	const char *text;
	uint32_t n, next; /* next: the key that followed it the last time */
	uint64_t hash;
	bool skip;     /* its samples are not wanted */
	double last_s; /* its newest row; used by csv.c */
};

struct csv_keys {
	struct csv_key *v;
	uint32_t n, last;
	unsigned misses;  /* wrong guesses in a row */
	struct map index; /* by hash: number + 1 */
	char **blocks;    /* of texts */
	size_t n_blocks, block_used;
};

/* The number of a key, new or known. */
uint32_t csv_keys_find(struct csv_keys *k, const char *text, size_t n);
void csv_keys_clear(struct csv_keys *k);

enum { CSV_TIME_MAX = 64, CSV_NAME_ROOM = IMPORT_NAME_MAX + 1 };

/* One text that is read. */
struct csv {
	const char *source;
	const struct import_options *o;
	const struct import_sink *sink;
	struct import_said *said;
	struct err *e;
	struct csv_rows rows;
	struct csv_table table;
	struct csv_keys keys;
	uint32_t *ids; /* [key * n_values + value] */
	size_t ids_room;
	char *scratch; /* keys that do not lie side by side */
	size_t scratch_room;
	char time_text[CSV_TIME_MAX]; /* of the row before, and what it was */
	size_t time_n;
	double time_s;
	uint64_t samples, missing;
	bool ended;                          /* the rest is no table */
	bool local;                          /* there are times without a zone */
	uint64_t back, gaps;                 /* rows that lie before, or long after, the last one */
	unsigned long first_back, first_gap; /* of their series; lines */
	unsigned long head_lines;            /* before the head */
	struct csv_keys times, whole;        /* of rows: key and time; all. See csv_repeats_row */
	unsigned long first_repeat;          /* line; 0: none */
	bool part;                           /* they are kept */
	char skipped[CSV_NAME_ROOM + 1];     /* a metric that was not asked for */
};

/* -EINVAL with a sentence on the row. */
int csv_wrong(struct csv *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Completes what the sink said. */
int csv_refused(struct csv *c, int rc);
/* Whether the row may be one of samples: its time begins with a digit. */
static inline bool csv_may_be_time(const struct csv_table *t, const struct csv_rows *r)
{
	const char *p = csv_text(r, t->time);
	size_t n = r->fields[t->time].n;

	p += n && *p == '"';
	return n && *r->row != '#' && (unsigned)(*p - '0') < 10;
}

/* Whether the row is a head: one of its fields is the name of the times. */
enum csv_again { CSV_NO_HEAD, CSV_SAME_HEAD, CSV_OTHER_HEAD };
enum csv_again csv_head_again(const struct csv_table *t, const struct csv_rows *r);
/* What a row among the rows is that is none: a comment, the head again, the head of another table
 * or the server's error. 1: it is done with; 0: it is something else; or a negative errno. */
int csv_between(struct csv *c);
/* Reads what stands before the table, then the head. */
int csv_begin(struct csv *c);

#endif
