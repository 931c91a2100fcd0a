/* Turns a query's conditions into limits on what is read. */
#include <math.h>
#include <string.h>

#include "diag/query/push.h"
#include "harness/base/clock.h"

struct range {
	int64_t low, high;
};

static int64_t to_int(double v)
{
	if (v >= 9.2e18)
		return INT64_MAX;
	return v <= -9.2e18 ? INT64_MIN : (int64_t)v;
}

/* The whole numbers that may be on the right side of the value; a little too many is fine. */
static struct range around(const struct push_value *v)
{
	if (v->type == PUSH_INT)
		return (struct range){v->number, v->number};
	return (struct range){to_int(floor(v->real)), to_int(ceil(v->real))};
}

static bool is_number(const struct push_value *v)
{
	return v->type == PUSH_INT || v->type == PUSH_REAL;
}

/* The numbers for which the condition can hold; false: it is not understood. */
static bool range_of(const struct push *p, struct range *out)
{
	struct range all = {INT64_MAX, INT64_MIN}, one;

	if (!p->n)
		return false;
	for (size_t i = 0; i < p->n; i++) {
		if (!is_number(&p->values[i]))
			return false;
		one = around(&p->values[i]);
		if (one.low < all.low)
			all.low = one.low;
		if (one.high > all.high)
			all.high = one.high;
	}
	if (p->op == PUSH_GT || p->op == PUSH_GE)
		all.high = INT64_MAX;
	else if (p->op == PUSH_LT || p->op == PUSH_LE)
		all.low = INT64_MIN;
	else if (p->op == PUSH_NOT_NULL)
		return false;
	*out = all;
	return true;
}

static bool narrow(int64_t *low, int64_t *high, struct range r)
{
	if (r.low > *low)
		*low = r.low;
	if (r.high < *high)
		*high = r.high;
	return *low <= *high;
}

/* Seconds since 'start_ns'; with some room for rounding. */
static bool apply_t(const struct push *p, int64_t start_ns, struct scan_filter *f)
{
	struct push_value *v = p->values;
	struct range r = {INT64_MIN, INT64_MAX};
	double ns, slack;

	if (p->n != 1 || !is_number(v) || p->op == PUSH_IN || p->op == PUSH_NOT_NULL)
		return true;
	ns = (v->type == PUSH_INT ? (double)v->number : v->real) * 1e9;
	slack = 1000 + fabs(ns) * 1e-12;
	if (p->op != PUSH_LT && p->op != PUSH_LE)
		r.low = clock_sum_ns(start_ns, to_int(ns - slack));
	if (p->op != PUSH_GT && p->op != PUSH_GE)
		r.high = clock_sum_ns(start_ns, to_int(ns + slack));
	return narrow(&f->from_ns, &f->to_ns, r);
}

/* Whole seconds. */
static bool apply_second(const struct push *p, int64_t start_ns, struct scan_filter *f)
{
	struct range r;

	if (!range_of(p, &r))
		return true;
	if (r.low > INT64_MIN / 1000000000 && r.low < INT64_MAX / 1000000000)
		r.low = clock_sum_ns(start_ns, r.low * 1000000000);
	else
		r.low = INT64_MIN;
	if (r.high > INT64_MIN / 1000000000 && r.high < INT64_MAX / 1000000000 - 1)
		r.high = clock_sum_ns(start_ns, (r.high + 1) * 1000000000 - 1);
	else
		r.high = INT64_MAX;
	return narrow(&f->from_ns, &f->to_ns, r);
}

static bool is_one(const struct push *p)
{
	return p->op == PUSH_EQ || p->op == PUSH_IN;
}

static bool apply_ids(const struct push *p, struct scan_ids *ids)
{
	struct scan_ids found = {.n = 0};
	struct range r;

	if (!is_one(p) || p->n > SCAN_IDS || ids->n)
		return true;
	for (size_t i = 0; i < p->n; i++) {
		if (!is_number(&p->values[i]))
			return true;
		r = around(&p->values[i]);
		if (r.low == r.high && r.low >= 0 && r.low <= UINT32_MAX)
			found.id[found.n++] = (uint32_t)r.low;
	}
	*ids = found;
	return found.n;
}

/* Is the text one of the values? Conditions that are not understood hold. */
static bool push_is_among(const struct push *p, const char *text)
{
	if (!is_one(p))
		return true;
	for (size_t i = 0; i < p->n; i++)
		if (p->values[i].type != PUSH_TEXT || (text && !strcmp(p->values[i].text, text)))
			return true;
	return false;
}

