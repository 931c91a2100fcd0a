/* culprit-agent file: carries one file over standard input and output (PROTOCOL.md, "Files"). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/agent/programs.h"
#include "harness/base/file.h"

enum { FILE_SLICE = 64 << 10 };

/* An orchestrator that takes and sends nothing for so long is gone; a disk may take longer. */
static double lease_s = 60;
#define DISK_S 60

static char *part; /* what a put has written so far */

static void on_alarm(int signo)
{
	if (part)
		unlink(part);
	signal(signo, SIG_DFL);
	raise(signo);
}

/* SIGALRM ends us after that. 'fd': what is waited for. */
static void limit_wait(int fd)
{
	const double s = fd == STDIN_FILENO || fd == STDOUT_FILENO ? lease_s : DISK_S;
	const time_t whole = (time_t)s;
	const struct itimerval t = {
		.it_value = {whole, 1 + (suseconds_t)((s - (double)whole) * 999998)}};

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &t, NULL);
}

static int file_answer(json_t *msg)
{
	int rc = !msg || json_dumpfd(msg, STDOUT_FILENO, JSON_COMPACT) ||
		fd_write_all(STDOUT_FILENO, "\n", 1);

	json_decref(msg);
	return rc;
}

static int file_refuse(int code, const char *what, const char *path)
{
	struct err e;

	err_errno(&e, code, "cannot %s '%s' there", what, path);
	file_answer(json_pack("{s:s, s:i}", "error", e.text, "code", code));
	return 1;
}

/* 'size' bytes from 'in' to 'out'. 0, -errno of a failed write, or 1: there are no more. */
static int file_copy(int in, int out, json_int_t size, uint32_t *crc)
{
	static char buf[FILE_SLICE];
	ssize_t got;
	int rc = 0;

	for (*crc = 0; size && !rc; size -= got) {
		limit_wait(in);
		got = read(in, buf, (size_t)(size < FILE_SLICE ? size : FILE_SLICE));
		if (got <= 0)
			return 1;
		*crc = (uint32_t)crc32(*crc, (void *)buf, (uInt)got);
		limit_wait(out);
		rc = fd_write_all(out, buf, (size_t)got);
	}
	limit_wait(STDIN_FILENO);
	return rc;
}

static int file_get(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint32_t crc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return file_refuse(-errno, "open", path);
	if (!S_ISREG(st.st_mode))
		return file_refuse(-EINVAL, "open", path);
	if (file_answer(json_pack("{s:I}", "size", (json_int_t)st.st_size)))
		return 1;
	if (file_copy(fd, STDOUT_FILENO, st.st_size, &crc)) {
		fprintf(stderr, "'%s' shrank while it was read, or its disk fails\n", path);
		return 1;
	}
	return file_answer(json_pack("{s:I}", "crc32", (json_int_t)crc));
}

/* One line of our input, of which no byte behind it is taken. */
static json_t *read_line(void)
{
	char line[4200];
	size_t n = 0;

	while (n < sizeof(line) && read(STDIN_FILENO, line + n, 1) == 1 && line[n] != '\n')
		n++;
	return json_loadb(line, n, 0, NULL);
}

static int file_put(const char *path, mode_t mode, json_int_t size)
{
	uint32_t crc;
	char *used;
	json_t *end;
	bool whole;
	int fd, rc;

	if (asprintf(&part, "%s.part-%d", path, (int)getpid()) < 0)
		return file_refuse(-ENOMEM, "make", path);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0) {
		rc = file_refuse(-errno, "make", part);
		goto out;
	}
	rc = file_copy(STDIN_FILENO, fd, size, &crc);
	end = rc ? NULL : read_line();
	whole = end && json_integer_value(json_object_get(end, "crc32")) == crc;
	json_decref(end);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc && !whole)
		rc = -EIO;
	if (!rc && rename(part, path) < 0)
		rc = -errno;
	if (rc) {
		unlink(part);
		rc = file_refuse(rc < 0 ? rc : -EIO, "write", path);
	} else {
		rc = file_answer(json_pack("{s:I}", "size", size));
	}
out:
	used = part;
	part = NULL;
	free(used);
	return rc;
}

int file_main(int argc, char **argv)
{
	const char *usage = "usage: culprit-agent file [--lease 60s]\n\n"
			    "Carries a file as asked; ends when nothing moves for the lease.\n";
	const struct program_option options[] = {{"lease", option_time, &lease_s}, {0}};
	const char *from = NULL, *to = NULL;
	json_int_t size = 0;
	int mode = 0600, rc;
	json_t *ask;

	if (program_options(argc, argv, options, 0, usage, &rc) < 0)
		return rc;
	limit_wait(STDIN_FILENO);
	ask = read_line();
	if (!json_unpack(ask, "{s:s !}", "get", &from))
		rc = file_get(from);
	else if (!json_unpack(ask, "{s:s, s:i, s:I !}", "put", &to, "mode", &mode, "size", &size) &&
		size >= 0)
		rc = file_put(to, (mode_t)mode & 0777, size);
	else
		rc = file_refuse(-EINVAL, "understand", "the request");
	json_decref(ask);
	return rc;
}
