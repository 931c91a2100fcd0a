/* Names errors, files, addresses and descriptors of records. */
#include "diag/record/describe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

/* The flags of open differ between architectures. */
#if defined(__x86_64__)
#define OWN_ARCH "x86_64"
#else
#define OWN_ARCH "aarch64"
#endif

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

/* Index of the descriptor argument that path argument 'path' is relative to: the argument before
 * it; -1: none. */
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

const char *address_text(const struct sockaddr_storage *a, char out[ADDRESS_TEXT])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_un *un = (const struct sockaddr_un *)a;
	char ip[INET6_ADDRSTRLEN];

	out[0] = '\0';
	if (a->ss_family == AF_INET)
		snprintf(out, ADDRESS_TEXT, "%s:%u",
			inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip)), ntohs(in->sin_port));
	else if (a->ss_family == AF_INET6)
		snprintf(out, ADDRESS_TEXT, "[%s]:%u",
			inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip)),
			ntohs(in6->sin6_port));
	else if (a->ss_family == AF_UNIX && un->sun_path[0])
		snprintf(out, ADDRESS_TEXT, "%.*s", (int)sizeof(un->sun_path), un->sun_path);
	else if (a->ss_family == AF_UNIX && un->sun_path[1])
		snprintf(out, ADDRESS_TEXT, "@%.*s", (int)sizeof(un->sun_path) - 1,
			un->sun_path + 1);
	return out;
}

const char *fd_class_name(unsigned class)
{
	static const char *const names[FD_CLASS_COUNT] = {
		"none", "disk", "server", "client", "other"};

	return class < FD_CLASS_COUNT ? names[class] : "?";
}

const char *fd_kind_name(unsigned kind)
{
	static const char *const names[] = {"other", "file", "dir", "device", "pipe", "socket"};

	return kind <= FD_SOCKET ? names[kind] : "?";
}

static const struct {
	const char *name, *text;
} unseen[UNSEEN_COUNT] = {
	[UNSEEN_RINGS] = {"rings",
		"calls of io_uring, whose reads and writes this tracer cannot see here"},
	[UNSEEN_REQUESTS] = {"requests",
		"requests of io_uring except reads, writes and fsyncs of files and devices"},
	[UNSEEN_MAPPINGS] = {"mappings",
		"shared mappings of files, which are read and written without calls"},
	[UNSEEN_FOREIGN] = {"32-bit calls",
		"calls of 32-bit programs, which have no name, bytes or file here"},
	[UNSEEN_CHANGES] = {"changes",
		"changes of descriptors, each found when the descriptor was used"},
};

const char *unseen_name(unsigned what)
{
	return what < UNSEEN_COUNT ? unseen[what].name : "?";
}

const char *unseen_text(unsigned what)
{
	return what < UNSEEN_COUNT ? unseen[what].text : "?";
}

/* Index of the argument with this letter and name, or -1. */
static int argument(const char *args, const char *wanted)
{
	size_t n = strlen(wanted);

	for (int i = 0; args; i++) {
		if (!strncmp(args, wanted, n) && (!args[n] || args[n] == ','))
			return i;
		args = strchr(args, ',');
		args = args ? args + 1 : NULL;
	}
	return -1;
}

static bool moves_bytes(const struct call_info *info)
{
	return info &&
		(info->class == CALL_READ || info->class == CALL_WRITE || info->class == CALL_COPY);
}

int64_t call_asked(const struct call_info *info, const struct record_call *c)
{
	int at;

	if (!moves_bytes(info) || info->messages)
		return -1;
	if (c->asked)
		return c->asked;
	at = argument(info->args, "d count");
	if (at < 0)
		at = argument(info->args, "d len");
	return at < 0 || c->args[at] > INT64_MAX ? -1 : (int64_t)c->args[at];
}

bool call_peeks(const struct call_info *info, const struct record_call *c)
{
	return info->flags >= 0 && c->args[info->flags] & MSG_PEEK;
}

int64_t call_moved(const struct call_info *info, const struct record_call *c)
{
	const bool cut = info && info->flags >= 0 && c->args[info->flags] & MSG_TRUNC;
	int64_t asked;

	if (!moves_bytes(info))
		return -1;
	if (c->unfinished || c->result <= 0)
		return 0;
	if (call_peeks(info, c))
		return -1;
	if (info->messages)
		return cut || !c->asked ? -1 : (int64_t)c->asked;
	if (!cut)
		return c->result;
	asked = call_asked(info, c);
	return asked < c->result ? asked : c->result;
}

const char *open_flags_text(const struct stream *s, uint64_t flags, char out[OPEN_FLAGS_TEXT])
{
	static const struct {
		uint64_t bits;
		const char *name;
	} names[] = {
		{O_CREAT, "O_CREAT"},
		{O_EXCL, "O_EXCL"},
		{O_NOCTTY, "O_NOCTTY"},
		{O_TRUNC, "O_TRUNC"},
		{O_APPEND, "O_APPEND"},
		{O_NONBLOCK, "O_NONBLOCK"},
		{O_TMPFILE, "O_TMPFILE"},
		{O_DIRECTORY, "O_DIRECTORY"},
		{O_SYNC, "O_SYNC"},
		{O_DSYNC, "O_DSYNC"},
		{O_DIRECT, "O_DIRECT"},
		{O_NOFOLLOW, "O_NOFOLLOW"},
		{O_NOATIME, "O_NOATIME"},
		{O_CLOEXEC, "O_CLOEXEC"},
		{O_PATH, "O_PATH"},
	};
	static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
	size_t n;

	if (stream_arch(s) != call_arch(OWN_ARCH))
		return NULL;
	n = (size_t)snprintf(out, OPEN_FLAGS_TEXT, "%s", modes[flags & O_ACCMODE]);
	flags &= 0xffffffff & ~(uint64_t)O_ACCMODE;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].bits && (flags & names[i].bits) == names[i].bits) {
			n += (size_t)snprintf(out + n, OPEN_FLAGS_TEXT - n, "|%s", names[i].name);
			flags &= ~names[i].bits;
		}
	if (flags & ~0x8000ull) /* O_LARGEFILE, which the C library adds */
		snprintf(out + n, OPEN_FLAGS_TEXT - n, "|0x%llx",
			(unsigned long long)(flags & ~0x8000ull));
	return out;
}

const char *call_open_flags(const struct stream_item *item, char out[OPEN_FLAGS_TEXT])
{
	const struct call_info *info = item->call;
	const char *at = info && info->class == CALL_OPEN ? info->args : NULL;

	for (int i = 0; at; i++) {
		if (*at == 'O')
			return open_flags_text(item->stream, item->record->call.args[i], out);
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}