static bool apply_calls(const struct push *p, const struct call_arch *arch, struct scan_filter *f)
{
	uint64_t any = 0;

	if (!is_one(p))
		return true;
	for (uint32_t nr = 0; nr < ZONE_CALLS; nr++) {
		const struct call_info *info = call_info(arch, nr);
		const char *of = !info || p->key == KEY_CALL ? (info ? info->name : NULL)
							     : call_class_name(info->class);

		if (!info && p->key == KEY_CLASS)
			of = call_class_name(CALL_OTHER);
		/* The last one stands for all that have no bit of their own. */
		if (nr < ZONE_CALLS - 1 && !push_is_among(p, of))
			f->calls[nr / 64] &= ~(1ull << nr % 64);
	}
	f->some_calls = true;
	for (size_t i = 0; i < ZONE_CALLS / 64; i++)
		any |= f->calls[i];
	return any;
}

static bool apply_errno(const struct push *p, struct scan_filter *f)
{
	const char *name;

	if (p->op != PUSH_NOT_NULL && !is_one(p))
		return true;
	f->failed = true;
	if (p->op != PUSH_EQ || p->values->type != PUSH_TEXT)
		return true;
	for (int64_t result = -1; result >= -4095; result--) {
		name = call_error_name(result);
		if (name && !strcmp(name, p->values->text))
			return narrow(
				&f->least_result, &f->most_result, (struct range){result, result});
	}
	return false;
}

static bool apply_phase(const struct push *p, const struct query_log *log, struct scan_filter *f)
{
	const int64_t ahead = log->spec.clock_offset_ns;
	const char *is = p->op == PUSH_EQ && p->values->type == PUSH_TEXT ? p->values->text : NULL;
	struct range r = {INT64_MIN, INT64_MAX};

	if (!log->onset_ns)
		return !is; /* it is NULL */
	if (!is)
		return true;
	if (!strcmp(is, "before"))
		r.high = log->onset_ns + ahead - 1;
	else if (!strcmp(is, "during"))
		r = (struct range){log->onset_ns + ahead,
			log->offset_ns ? log->offset_ns + ahead - 1 : INT64_MAX};
	else if (!strcmp(is, "after") && log->offset_ns)
		r.low = log->offset_ns + ahead;
	else
		return false;
	return narrow(&f->from_ns, &f->to_ns, r);
}

static bool apply_number(const struct push *p, const struct query_log *log, int64_t is)
{
	struct range r;

	if (!range_of(p, &r))
		return true;
	return log->in_attempt && is >= r.low && is <= r.high;
}

bool push_range(const struct push *p, int64_t *low, int64_t *high)
{
	struct range r;

	if (!range_of(p, &r))
		return false;
	*low = r.low;
	*high = r.high;
	return true;
}

bool push_apply(const struct push *p, const struct query_log *log, const struct log_head *head,
	struct scan_filter *f)
{
	struct range r;

	switch (p->key) {
	case KEY_LOG: return push_is_among(p, log->name);
	case KEY_OWNER: return push_is_among(p, query_owner(log));
	case KEY_CELL: return apply_number(p, log, log->cell);
	case KEY_ATTEMPT: return apply_number(p, log, log->attempt);
	case KEY_PHASE: return apply_phase(p, log, f);
	case KEY_NODE:
		if (!head && !log->node)
			return true;
		return push_is_among(p, query_node(log, head));
	default: break;
	}
	if (!head)
		return true;
	switch (p->key) {
	case KEY_T: return apply_t(p, query_start_ns(log, head), f);
	case KEY_SECOND: return apply_second(p, query_start_ns(log, head), f);
	case KEY_PID: return apply_ids(p, &f->pids);
	case KEY_TID: return apply_ids(p, &f->tids);
	case KEY_CALL:
	case KEY_CLASS: return apply_calls(p, call_arch(head->arch), f);
	case KEY_ERRNO: return apply_errno(p, f);
	case KEY_TIME_NS: return !range_of(p, &r) || narrow(&f->from_ns, &f->to_ns, r);
	case KEY_RESULT: return !range_of(p, &r) || narrow(&f->least_result, &f->most_result, r);
	case KEY_SERVICE_NS:
		return !range_of(p, &r) || narrow(&f->least_service_ns, &f->most_service_ns, r);
	default: return true;
	}
}
