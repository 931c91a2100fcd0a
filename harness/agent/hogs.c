/* culprit-agent cpu and memory: what made one server slower than its peers in 002, section 6.3.2. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness/agent/agent.h"

#define THREADS_MAX 4096

static void *spin(void *unused)
{
	for (volatile unsigned long turns = 0;; turns++)
		;
	return unused;
}

int cpu_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"threads", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
	static const char usage[] = "usage: culprit-agent cpu [--threads N]\n\n"
				    "Keeps N processors busy; without N all that are there.\n";
	unsigned long threads = (unsigned long)sysconf(_SC_NPROCESSORS_ONLN);
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		threads = c == 't' ? strtoul(optarg, &end, 10) : 0;
		if (c != 't' || *end || !threads || threads > THREADS_MAX) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	while (--threads) {
		pthread_t thread;
		int rc = pthread_create(&thread, NULL, spin, NULL);

		if (rc) {
			fprintf(stderr, "culprit-agent cpu: cannot start a thread: %s\n", strerror(rc));
			return 1;
		}
	}
	spin(NULL);
	return 0;
}

/* Should memory run out, this process is the one to go, not the server under test. */
static void go_first(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "w");

	if (f) {
		fputs("1000", f);
		fclose(f);
	}
}

int memory_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"bytes", required_argument, NULL, 'b'}, {"help", no_argument, NULL, 'h'}, {0}};
	static const char usage[] = "usage: culprit-agent memory --bytes N\n\n"
				    "Holds N bytes of memory and writes to every page of it once a second, lest it be\n"
				    "swapped out. The first to be killed if memory runs out.\n";
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct timespec nap = {.tv_sec = 1};
	unsigned long long bytes = 0;
	volatile char *memory;
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		errno = 0;
		bytes = c == 'b' ? strtoull(optarg, &end, 10) : 0;
		if (c != 'b' || errno || *end || bytes > SIZE_MAX)
			bytes = 0;
		if (!bytes)
			break;
	}
	if (!bytes || optind < argc) {
		fputs(usage, stderr);
		return 2;
	}
	go_first();
	memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		fprintf(stderr, "culprit-agent memory: cannot have %llu bytes: %s\n", bytes, strerror(errno));
		return 1;
	}
	/* Pages of zeros alike might be merged or compressed away: each begins with its own number. */
	for (size_t turn = 0;; turn++) {
		for (size_t at = 0; at < (size_t)bytes; at += page)
			*(volatile size_t *)(memory + at) = at + turn;
		nanosleep(&nap, NULL);
	}
}
