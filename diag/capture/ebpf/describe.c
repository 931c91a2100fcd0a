/* Describes a descriptor in the form of /proc/PID/fd. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "diag/capture/ebpf/ebpf.h"

enum {
	MAGIC_SOCKFS = 0x534F434B,
	MAGIC_PIPEFS = 0x50495045,
	MAGIC_ANON = 0x09041934,
	MAGIC_PIDFS = 0x50494446,
};

/* Joins NUL-terminated names, from the last one to the root, into one path. */
static void describe_join(const char *parts, uint32_t size, char *out, size_t room)
{
	size_t at = 0;

	for (uint32_t end = size; end > 0;) {
		uint32_t begin = end - 1;
		size_t n;

		while (begin > 0 && parts[begin - 1])
			begin--;
		n = end - 1 - begin;
		if (at + n + 2 > room)
			break;
		out[at++] = '/';
		memcpy(out + at, parts + begin, n);
		at += n;
		end = begin;
	}
	if (!at)
		out[at++] = '/';
	out[at] = '\0';
}

static void address(
	uint16_t family, const uint8_t bytes[16], uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	out->ss_family = family;
	if (family == AF_INET) {
		in->sin_port = port;
		memcpy(&in->sin_addr, bytes, 4);
	} else {
		in6->sin6_port = port;
		memcpy(&in6->sin6_addr, bytes, 16);
	}
}

static bool describe_socket(const struct ev_fd *ev, struct record_fd *f, char *path)
{
	uint32_t n = ev->unix_size[0], m = ev->unix_size[1];

	f->kind = FD_SOCKET;
	f->sock_type = ev->sock_type;
	sprintf(path, "socket:[%llu]", (unsigned long long)ev->ino);
	if (ev->family == AF_INET || ev->family == AF_INET6) {
		address(ev->family, ev->local, ev->local_port, &f->local);
		if (ev->remote_port)
			address(ev->family, ev->remote, ev->remote_port, &f->remote);
	} else if (ev->family == AF_UNIX) {
		if (n + m > ev->size || n > sizeof(struct sockaddr_un) ||
			m > sizeof(struct sockaddr_un))
			return false;
		memcpy(&f->local, ev->text, n);
		memcpy(&f->remote, ev->text + n, m);
		f->local.ss_family = AF_UNIX;
		f->peer = ev->peer;
	} else {
		f->local.ss_family = ev->family;
	}
	return true;
}

static enum fd_kind describe_kind_of(uint16_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return FD_FILE;
	case S_IFDIR: return FD_DIR;
	case S_IFIFO: return FD_PIPE;
	case S_IFBLK:
	case S_IFCHR: return FD_DEVICE;
	default: return FD_OTHER;
	}
}

bool describe_fd(const struct ev_fd *ev, uint32_t size, struct record_fd *f, char path[4096 + 256])
{
	const char *name = ev->text;
	size_t n;

	if (size < sizeof(*ev) || ev->size > size - sizeof(*ev) || ev->size > PARTS_MAX)
		return false;
	*f = (struct record_fd){.pid = ev->h.pid, .fd = ev->fd, .open = true, .path = path};
	if (ev->magic == MAGIC_SOCKFS)
		return describe_socket(ev, f, path);
	if (ev->size && ev->text[ev->size - 1])
		return false;
	if (!ev->size)
		name = "";
	if (ev->magic == MAGIC_PIPEFS) {
		f->kind = FD_PIPE;
		sprintf(path, "pipe:[%llu]", (unsigned long long)ev->ino);
		return true;
	}
	if (ev->magic == MAGIC_ANON || ev->magic == MAGIC_PIDFS) {
		f->kind = FD_OTHER;
		snprintf(path, PARTS_MAX, "anon_inode:%s",
			ev->magic == MAGIC_PIDFS ? "[pidfd]" : name);
		return true;
	}
	f->kind = describe_kind_of(ev->mode);
	if (ev->h.flags & FD_PSEUDO)
		snprintf(path, PARTS_MAX, "/%s", name);
	else
		describe_join(ev->text, ev->size, path, PARTS_MAX);
	n = strlen(path);
	if (ev->h.flags & FD_CUT) {
		memmove(path + 4, path, n + 1);
		memcpy(path, "/...", 4);
		n += 4;
	}
	if (ev->h.flags & (FD_GONE | FD_PSEUDO))
		memcpy(path + n, " (deleted)", 11);
	return true;
}
