/* Private to diag/import/csv*.c. */
#ifndef CULPRIT_DIAG_IMPORT_CSV_IMPL_H
#define CULPRIT_DIAG_IMPORT_CSV_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/import/import.h"
#include "harness/base/map.h"

enum { CSV_ROW_MAX = 64 << 20, CSV_COLUMNS_MAX = 1 << 21 };

/* One field of a row, as in the file: with its quotes, without blanks around it. */
struct csv_field {
	uint32_t at, n; /* from csv_rows.row */
};

/* A text, read row by row. Fields are in a buffer, and are valid until the next row. */
struct csv_rows {
	FILE *f;
	char separator;
	bool stop[256]; /* bytes that may end a field */
	char *buffer;   /* ends with a NUL */
	size_t room;
	char *next, *end; /* the unused part */
	bool eof;
	const char *row;
	struct csv_field *fields;
	size_t n_fields, fields_room;
	unsigned long line;  /* of the row */
	unsigned long lines; /* up to the row's end */
	const char *wrong;   /* the mistake in the row */
	bool ahead;          /* return only rows that are in the buffer */
	bool failed;         /* 'f' cannot be read; errno has the reason */
};

void csv_rows_init(struct csv_rows *r, FILE *f);
void csv_rows_clear(struct csv_rows *r);
void csv_rows_separator(struct csv_rows *r, char separator);
/* The next line, which is not consumed: used before the table. NULL: end of text, or 'wrong' has
 * the mistake. */
const char *csv_rows_line(struct csv_rows *r, size_t *n);
void csv_rows_skip_line(struct csv_rows *r);
/* Reads until the buffer has 'n' unused bytes, or the rest of the text. */
void csv_rows_ahead(struct csv_rows *r, size_t n);
/* The next row that is not empty. False: end of text, or 'wrong' has the mistake. */
bool csv_rows_next(struct csv_rows *r);

/* Is the row the text's last line, without a newline? Then notes that the data is partial. */
bool csv_rows_cut_off(const struct csv_rows *r, struct import_said *said);

static inline const char *csv_text(const struct csv_rows *r, size_t field)
{
	return r->row + r->fields[field].at;
}

/* Copies a field without its quotes to 'out', truncated if necessary, with a NUL; returns the full
 * length. */
size_t csv_unquote(const struct csv_rows *r, size_t field, char *out, size_t size);

/* The meaning of a row's fields. 'keys' are the columns of names; each of 'values' is one
 * sample. */
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
	uint32_t zone;                 /* zone of times without one */
	uint32_t group[IMPORT_GROUPS_MAX];
	size_t n_groups; /* of columns */
	bool collectl;   /* wide: columns are "[DSK:sda]RdWait" */
	bool slashes;    /* wide: the group is the part of the name before the last '/' */
	uint32_t *keys;  /* columns, in the order of the file */
	size_t n_keys;
	bool keys_adjacent; /* the keys are adjacent columns */
	struct csv_value *values;
	size_t n_values;
	double unit_s;                         /* of the time; 0: to be guessed */
	char only_metric[IMPORT_NAME_MAX + 1]; /* if neither column nor head names it */
};

/* Derives the table from the head. 0, or -EINVAL with a sentence without file and line. */
int csv_head(struct csv_table *t, const struct csv_rows *r, const char *source,
	const struct import_options *o, struct import_said *said, struct err *e);
void csv_table_clear(struct csv_table *t);
/* Splits a column name of collectl -P, "[DSK:sda]RdWait"; 'member' has IMPORT_NAME_MAX + 1
 * bytes. */
bool csv_collectl_name(const char *name, char *member, const char **metric);
/* Is it the name of a column of times? '*unit_s' is 0 if the name has no unit. */
bool csv_time_name(const char *name, double *unit_s);
/* Is the column the time, a part of the key, or the value of the long form? */
bool csv_has_role(const struct csv_table *t, uint32_t column);
/* Is it a usual name of a member's column, or of a thing that contains others, such as a host? */
bool csv_member_name(const char *name);
bool csv_holds_others(const char *name);
/* The separator of a head line: the most frequent outside quotes, or 0. */
char csv_separator(const char *line, size_t n);

