/*
 * A server as most daemons are: switcher PORT FOLDER goes into the background, takes PORT, which
 * only root may do below 1024, and becomes the user nobody. It serves each client by a child that
 * passes on what is said between the client and an sftp-server in FOLDER.
 *
 * switcher knock ADDRESS PORT is a client that does not stay: again and again it connects, greets
 * by sftp, and closes the connection once it has an answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NOBODY = 65534, BUFFER = 1 << 16 };

/* False at the end. */
static int pass(int from, int to)
{
	static char buffer[BUFFER];
	ssize_t n = read(from, buffer, sizeof(buffer)), done = 0, k;

	for (; n > 0 && done < n; done += k)
		if ((k = write(to, buffer + done, (size_t)(n - done))) < 0)
			return 0;
	return n > 0;
}

/* The process reads the requests itself, as the one that became another user. */
static _Noreturn void serve(int client, const char *folder)
{
	struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.events = POLLIN}};
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		_exit(1);
	if (fork() == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execlp("sftp-server", "sftp-server", "-d", folder, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p[1].fd = out[0];
	while (poll(p, 2, -1) > 0)
		if ((p[0].revents && !pass(client, in[1])) ||
			(p[1].revents && !pass(out[0], client)))
			break;
	_exit(0);
}

static int run(int sock, const char *folder)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0) { /* no descriptor is left */
			poll(NULL, 0, 10);
			continue;
		}
		if (fork() == 0)
			serve(client, folder);
		close(client);
	}
}

static int become_nobody(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		setresuid(NOBODY, NOBODY, NOBODY);
}

static int start(int port, const char *folder)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(sock, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(sock, 50) < 0 ||
		become_nobody() || daemon(0, 0) < 0) {
		perror("switcher");
		return 1;
	}
	return run(sock, folder);
}

static _Noreturn void knock(const char *address, int port)
{
	static const char greeting[] = {0, 0, 0, 5, 1 /* SSH_FXP_INIT */, 0, 0, 0, 3};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	char answer[256];

	inet_pton(AF_INET, address, &at.sin_addr);
	for (;; poll(NULL, 0, 100)) {
		int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(sock, (struct sockaddr *)&at, sizeof(at)) == 0 &&
			write(sock, greeting, sizeof(greeting)) == sizeof(greeting) &&
			read(sock, answer, sizeof(answer)) < 0)
			perror("switcher knock");
		close(sock);
	}
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 4 && !strcmp(argv[1], "knock"))
		knock(argv[2], atoi(argv[3]));
	return argc == 3 ? start(atoi(argv[1]), argv[2]) : 2;
}
