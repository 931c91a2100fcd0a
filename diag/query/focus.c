/* What all queries of one struct query look at. */
#include <string.h>

#include "diag/query/columns_impl.h"
#include "diag/query/query_impl.h"
#include "harness/base/clock.h"

unsigned focus_needs(const struct query_focus *focus, enum record_type of)
{
	if (of != RECORD_CALL)
		return 0;
	return focus->path ? NEEDS_DETAILS | NEEDS_STATE : focus->thread ? NEEDS_STATE : 0;
}

static bool equal(enum column_key key, const char *text, const struct query_log *log,
	const struct log_head *head, struct scan_filter *f)
{
	struct push_value v = {.type = PUSH_TEXT, .text = (char *)text};
	const struct push p = {.key = key, .op = PUSH_EQ, .values = &v, .n = 1};

	return !text || push_apply(&p, log, head, f);
}

static bool in_time(const struct query_focus *focus, int64_t start_ns, struct scan_filter *f)
{
	int64_t from = clock_sum_ns(start_ns, focus->from_ns), to = INT64_MAX;

	if (focus->to_ns)
		to = clock_sum_ns(clock_sum_ns(start_ns, focus->to_ns), -1);
	if (from > f->from_ns)
		f->from_ns = from;
	if (to < f->to_ns)
		f->to_ns = to;
	return f->from_ns <= f->to_ns;
}

bool focus_apply(const struct query_focus *focus, enum record_type of, const struct query_log *log,
	const struct log_head *head, struct scan_filter *f)
{
	if (focus->attempt && focus->attempt != log->attempt)
		return false;
	if (!equal(KEY_NODE, focus->node, log, head, f))
		return false;
	if (!head)
		return true;
	if (focus->in_time && !in_time(focus, query_start_ns(log, head), f))
		return false;
	if (of != RECORD_CALL)
		return true;
	if (focus->id)
		f->either = focus->id;
	f->failed = f->failed || focus->failed;
	return equal(KEY_CALL, focus->call, log, head, f) &&
		equal(KEY_CLASS, focus->class, log, head, f);
}

static bool has_path(const char *part, struct query_row *row)
{
	const char *path = call_file(row->item, false, row->text, sizeof(row->text));

	if (path && strstr(path, part))
		return true;
	path = call_file(row->item, true, row->text, sizeof(row->text));
	return path && strstr(path, part);
}

bool focus_holds(const struct query_focus *focus, enum record_type of, struct query_row *row)
{
	struct column_value v = {.type = VALUE_NULL};

	if (of != RECORD_CALL)
		return true;
	if (focus->thread) {
		get_thread(row, &v);
		if (v.type != VALUE_TEXT || strcmp(v.text, focus->thread) != 0)
			return false;
	}
	return !focus->path || has_path(focus->path, row);
}
