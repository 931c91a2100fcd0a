/* Reads a file or standard input, decompressing gzip and zstd. */
#include "diag/import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"

enum packing { PLAIN, GZIP, ZSTD };

struct input {
	char *name;
	int fd;
	enum packing packing;
	z_stream gz;
	ZSTD_DCtx *zstd;
	bool open;          /* inside a compressed part */
	bool parts;         /* a compressed part has ended */
	unsigned char *raw; /* bytes of the file; [raw_at, raw_end) are unused */
	size_t raw_at, raw_end;
	bool eof;
	char *head;
	size_t head_size, head_at; /* head_at: bytes that 'f' has taken */
	FILE *f;
	int failed;
	struct err why;
};

enum { RAW_ROOM = 256 * 1024 };

static ssize_t fail(struct input *in, const char *what)
{
	in->failed = err_set(&in->why, -EINVAL, "%s: %s", in->name, what);
	err_blame(&in->why, ERR_SCENARIO, 0);
	return -1;
}

static ssize_t read_fd(struct input *in, void *to, size_t size)
{
	ssize_t n;

	do
		n = read(in->fd, to, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		in->failed = err_errno(&in->why, -errno, "cannot read '%s'", in->name);
	in->eof |= n == 0;
	return n;
}

/* Reads more raw bytes after the unused ones. */
static ssize_t refill(struct input *in)
{
	ssize_t n;

	memmove(in->raw, in->raw + in->raw_at, in->raw_end - in->raw_at);
	in->raw_end -= in->raw_at;
	in->raw_at = 0;
	n = read_fd(in, in->raw + in->raw_end, RAW_ROOM - in->raw_end);
	if (n > 0)
		in->raw_end += (size_t)n;
	return n;
}

static ssize_t unpack_gzip(struct input *in, char *to, size_t size)
{
	int rc;

	/* Members may follow one another, and zero bytes may follow the last (tar, tapes). */
	if (!in->open) {
		while (in->parts && in->raw_at < in->raw_end && !in->raw[in->raw_at])
			in->raw_at++;
		if (in->raw_at == in->raw_end)
			return 0;
		inflateReset(&in->gz);
		in->open = true;
	}
	in->gz.next_in = in->raw + in->raw_at;
	in->gz.avail_in = (uInt)(in->raw_end - in->raw_at);
	in->gz.next_out = (Bytef *)to;
	in->gz.avail_out = (uInt)size;
	rc = inflate(&in->gz, Z_NO_FLUSH);
	in->raw_at = in->raw_end - in->gz.avail_in;
	if (rc == Z_STREAM_END) {
		in->open = false;
		in->parts = true;
	} else if (rc != Z_OK && rc != Z_BUF_ERROR) {
		return fail(in, "the gzip data is damaged");
	}
	return (ssize_t)(size - in->gz.avail_out);
}

static ssize_t unpack_zstd(struct input *in, char *to, size_t size)
{
	ZSTD_inBuffer from = {in->raw + in->raw_at, in->raw_end - in->raw_at, 0};
	ZSTD_outBuffer out = {to, size, 0};
	char what[200];
	size_t rc;

	if (!in->open && !from.size)
		return 0;
	rc = ZSTD_decompressStream(in->zstd, &out, &from);
	in->raw_at += from.pos;
	if (ZSTD_isError(rc)) {
		snprintf(
			what, sizeof(what), "the zstd data is damaged (%s)", ZSTD_getErrorName(rc));
		return fail(in, what);
	}
	in->open = rc != 0;
	in->parts |= !in->open;
	return (ssize_t)out.pos;
}

/* The next bytes of the text: 0 at its end, -1 on failure. */
static ssize_t next_text(struct input *in, char *to, size_t size)
{
	ssize_t n, more;

	if (in->failed)
		return -1;
	if (in->packing == PLAIN && in->raw_at < in->raw_end) {
		size = size < in->raw_end - in->raw_at ? size : in->raw_end - in->raw_at;
		memcpy(to, in->raw + in->raw_at, size);
		in->raw_at += size;
		return (ssize_t)size;
	}
	if (in->packing == PLAIN)
		return in->eof ? 0 : read_fd(in, to, size);
	for (;;) {
		n = in->packing == GZIP ? unpack_gzip(in, to, size) : unpack_zstd(in, to, size);
		if (n)
			return n;
		if (in->raw_at < in->raw_end && !in->open)
			continue; /* the next part */
		more = in->eof ? 0 : refill(in);
		if (more < 0)
			return -1;
		if (!more && in->open)
			return fail(in,
				"it ends in the middle of its compressed data: copy it "
				"again");
		if (!more)
			return 0;
	}
}

static int start_unpacking(struct input *in, struct err *e)
{
	static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd},
				   skip[] = {0x2a, 0x4d, 0x18};

	/* A pipe may deliver its first bytes one by one. */
	while (in->raw_end < 4 && !in->eof)
		if (refill(in) < 0)
			return input_failure(in, e);
	if (in->raw_end >= 2 && !memcmp(in->raw, gzip, 2)) {
		if (inflateInit2(&in->gz, 15 + 16) != Z_OK)
			return err_errno(e, -ENOMEM, "cannot read '%s'", in->name);
		in->packing = GZIP;
	} else if (in->raw_end >= 4 &&
		(!memcmp(in->raw, zstd, 4) ||
			((in->raw[0] & 0xf0) == 0x50 && !memcmp(in->raw + 1, skip, 3)))) {
		in->zstd = ZSTD_createDCtx();
		if (!in->zstd)
			return err_errno(e, -ENOMEM, "cannot read '%s'", in->name);
		in->packing = ZSTD;
	}
	return 0;
}

