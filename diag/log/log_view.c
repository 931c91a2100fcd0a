/* Shared by the three outputs of 'culprit log': selection, addresses, clocks. */
#include "diag/log/log_view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "harness/base/clock.h"

static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	while (n > 1 && prefix[n - 1] == '/')
		n--;
	return !strncmp(path, prefix, n) && (n == 1 || !path[n] || path[n] == '/');
}

static bool on_path(const struct log_view *v, const char *path)
{
	for (size_t i = 0; path && i < v->n_paths; i++)
		if (is_below(path, v->paths[i]))
			return true;
	return false;
}

static bool path_wanted(const struct log_view *v, struct stream_item *item)
{
	const struct record *rec = item->record;
	char absolute[16384];
	const struct fd_state *s;

	switch (rec->type) {
	case RECORD_CALL:
		return on_path(v, call_file(item, false, absolute, sizeof(absolute))) ||
			on_path(v, call_file(item, true, absolute, sizeof(absolute)));
	case RECORD_FD:
		s = item_fd(item);
		return on_path(v, rec->fd.open ? rec->fd.path : s ? s->now.path : NULL);
	default: return false;
	}
}

bool view_wants(const struct log_view *v, struct stream_item *item)
{
	const struct record *rec = item->record;
	uint32_t pid = record_pid(rec), tid = record_tid(rec), nr;

	if (rec->type == RECORD_END || rec->type == RECORD_LOST || rec->type == RECORD_MARK ||
		rec->type == RECORD_UNSEEN)
		return true;
	if (v->pid && v->pid != pid && v->pid != tid)
		return false;
	if (v->name && strcmp(v->name, stream_name(item->stream, pid, tid)) &&
		strcmp(v->name, stream_name(item->stream, pid, pid)))
		return false;
	if (v->n_paths && !path_wanted(v, item))
		return false;
	if (rec->type == RECORD_SUM)
		return !v->some_calls && (!v->errors || rec->sum.errors);
	if (rec->type != RECORD_CALL)
		return !v->some_calls && !v->errors;
	if (v->errors && !call_failed(&rec->call))
		return false;
	nr = rec->call.nr & ~RECORD_ASYNC_NR;
	return !v->some_calls || (nr < VIEW_MAX_CALLS && v->want_call[nr]);
}

const char *format_peer(const struct sockaddr_storage *a, char out[VIEW_ADDRESS])
{
	size_t n = strlen(address_text(a, out));

	if (n > 2 && !strcmp(out + n - 2, ":0"))
		out[n - 2] = '\0';
	return out;
}

const char *reading_relation(int family, bool accepted)
{
	return family == AF_UNIX ? "of" : accepted ? "from" : "to";
}

const char *format_peers(const struct record_sum *s, char out[2 * VIEW_ADDRESS])
{
	char local[VIEW_ADDRESS], remote[VIEW_ADDRESS];

	/* Sums do not distinguish clients' ports: their port is 0. */
	format_peer(&s->local, local);
	format_peer(&s->remote, remote);
	snprintf(out, 2 * VIEW_ADDRESS, "%s -> %s", local, remote);
	return out;
}

void format_clock(int64_t ns, char *out, size_t size)
{
	char text[32];

	clock_utc((double)(ns / 1000000000), "%H:%M:%S", text, sizeof(text));
	snprintf(out, size, "%s.%06d", text, (int)(ns % 1000000000 / 1000));
}

const char *format_tag(const struct file_tag *t, char out[VIEW_TAG])
{
	char first[32];

	format_clock(t->first_ns, first, sizeof(first));
	snprintf(out, VIEW_TAG, "%u:%u|%llu|%s", major(t->device), minor(t->device),
		(unsigned long long)t->inode, first);
	return out;
}

const char *fd_class_words(unsigned class)
{
	static const char *const words[FD_CLASS_COUNT] = {
		"nothing", "disk", "server socket", "client socket", "other descriptors"};

	return class < FD_CLASS_COUNT ? words[class] : "?";
}

unsigned histogram_bucket(uint64_t ns)
{
	unsigned i = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;

	return i < SUM_BUCKETS ? i : SUM_BUCKETS - 1;
}

double histogram_quantile_ns(const uint64_t histogram[SUM_BUCKETS], double q, uint64_t max_ns)
{
	double n = 0, before = 0;

	for (int i = 0; i < SUM_BUCKETS; i++)
		n += (double)histogram[i];
	for (int i = 0; i < SUM_BUCKETS; i++) {
		double here = (double)histogram[i], low = (double)(1ull << i), ns;

		if (here && before + here >= q * n) {
			ns = low + low * (q * n - before) / here;
			return ns > (double)max_ns ? (double)max_ns : ns;
		}
		before += here;
	}
	return 0;
}
