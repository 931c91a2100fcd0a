/* How columns are written down: values, and the columns that all tables begin with. */
#ifndef CULPRIT_DIAG_QUERY_COLUMNS_IMPL_H
#define CULPRIT_DIAG_QUERY_COLUMNS_IMPL_H

#include "diag/query/columns.h"

/* The rest of the function's name is the column's. */
#define GET(name) static void get_##name(struct query_row *row, struct column_value *out)

static inline void give_int(struct column_value *out, int64_t n)
{
	out->type = VALUE_INT;
	out->number = n;
}

static inline void give_real(struct column_value *out, double v)
{
	out->type = VALUE_REAL;
	out->real = v;
}

/* NULL and "" are no value. 'lasting' as in struct column_value. */
static inline void give_text(struct column_value *out, const char *s, bool lasting)
{
	if (!s || !*s)
		return;
	out->type = VALUE_TEXT;
	out->text = s;
	out->lasting = lasting;
}

void get_time_ns(struct query_row *row, struct column_value *out);
void get_t(struct query_row *row, struct column_value *out);
void get_cell(struct query_row *row, struct column_value *out);
void get_attempt(struct query_row *row, struct column_value *out);
void get_phase(struct query_row *row, struct column_value *out);
void get_node(struct query_row *row, struct column_value *out);
void get_log(struct query_row *row, struct column_value *out);
void get_owner(struct query_row *row, struct column_value *out);
void get_number(struct query_row *row, struct column_value *out);
void get_pid(struct query_row *row, struct column_value *out);
void get_tid(struct query_row *row, struct column_value *out);
void get_process(struct query_row *row, struct column_value *out);
void get_thread(struct query_row *row, struct column_value *out);

/* What a descriptor means; 'f' may be NULL. */
void give_kind(struct column_value *out, const struct record_fd *f);
void give_device(struct query_row *row, struct column_value *out, const struct file_tag *t);
void give_inode(struct column_value *out, const struct file_tag *t);
void give_file(struct query_row *row, struct column_value *out, const struct file_tag *t);
void give_address(
	struct query_row *row, struct column_value *out, const struct sockaddr_storage *a);
void give_device_number(struct query_row *row, struct column_value *out, uint64_t device);

/* clang-format off */
/* The columns of every table. */
#define COLUMNS_PLACE \
	{"time_ns", COLUMN_INT, 0, get_time_ns, \
		"when it began: ns since 1970 on its node's clock", KEY_TIME_NS}, \
	{"t", COLUMN_REAL, OF_PLACE, get_t, \
		"when it began: s since the attempt's start, on the orchestrator's clock; " \
		"outside of runs since the log's", KEY_T}, \
	{"cell", COLUMN_INT, OF_PLACE, get_cell, "cells.number", KEY_CELL}, \
	{"attempt", COLUMN_INT, OF_PLACE, get_attempt, "attempts.id", KEY_ATTEMPT}, \
	{"phase", COLUMN_TEXT, OF_PLACE, get_phase, \
		"before, during or after the fault was verified to act; NULL: no fault", \
		KEY_PHASE}, \
	{"node", COLUMN_TEXT, OF_PLACE, get_node, "name in the inventory, or host", KEY_NODE}, \
	{"log", COLUMN_TEXT, OF_PLACE, get_log, "file of the log, in the run's folder", KEY_LOG}, \
	{"owner", COLUMN_TEXT, OF_PLACE, get_owner, \
		"server, daemon (of a client's file system) or app; NULL: not known", KEY_OWNER}, \
	{"number", COLUMN_INT, 0, get_number, "of the record in its log"}

#define COLUMNS_THREAD \
	{"pid", COLUMN_INT, 0, get_pid, "process", KEY_PID}, \
	{"tid", COLUMN_INT, 0, get_tid, "thread", KEY_TID}, \
	{"process", COLUMN_TEXT, NEEDS_STATE, get_process, "name of the process"}, \
	{"thread", COLUMN_TEXT, NEEDS_STATE, get_thread, "name of the thread"}
/* clang-format on */

extern const struct column columns_events[], columns_totals[], columns_descriptors[],
	columns_processes[], columns_signals[], columns_readings[], columns_sums[], columns_fuse[],
	columns_losses[], columns_unseen[], columns_requests[], columns_failures[];

#endif
