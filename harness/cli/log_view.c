#include "harness/cli/log_view.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

struct thread_name {
	uint32_t tid;
	char name[16];
};

/* Kept in the order of thread numbers. */
static size_t name_place(const struct view *v, uint32_t tid)
{
	size_t low = 0, high = v->n_names;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (v->names[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int name_set(struct view *v, uint32_t tid, const char *name)
{
	size_t at = name_place(v, tid);

	if (at == v->n_names || v->names[at].tid != tid) {
		if (v->n_names == v->room_names) {
			size_t room = v->room_names ? v->room_names * 2 : 64;
			struct thread_name *more = realloc(v->names, room * sizeof(*more));

			if (!more)
				return -ENOMEM;
			v->names = more;
			v->room_names = room;
		}
		memmove(&v->names[at + 1], &v->names[at], (v->n_names - at) * sizeof(*v->names));
		v->n_names++;
	}
	v->names[at].tid = tid;
	snprintf(v->names[at].name, sizeof(v->names[at].name), "%s", name);
	return 0;
}

int view_feed(struct view *v, const struct record *rec)
{
	if (rec->type == RECORD_PROCESS && rec->process.what != PROCESS_EXIT &&
		name_set(v, rec->process.tid, rec->process.name) < 0)
		return -ENOMEM;
	return fdtable_feed(v->fds, rec);
}

void view_clear(struct view *v)
{
	fdtable_free(v->fds);
	totals_free(v->totals);
	free(v->names);
}

const char *view_thread_name(const struct view *v, uint32_t pid, uint32_t tid)
{
	size_t at = name_place(v, tid ? tid : pid);

	if (at < v->n_names && v->names[at].tid == (tid ? tid : pid))
		return v->names[at].name;
	return tid && tid != pid ? view_thread_name(v, pid, pid) : "";
}

void record_where(const struct record *rec, int64_t *start_ns, uint32_t *pid, uint32_t *tid)
{
	*start_ns = 0;
	*pid = *tid = 0;
	switch (rec->type) {
	case RECORD_CALL:
		*start_ns = rec->call.start_ns, *pid = rec->call.pid, *tid = rec->call.tid;
		break;
	case RECORD_SIGNAL:
		*start_ns = rec->signal.start_ns, *pid = rec->signal.pid, *tid = rec->signal.tid;
		break;
	case RECORD_FD: *start_ns = rec->fd.start_ns, *pid = rec->fd.pid; break;
	case RECORD_PROCESS:
		*start_ns = rec->process.start_ns, *pid = rec->process.pid, *tid = rec->process.tid;
		break;
	case RECORD_LOST: *start_ns = rec->lost.start_ns; break;
	case RECORD_SUM: *start_ns = rec->sum.start_ns, *pid = rec->sum.pid; break;
	case RECORD_READING: *start_ns = rec->reading.start_ns; break;
	case RECORD_END: *start_ns = rec->end.start_ns; break;
	}
}

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

const char *call_file(
	const struct view *v, const struct record_call *c, bool second, char *out, size_t size)
{
	const struct call_info *info = call_info(v->arch, c->nr);
	const char *path = second ? c->path2 : c->path;
	int arg = !info ? -1 : second ? info->path2 : info->path, folder, fd;
	const struct fd_state *s = NULL;

	if (!info)
		return NULL;
	if (!path || arg < 0) {
		fd = second ? info->fd2 : info->fd;
		s = fd >= 0 ? fdtable_get(v->fds, c->pid, (int32_t)c->args[fd]) : NULL;
		return s && s->now.kind != FD_SOCKET ? s->now.path : NULL;
	}
	folder = folder_of(info, arg);
	if (*path != '/' && folder >= 0)
		s = fdtable_get(v->fds, c->pid, (int32_t)c->args[folder]);
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

static bool path_wanted(const struct view *v, const struct record *rec)
{
	char absolute[16384];
	const struct fd_state *s;

	switch (rec->type) {
	case RECORD_CALL:
		return on_path(v, call_file(v, &rec->call, false, absolute, sizeof(absolute))) ||
			on_path(v, call_file(v, &rec->call, true, absolute, sizeof(absolute)));
	case RECORD_FD:
		s = rec->fd.open ? NULL : fdtable_get(v->fds, rec->fd.pid, rec->fd.fd);
		return on_path(v, rec->fd.open ? rec->fd.path : s ? s->now.path : NULL);
	default: return false;
	}
}

bool view_wants(const struct view *v, const struct record *rec)
{
	uint32_t pid, tid;
	int64_t ns;

	if (rec->type == RECORD_END || rec->type == RECORD_LOST)
		return true;
	record_where(rec, &ns, &pid, &tid);
	if (v->pid && v->pid != pid && v->pid != tid)
		return false;
	if (v->name && strcmp(v->name, view_thread_name(v, pid, tid)) &&
		strcmp(v->name, view_thread_name(v, pid, pid)))
		return false;
	if (v->n_paths && !path_wanted(v, rec))
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
