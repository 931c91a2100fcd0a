/*
 * Cost of a system call, in CPU time of the calling thread, so that other load on the machine does
 * not count:
 *
 *     ebpf_calls cost CALLS            prints ns for one getppid, one pread of 512 bytes, and a
 *                                      send and a recv of so many on a TCP connection
 *     ebpf_calls load THREADS SECONDS  getppid as fast as can be; prints how many were made
 *     ebpf_calls messages SECONDS      messages of 512 bytes as fast as can be; prints how many
 *     ebpf_calls rate PER_S SECONDS    pread at that rate; prints how many were made
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/base/clock.h"

static double until_s;
static _Atomic long made;

static double per_call_ns(int fd, long calls)
{
	char buf[512];
	int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (long i = 0; i < calls; i++)
		if ((fd < 0 ? syscall(SYS_getppid) : pread(fd, buf, sizeof(buf), 0)) < 0)
			exit(1);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) / (double)calls;
}

/* Both ends of a connection. */
static void connect_to_itself(int ends[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (struct sockaddr *)&at, size) < 0 || listen(l, 1) < 0 ||
		getsockname(l, (struct sockaddr *)&at, &size) < 0 ||
		connect(ends[0], (struct sockaddr *)&at, size) < 0)
		exit(1);
	ends[1] = accept(l, NULL, NULL);
	close(l);
}

static void exchange(const int ends[2], long messages)
{
	char buf[512] = "";

	for (long i = 0; i < messages; i++)
		if (send(ends[0], buf, sizeof(buf), 0) < 0 ||
			recv(ends[1], buf, sizeof(buf), MSG_WAITALL) < 0)
			exit(1);
}

static double per_message_ns(long messages)
{
	int64_t start_ns;
	int ends[2];

	connect_to_itself(ends);
	start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	exchange(ends, messages);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) / (double)messages;
}

static void messages_until(double s)
{
	int ends[2];

	connect_to_itself(ends);
	for (; clock_mono_s() < s; made += 100)
		exchange(ends, 100);
}

static void *load(void *arg)
{
	long n = 0;

	while (clock_mono_s() < until_s)
		for (int i = 0; i < 1000; i++, n++)
			syscall(SYS_getppid);
	made += n;
	return arg;
}

static void rate(int fd, long per_s, long seconds)
{
	double start_s = clock_mono_s();
	char buf[512];

	while (made < per_s * seconds) {
		while ((double)made < (clock_mono_s() - start_s) * (double)per_s &&
			made < per_s * seconds)
			for (int i = 0; i < 100; i++, made++)
				if (pread(fd, buf, sizeof(buf), 0) < 0)
					exit(1);
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;
	int fd = open(argv[0], O_RDONLY);
	pthread_t threads[64];

	if (fd < 0 || a <= 0 || a > 100000000 ||
		(b <= 0 && strcmp(argv[1], "cost") && strcmp(argv[1], "messages")))
		return 2;
	if (!strcmp(argv[1], "cost")) {
		double none = per_call_ns(-1, a), small = per_call_ns(fd, a);

		printf("%.1f %.1f %.1f\n", none, small, per_message_ns(a / 4));
		return 0;
	}
	if (!strcmp(argv[1], "messages")) {
		messages_until(clock_mono_s() + (double)a);
	} else if (!strcmp(argv[1], "rate")) {
		rate(fd, a, b);
	} else {
		until_s = clock_mono_s() + (double)b;
		for (long i = 0; i < a && i < 64; i++)
			pthread_create(&threads[i], NULL, load, NULL);
		for (long i = 0; i < a && i < 64; i++)
			pthread_join(threads[i], NULL);
	}
	printf("%ld\n", made);
	return 0;
}
