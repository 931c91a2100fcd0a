/* Writes output files that appear whole or not at all. */
#include "harness/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/file.h"

/* 0 or -errno. stdio loses the errno of a write that failed earlier. */
static int base_outfile_flush(FILE *f)
{
	if (fflush(f))
		return -errno;
	if (!ferror(f))
		return 0;
	fputc('\n', f);
	return fflush(f) ? -errno : -EIO;
}

int outfile_flush(FILE *f, struct err *e)
{
	int rc = base_outfile_flush(f);

	return rc ? err_blame(e, ERR_HARNESS, err_errno(e, rc, "cannot write to standard output"))
		  : 0;
}

static int open_part(struct outfile *s)
{
	int fd;

	if (asprintf(&s->part, "%s.XXXXXX", s->target) < 0) {
		s->part = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(s->part, O_CLOEXEC);
	if (fd < 0) {
		int rc = -errno;

		free(s->part);
		s->part = NULL;
		return rc;
	}
	return fd;
}

int outfile_open(struct outfile *s, const char *path, struct err *e)
{
	int fd, rc;

	*s = (struct outfile){.path = path};
	if (!strcmp(path, "-")) {
		s->f = stdout;
		return 0;
	}
	rc = file_write_target(path, &s->target, &fd, e);
	if (rc)
		return rc;
	if (fd < 0)
		fd = open_part(s);
	s->f = fd < 0 ? NULL : fdopen(fd, "w");
	if (s->f)
		return 0;
	rc = fd < 0 ? fd : -errno;
	if (fd >= 0)
		close(fd);
	outfile_close(s, rc, NULL);
	return file_write_error(path, rc, e);
}

/* Syncs the temporary file and renames it to the final name. */
static int publish(struct outfile *s)
{
	const mode_t mask = umask(0);

	umask(mask);
	if (fchmod(fileno(s->f), 0666 & ~mask) < 0 || fsync(fileno(s->f)) < 0 ||
		rename(s->part, s->target) < 0)
		return -errno;
	free(s->part);
	s->part = NULL;
	file_give_to_sudo_user(s->target);
	return 0;
}

int outfile_close(struct outfile *s, int rc, struct err *e)
{
	int failed = s->f ? base_outfile_flush(s->f) : 0;

	if (failed) /* may also explain the writer's error */
		rc = s->f == stdout ? outfile_flush(stdout, e)
				    : file_write_error(s->path, failed, e);
	else if (!rc && s->part && (failed = publish(s)))
		rc = file_write_error(s->path, failed, e);
	if (s->f && s->f != stdout && fclose(s->f) && !rc)
		rc = file_write_error(s->path, -errno, e);
	if (s->part)
		unlink(s->part);
	free(s->part);
	free(s->target);
	*s = (struct outfile){0};
	return rc;
}