static int input_read_head(struct input *in, struct err *e)
{
	ssize_t n = 1;

	while (n > 0 && in->head_size < INPUT_HEAD_MAX) {
		n = next_text(in, in->head + in->head_size, INPUT_HEAD_MAX - in->head_size);
		if (n > 0)
			in->head_size += (size_t)n;
	}
	/* Programs on Windows write a byte order mark first. */
	if (in->head_size >= 3 && !memcmp(in->head, "\xef\xbb\xbf", 3)) {
		in->head_size -= 3;
		memmove(in->head, in->head + 3, in->head_size);
		memset(in->head + in->head_size, 0, 3);
	}
	/* The text read so far is judged first: its error may be clearer. */
	return n < 0 && !in->head_size ? input_failure(in, e) : 0;
}

int input_open(const char *path, struct input **out, struct err *e)
{
	bool standard = !strcmp(path, "-");
	struct input *in;
	int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
			  : file_open_readable(path, "", e);
	int rc;

	if (fd < 0 && standard)
		err_errno(e, -errno, "cannot open standard input");
	if (fd < 0)
		return err_blame(e, ERR_SCENARIO, fd);
	in = alloc_zero(1, sizeof(*in));
	in->fd = fd;
	in->name = alloc_copy(standard ? "standard input" : path);
	in->raw = alloc_zero(1, RAW_ROOM);
	in->head = alloc_zero(1, INPUT_HEAD_MAX + 1);
	rc = start_unpacking(in, e);
	if (!rc)
		rc = input_read_head(in, e);
	if (rc)
		input_close(in);
	else
		*out = in;
	return rc;
}

void input_close(struct input *in)
{
	if (!in)
		return;
	if (in->f)
		fclose(in->f);
	if (in->packing == GZIP)
		inflateEnd(&in->gz);
	ZSTD_freeDCtx(in->zstd);
	close(in->fd);
	free(in->raw);
	free(in->head);
	free(in->name);
	free(in);
}

const char *input_name(const struct input *in)
{
	return in->name;
}

const char *input_head(const struct input *in, size_t *size)
{
	*size = in->head_size;
	return in->head;
}

static ssize_t on_read(void *cookie, char *to, size_t size)
{
	struct input *in = cookie;
	size_t left = in->head_size - in->head_at;

	if (!left)
		return next_text(in, to, size);
	size = size < left ? size : left;
	memcpy(to, in->head + in->head_at, size);
	in->head_at += size;
	return (ssize_t)size;
}

FILE *input_file(struct input *in, struct err *e)
{
	in->f = fopencookie(in, "r", (cookie_io_functions_t){.read = on_read});
	if (!in->f)
		err_errno(e, -errno, "cannot read '%s'", in->name);
	return in->f;
}

int input_failure(const struct input *in, struct err *e)
{
	if (in->failed && e)
		*e = in->why;
	return in->failed;
}