/* Columns for a table's key; the table owns the names. */
struct csv_roles {
	const char *member, *group[IMPORT_GROUPS_MAX];
	size_t n_groups;
	bool below; /* the member is below the head's member */
	bool part;  /* the text continues after the examined part */
};

/* Examines the rows ahead of 'r' for repeated times of a series. 0: few or none; 1: '*roles'
 * separate them; -EINVAL with a sentence without file and line: the user has to choose. */
int csv_repeats(const struct csv_table *t, struct csv_rows *r, const struct import_options *o,
	struct csv_roles *roles, struct import_said *said, struct err *e);

struct csv;
/* The same in one pass for the part that is too long to examine ahead: csv_repeats_row for each row
 * of 'key', csv_repeats_judge at the end: -EINVAL with a sentence. */
void csv_repeats_row(struct csv *c, uint32_t key);
int csv_repeats_judge(struct csv *c);

/* The rows' keys, numbered in order of appearance. */
struct csv_key {
	const char *text;
	uint32_t n, next; /* next: the key that followed it last time */
	uint64_t hash;
	bool skip;     /* its samples are not requested */
	double last_s; /* time of its newest row; used by csv.c */
};

struct csv_keys {
	struct csv_key *v;
	uint32_t n, last;
	unsigned misses;  /* wrong guesses in a row */
	struct map index; /* by hash: number + 1 */
	char **blocks;    /* of texts */
	size_t n_blocks, block_used;
};

/* Finds or adds a key. */
uint32_t csv_keys_find(struct csv_keys *k, const char *text, size_t n);
void csv_keys_clear(struct csv_keys *k);

enum { CSV_TIME_MAX = 64, CSV_NAME_ROOM = IMPORT_NAME_MAX + 1 };

/* The text being read. */
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
	char *scratch; /* keys whose columns are not adjacent */
	size_t scratch_room;
	char time_text[CSV_TIME_MAX]; /* of the previous row */
	size_t time_n;
	double time_s;
	uint64_t samples, missing;
	bool ended; /* no table follows */
	bool local; /* there are times without a zone */
	/* Rows before, or long after, the last one of their series. */
	uint64_t back, gaps;
	unsigned long first_back, first_gap; /* line numbers of these */
	unsigned long head_lines;            /* lines before the head */
	/* keys of rows with their time; whole rows. See csv_repeats_row */
	struct csv_keys times, whole;
	unsigned long first_repeat;      /* line; 0: none */
	bool part;                       /* 'times' and 'whole' are kept */
	char skipped[CSV_NAME_ROOM + 1]; /* a metric that was not requested */
};

/* -EINVAL with a sentence on the row. */
int csv_wrong(struct csv *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Completes the sink's error. */
int csv_refused(struct csv *c, int rc);
/* May the row be a row of samples? Its time then begins with a digit. */
static inline bool csv_may_be_time(const struct csv_table *t, const struct csv_rows *r)
{
	const char *p = csv_text(r, t->time);
	size_t n = r->fields[t->time].n;

	p += n && *p == '"';
	return n && *r->row != '#' && (unsigned)(*p - '0') < 10;
}

/* Is the row a head? Then one of its fields is the name of the times. */
enum csv_again { CSV_NO_HEAD, CSV_SAME_HEAD, CSV_OTHER_HEAD };
enum csv_again csv_head_again(const struct csv_table *t, const struct csv_rows *r);
/* Handles a row that is not a row of samples: a comment, the head again, the head of another table
 * or the server's error. 1: handled; 0: something else; or a negative errno. */
int csv_between(struct csv *c);
/* Reads the lines before the table, then the head. */
int csv_begin(struct csv *c);

#endif
