/*
 * A process with work in every thread, to attach to and to leave: busy COUNTERFILE
 *
 * Two threads count as they call, one sleeps over and over, one waits in a read. A read, write
 * or sleep that fails or is cut short ends it with exit code 1: a tracer may not show. SIGTERM
 * ends it with 0, and so does a byte on standard input, which the waiting thread reads.
 *
 * The calls come in bursts: some 40,000 a second at most. A tracer that gets no processor for
 * seconds then still loses none, and what waits for this process gets one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 10 };

static _Atomic uint64_t *counter;

static void nap(long ns)
{
	if (nanosleep(&(struct timespec){0, ns}, NULL) < 0)
		_exit(1);
}

static void *pipes(void *arg)
{
	char buf[64] = "";
	int p[2];

	(void)arg;
	if (pipe(p) < 0)
		_exit(1);
	for (;;) {
		for (int i = 0; i < BURST; i++) {
			if (write(p[1], buf, 64) != 64 || read(p[0], buf, 64) != 64)
				_exit(1);
			++*counter;
		}
		nap(1000000);
	}
	return NULL;
}

static void *sleeps(void *arg)
{
	(void)arg;
	for (;;)
		nap(2000000);
	return NULL;
}

static void *waits(void *arg)
{
	char c = 0;

	(void)arg;
	_exit(read(0, &c, 1) == 1 && c == 'x' ? 0 : 1);
	return NULL;
}

static void on_term(int signo)
{
	(void)signo;
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t;
	int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;

	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || counter == MAP_FAILED)
		return 2;
	signal(SIGTERM, on_term);
	pthread_create(&t, NULL, sleeps, NULL);
	pthread_create(&t, NULL, waits, NULL);
	pthread_create(&t, NULL, pipes, NULL);
	pipes(NULL);
	return 0;
}
