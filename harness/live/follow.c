/* Follows a growing file line by line. */
#include "harness/live/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"

enum { START_MAX = 4096, READ_LEAST = 64 << 10 };

struct follow {
	char *path;
	int fd;
	bool stream, ended;
	bool last;    /* the file has been replaced, so it cannot grow any more */
	bool waiting; /* it was read to its end */
	const char *why;
	off_t at; /* bytes read */
	char *text;
	size_t given, size, room; /* text[given..size) has not been returned yet */
	size_t searched;          /* there is no newline before this */
	char start[START_MAX];    /* the first bytes of the file */
	size_t n_start;
};

static int open_it(struct follow *f)
{
	/* Without O_NONBLOCK the open of a FIFO waits for a writer. */
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	f->fd = fd;
	f->at = 0;
	f->n_start = 0;
	f->last = false;
	f->waiting = false;
	return 0;
}

int follow_open(const char *path, struct follow **out, struct err *e)
{
	const bool named = strcmp(path, "-") != 0;
	int rc = named ? file_check_readable(path, e) : 0;
	struct follow *f;
	struct stat st;

	if (rc)
		return rc;
	f = alloc_zero(1, sizeof(*f));
	f->path = alloc_copy(path);
	f->fd = 0;
	if (named)
		rc = open_it(f);
	if (!rc && fstat(f->fd, &st) < 0)
		rc = -errno;
	if (rc) {
		f->fd = f->fd ? f->fd : -1;
		follow_close(f);
		return err_errno(e, rc, "cannot open '%s'", path);
	}
	f->stream = !f->fd || !S_ISREG(st.st_mode);
	*out = f;
	return 0;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	if (f->fd > 0)
		close(f->fd);
	free(f->path);
	free(f->text);
	free(f);
}

int follow_fd(const struct follow *f)
{
	return f->stream && !f->ended ? f->fd : -1;
}

static void keep_start(struct follow *f, const char *text, size_t n)
{
	if (n > START_MAX - f->n_start)
		n = START_MAX - f->n_start;
	memcpy(f->start + f->n_start, text, n);
	f->n_start += n;
}

