/* A program with known compute time: compute FILE. Between calls access(FILE) it computes for
 * 0.3 s, sleeps for 0.05 s, looks for messages in vain for 0.2 s, and reads another process's
 * message. Prints how long it computed first, in seconds of processor time. */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct timespec nap = {.tv_nsec = 50000000};
	struct pollfd none = {.events = POLLIN};
	double start, spun;
	char byte = 0;
	int p[2];

	if (argc != 2 || pipe(p))
		return 2;
	none.fd = p[0];
	(void)!access(argv[1], R_OK);
	start = used();
	while (used() < start + 0.3)
		;
	spun = used() - start;
	(void)!access(argv[1], R_OK);
	nanosleep(&nap, NULL);
	(void)!access(argv[1], R_OK);
	start = used();
	while (used() < start + 0.2) /* which is a call itself */
		for (int i = 0; i < 1000; i++) {
			poll(&none, 1, 0);
			sched_yield();
		}
	(void)!access(argv[1], R_OK);
	if (!fork()) {
		nanosleep(&nap, NULL);
		(void)!write(p[1], &byte, 1);
		_exit(0);
	}
	(void)!read(p[0], &byte, 1);
	(void)!access(argv[1], R_OK);
	wait(NULL);
	printf("%f\n", spun);
	return 0;
}
