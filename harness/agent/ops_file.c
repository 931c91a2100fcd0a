/* The operation 'file.read': a part of a file that grows, such as a tracer's log. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/record/log.h"
#include "harness/agent/ops.h"
#include "harness/base/base64.h"

/* In a line of JSON of 1 MiB at most. */
enum { READ_BYTES = 256 << 10 };

static int open_file(const char *path, bool release, int *fd, struct stat *st, struct err *e)
{
	*fd = open(path, (release ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (*fd < 0 || fstat(*fd, st) < 0)
		return err_errno(e, -errno, "cannot open '%s'", path);
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EINVAL, "'%s' is no regular file", path);
	return 0;
}

/* What lies before 'offset' becomes a hole, in whole pages. On a file system without holes it
 * stays, and the bound of the log counts it. */
static void release_before(int fd, int64_t offset)
{
	const int64_t end = offset / LOG_KEPT * LOG_KEPT;

	if (end > LOG_KEPT)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, LOG_KEPT, end - LOG_KEPT);
}

/* What is there, as JSON text. */
static int read_part(int fd, int64_t offset, size_t most, json_t **out)
{
	uint8_t *data = malloc(most);
	char *text = malloc(base64_length(most) + 1);
	ssize_t n = data && text ? pread(fd, data, most, offset) : -1;
	int rc = !data || !text ? -ENOMEM : n < 0 ? -errno : 0;

	if (!rc) {
		base64_encode(data, (size_t)n, text);
		*out = json_stringn_nocheck(text, base64_length((size_t)n));
	}
	free(data);
	free(text);
	return rc;
}

int op_file_read(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *path = jget_text(args, "path");
	const bool release = jget_true(args, "release");
	const int64_t offset = jget_int(args, "offset");
	auto_free char *full = agent_path(a, path);
	auto_fd int fd = -1;
	json_t *data = NULL;
	struct stat st;
	int rc;

	if (!full)
		return err_errno(e, -ENOMEM, "cannot read '%s'", path);
	if (release && strchr(path, '/'))
		return err_set(
			e, -EINVAL, "only files of the session can be released, not '%s'", path);
	rc = open_file(full, release, &fd, &st, e);
	if (rc)
		return rc;
	if (release)
		release_before(fd, offset);
	rc = read_part(fd, offset, (size_t)arg_number(args, "most", READ_BYTES), &data);
	if (rc)
		return err_errno(e, rc, "cannot read '%s'", full);
	agent_answer(a, id, json_pack("{s:o, s:I}", "data", data, "size", (json_int_t)st.st_size));
	return 0;
}