/* Reads up to 'most' available bytes; returns their number or -errno. */
static ssize_t read_some(struct follow *f, size_t most)
{
	ssize_t n;

	if (f->given) {
		memmove(f->text, f->text + f->given, f->size - f->given);
		f->size -= f->given;
		f->searched -= f->given;
		f->given = 0;
	}
	if (most < READ_LEAST)
		most = READ_LEAST;
	if (f->room - f->size < most) {
		f->room = 2 * f->size + most;
		f->text = alloc_resize(f->text, f->room, 1);
	}
	/* Leave the mode of standard input unchanged: other programs may share it. */
	if (f->stream && poll(&(struct pollfd){.fd = f->fd, .events = POLLIN}, 1, 0) <= 0)
		return -EAGAIN;
	do {
		n = read(f->fd, f->text + f->size, most);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (f->at < START_MAX)
		keep_start(f, f->text + f->size, (size_t)n);
	f->at += n;
	f->size += (size_t)n;
	return n;
}

/* Do the first bytes of the open file differ from those read before? */
static bool start_changed(const struct follow *f)
{
	char now[START_MAX];
	ssize_t n = pread(f->fd, now, f->n_start, 0);

	return n >= 0 && ((size_t)n < f->n_start || memcmp(now, f->start, f->n_start) != 0);
}

/* Checks whether the file is still the same. Returns 1 if it was rewritten; then it is read from
 * its start. */
static int check_file(struct follow *f)
{
	struct stat own, there;

	if (fstat(f->fd, &own) < 0)
		return -errno;
	if (own.st_size < f->at || start_changed(f)) {
		f->why = own.st_size < f->at ? "was truncated" : "was rewritten";
		if (lseek(f->fd, 0, SEEK_SET) < 0)
			return -errno;
		f->at = 0;
		f->n_start = f->given = f->size = f->searched = 0;
		return 1;
	}
	/* If the path does not exist, the next file has not been created yet. */
	if (!stat(f->path, &there) && (own.st_ino != there.st_ino || own.st_dev != there.st_dev)) {
		f->why = "was replaced by another file";
		f->last = true;
	}
	return 0;
}

/* The end of the last complete line within 'most' bytes, or of the first line; 0: no complete
 * line. */
static size_t whole_lines(struct follow *f, size_t most)
{
	size_t here = f->size - f->given, from = f->searched - f->given;
	char *start = f->text + f->given, *end = NULL;

	if (!here)
		return 0;
	end = memrchr(start, '\n', here < most ? here : most);
	if (!end && from < here)
		end = memchr(start + from, '\n', here - from);
	f->searched = end ? f->given + (size_t)(end + 1 - start) : f->size;
	return end ? (size_t)(end + 1 - start) : 0;
}

static bool follow_give(struct follow *f, size_t most, struct follow_piece *piece)
{
	size_t n = whole_lines(f, most);

	if (!n)
		return false;
	*piece = (struct follow_piece){FOLLOW_LINES, f->text + f->given, n, NULL};
	f->given += n;
	return true;
}

/* Returns the last line of a file or stream that ends without a newline. */
static bool give_rest(struct follow *f, size_t most, struct follow_piece *piece)
{
	if (f->size == f->given)
		return false;
	if (f->room == f->size)
		f->text = alloc_resize(f->text, ++f->room, 1);
	f->text[f->size++] = '\n';
	f->searched = f->given;
	return follow_give(f, most, piece);
}

/* The old file has been replaced and read to its end: open the new one. */
static int begin_next(struct follow *f, struct follow_piece *piece, struct err *e)
{
	int old = f->fd, rc = open_it(f);

	if (rc == -ENOENT) /* removed again; wait for the next one */
		return 0;
	if (rc)
		return err_errno(e, rc, "cannot reopen '%s'", f->path);
	close(old);
	f->given = f->size = f->searched = 0;
	*piece = (struct follow_piece){.state = FOLLOW_NEW, .why = f->why};
	return 0;
}

static int at_end(struct follow *f, size_t most, struct follow_piece *piece, struct err *e)
{
	if (f->stream) {
		f->ended = true;
		if (!give_rest(f, most, piece))
			piece->state = FOLLOW_ENDED;
		return 0;
	}
	if (f->last)
		return give_rest(f, most, piece) ? 0 : begin_next(f, piece, e);
	f->waiting = true;
	return 0;
}

/* Checks the file before reading on. The old file is read to its end before the next one. */
static int look_again(struct follow *f, struct follow_piece *piece, struct err *e)
{
	int rc = check_file(f);

	f->waiting = false;
	if (rc < 0)
		return err_errno(e, rc, "cannot examine '%s'", f->path);
	if (rc)
		*piece = (struct follow_piece){.state = FOLLOW_NEW, .why = f->why};
	return rc;
}

int follow_next(struct follow *f, size_t most, struct follow_piece *piece, struct err *e)
{
	ssize_t n;
	int rc;

	*piece = (struct follow_piece){.state = FOLLOW_NONE};
	if (f->ended) {
		piece->state = FOLLOW_ENDED;
		return 0;
	}
	if (f->waiting && (rc = look_again(f, piece, e)))
		return rc < 0 ? rc : 0;
	for (;;) {
		if (f->size - f->given >= most && follow_give(f, most, piece))
			return 0;
		if (f->size - f->given > FOLLOW_LINE_MAX)
			return err_set(e, -EFBIG, "%s: a line is longer than %d MiB", f->path,
				FOLLOW_LINE_MAX >> 20);
		n = read_some(f, most);
		if (n == -EAGAIN)
			break;
		if (n < 0)
			return err_errno(e, (int)n, "cannot read '%s'", f->path);
		if (!n)
			return follow_give(f, most, piece) ? 0 : at_end(f, most, piece, e);
	}
	follow_give(f, most, piece);
	return 0;
}
