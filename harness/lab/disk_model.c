/* Computes when a modelled disk finishes a request. */
#include "harness/lab/disk_model.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "harness/base/hash.h"

/* The end of 'work' that begins at 'start' and rests during stalls. */
static int64_t pass_stalls(const struct disk_fault *f, int64_t start, int64_t work)
{
	int64_t into, rest, span = f->every_ns - f->stall_ns;

	if (!f->stall_ns)
		return start + work;
	if (!f->every_ns) {
		int64_t end = f->begin_ns + f->stall_ns;

		return (start < end ? end : start) + work;
	}
	into = (start - f->begin_ns) % f->every_ns;
	if (into < f->stall_ns) {
		start += f->stall_ns - into;
		into = f->stall_ns;
	}
	rest = work - (f->every_ns - into); /* what the first stall interrupts */
	return start + work + (rest > 0 ? (rest + span - 1) / span * f->stall_ns : 0);
}

static int64_t earliest(const struct disk_model *m, int64_t now_ns)
{
	return m->busy_until_ns > now_ns ? m->busy_until_ns : now_ns;
}

int64_t disk_model_idle(const struct disk_model *m, int64_t now_ns)
{
	return m->rate > 0 ? pass_stalls(&m->fault, earliest(m, now_ns), 0) : now_ns;
}

struct disk_turn disk_model_request(
	struct disk_model *m, int64_t now_ns, uint64_t position, uint64_t size)
{
	const struct disk_fault *f = &m->fault;
	struct disk_turn turn = {.done_ns = now_ns};

	if (m->rate > 0) {
		double rate = f->rate > 0 && f->rate < m->rate ? f->rate : m->rate;
		int64_t seek = position != m->end ? m->seek_ns : 0, start = earliest(m, now_ns),
			own = seek + (int64_t)((double)size * 1e9 / m->rate),
			work = seek + (int64_t)((double)size * 1e9 / rate);

		if (f->factor > 0)
			work = (int64_t)((double)work * f->factor);
		work += f->latency_ns;
		turn.done_ns = m->busy_until_ns = pass_stalls(f, start, work);
		turn.held = turn.done_ns > start + work;
		turn.added_ns = turn.done_ns - start - own;
	}
	m->end = position + size;
	return turn;
}

bool disk_model_fails(struct disk_model *m)
{
	if (!(m->rate > 0 && m->fault.errors_pct > 0))
		return false;
	return (double)(hash_mix(0, ++m->drawn) >> 11) * 0x1p-53 < m->fault.errors_pct / 100;
}

bool disk_model_stalls(const struct disk_model *m, int64_t now_ns)
{
	return m->rate > 0 && pass_stalls(&m->fault, now_ns, 0) > now_ns;
}

/* ---- the control file ---- */

/* Bounds that keep all times of 16 requests far below what an int64_t holds. */
static const struct control_member {
	const char *key;
	double least, most; /* or 0 */
} control_members[] = {
	{"latency_s", 1e-9, 60},
	{"rate", 65536, 1e15},
	{"factor", 1, 1000},
	{"stall_s", 1e-3, 3600},
	{"every_s", 1e-3, 3600},
	{"errors_pct", 1e-6, 100},
};
enum { CONTROL_MEMBERS = sizeof(control_members) / sizeof(control_members[0]) };

static int control_number(
	const json_t *state, const struct control_member *m, double *to, struct err *e)
{
	const json_t *v = json_object_get(state, m->key);
	double n = json_number_value(v);

	if (v && (!json_is_number(v) || (n != 0 && !(n >= m->least && n <= m->most))))
		return err_set(e, -EINVAL, "%s must be 0, or a number from %g to %g", m->key,
			m->least, m->most);
	*to = n;
	return 0;
}

int disk_fault_parse(
	const char *text, size_t size, int64_t now_ns, struct disk_fault *f, struct err *e)
{
	double got[CONTROL_MEMBERS] = {0};
	size_t known = 0;
	json_t *state = json_loadb(text, size, 0, NULL);
	int rc = json_is_object(state) ? 0 : err_set(e, -EINVAL, "a state is a JSON object");

	for (size_t i = 0; i < CONTROL_MEMBERS && !rc; i++) {
		known += json_object_get(state, control_members[i].key) != NULL;
		rc = control_number(state, &control_members[i], &got[i], e);
	}
	if (!rc && known < json_object_size(state))
		rc = err_set(e, -EINVAL, "a state has an unknown member");
	json_decref(state);
	if (!rc && got[4] > 0 && got[4] < got[3] + 0.1)
		rc = err_set(e, -EINVAL, "every_s must be stall_s and 0.1 s at least");
	if (!rc)
		*f = (struct disk_fault){.latency_ns = llround(got[0] * 1e9),
			.rate = got[1],
			.factor = got[2],
			.stall_ns = llround(got[3] * 1e9),
			.every_ns = llround(got[4] * 1e9),
			.begin_ns = now_ns,
			.errors_pct = got[5]};
	return rc;
}

bool disk_fault_same(const struct disk_fault *a, const struct disk_fault *b)
{
	return a->latency_ns == b->latency_ns && a->rate == b->rate && a->factor == b->factor &&
		a->stall_ns == b->stall_ns && a->every_ns == b->every_ns &&
		a->errors_pct == b->errors_pct;
}

char *disk_control_text(const struct disk_fault *f, const struct disk_counters *c)
{
	json_t *all = json_pack("{s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:{s:I, s:I, s:I, s:I, s:f}}",
		"state", "latency_s", (double)f->latency_ns / 1e9, "rate", f->rate, "factor",
		f->factor, "stall_s", (double)f->stall_ns / 1e9, "every_s",
		(double)f->every_ns / 1e9, "errors_pct", f->errors_pct, "counters", "requests",
		(json_int_t)c->requests, "delayed", (json_int_t)c->delayed, "held",
		(json_int_t)c->held, "failed", (json_int_t)c->failed, "added_s",
		(double)c->added_ns / 1e9);
	char *text = json_dumps(all, JSON_COMPACT);

	json_decref(all);
	return text;
}
