/*
 * culprit-agent cpu and memory: what made one server slower than its peers in 002, section 6.3.2.
 * And read: the reader of 001's disk faults (section 5), for a share of the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness/agent/agent.h"
#include "harness/agent/duty.h"

#define THREADS_MAX 4096
#define ALIGNMENT 4096 /* of direct reads: no disk has larger blocks */
#define BLOCK_MAX (64u << 20)

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
			fprintf(stderr, "culprit-agent cpu: cannot start a thread: %s\n",
				strerror(rc));
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
	static const char usage[] =
		"usage: culprit-agent memory --bytes N\n\n"
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
	memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		fprintf(stderr, "culprit-agent memory: cannot have %llu bytes: %s\n", bytes,
			strerror(errno));
		return 1;
	}
	/* Pages of zeros alike might be merged or compressed away: each begins with its own
	 * number. */
	for (size_t turn = 0;; turn++) {
		for (size_t at = 0; at < (size_t)bytes; at += page)
			*(volatile size_t *)(memory + at) = at + turn;
		nanosleep(&nap, NULL);
	}
}

/* From end to end, again and again; comes back only with an error. */
static int read_all(const char *path, int fd, char *buffer, size_t block, struct duty *d)
{
	off_t at = 0;

	for (;;) {
		ssize_t n;

		duty_begin(d);
		n = pread(fd, buffer, block, at);
		duty_end(d);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (!n && !at)) {
			fprintf(stderr, "culprit-agent read: cannot read '%s': %s\n", path,
				n ? strerror(errno) : "it is empty");
			return 1;
		}
		at = n ? at + n : 0;
	}
}

int read_main(int argc, char **argv)
{
	static const struct option options[] = {{"share", required_argument, NULL, 's'},
		{"block", required_argument, NULL, 'b'}, {"help", no_argument, NULL, 'h'}, {0}};
	static const char usage[] =
		"usage: culprit-agent read [--share PERCENT] [--block BYTES] FILE\n\n"
		"Reads a file or device again and again, past the page cache (O_DIRECT), BYTES at once (1 MiB;\n"
		"a multiple of 4096). With --share a read is under way for that share of the time only: about\n"
		"five pauses a second, fewer where a single read takes longer.\n";
	struct duty duty = {.share = 1};
	unsigned long block = 1u << 20;
	void *buffer;
	char *end;
	int c, fd;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		bool good = false;

		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c == 's')
			good = !duty_parse(optarg, &duty);
		if (c == 'b') {
			block = strtoul(optarg, &end, 10);
			good = !*end && block && block <= BLOCK_MAX && block % ALIGNMENT == 0;
		}
		if (!good) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return 2;
	}
	fd = open(argv[optind], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0 || posix_memalign(&buffer, ALIGNMENT, block)) {
		fprintf(stderr, "culprit-agent read: cannot read '%s': %s\n", argv[optind],
			strerror(errno));
		return 1;
	}
	return read_all(argv[optind], fd, buffer, block, &duty);
}
