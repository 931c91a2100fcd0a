/*
 * culprit-agent sink and send: the two ends of a network hog (Kasick et al. 2009, section 5). They
 * use read(2) and write(2), so that /proc/PID/io tells what has moved.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

#include "faults/primitives/packets.h"
#include "harness/agent/duty.h"
#include "harness/agent/programs.h"

#define CONNECTIONS_MAX 16
#define CHUNK (256u << 10)
#define PACED_CHUNK (64u << 10)
#define PACED_BUFFER (128 << 10)

static char chunk[CHUNK];

struct address {
	struct sockaddr_storage at;
	socklen_t size;
};

/* "10.0.0.1:5001" or "[fe80::1]:5001"; numbers only, nothing is looked up. */
static int address_parse(const char *text, struct address *a)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	const char *colon = strrchr(text, ':');
	struct addrinfo *found;
	char host[64];
	size_t n;

	if (!colon || !colon[1])
		return -EINVAL;
	n = (size_t)(colon - text);
	if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (!n || n >= sizeof(host))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)n, text);
	if (getaddrinfo(host, colon + 1, &hints, &found))
		return -EINVAL;
	memcpy(&a->at, found->ai_addr, found->ai_addrlen);
	a->size = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* As address_parse; says what is wrong. */
static bool read_address(const char *who, const char *text, struct address *a)
{
	if (!address_parse(text, a))
		return true;
	fprintf(stderr, "culprit-agent %s takes ADDRESS:PORT in numbers, not '%s'\n", who, text);
	return false;
}

static int listen_at(const struct address *a)
{
	int on = 1, fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	/* Connections of the hog before may still be in TIME_WAIT. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (const struct sockaddr *)&a->at, a->size) && !listen(fd, CONNECTIONS_MAX))
		return fd;
	close(fd);
	return -1;
}

/* A connection from anyone but 'from' is closed at once. -1: no connection. */
static int accept_from(int listener, const char *from)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	char host[64];
	int fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 &&
		(getnameinfo((struct sockaddr *)&peer, size, host, sizeof(host), NULL, 0,
			 NI_NUMERICHOST) ||
			strcmp(host, from))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int take_all(int listener, const char *from)
{
	struct pollfd p[1 + CONNECTIONS_MAX] = {{.fd = listener, .events = POLLIN}};
	nfds_t n = 1;

	for (;;) {
		/* Beyond the maximum, connections wait in the backlog. */
		p[0].events = n == 1 + CONNECTIONS_MAX ? 0 : POLLIN;
		if (poll(p, n, -1) < 0 && errno != EINTR)
			return program_failed("sink", "wait for", from, errno);
		for (nfds_t i = 1; i < n;) {
			ssize_t got = p[i].revents ? read(p[i].fd, chunk, sizeof(chunk)) : 1;

			if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) {
				i++;
				continue;
			}
			close(p[i].fd);
			p[i] = p[--n];
		}
		if (p[0].revents & POLLIN) {
			int fd = accept_from(listener, from);

			if (fd >= 0)
				p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
		}
	}
}

int sink_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent sink --listen ADDRESS:PORT --from ADDRESS\n\n"
		"Takes what ADDRESS sends to that port and drops it; closes on anyone else.\n";
	const char *at = NULL, *from = NULL;
	const struct program_option options[] = {
		{"listen", option_text, &at}, {"from", option_text, &from}, {0}};
	struct address address;
	struct packets_address peer;
	struct err e;
	int code, fd;

	if (program_options(argc, argv, options, 0, usage, &code) < 0)
		return code;
	if (!at || !from) {
		fputs(usage, stderr);
		return 2;
	}
	if (!read_address("sink: --listen", at, &address))
		return 2;
	if (packets_address_parse(from, &peer, &e)) {
		fprintf(stderr, "culprit-agent sink: --from: %s\n", e.text);
		return 2;
	}
	fd = listen_at(&address);
	if (fd < 0)
		return program_failed("sink", "listen at", at, errno);
	return take_all(fd, peer.text);
}

/* Until all that was sent has been acknowledged, or the connection is gone. */
static void wait_until_sent(int fd)
{
	struct pollfd p = {.fd = fd};
	int left;

	while (!ioctl(fd, SIOCOUTQ, &left) && left && poll(&p, 1, 1) <= 0)
		;
}

/* Until it breaks. */
static void send_zeros(int fd, struct duty *d)
{
	size_t size = d->share < 1 ? PACED_CHUNK : CHUNK;
	int buffer = PACED_BUFFER;
	ssize_t n;

	/* A large buffer would fill the wire long after the work has ended. */
	if (d->share < 1)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	do {
		duty_begin(d);
		do
			n = write(fd, chunk, size);
		while ((n > 0 || (n < 0 && errno == EINTR)) && !duty_is_over(d));
		if (n > 0)
			wait_until_sent(fd);
		duty_end(d);
	} while (n > 0);
}

int send_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent send [--share PERCENT] ADDRESS:PORT\n\n"
		"Connects and sends zeros; when that fails, tries again ten times a second. With "
		"--share\n"
		"it sends for that share of the time, about five times a second, and pauses "
		"between for\n"
		"as long as it takes: data that is not acknowledged yet counts as being sent.\n";
	struct duty duty = {.share = 1};
	const struct program_option options[] = {{"share", duty_option, &duty}, {0}};
	struct timespec nap = {.tv_nsec = 100000000};
	struct address address;
	const char *to;
	int code, first = program_options(argc, argv, options, 1, usage, &code);

	if (first < 0)
		return code;
	to = argv[first];
	if (!read_address("send:", to, &address))
		return 2;
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return program_failed("send", "make a socket for", to, errno);
		if (!connect(fd, (struct sockaddr *)&address.at, address.size))
			send_zeros(fd, &duty);
		close(fd);
		nanosleep(&nap, NULL);
	}
}
