#include "harness/cli/log_view.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>

bool call_failed(const struct record_call *c)
{
	return !c->unfinished && c->result < 0 && c->result >= -4095;
}

const char *call_error_name(int64_t result)
{
	switch (result) {
	case -512: return "ERESTARTSYS";
	case -513: return "ERESTARTNOINTR";
	case -514: return "ERESTARTNOHAND";
	case -516: return "ERESTART_RESTARTBLOCK";
	}
	return result < 0 && result >= -4095 ? strerrorname_np((int)-result) : NULL;
}

/* Index of the folder's descriptor that path argument 'path' is relative to, or -1: it stands right
 * before it. */
static int folder_of(const struct call_info *info, int path)
{
	const char *at = info->args;

	for (int i = 0; i + 1 < path; i++)
		at = strchr(at, ',') + 1;
	return path && *at == 'F' ? path - 1 : -1;
}

const char *call_file(struct stream_item *item, bool second, char *out, size_t size)
{
	const struct call_info *info = item->call;
	const struct record_call *c = &item->record->call;
	const char *path = second ? c->path2 : c->path;
	int arg = !info ? -1 : second ? info->path2 : info->path, folder, fd;
	const struct fd_state *s = NULL;

	if (!info)
		return NULL;
	if (!path || arg < 0) {
		fd = second ? info->fd2 : info->fd;
		s = fd >= 0 ? stream_fd(item->stream, c->pid, (int32_t)c->args[fd]) : NULL;
		return s && s->now.kind != FD_SOCKET ? s->now.path : NULL;
	}
	folder = folder_of(info, arg);
	if (*path != '/' && folder >= 0)
		s = stream_fd(item->stream, c->pid, (int32_t)c->args[folder]);
	if (!s)
		return path;
	snprintf(out, size, *path ? "%s/%s" : "%s%s", s->now.path, path);
	return out;
}

static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	while (n > 1 && prefix[n - 1] == '/')
		n--;
	return !strncmp(path, prefix, n) && (n == 1 || !path[n] || path[n] == '/');
}

static bool on_path(const struct view *v, const char *path)
{
	for (size_t i = 0; path && i < v->n_paths; i++)
		if (is_below(path, v->paths[i]))
			return true;
	return false;
}

static bool path_wanted(const struct view *v, struct stream_item *item)
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

bool view_wants(const struct view *v, struct stream_item *item)
{
	const struct record *rec = item->record;
	uint32_t pid = record_pid(rec), tid = record_tid(rec);

	if (rec->type == RECORD_END || rec->type == RECORD_LOST)
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
	return !v->some_calls || (rec->call.nr < VIEW_MAX_CALLS && v->want_call[rec->call.nr]);
}

const char *format_address(const struct sockaddr_storage *a, char out[VIEW_ADDRESS])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_un *un = (const struct sockaddr_un *)a;
	char ip[INET6_ADDRSTRLEN];

	out[0] = '\0';
	if (a->ss_family == AF_INET)
		snprintf(out, VIEW_ADDRESS, "%s:%u",
			inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip)), ntohs(in->sin_port));
	else if (a->ss_family == AF_INET6)
		snprintf(out, VIEW_ADDRESS, "[%s]:%u",
			inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip)),
			ntohs(in6->sin6_port));
	else if (a->ss_family == AF_UNIX && un->sun_path[0])
		snprintf(out, VIEW_ADDRESS, "%.*s", (int)sizeof(un->sun_path), un->sun_path);
	else if (a->ss_family == AF_UNIX && un->sun_path[1])
		snprintf(out, VIEW_ADDRESS, "@%.*s", (int)sizeof(un->sun_path) - 1,
			un->sun_path + 1);
	return out;
}

const char *format_peer(const struct sockaddr_storage *a, char out[VIEW_ADDRESS])
{
	size_t n = strlen(format_address(a, out));

	if (n > 2 && !strcmp(out + n - 2, ":0"))
		out[n - 2] = '\0';
	return out;
}

const char *format_peers(const struct record_sum *s, char out[2 * VIEW_ADDRESS])
{
	char local[VIEW_ADDRESS], remote[VIEW_ADDRESS];

	/* Ports that are not kept apart have no number. */
	format_peer(&s->local, local);
	format_peer(&s->remote, remote);
	snprintf(out, 2 * VIEW_ADDRESS, "%s -> %s", local, remote);
	return out;
}

void format_clock(int64_t ns, char *out, size_t size)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[32];

	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
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

const char *fd_class_name(unsigned class)
{
	static const char *const names[FD_CLASS_COUNT] = {
		"none", "disk", "server", "client", "other"};

	return class < FD_CLASS_COUNT ? names[class] : "?";
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
