/* Turns sums into records: reads them from the kernel when their second has ended. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <bpf/bpf.h>

#include "diag/capture/ebpf/ebpf.h"
#include "harness/base/vec.h"

/* A program may be late by its run time after it has read the clock. */
#define LATE_NS 50000000

struct sums {
	struct sums_spec spec;
	int64_t done_s;       /* earlier seconds have been read */
	struct sum *values;   /* one for each CPU */
	struct sum_key *keys; /* of one pass */
};

struct sums *sums_new(const struct sums_spec *spec)
{
	struct sums *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->spec = *spec;
	s->values = calloc((size_t)spec->cpus, sizeof(*s->values));
	if (!s->values) {
		sums_free(s);
		return NULL;
	}
	return s;
}

void sums_free(struct sums *s)
{
	if (!s)
		return;
	free(s->values);
	free(s->keys);
	free(s);
}

static void address(const struct sum_key *k, const uint8_t bytes[16], uint16_t port,
	struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	out->ss_family = k->family;
	if (k->family == AF_INET) {
		in->sin_port = port;
		memcpy(&in->sin_addr, bytes, 4);
	} else if (k->family == AF_INET6) {
		in6->sin6_port = port;
		memcpy(&in6->sin6_addr, bytes, 16);
	}
}

static void emit(struct sums *s, const struct sum_key *k, const struct sum *v)
{
	struct record rec = {.type = RECORD_SUM};
	struct record_sum *r = &rec.sum;

	*r = (struct record_sum){
		.start_ns = (int64_t)k->second * 1000000000,
		.pid = k->pid,
		.class = k->class,
		.fd_class = k->fd_class,
		.messages = k->messages != COUNTED_CALLS,
		.bulk = k->messages == COUNTED_BULK,
		.selected = k->selected,
		.device = k->dev ? makedev(k->dev >> 20, k->dev & 0xfffff) : 0,
		.count = v->count,
		.errors = v->errors,
		.failed_ns = v->failed_ns,
		.failed = v->failed,
		.bytes = v->bytes,
		.total_ns = v->total_ns,
		.max_ns = v->max_ns,
	};
	if (k->family) {
		address(k, k->local, k->local_port, &r->local);
		address(k, k->remote, k->remote_port, &r->remote);
	}
	for (int i = 0; i < SUM_BUCKETS; i++)
		r->histogram[i] = v->histogram[i];
	s->spec.fn(s->spec.ctx, &rec);
}

static void sums_take(struct sums *s, const struct sum_key *k)
{
	struct sum all = {0};

	if (bpf_map_lookup_elem(s->spec.sums_fd, k, s->values) < 0)
		return;
	bpf_map_delete_elem(s->spec.sums_fd, k);
	for (int cpu = 0; cpu < s->spec.cpus; cpu++) {
		const struct sum *v = &s->values[cpu];

		all.count += v->count;
		all.errors += v->errors;
		all.failed += v->failed;
		all.failed_ns += v->failed_ns;
		all.bytes += v->bytes;
		all.total_ns += v->total_ns;
		if (v->max_ns > all.max_ns)
			all.max_ns = v->max_ns;
		for (int i = 0; i < SUM_BUCKETS; i++)
			all.histogram[i] += v->histogram[i];
	}
	emit(s, k, &all);
}

static int by_second(const void *a, const void *b)
{
	const struct sum_key *p = a, *q = b;

	return p->second < q->second ? -1 : p->second > q->second;
}

int sums_read(struct sums *s, int64_t now_ns)
{
	int64_t over_s = now_ns < INT64_MAX ? (now_ns - LATE_NS) / 1000000000 : INT64_MAX;
	struct sum_key key, *last = NULL;
	size_t n = 0;

	if (over_s <= s->done_s)
		return 0;
	s->done_s = over_s;
	/* Collect the keys first: deletions would restart the walk. */
	while (bpf_map_get_next_key(s->spec.sums_fd, last, &key) == 0) {
		struct sum_key *keys = vec_room(s->keys, n, sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		s->keys = keys;
		s->keys[n] = key;
		last = &s->keys[n++];
	}
	if (n)
		qsort(s->keys, n, sizeof(*s->keys), by_second);
	for (size_t i = 0; i < n && s->keys[i].second < over_s; i++)
		sums_take(s, &s->keys[i]);
	return 0;
}

static bool is_whole(struct sums *s, const struct message_state *m)
{
	uint64_t polled_ns;

	if (!m->bytes || m->wanted_more || m->need)
		return false;
	if (m->answered)
		return true;
	return !m->left && bpf_map_lookup_elem(s->spec.pollers_fd, &m->tid, &polled_ns) == 0 &&
		polled_ns > m->end_ns;
}

void sums_end_messages(struct sums *s, uint32_t pid, int64_t clock_ns)
{
	struct message_key key, next;
	struct message_state m;
	bool more = bpf_map_get_next_key(s->spec.messages_fd, NULL, &next) == 0;

	while (more) {
		key = next;
		more = bpf_map_get_next_key(s->spec.messages_fd, &key, &next) == 0;
		if ((pid && key.pid != pid) ||
			bpf_map_lookup_elem(s->spec.messages_fd, &key, &m) < 0)
			continue;
		bpf_map_delete_elem(s->spec.messages_fd, &key);
		if (is_whole(s, &m) && m.bytes > s->spec.bulk_header) {
			uint64_t took_ns = m.end_ns - m.start_ns;
			struct sum one = {.count = 1,
				.bytes = m.bytes,
				.total_ns = took_ns,
				.max_ns = took_ns};
			int bucket = took_ns ? 63 - __builtin_clzll(took_ns) : 0;

			one.histogram[bucket < SUM_BUCKETS ? bucket : SUM_BUCKETS - 1] = 1;
			m.key.messages = s->spec.bulk_above && m.bytes > s->spec.bulk_above
				? COUNTED_BULK
				: COUNTED_MESSAGES;
			m.key.second = (uint32_t)(((int64_t)m.end_ns + clock_ns) / 1000000000);
			emit(s, &m.key, &one);
		}
	}
	bpf_map_delete_elem(s->spec.pollers_fd, &pid);
}
