/* Keeps the values read at a tick, and makes readings from two such snapshots. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/base/vec.h"

void thing_set(struct thing *t, enum reading r, uint64_t value)
{
	t->value[r] = value;
	t->has |= 1ull << r;
}

static bool snapshot_has(const struct thing *t, enum reading r)
{
	return t->has >> r & 1;
}

struct thing *snapshot_add(struct sampler_snapshot *s, enum thing_kind kind, uint64_t id)
{
	struct thing *t, *more = vec_room(s->things, s->n, sizeof(*more));

	if (!more) {
		s->failed = true;
		return NULL;
	}
	s->things = more;
	t = &s->things[s->n++];
	/* Sets only some fields: most of a thing are values that it does not have. */
	t->kind = kind;
	t->id = id;
	t->has = 0;
	*t->name = '\0';
	t->fresh = t->listening = t->judged = t->ours = false;
	t->inode = t->local_port = t->missing = 0;
	memset(&t->peer, 0, sizeof(t->peer));
	return t;
}

static int by_id(const void *a, const void *b)
{
	const struct thing *p = a, *q = b;

	if (p->kind != q->kind)
		return p->kind < q->kind ? -1 : 1;
	return p->id < q->id ? -1 : p->id > q->id;
}

void snapshot_sort(struct sampler_snapshot *s)
{
	size_t kept = 0;

	if (s->n)
		qsort(s->things, s->n, sizeof(*s->things), by_id);
	for (size_t i = 0; i < s->n; i++)
		if (!kept || by_id(&s->things[i], &s->things[kept - 1]))
			s->things[kept++] = s->things[i];
	s->n = kept;
}

struct thing *snapshot_find(const struct sampler_snapshot *s, enum thing_kind kind, uint64_t id)
{
	const struct thing key = {.kind = kind, .id = id};

	return s->n ? bsearch(&key, s->things, s->n, sizeof(*s->things), by_id) : NULL;
}

void snapshot_clear(struct sampler_snapshot *s)
{
	s->n = 0;
	s->failed = s->sockets_listed = false;
}

void snapshot_free(struct sampler_snapshot *s)
{
	free(s->things);
	*s = (struct sampler_snapshot){0};
}

/* The factor from a reading's raw value to its unit. */
static double unit(enum reading r)
{
	switch (r) {
	case READING_DISK_READ_BYTES:
	case READING_DISK_WRITTEN_BYTES:
	case READING_DRIVE_READ:
	case READING_DRIVE_WRITTEN: return 512; /* sectors, independent of the device's own */
	case READING_DISK_READ_TIME:
	case READING_DISK_WRITE_TIME:
	case READING_DISK_BUSY:
	case READING_DRIVE_BUSY:
	case READING_DISK_QUEUE: return 1e-3;
	case READING_CPU_STEAL:
	case READING_PROCESS_CPU: return 1.0 / (double)sysconf(_SC_CLK_TCK);
	case READING_CPU_PRESSURE:
	case READING_IO_PRESSURE:
	case READING_MEMORY_PRESSURE:
	case READING_PROCESS_IO_PRESSURE:
	case READING_PROCESS_MEMORY_PRESSURE:
	case READING_TCP_BUSY:
	case READING_TCP_RECEIVER_LIMITED:
	case READING_TCP_SENDER_LIMITED:
	case READING_TCP_RTT:
	case READING_TCP_RTT_VARIATION: return 1e-6;
	case READING_CPU_BUSY:
	case READING_CPU_IDLE:
	case READING_CPU_THROTTLED:
	case READING_PROCESS_THROTTLED:
	case READING_PROCESS_WAIT: return 1e-9;
	case READING_PROCESS_MEMORY: return (double)sysconf(_SC_PAGESIZE);
	default: return 1;
	}
}

/* Counters that the kernel keeps in 32 bits. */
static bool is_narrow(enum reading r)
{
	switch (r) {
	case READING_DISK_READ_TIME:
	case READING_DISK_WRITE_TIME:
	case READING_DISK_BUSY:
	case READING_DRIVE_BUSY:
	case READING_DISK_QUEUE:
	case READING_TCP_SENT_SEGMENTS:
	case READING_TCP_RECEIVED_SEGMENTS:
	case READING_TCP_RETRANSMITTED:
	case READING_TCP_OUT_OF_ORDER:
	case READING_TCP_DUPLICATES:
	case READING_QDISC_DROPPED:
	case READING_QDISC_OVERLIMITS: return true;
	default: return false;
	}
}

