/*
 * A server as others are: server PORT FOLDER goes into the background once it listens on PORT of
 * 127.0.0.1, and keeps FOLDER/data open for writing. SIGTERM ends it.
 *
 * server PORT FOLDER fork serves each client by a child in its own session, which starts
 * another program. The child writes into the connection who they are (struct server_child), then
 * sends back each byte after it has written it into FOLDER/data.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ci/tests/helpers/server.h"

static _Noreturn void serve(int client, int data)
{
	struct server_child who = {.server = getppid(), .child = getpid()};
	char byte;

	setsid();
	who.program = fork();
	if (!who.program) {
		execlp("sleep", "sleep", "1000", NULL);
		_exit(127);
	}
	if (write(client, &who, sizeof(who)) != sizeof(who))
		_exit(1);
	while (read(client, &byte, 1) == 1)
		if (write(data, &byte, 1) != 1 || write(client, &byte, 1) != 1)
			_exit(1);
	kill(who.program, SIGTERM);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ready[2], yes = 1, data;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[4096], byte;

	if (argc < 3 || argc > 4 || pipe(ready) < 0)
		return 2;
	at.sin_port = htons((unsigned short)atoi(argv[1]));
	if (fork()) {
		close(ready[1]);
		return read(ready[0], &byte, 1) == 1 ? 0 : 1;
	}
	close(ready[0]);
	setsid();
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	snprintf(path, sizeof(path), "%s/data", argv[2]);
	data = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (data < 0 || bind(sock, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(sock, 5) < 0 ||
		write(data, "x", 1) != 1 || write(ready[1], "", 1) != 1)
		return 1;
	close(ready[1]);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept(sock, NULL, NULL);

		if (argc == 4 && !fork())
			serve(client, data);
		close(client);
	}
}
