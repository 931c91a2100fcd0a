/*
 * Cost of a system call, in CPU time of the calling thread, so that other load on the machine does
 * not count:
 *
 *     ebpf_calls cost CALLS            prints ns for one getppid and for one pread of 512 bytes
 *     ebpf_calls load THREADS SECONDS  getppid as fast as can be; prints how many were made
 *     ebpf_calls rate PER_S SECONDS    pread at that rate; prints how many were made
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

	if (fd < 0 || a <= 0 || (b <= 0 && strcmp(argv[1], "cost")) || a > 100000000)
		return 2;
	if (!strcmp(argv[1], "cost")) {
		double none = per_call_ns(-1, a);

		printf("%.1f %.1f\n", none, per_call_ns(fd, a));
		return 0;
	}
	if (!strcmp(argv[1], "rate")) {
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