/* False: the thing has no part in the reading. */
static bool part_of(const struct thing *before, const struct thing *t, enum reading r, bool counts,
	uint64_t *out)
{
	if (!snapshot_has(t, r))
		return false;
	if (reading_kind(r) == READING_LEVEL) {
		*out = t->value[r];
		return true;
	}
	if (!counts || (before ? !snapshot_has(before, r) || before->missing : !t->fresh))
		return false;
	*out = t->value[r] - (before ? before->value[r] : 0);
	if (before && t->value[r] < before->value[r]) {
		/* The counter was reset (a driver restarted), or wrapped. */
		if (!is_narrow(r) || before->value[r] > UINT32_MAX ||
			before->value[r] - t->value[r] < 1u << 31)
			return false;
		*out = (uint32_t)*out;
	}
	return true;
}

static void sampler_snapshot_add(struct sampled *s, uint64_t raw)
{
	double v = (double)raw * unit(s->what);

	s->count++;
	s->sum += v;
	if (s->count == 1 || v > s->max)
		s->max = v;
}

static int by_peer(const void *a, const void *b)
{
	const struct thing *const *p = a, *const *q = b;

	return memcmp(&(*p)->peer, &(*q)->peer, sizeof((*p)->peer));
}

/* The things that make a sum. */
struct parts {
	const struct sampler_snapshot *before;
	struct thing *const *list;
	size_t n;
	bool counts;
	int (*each)(void *ctx, const struct sampled *r);
	void *ctx;
};

/* Does the thing have a name, and a part in the reading? */
static bool is_part(const struct parts *p, size_t i, enum reading r, uint64_t *raw)
{
	const struct thing *t = p->list[i];

	return *t->name && snapshot_has(t, r) &&
		part_of(snapshot_find(p->before, t->kind, t->id), t, r, p->counts, raw);
}

/* Gives a reading for each named thing, if there are several. */
static int each_named(const struct parts *p, enum reading r)
{
	size_t named = 0;
	uint64_t raw;
	int rc = 0;

	for (size_t i = 0; i < p->n; i++)
		named += is_part(p, i, r, &raw);
	for (size_t i = 0; i < p->n && named > 1 && !rc; i++) {
		struct sampled one = {.what = r, .name = p->list[i]->name};

		if (!is_part(p, i, r, &raw))
			continue;
		sampler_snapshot_add(&one, raw);
		rc = p->each(p->ctx, &one);
	}
	return rc;
}

/* Gives each reading that any thing has: for a peer's sockets, or, with 'peer' NULL, for things
 * that are not sockets. */
static int sum_up(const struct parts *p, const struct socket_peer *peer)
{
	const enum reading first = peer ? READING_TCP_FIRST : 0,
			   end = peer ? READING_TCP_END : READING_TOTAL;
	struct sampled all[READING_TOTAL] = {0};
	int rc = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct thing *t = p->list[i], *old = snapshot_find(p->before, t->kind, t->id);
		uint64_t raw;

		for (enum reading r = first; r < end; r++) {
			all[r].what = r;
			all[r].peer = peer;
			if (part_of(old, t, r, p->counts, &raw))
				sampler_snapshot_add(&all[r], raw);
		}
	}
	for (enum reading r = first; r < end && !rc; r++) {
		if (all[r].count)
			rc = p->each(p->ctx, &all[r]);
		if (!rc && all[r].count > 1 && !peer)
			rc = each_named(p, r);
	}
	return rc;
}

int snapshot_readings(const struct sampler_snapshot *before, struct sampler_snapshot *now,
	bool counts, int (*each)(void *ctx, const struct sampled *r), void *ctx)
{
	struct thing **list = malloc((now->n + 1) * sizeof(struct thing *));
	struct parts p = {before, list, 0, counts, each, ctx};
	size_t n = 0;
	int rc;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < now->n; i++)
		if (now->things[i].kind != THING_SOCKET)
			list[p.n++] = &now->things[i];
	rc = sum_up(&p, NULL);
	for (size_t i = 0; i < now->n; i++) {
		const struct thing *t = &now->things[i];

		if (t->kind == THING_SOCKET && t->ours && !t->listening && !t->missing)
			list[n++] = &now->things[i];
	}
	qsort(list, n, sizeof(*list), by_peer);
	for (size_t i = 0, end; i < n && !rc; i = end) {
		for (end = i + 1; end < n && !by_peer(&list[i], &list[end]); end++)
			;
		p.list = list + i;
		p.n = end - i;
		rc = sum_up(&p, &list[i]->peer);
	}
	free(list);
	return rc;
}
