/* Tracks all threads of an application: which are blocked, and since when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/throttle/supervisor_impl.h"
#include "harness/base/alloc.h"

static const struct known_limits *limits_of(const struct supervisor *s, const char *name)
{
	if (!s->name)
		return NULL;
	for (size_t i = 0; i < s->n_known; i++)
		if (!strcmp(s->known[i].name, name))
			return &s->known[i];
	return &s->most;
}

/* The limits that apply to the thread's present phase: before, between or after its operations. */
static const struct watch_limits *limits_now(const struct family_member *m)
{
	if (!m->limits)
		return NULL;
	return m->ops >= m->limits->ops ? &m->limits->after
		: m->ops                ? &m->limits->between
					: &m->limits->before;
}

static void raise_to(struct watch_limits *into, const struct watch_limits *l)
{
	into->cpu_ns = into->cpu_ns > l->cpu_ns ? into->cpu_ns : l->cpu_ns;
	into->sleeps = into->sleeps > l->sleeps ? into->sleeps : l->sleeps;
	into->wall_ns = into->wall_ns > l->wall_ns ? into->wall_ns : l->wall_ns;
}

static struct watch_limits measured(
	const struct family_member *m, const struct watch_reading *now, int64_t now_ns)
{
	return (struct watch_limits){.cpu_ns = now->cpu_ns - m->op.cpu_ns,
		.sleeps = now->sleeps - m->op.sleeps,
		.wall_ns = now_ns - m->op_ns};
}

static void round_begin(struct supervisor *s, struct family_member *m,
	const struct watch_reading *now, int64_t now_ns)
{
	m->op = m->last = *now;
	m->op_ns = m->same_ns = now_ns;
	m->limits = limits_of(s, m->name);
}

void watch_operation(struct supervisor *s, struct family_member *m, int64_t now_ns)
{
	struct watch_reading now;
	struct watch_limits l;

	if (!watch_read(m->pid, m->tid, false, &now))
		return;
	if (!m->op_ns)
		round_begin(s, m, &now, now_ns);
	l = measured(m, &now, now_ns);
	raise_to(m->ops ? &m->between : &m->before, &l);
	m->ops++;
	m->after = (struct watch_limits){0};
	m->op = m->last = now;
	m->op_ns = m->same_ns = now_ns;
	m->verdict = WATCH_BUSY;
}

void watch_exit(struct supervisor *s, struct family_member *m, int64_t now_ns)
{
	struct watch_reading now;

	(void)s;
	if (m->op_ns && watch_read(m->pid, m->tid, false, &now))
		m->after = measured(m, &now, now_ns);
}

/* The quiet time ends at the last reading, not now: this program may have waited for a processor
 * since then. */
void watch_disturbed(struct supervisor *s)
{
	if (s->quiet_ns && !s->name && s->still_ns - s->quiet_ns > s->most_quiet_ns)
		s->most_quiet_ns = s->still_ns - s->quiet_ns;
	s->quiet_ns = 0;
}

/* Reads one thread. True: its state is unchanged since the last reading. */
static bool round_read_one(struct supervisor *s, struct family_member *m, int64_t now_ns)
{
	enum watch_verdict was = m->verdict;
	struct watch_reading now;
	bool same;

	if (!watch_read(m->pid, m->tid, true, &now)) {
		m->gone = true;
		m->verdict = WATCH_GONE;
		return false;
	}
	now.on_file = m->trapped_on_file && now.call == m->trapped;
	if (!m->op_ns)
		round_begin(s, m, &now, now_ns);
	if (now.runs != m->last.runs || now.state != 'S')
		m->same_ns = now_ns;
	same = now.runs == m->last.runs;
	m->verdict = watch_judge(&now, &m->op, now_ns - m->same_ns, limits_now(m), &m->why);
	m->after = measured(m, &now, now_ns);
	m->last = now;
	return m->verdict == was && (same || m->verdict != WATCH_STILL);
}

static void mark_all(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->family.n_members; i++)
		s->family.members[i].mark = s->family.members[i].last;
}

static void note_why(struct supervisor *s, const struct family_member *m)
{
	snprintf(s->why, sizeof(s->why), "thread %d of process %d %s", m->tid, m->pid, m->why);
}

bool watch_all(struct supervisor *s, int64_t now_ns)
{
	bool same = true, blocked = true, settled = true;

	family_look(&s->family);
	s->read_ns = now_ns;
	for (uint32_t i = 0; i < s->family.n_members; i++) {
		struct family_member *m = &s->family.members[i];

		if (m->gone || (s->delayed && m->tid == s->tid))
			continue;
		same &= round_read_one(s, m, now_ns);
		if (m->verdict == WATCH_BUSY) {
			blocked = false;
			note_why(s, m);
		} else if (!watch_settled(m->verdict, &m->last, &m->mark)) {
			settled = false;
		}
	}
	if (!blocked || !same)
		watch_disturbed(s);
	if (blocked && !s->quiet_ns) {
		s->quiet_ns = s->still_ns = now_ns;
		mark_all(s);
		return false;
	}
	if (blocked && !settled)
		snprintf(s->why, sizeof(s->why),
			"a thread that polls for messages gets no processor");
	return blocked && settled;
}

bool watch_quiet(struct supervisor *s, int64_t now_ns)
{
	s->still_ns = now_ns;
	return now_ns - s->quiet_ns >= 2 * s->most_quiet_ns + WATCH_LEAST_NS;
}

static void raise_all(struct known_limits *into, const struct family_member *m)
{
	raise_to(&into->before, &m->before);
	raise_to(&into->between, &m->between);
	raise_to(&into->after, &m->after);
	/* A thread without operations was never in the phases 'between' and 'after'. */
	if (!m->ops)
		raise_to(&into->before, &m->after);
}

void watch_learned(struct supervisor *s)
{
	struct watch_limits *all = &s->most.before;

	for (uint32_t i = 0; i < s->family.n_members; i++) {
		const struct family_member *m = &s->family.members[i];

		raise_all(&s->most, m);
		if (*m->name == '?')
			continue;
		s->known = alloc_room(s->known, s->n_known, sizeof(*s->known));
		s->known[s->n_known] = (struct known_limits){
			.name = alloc_copy(m->name), .ops = m->ops};
		raise_all(&s->known[s->n_known++], m);
	}
	/* Unknown threads have no known phase, so they get the loosest limits. */
	raise_to(all, &s->most.between);
	raise_to(all, &s->most.after);
	s->most.between = s->most.after = *all;
	s->longest_ns = all->wall_ns;
}

void watch_new_run(struct supervisor *s)
{
	family_clear(&s->family);
	s->count = s->id = 0;
	s->tid = 0;
	s->delayed = s->gave_up = s->span_open = false;
	s->since_ns = s->read_ns = s->quiet_ns = s->still_ns = 0;
	s->n_delays = s->undecided = s->in_a_row = 0;
	*s->why = *s->undecided_why = '\0';
}
