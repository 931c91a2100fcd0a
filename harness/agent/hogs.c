/*
 * culprit-agent cpu and memory make one server slower than its peers, as in Dinh 2009, section
 * 6.3.2. culprit-agent read is the reader of the disk faults of Kasick et al. 2009, section 5, for
 * a share of the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness/agent/duty.h"
#include "harness/agent/programs.h"

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
	static const char usage[] = "usage: culprit-agent cpu [--threads N]\n\n"
				    "Keeps N processors busy; without N all that are there.\n";
	unsigned long threads = (unsigned long)sysconf(_SC_NPROCESSORS_ONLN);
	const struct program_option options[] = {{"threads", option_count, &threads}, {0}};
	int code, rc;

	if (program_options(argc, argv, options, 0, usage, &code) < 0)
		return code;
	if (threads > THREADS_MAX) {
		fputs(usage, stderr);
		return 2;
	}
	while (--threads) {
		pthread_t thread;

		rc = pthread_create(&thread, NULL, spin, NULL);
		if (rc)
			return program_failed("cpu", "start", "a thread", rc);
	}
	spin(NULL);
	return 0;
}

/* If memory runs out, the kernel shall kill this process, not the server under test. */
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
	static const char usage[] =
		"usage: culprit-agent memory --bytes N\n\n"
		"Holds N bytes of memory and writes to every page of it once a second, so that it "
		"is\n"
		"not swapped out. It is the first to be killed if memory runs out.\n";
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned long bytes = 0;
	const struct program_option options[] = {{"bytes", option_count, &bytes}, {0}};
	volatile char *memory;
	int code;

	if (program_options(argc, argv, options, 0, usage, &code) < 0)
		return code;
	if (!bytes) {
		fputs(usage, stderr);
		return 2;
	}
	go_first();
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return program_failed("memory", "allocate", "memory", errno);
	/* Each page begins with its own number: equal pages might be merged or compressed. */
	for (size_t turn = 0;; turn++) {
		for (size_t at = 0; at < bytes; at += page)
			*(volatile size_t *)(memory + at) = at + turn;
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
}

/* Returns only with an error. */
static int hogs_read_all(const char *path, int fd, char *buffer, size_t block, struct duty *d)
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

static bool option_block(const char *value, void *into)
{
	unsigned long *block = into;

	return option_count(value, block) && *block <= BLOCK_MAX && *block % ALIGNMENT == 0;
}

int read_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent read [--share PERCENT] [--block BYTES] FILE\n\n"
		"Reads a file or device again and again, past the page cache (O_DIRECT), BYTES at "
		"once\n"
		"(1 MiB; a multiple of 4096). With --share a read is under way for that share of "
		"the time\n"
		"only: about five pauses a second, fewer where a single read takes longer.\n";
	struct duty duty = {.share = 1};
	unsigned long block = 1u << 20;
	const struct program_option options[] = {
		{"share", duty_option, &duty}, {"block", option_block, &block}, {0}};
	void *buffer;
	int code, fd, first = program_options(argc, argv, options, 1, usage, &code);

	if (first < 0)
		return code;
	fd = open(argv[first], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0 || posix_memalign(&buffer, ALIGNMENT, block))
		return program_failed("read", "read", argv[first], errno);
	return hogs_read_all(argv[first], fd, buffer, block, &duty);
}
