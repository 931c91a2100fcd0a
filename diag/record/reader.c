/* Reads a trace log: head, blocks and records, and reports damage with its place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "diag/record/growing.h"
#include "diag/record/layout.h"
#include "diag/record/reading.h"
#include "harness/base/file.h"

struct log_reader {
	int fd;
	char *path;
	uint64_t base;   /* where the log begins in its file */
	uint64_t offset; /* of the current block, from 'base' */
	uint64_t next;   /* of the next block, from 'base' */
	enum log_detail detail;
	const uint8_t *pos, *end;
	uint32_t block_left; /* records of the block still to be read */
	/* MOVED: 'whole': the block is read whole; 'needy': it has calls that need that. */
	bool whole, needy;
	uint64_t records;
	bool ended; /* the END record has been read */
	struct log_head head;
	const struct call_arch *arch;
	struct layout_state state;
	struct record rec;
	/* More than a block: a call's fields are read as eight bytes each and masked, and only the
	 * last one is checked against the end of the block. */
	uint8_t block[LAYOUT_BLOCK_HEAD + LAYOUT_PAYLOAD + 8 * (LAYOUT_FIELDS + 1)];
};

static ssize_t read_full(int fd, void *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = read(fd, (char *)data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Decodes a head of LAYOUT_HEAD bytes. */
static int record_reader_read_head(
	const uint8_t *p, const char *path, struct log_head *head, struct err *e)
{
	struct log_head h = {0};

	if (memcmp(p, LAYOUT_MAGIC, 8))
		return err_set(e, -EINVAL, "'%s' is not a trace log of culprit", path);
	h.version = bytes_get32(p + 8);
	if (h.version < LAYOUT_OLDEST || h.version > LAYOUT_VERSION)
		return err_set(e, -EINVAL,
			"'%s' is a trace log of version %u; this program reads versions %d to %d: "
			"read the log with the culprit that recorded it",
			path, h.version, LAYOUT_OLDEST, LAYOUT_VERSION);
	if (bytes_get32(p + 12) != (uint32_t)crc32(0, p + 16, LAYOUT_HEAD - 16))
		return err_set(e, -EINVAL, "the head of the trace log '%s' is damaged", path);
	h.start_ns = (int64_t)bytes_get64(p + 16);
	h.bias_ns = (int64_t)bytes_get64(p + 24);
	memcpy(h.arch, p + 32, sizeof(h.arch) - 1);
	memcpy(h.tracer, p + 48, sizeof(h.tracer) - 1);
	memcpy(h.host, p + 64, sizeof(h.host) - 1);
	memcpy(h.boot_id, p + 129, sizeof(h.boot_id) - 1);
	h.how = bytes_get32(p + LAYOUT_HOW);
	*head = h;
	return 0;
}

int log_reader_new(const char *path, struct log_reader **out, struct err *e)
{
	return log_reader_inside(path, 0, out, e);
}

int log_reader_inside(const char *path, uint64_t base, struct log_reader **out, struct err *e)
{
	struct log_reader *r = calloc(1, sizeof(*r));
	uint8_t head[LAYOUT_HEAD];
	ssize_t n = 0;
	int rc;

	if (!r || !(r->path = strdup(path))) {
		free(r);
		return err_set(e, -ENOMEM, "out of memory");
	}
	r->fd = strcmp(path, "-") ? file_open_readable(path, "the log ", e) : STDIN_FILENO;
	if (r->fd < 0)
		rc = r->fd;
	else if (base && lseek(r->fd, (off_t)base, SEEK_SET) < 0)
		rc = err_errno(e, -errno, "cannot seek in the log '%s'", path);
	else if ((n = read_full(r->fd, head, sizeof(head))) < 0)
		rc = err_errno(e, (int)n, "cannot read the log '%s'", path);
	else if (n < LAYOUT_HEAD)
		rc = err_set(e, -EINVAL, "'%s' is not a trace log of culprit: it is %zd bytes long",
			path, n);
	else
		rc = record_reader_read_head(head, path, &r->head, e);
	r->arch = call_arch(r->head.arch);
	r->base = base;
	r->offset = r->next = LAYOUT_HEAD;
	r->pos = r->end = r->block + LAYOUT_BLOCK_HEAD;
	if (rc < 0) {
		log_reader_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

const struct log_head *log_reader_head(const struct log_reader *r)
{
	return &r->head;
}

bool log_reader_ended(const struct log_reader *r)
{
	return r->ended;
}

void log_reader_detail(struct log_reader *r, enum log_detail detail)
{
	r->detail = detail;
}

int log_reader_seek(struct log_reader *r, uint64_t offset, uint64_t before, struct err *e)
{
	if (offset < LAYOUT_HEAD || offset > INT64_MAX - r->base ||
		lseek(r->fd, (off_t)(r->base + offset), SEEK_SET) < 0)
		return err_errno(e, -ESPIPE, "cannot seek in the log '%s'", r->path);
	r->offset = r->next = offset;
	r->records = before;
	r->ended = false;
	r->block_left = 0;
	r->pos = r->end = r->block + LAYOUT_BLOCK_HEAD;
	return 0;
}

struct log_place log_reader_place(const struct log_reader *r)
{
	return (struct log_place){
		.block = r->offset, .next = r->next, .left = r->block_left, .records = r->records};
}

void log_reader_free(struct log_reader *r)
{
	if (!r)
		return;
	if (r->fd > STDIN_FILENO)
		close(r->fd);
	free(r->path);
	free(r);
}

static int cut_short(const struct log_reader *r, uint64_t at, struct err *e)
{
	return err_set(e, -EBADMSG,
		"the log '%s' is cut short at byte %llu, after %llu records: its tracer did "
		"not end in order",
		r->path, (unsigned long long)at, (unsigned long long)r->records);
}

static int damaged(const struct log_reader *r, uint64_t at, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "the log '%s' is damaged at byte %llu, after %llu records: %s",
		r->path, (unsigned long long)at, (unsigned long long)r->records, what);
}

/* Reads the block at 'at' into r->block. 1: done; 0: the file has only '*got' bytes of it. */
static int load_block(struct log_reader *r, uint64_t at, uint64_t *got, struct err *e)
{
	uint32_t payload;
	ssize_t n = read_full(r->fd, r->block, LAYOUT_BLOCK_HEAD);

	if (n < 0)
		return err_errno(e, (int)n, "cannot read the log '%s'", r->path);
	*got = (uint64_t)n;
	if (n < LAYOUT_BLOCK_HEAD)
		return 0;
	payload = bytes_get32(r->block + 4);
	if (bytes_get32(r->block) != LAYOUT_BLOCK_MAGIC || !payload || payload > LAYOUT_PAYLOAD)
		return damaged(r, at, "no block begins here", e);
	n = read_full(r->fd, r->block + LAYOUT_BLOCK_HEAD, payload);
	if (n < 0)
		return err_errno(e, (int)n, "cannot read the log '%s'", r->path);
	*got += (uint64_t)n;
	return n == (ssize_t)payload;
}

/* Like load_block, but with an error if the log is cut short. 0: it is still being written. */
static int load_or_wait(struct log_reader *r, uint64_t at, struct err *e)
{
	uint64_t got;
	int rc = load_block(r, at, &got, e);

	for (int i = 0; !rc; i++) {
		bool back = lseek(r->fd, (off_t)(r->base + at), SEEK_SET) >= 0;

		if (back && log_is_held(r->fd))
			return 0;
		/* Its writer may have ended it after the first read. */
		if (!back || i)
			return cut_short(r, at + got, e);
		rc = load_block(r, at, &got, e);
	}
	return rc;
}

/* Reads the next block. 1: done; 0: end of the log, or of the part written so far. */
static int next_block(struct log_reader *r, struct err *e)
{
	const uint64_t at = r->next;
	uint32_t payload;
	ssize_t n;
	int rc;

	if (r->ended) {
		n = read_full(r->fd, r->block, 1);
		if (n < 0)
			return err_errno(e, (int)n, "cannot read the log '%s'", r->path);
		return n ? damaged(r, at, "bytes follow the END record", e) : 0;
	}
	rc = load_or_wait(r, at, e);
	if (rc != 1)
		return rc;
	payload = bytes_get32(r->block + 4);
	if (layout_crc(r->block, payload) != bytes_get32(r->block + 12))
		return damaged(r, at, "the block's check does not match", e);
	if (bytes_get64(r->block + 16) != r->records + 1)
		return damaged(r, at, "a block is missing before this one", e);
	r->block_left = bytes_get32(r->block + 8);
	if (!r->block_left)
		return damaged(r, at, "the block has no records", e);
	r->offset = at;
	r->next = at + LAYOUT_BLOCK_HEAD + payload;
	r->pos = r->block + LAYOUT_BLOCK_HEAD;
	r->end = r->pos + payload;
	memset(&r->state, 0, sizeof(r->state));
	r->whole = r->needy; /* blocks with such calls follow one another */
	r->needy = false;
	return 1;
}

/* The getters return false if the block ends first or the value is out of range. */
static bool get_varint(struct log_reader *r, uint64_t *out)
{
	return bytes_get_varint(&r->pos, r->end, out);
}

static bool get_u32(struct log_reader *r, uint32_t *out)
{
	uint64_t v;

	return get_varint(r, &v) && (*out = (uint32_t)v) == v;
}

static bool get_i32(struct log_reader *r, int32_t *out)
{
	uint64_t v;

	return get_varint(r, &v) && (*out = (int32_t)bytes_unzigzag(v)) == bytes_unzigzag(v);
}

static bool get_byte(struct log_reader *r, uint8_t *out)
{
	if (r->pos == r->end)
		return false;
	*out = *r->pos++;
	return true;
}

static bool get_string(struct log_reader *r, const char **out)
{
	uint64_t n;

	if (!get_varint(r, &n) || !n || n > LAYOUT_PATH || n > (uint64_t)(r->end - r->pos) ||
		r->pos[n - 1])
		return false;
	*out = (const char *)r->pos;
	r->pos += n;
	return true;
}

static bool get_address(struct log_reader *r, struct sockaddr_storage *out)
{
	uint8_t n;

	if (!get_byte(r, &n) || n > sizeof(*out) || n > r->end - r->pos)
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(out, r->pos, n);
	r->pos += n;
	return true;
}

static bool get_start(struct log_reader *r, int64_t *out)
{
	uint64_t v;

	if (!get_varint(r, &v))
		return false;
	r->state.start_ns = (int64_t)((uint64_t)r->state.start_ns + (uint64_t)bytes_unzigzag(v));
	*out = r->state.start_ns;
	return true;
}

static bool get_seq(struct log_reader *r, uint64_t *out)
{
	uint64_t v;

	if (!get_varint(r, &v))
		return false;
	r->state.seq += (uint64_t)bytes_unzigzag(v) + 1;
	*out = r->state.seq;
	return true;
}

/* Reads a path; NULL for length 0. */
static bool get_path(struct log_reader *r, const char **out)
{
	uint8_t zero;

	if (r->pos != r->end && *r->pos)
		return get_string(r, out);
	*out = NULL;
	return get_byte(r, &zero);
}

static bool get_offset(struct log_reader *r, uint8_t how, int64_t *next)
{
	struct record_call *c = &r->rec.call;
	uint64_t v;

	switch (how) {
	case OFFSET_NEXT: c->offset = *next; break;
	case OFFSET_RESULT: c->offset = c->result; break;
	case OFFSET_ARG: c->offset = (int64_t)c->args[3]; break;
	case OFFSET_OTHER:
		if (!get_varint(r, &v))
			return false;
		c->offset = (int64_t)((uint64_t)*next + (uint64_t)bytes_unzigzag(v));
		break;
	case OFFSET_ASKED: return get_u32(r, &c->asked);
	case OFFSET_NONE: return true;
	default: return false;
	}
	*next = layout_next(c->offset, c->result);
	return true;
}

static bool get_position(struct log_reader *r, bool moved)
{
	struct record_call *c = &r->rec.call;
	uint32_t *last = &r->state.positions[layout_connection(c)];
	int32_t difference = 0;

	if (moved && !get_i32(r, &difference))
		return false;
	c->positioned = true;
	c->position = *last += (uint32_t)c->result + (uint32_t)difference;
	return true;
}

static bool get_bytes(struct log_reader *r)
{
	struct record_call *c = &r->rec.call;

	if (!get_byte(r, &c->head_size) || !c->head_size || c->head_size > RECORD_HEAD ||
		c->head_size > r->end - r->pos)
		return false;
	c->head = r->pos;
	r->pos += c->head_size;
	return true;
}

static bool get_cpu(struct log_reader *r)
{
	struct record_call *c = &r->rec.call;
	uint64_t *last = &r->state.cpu_ns[layout_thread(c->tid)], v;

	if (!get_varint(r, &v) || !get_varint(r, &c->cpu_call_ns))
		return false;
	c->timed = true;
	c->cpu_ns = *last + (uint64_t)bytes_unzigzag(v);
	*last = c->cpu_ns + c->cpu_call_ns;
	return true;
}

/* Does this version know the fields after the offset? */
static bool more_is_known(const struct log_reader *r, uint8_t how)
{
	return !(how & MORE_ALL) || r->head.version >= LAYOUT_CAUSAL ||
		(r->head.version >= LAYOUT_FLOWS && !(how & MORE_CPU));
}

/* Reads the offset or the asked length; position, head and processor time. */
static bool get_more(struct log_reader *r, int64_t *next)
{
	uint8_t how;

	if (!get_byte(r, &how) || !get_offset(r, how & ~MORE_ALL, next))
		return false;
	if (!more_is_known(r, how))
		return false;
	return (!(how & MORE_POSITION) || get_position(r, how & MORE_MOVED)) &&
		(!(how & MORE_HEAD) || get_bytes(r)) && (!(how & MORE_CPU) || get_cpu(r));
}

static const uint64_t mask[9] = {
	0,
	0xff,
	0xffff,
	0xffffff,
	0xffffffff,
	0xffffffffff,
	0xffffffffffff,
	0xffffffffffffff,
	UINT64_MAX,
};

enum { FIELDS_ALWAYS = 6 }; /* of a call: those before its arguments */

/* Skips what get_more and two get_path would read. */
static bool skip_more(struct log_reader *r)
{
	uint64_t ignored;
	uint8_t how, head = 0;

	if (!get_byte(r, &how))
		return false;
	if ((how & ~MORE_ALL) > OFFSET_NONE || !more_is_known(r, how))
		return false;
	if (((how & ~MORE_ALL) == OFFSET_OTHER || (how & ~MORE_ALL) == OFFSET_ASKED) &&
		!get_varint(r, &ignored))
		return false;
	if (how & MORE_POSITION && how & MORE_MOVED && !get_varint(r, &ignored))
		return false;
	if (how & MORE_HEAD &&
		(!get_byte(r, &head) || !head || head > RECORD_HEAD || head > r->end - r->pos))
		return false;
	r->pos += head;
	return !(how & MORE_CPU) || (get_varint(r, &ignored) && get_varint(r, &ignored));
}

/* The sum of the twelve sizes of four bits, each at most 8. */
static unsigned sum_of_sizes(uint64_t sizes)
{
	sizes = (sizes & 0x0f0f0f0f0f0f) + (sizes >> 4 & 0x0f0f0f0f0f0f);
	return (unsigned)(sizes * 0x010101010101 >> 40 & 0xff);
}

/* Reads a call's control word and its number. */
static bool get_control(struct log_reader *r, const uint8_t **at, uint64_t *control)
{
	struct record_call *c = &r->rec.call;

	if (r->end - *at < 8)
		return false;
	*control = bytes_get64(*at);
	*at += 8;
	c->nr = (uint32_t)(*control >> 54);
	if (c->nr == LAYOUT_BIG_NR) {
		if (r->end - *at < 4)
			return false;
		c->nr = bytes_get32(*at);
		*at += 4;
	}
	return true;
}

/* Reads a call without the parts that need its arguments. */
static bool get_call_brief(struct log_reader *r)
{
	struct layout_state *st = &r->state;
	struct record_call *c = &r->rec.call;
	const uint8_t *p = r->pos;
	uint64_t control, sizes, field[FIELDS_ALWAYS];
	const char *path;

	if (!get_control(r, &p, &control))
		return false;
	sizes = control >> 4 & 0xffffffffffff;
	if (((sizes & 0x777777777777) + 0x777777777777) & sizes & 0x888888888888)
		return false;
	r->pos = p + sum_of_sizes(sizes);
#pragma GCC unroll 6
	for (int i = 0; i < FIELDS_ALWAYS; i++, sizes >>= 4) {
		field[i] = bytes_get64(p) & mask[sizes & 15];
		p += sizes & 15;
	}
	if (r->pos > r->end)
		return false;
	c->start_ns = st->start_ns = (int64_t)((uint64_t)st->start_ns +
		(uint64_t)bytes_unzigzag(field[0]));
	c->service_ns = bytes_unzigzag(field[1]);
	c->pid = st->pid ^= (uint32_t)field[2];
	c->tid = st->tid ^= (uint32_t)field[3];
	c->result = bytes_unzigzag(field[4]);
	c->seq = st->seq += (uint64_t)bytes_unzigzag(field[5]) + 1;
	c->unfinished = control >> 3 & 1;
	c->offset = -1;
	c->asked = 0;
	c->positioned = c->timed = false;
	c->head_size = 0;
	c->path = c->path2 = NULL;
	return (!(control & CONTROL_OFFSET) || skip_more(r)) &&
		(!(control & CONTROL_PATHS) || (get_path(r, &path) && get_path(r, &path)));
}

static bool get_call(struct log_reader *r)
{
	struct layout_state *st = &r->state;
	struct record_call *c = &r->rec.call;
	const uint8_t *p = r->pos;
	uint64_t control, sizes, field[LAYOUT_FIELDS], *last;
	unsigned slot;

	if (!get_control(r, &p, &control))
		return false;
	sizes = control >> 4;
	/* Rejects sizes above 8: bit 3 of a size may be set only if its other three bits are
	 * not. */
	if (((sizes & 0x777777777777) + 0x777777777777) & sizes & 0x888888888888)
		return false;
#pragma GCC unroll 12
	for (int i = 0; i < LAYOUT_FIELDS; i++, sizes >>= 4) {
		field[i] = bytes_get64(p) & mask[sizes & 15];
		p += sizes & 15;
	}
	if (p > r->end)
		return false;
	r->pos = p;
	c->start_ns = st->start_ns = (int64_t)((uint64_t)st->start_ns +
		(uint64_t)bytes_unzigzag(field[0]));
	c->service_ns = bytes_unzigzag(field[1]);
	c->pid = st->pid ^= (uint32_t)field[2];
	c->tid = st->tid ^= (uint32_t)field[3];
	c->result = bytes_unzigzag(field[4]);
	c->seq = st->seq += (uint64_t)bytes_unzigzag(field[5]) + 1;
	c->unfinished = control >> 3 & 1;
	slot = layout_slot(c->nr, c->tid);
	last = st->args[slot];
	for (int i = 0; i < 6; i++)
		c->args[i] = last[i] ^= field[6 + i];
	c->offset = -1;
	c->asked = 0;
	c->positioned = c->timed = false;
	c->position = 0;
	c->cpu_ns = c->cpu_call_ns = 0;
	c->head_size = 0;
	c->head = NULL;
	c->path = c->path2 = NULL;
	if (!(control & (CONTROL_OFFSET | CONTROL_PATHS)))
		return true;
	return (!(control & CONTROL_OFFSET) || get_more(r, &st->next[slot])) &&
		(!(control & CONTROL_PATHS) || (get_path(r, &c->path) && get_path(r, &c->path2)));
}

static bool get_signal(struct log_reader *r, uint8_t tag)
{
	struct record_signal *s = &r->rec.signal;

	s->fatal = tag >> 3 & 1;
	return get_start(r, &s->start_ns) && get_seq(r, &s->seq) && get_u32(r, &s->pid) &&
		get_u32(r, &s->tid) && get_u32(r, &s->signo);
}

static bool get_tag(struct log_reader *r, struct record_fd *f)
{
	uint64_t age;

	if (!get_varint(r, &f->tag.device) || !get_varint(r, &f->tag.inode) || !get_varint(r, &age))
		return false;
	f->tag.first_ns = (int64_t)((uint64_t)f->start_ns - (uint64_t)bytes_unzigzag(age));
	return true;
}

static bool get_fd(struct log_reader *r, uint8_t tag)
{
	struct record_fd *f = &r->rec.fd;
	uint8_t kind;

	memset(f, 0, sizeof(*f));
	f->open = tag >> 3 & 1;
	f->path = "";
	if (!get_start(r, &f->start_ns) || !get_u32(r, &f->pid) || !get_i32(r, &f->fd))
		return false;
	if (!f->open)
		return true;
	if (!get_byte(r, &kind) || kind > FD_SOCKET || !get_string(r, &f->path))
		return false;
	f->kind = (enum fd_kind)kind;
	if (kind == FD_SOCKET &&
		!(get_i32(r, &f->sock_type) && get_address(r, &f->local) &&
			get_address(r, &f->remote)))
		return false;
	if (tag >> 4 & 1 && !get_tag(r, f))
		return false;
	return !(tag >> 5 & 1) || (r->head.version >= LAYOUT_CAUSAL && get_varint(r, &f->peer));
}

static bool get_process(struct log_reader *r)
{
	struct record_process *p = &r->rec.process;
	uint8_t what;

	if (!get_start(r, &p->start_ns) || !get_u32(r, &p->pid) || !get_u32(r, &p->tid) ||
		!get_u32(r, &p->parent) || !get_byte(r, &what) ||
		what > (r->head.version < LAYOUT_FLOWS ? PROCESS_EXIT : PROCESS_NAME))
		return false;
	p->what = what;
	return get_i32(r, &p->status) && get_string(r, &p->name);
}

static bool get_lost(struct log_reader *r)
{
	struct record_lost *l = &r->rec.lost;

	return get_start(r, &l->start_ns) && get_u32(r, &l->cpu) && get_varint(r, &l->count);
}

static bool get_sum(struct log_reader *r, uint8_t tag)
{
	struct record_sum *s = &r->rec.sum;
	uint64_t *const figures[] = {&s->count, &s->errors, &s->failed, &s->failed_ns, &s->bytes,
		&s->total_ns, &s->max_ns};
	uint64_t set;

	memset(s, 0, sizeof(*s));
	s->messages = tag >> 3 & 1;
	s->selected = tag >> 4 & 1;
	s->bulk = tag >> 7;
	if (s->bulk && r->head.version < LAYOUT_BULK)
		return false;
	if (!get_start(r, &s->start_ns) || !get_u32(r, &s->pid) || !get_byte(r, &s->class) ||
		s->class >= CALL_CLASS_COUNT || !get_byte(r, &s->fd_class) ||
		s->fd_class >= FD_CLASS_COUNT)
		return false;
	if ((tag >> 5 & 1) && !get_varint(r, &s->device))
		return false;
	if ((tag >> 6 & 1) && !(get_address(r, &s->local) && get_address(r, &s->remote)))
		return false;
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (!get_varint(r, figures[i]))
			return false;
	if (!get_varint(r, &set) || set >> SUM_BUCKETS)
		return false;
	for (; set; set &= set - 1)
		if (!get_u32(r, &s->histogram[__builtin_ctzll(set)]))
			return false;
	return true;
}

static bool get_double(struct log_reader *r, double *out)
{
	uint64_t bits;

	if (r->end - r->pos < 8)
		return false;
	bits = bytes_get64(r->pos);
	memcpy(out, &bits, sizeof(*out));
	r->pos += 8;
	return isfinite(*out);
}

static bool get_reading(struct log_reader *r, uint8_t tag)
{
	struct record_reading *g = &r->rec.reading;
	uint32_t what;

	memset(g, 0, sizeof(*g));
	g->accepted = tag >> 4 & 1;
	if (!get_start(r, &g->start_ns) || !get_u32(r, &what) || what >= READING_TOTAL)
		return false;
	g->what = (uint16_t)what;
	if ((tag >> 3 & 1) && !get_address(r, &g->peer))
		return false;
	if (!get_u32(r, &g->count) || !get_double(r, &g->sum))
		return false;
	g->max = g->sum;
	return (tag >> 5 & 1) || get_double(r, &g->max);
}

static bool get_fuse(struct log_reader *r, uint8_t tag)
{
	struct record_fuse *f = &r->rec.fuse;
	uint64_t unique;

	memset(f, 0, sizeof(*f));
	f->ended = tag >> 3 & 1;
	if (r->head.version < LAYOUT_FLOWS || !get_start(r, &f->start_ns) || !get_u32(r, &f->pid) ||
		!get_u32(r, &f->tid) || !get_varint(r, &unique))
		return false;
	f->unique = r->state.unique += (uint64_t)bytes_unzigzag(unique);
	return get_varint(r, &f->nodeid) && get_u32(r, &f->device) && get_u32(r, &f->opcode) &&
		(!f->ended || get_i32(r, &f->error));
}

static bool get_mark(struct log_reader *r)
{
	struct record_mark *m = &r->rec.mark;

	return r->head.version >= LAYOUT_FLOWS && get_start(r, &m->start_ns) &&
		get_string(r, &m->text);
}

static bool get_unseen(struct log_reader *r)
{
	struct record_unseen *u = &r->rec.unseen;

	return r->head.version >= LAYOUT_UNSEEN && get_start(r, &u->start_ns) &&
		get_u32(r, &u->what) && get_varint(r, &u->count);
}

static enum record_type type_of(uint8_t tag)
{
	unsigned type = tag & 7;

	if (!type)
		type = (tag & TYPE_MARK) == TYPE_MARK        ? RECORD_MARK
			: (tag & TYPE_UNSEEN) == TYPE_UNSEEN ? RECORD_UNSEEN
			: tag & TYPE_FUSE                    ? RECORD_FUSE
							     : RECORD_READING;
	return (enum record_type)type;
}

static bool end_decode(const uint8_t *p, size_t size, struct record_end *end)
{
	if (size != LAYOUT_END || p[0] != RECORD_END)
		return false;
	end->start_ns = (int64_t)bytes_get64(p + 1);
	end->records = bytes_get64(p + 9);
	end->lost = bytes_get64(p + 17);
	return true;
}

static bool get_end(struct log_reader *r)
{
	if (!end_decode(r->pos - 1, (size_t)(r->end - r->pos) + 1, &r->rec.end))
		return false;
	r->pos = r->end;
	r->ended = true;
	return r->rec.end.records == r->records;
}

static bool get_record(struct log_reader *r);

/* Rereads the block from its start, so that arguments are known from here on. */
static void read_whole(struct log_reader *r)
{
	const uint8_t *at = r->pos;

	memset(&r->state, 0, sizeof(r->state));
	r->whole = true;
	r->pos = r->block + LAYOUT_BLOCK_HEAD;
	while (r->pos < at && get_record(r))
		;
	r->rec.type = RECORD_CALL; /* the current record */
}

static bool get_call_moved(struct log_reader *r)
{
	const uint8_t *at = r->pos;
	const struct call_info *info;
	uint64_t control;

	if (!get_control(r, &at, &control))
		return false;
	info = call_info(r->arch, r->rec.call.nr);
	if (info && (info->messages || info->flags >= 0)) {
		r->needy = true;
		if (!r->whole)
			read_whole(r);
	}
	return r->whole ? get_call(r) : get_call_brief(r);
}

static bool get_record(struct log_reader *r)
{
	uint8_t tag = *r->pos;

	r->rec.type = type_of(tag);
	if (r->rec.type == RECORD_CALL)
		return r->detail == LOG_WHOLE    ? get_call(r)
			: r->detail == LOG_BRIEF ? get_call_brief(r)
						 : get_call_moved(r);
	r->pos++;
	switch (r->rec.type) {
	case RECORD_SIGNAL: return get_signal(r, tag);
	case RECORD_FD: return get_fd(r, tag);
	case RECORD_PROCESS: return get_process(r);
	case RECORD_LOST: return get_lost(r);
	case RECORD_END: return get_end(r);
	case RECORD_SUM: return get_sum(r, tag);
	case RECORD_READING: return get_reading(r, tag);
	case RECORD_FUSE: return get_fuse(r, tag);
	case RECORD_MARK: return get_mark(r);
	case RECORD_UNSEEN: return get_unseen(r);
	default: return false;
	}
}

int log_next(struct log_reader *r, const struct record **rec, struct err *e)
{
	const uint8_t *at;
	int rc;

	if (!r->block_left) {
		if (r->pos != r->end)
			return damaged(r, r->offset + (uint64_t)(r->pos - r->block),
				"more bytes than records in a block", e);
		rc = next_block(r, e);
		if (rc <= 0)
			return rc;
	}
	at = r->pos;
	if (at == r->end || !get_record(r)) {
		r->pos = at;
		return damaged(r, r->offset + (uint64_t)(at - r->block), "unknown record type", e);
	}
	r->block_left--;
	r->rec.number = ++r->records;
	*rec = &r->rec;
	return 1;
}

int log_read_end(const char *path, struct record_end *end, uint64_t *bytes, struct err *e)
{
	uint8_t head[LAYOUT_HEAD], block[LAYOUT_BLOCK_HEAD + LAYOUT_END];
	struct log_head ignored;
	struct record_end found;
	off_t size;
	int fd = file_open_readable(path, "the log ", e), rc = 0;

	if (fd < 0)
		return fd;
	size = lseek(fd, 0, SEEK_END);
	if (pread(fd, head, sizeof(head), 0) != sizeof(head))
		rc = err_set(e, -EINVAL, "'%s' is not a trace log of culprit", path);
	else
		rc = record_reader_read_head(head, path, &ignored, e);
	if (rc == 0 &&
		(pread(fd, block, sizeof(block), size - (off_t)sizeof(block)) != sizeof(block) ||
			bytes_get32(block) != LAYOUT_BLOCK_MAGIC ||
			bytes_get32(block + 4) != LAYOUT_END ||
			layout_crc(block, LAYOUT_END) != bytes_get32(block + 12) ||
			!end_decode(block + LAYOUT_BLOCK_HEAD, LAYOUT_END, &found)))
		rc = err_set(e, -EBADMSG,
			"the log '%s' is cut short: its tracer did not end in order", path);
	close(fd);
	if (rc < 0)
		return rc;
	*end = found;
	if (bytes)
		*bytes = (uint64_t)size;
	return 0;
}
