/* Reads addresses of a process's sockets from a borrowed descriptor, or from the tables of its
 * network namespace on kernels before 5.6 and where borrowing is forbidden. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "diag/capture/ptrace/tracer.h"

/* A thread with a separate descriptor table may have another file under that number. */
static bool is_that(int own, const struct record_fd *f)
{
	char name[40];
	struct stat st;

	if (fstat(own, &st) < 0)
		return false;
	snprintf(name, sizeof(name), "socket:[%lu]", (unsigned long)st.st_ino);
	return !strcmp(name, f->path);
}

static void from_descriptor(int own, struct record_fd *f)
{
	socklen_t n = sizeof(f->local);

	if (getsockname(own, (struct sockaddr *)&f->local, &n) < 0)
		f->local.ss_family = AF_UNSPEC;
	n = sizeof(f->remote);
	if (getpeername(own, (struct sockaddr *)&f->remote, &n) < 0)
		f->remote.ss_family = AF_UNSPEC;
	n = sizeof(f->sock_type);
	if (getsockopt(own, SOL_SOCKET, SO_TYPE, &f->sock_type, &n) < 0)
		f->sock_type = 0;
}

/* Parses "0100007F:1F90" of /proc/net/tcp, or 32 digits of tcp6: words in host order, as in
 * memory. */
static bool parse_address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	size_t digits = strcspn(text, ":");
	uint32_t word[4] = {0};
	unsigned port;

	if ((digits != 8 && digits != 32) || sscanf(text + digits, ":%4x", &port) != 1)
		return false;
	for (size_t i = 0; i < digits / 8; i++)
		if (sscanf(text + 8 * i, "%8x", &word[i]) != 1)
			return false;
	memset(out, 0, sizeof(*out));
	if (digits == 8) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		in->sin_addr.s_addr = word[0];
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		memcpy(&in6->sin6_addr, word, sizeof(word));
	}
	return true;
}

/* A peer of all zeros means no peer. */
static bool has_port(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port != 0
				       : ((const struct sockaddr_in6 *)a)->sin6_port != 0;
}

bool socket_from_tables(pid_t pid, unsigned long inode, struct record_fd *f)
{
	static const struct {
		const char *name;
		int type;
	} tables[] = {{"tcp", SOCK_STREAM}, {"tcp6", SOCK_STREAM}, {"udp", SOCK_DGRAM},
		{"udp6", SOCK_DGRAM}};
	char path[48], line[512], local[48], remote[48];
	struct sockaddr_storage l, r;
	unsigned long found;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		FILE *table;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, tables[i].name);
		table = fopen(path, "re");
		if (!table)
			continue;
		while (fgets(line, sizeof(line), table)) {
			if (sscanf(line, " %*d: %47s %47s %*x %*s %*s %*s %*d %*d %lu", local,
				    remote, &found) != 3 ||
				found != inode || !parse_address(local, &l) ||
				!parse_address(remote, &r))
				continue;
			fclose(table);
			f->local = l;
			f->sock_type = tables[i].type;
			if (has_port(&r))
				f->remote = r;
			return true;
		}
		fclose(table);
	}
	return false;
}

void socket_addresses(struct tracee_process *p, int fd, struct record_fd *f)
{
	int own = -1;

	if (p->pidfd < 0)
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd >= 0)
		own = (int)syscall(SYS_pidfd_getfd, p->pidfd, fd, 0);
	if (own >= 0 && is_that(own, f))
		from_descriptor(own, f);
	else if (!strncmp(f->path, "socket:[", 8))
		socket_from_tables(p->pid, strtoul(f->path + 8, NULL, 10), f);
	if (own >= 0)
		close(own);
}
