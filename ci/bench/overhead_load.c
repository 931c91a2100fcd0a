/*
 * A call-heavy load for tracers: overhead_load THREADS SECONDS [CALLS_PER_SECOND]
 *
 * Each thread reads 512 bytes of a file over and over: as fast as it can, or so that all together
 * make that many calls a second, paced by the millisecond. Waits for a line on standard input
 * before it begins, so that a tracer can attach. Prints the reads made, the seconds they took, and
 * the processor time of the process, and ends when its standard input does.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"

enum { MAX_THREADS = 64 };

static double begin_s, end_s, rate; /* of a thread, calls a second; 0: no limit */
static int file;

static void *work(void *calls)
{
	char buf[512];
	uint64_t n = 0;

	for (;;) {
		double now = clock_mono_s();
		uint64_t due = rate > 0 ? (uint64_t)((now - begin_s) * rate) : n + 512;

		if (now >= end_s)
			break;
		for (; n < due; n++)
			if (pread(file, buf, sizeof(buf), 0) != sizeof(buf))
				exit(1);
		if (rate > 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	*(uint64_t *)calls = n;
	return NULL;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	uint64_t calls[MAX_THREADS] = {0}, sum = 0;
	int threads = argc > 2 ? atoi(argv[1]) : 0;
	pthread_t t[MAX_THREADS];
	double cpu;
	char go;

	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	rate = argc > 3 ? atof(argv[3]) / threads : 0;
	file = open("/proc/self/exe", O_RDONLY);
	if (file < 0 || read(STDIN_FILENO, &go, 1) != 1)
		return 1;
	cpu = cpu_s();
	begin_s = clock_mono_s();
	end_s = begin_s + atof(argv[2]);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, work, &calls[i]))
			return 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		sum += calls[i];
	}
	printf("%llu %.3f %.3f\n", (unsigned long long)sum, clock_mono_s() - begin_s,
		cpu_s() - cpu);
	fflush(stdout);
	while (read(STDIN_FILENO, &go, 1) > 0)
		;
	return 0;
}
