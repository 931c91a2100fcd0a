/* Tests the trace log: written records are read back; damage is found, reported with its place, and
 * never trusted. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "diag/record/describe.h"
#include "diag/record/layout.h"
#include "diag/record/reading.h"
#include "harness/base/file.h"

static char dir[] = "/tmp/culprit-log-test-XXXXXX";
static char path[64], bad[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(bad, sizeof(bad), "%s/bad", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

/* A xorshift generator: every run sees the same numbers. */
static uint64_t rng = 88172645463325252u;

static uint64_t draw(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* Any value; small ones are as likely as wide ones. */
static uint64_t any(void)
{
	uint64_t v = draw();

	return v >> draw() % 64;
}

static char text[8192], text2[8192];

static void fill_fd(struct record_fd *f)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	f->start_ns = (int64_t)any();
	f->pid = (uint32_t)any();
	f->fd = (int32_t)any();
	f->open = draw() & 1;
	f->path = f->open ? text : "";
	if (!f->open)
		return;
	if (draw() & 1)
		f->tag = (struct file_tag){
			.device = any(), .inode = any(), .first_ns = (int64_t)any()};
	f->kind = (enum fd_kind)(draw() % 6);
	if (f->kind != FD_SOCKET)
		return;
	in.sin_port = (in_port_t)any();
	in.sin_addr.s_addr = (in_addr_t)any();
	memcpy(&f->local, &in, sizeof(in));
	memset(&f->remote, (int)(draw() & 0xff), sizeof(f->remote));
	f->sock_type = (int)any();
	f->peer = draw() & 1 ? any() : 0;
}

static void fill_text(char *out)
{
	size_t n = draw() % 100;

	if (draw() % 100 == 0)
		n = sizeof(text) - 1;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)(1 + draw() % 255);
	out[n] = '\0';
}

/* A call may also have an offset of any kind, and paths. */
static int64_t next;      /* end of the last call with an offset, on which drawn records depend */
static uint32_t position; /* likewise, the last position */
static uint8_t head[RECORD_HEAD];

static void restart(uint64_t seed)
{
	rng = seed;
	next = 0;
	position = 0;
}

static void fill_extras(struct record_call *c)
{
	const int64_t offsets[] = {-1, -1, 0, next, c->result, (int64_t)c->args[3], (int64_t)any(),
		INT64_MAX, INT64_MIN};

	c->offset = offsets[draw() % (sizeof(offsets) / sizeof(offsets[0]))];
	if (c->offset >= 0 && c->offset < 1 << 30)
		next = c->offset + (c->result > 0 && c->result < 1 << 30 ? c->result : 0);
	c->asked = c->offset == -1 && draw() & 1 ? (uint32_t)any() : 0;
	c->positioned = draw() % 3 == 0;
	c->position = c->positioned
		? (uint32_t)(draw() & 1 ? any() : position + (uint64_t)c->result)
		: 0;
	position = c->positioned ? c->position : position;
	c->head_size = draw() % 4 ? 0 : (uint8_t)(draw() % (RECORD_HEAD + 1));
	c->head = c->head_size ? head : NULL;
	for (int i = 0; i < c->head_size; i++)
		head[i] = (uint8_t)draw();
	c->timed = draw() & 1;
	c->cpu_ns = c->timed ? any() : 0;
	c->cpu_call_ns = c->timed ? any() : 0;
	c->path = draw() % 3 ? NULL : text;
	c->path2 = draw() % 5 ? NULL : text2;
}

static void fill_sum(struct record_sum *s)
{
	*s = (struct record_sum){
		.start_ns = (int64_t)any(),
		.pid = (uint32_t)any(),
		.class = draw() % CALL_CLASS_COUNT,
		.fd_class = draw() % FD_CLASS_COUNT,
		.messages = draw() & 1,
		.bulk = draw() & 1,
		.selected = draw() & 1,
		.device = draw() & 1 ? any() : 0,
		.count = any(),
		.errors = any(),
		.failed_ns = any(),
		.failed = any(),
		.bytes = any(),
		.total_ns = any(),
		.max_ns = any(),
	};
	if (draw() & 1)
		memset(&s->remote, (int)(1 + draw() % 255), sizeof(s->remote));
	if (draw() & 1)
		((struct sockaddr_in *)&s->local)->sin_family = AF_INET;
	for (uint64_t i = draw() % 8; i; i--)
		s->histogram[draw() % SUM_BUCKETS] = (uint32_t)any();
	if (draw() % 16 == 0)
		memset(s->histogram, 0xff, sizeof(s->histogram));
}

static void fill(struct record *rec)
{
	static const enum record_type others[] = {RECORD_CALL, RECORD_SIGNAL, RECORD_FD,
		RECORD_PROCESS, RECORD_LOST, RECORD_SUM, RECORD_READING, RECORD_FUSE, RECORD_MARK,
		RECORD_UNSEEN};
	uint64_t v[12];

	memset(rec, 0, sizeof(*rec));
	rec->type = (enum record_type)(draw() & 1 ? RECORD_CALL : others[draw() % 10]);
	fill_text(text);
	fill_text(text2);
	for (int i = 0; i < 12; i++)
		v[i] = any();
	switch (rec->type) {
	case RECORD_CALL:
		rec->call = (struct record_call){
			.seq = v[0],
			.start_ns = (int64_t)v[1],
			.service_ns = (int64_t)v[2],
			.pid = (uint32_t)v[3],
			.tid = (uint32_t)v[4],
			.nr = (uint32_t)v[5],
			.unfinished = v[0] & 1,
			.args = {v[6], v[7], v[8], v[9], v[10], v[11]},
			.result = (int64_t)(v[1] - v[2]),
		};
		fill_extras(&rec->call);
		break;
	case RECORD_SUM: fill_sum(&rec->sum); break;
	case RECORD_FUSE:
		rec->fuse = (struct record_fuse){
			.start_ns = (int64_t)v[0],
			.pid = (uint32_t)v[1],
			.tid = (uint32_t)v[2],
			.unique = v[3],
			.nodeid = v[4],
			.device = (uint32_t)v[5],
			.opcode = (uint32_t)v[6],
			.ended = v[7] & 1,
			.error = v[7] & 1 ? (int32_t)v[8] : 0,
		};
		break;
	case RECORD_READING:
		rec->reading = (struct record_reading){
			.start_ns = (int64_t)v[0],
			.what = (uint16_t)(v[1] % READING_TOTAL),
			.accepted = v[2] & 1,
			.count = (uint32_t)v[3],
			.sum = (double)v[4] / 3,
			.max = v[5] & 1 ? (double)v[4] / 3 : (double)v[6],
		};
		if (v[7] & 1)
			*(struct sockaddr_in *)&rec->reading.peer = (struct sockaddr_in){
				.sin_family = AF_INET,
				.sin_port = (in_port_t)v[8],
				.sin_addr = {(in_addr_t)v[9]}};
		break;
	case RECORD_SIGNAL:
		rec->signal = (struct record_signal){
			.seq = v[0],
			.start_ns = (int64_t)v[1],
			.pid = (uint32_t)v[2],
			.tid = (uint32_t)v[3],
			.signo = (uint32_t)(v[4] % 65),
			.fatal = v[5] & 1,
		};
		break;
	case RECORD_FD: fill_fd(&rec->fd); break;
	case RECORD_PROCESS:
		rec->process = (struct record_process){
			.start_ns = (int64_t)v[0],
			.pid = (uint32_t)v[1],
			.tid = (uint32_t)v[2],
			.parent = (uint32_t)v[3],
			.what = v[4] % 4,
			.status = (int32_t)v[5],
			.name = text,
		};
		break;
	case RECORD_MARK:
		rec->mark = (struct record_mark){.start_ns = (int64_t)v[0], .text = text};
		break;
	case RECORD_UNSEEN:
		rec->unseen = (struct record_unseen){
			.start_ns = (int64_t)v[0], .what = (uint32_t)v[1], .count = v[2]};
		break;
	default:
		rec->lost = (struct record_lost){
			.start_ns = (int64_t)v[0], .cpu = (uint32_t)v[1], .count = v[2]};
	}
}

static void check_path(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void check_same(const struct record *a, const struct record *b)
{
	struct record x = *a, y = *b;

	assert_int_equal(a->type, b->type);
	assert_int_equal(a->number, b->number);
	switch (a->type) {
	case RECORD_CALL:
		assert_memory_equal(a->call.args, b->call.args, sizeof(a->call.args));
		assert_int_equal(a->call.seq, b->call.seq);
		assert_int_equal(a->call.start_ns, b->call.start_ns);
		assert_int_equal(a->call.service_ns, b->call.service_ns);
		assert_int_equal(a->call.pid, b->call.pid);
		assert_int_equal(a->call.tid, b->call.tid);
		assert_int_equal(a->call.nr, b->call.nr);
		assert_int_equal(a->call.unfinished, b->call.unfinished);
		assert_int_equal(a->call.result, b->call.result);
		assert_int_equal(a->call.offset, b->call.offset);
		assert_int_equal(a->call.asked, b->call.asked);
		assert_int_equal(a->call.timed, b->call.timed);
		assert_int_equal(a->call.cpu_ns, b->call.cpu_ns);
		assert_int_equal(a->call.cpu_call_ns, b->call.cpu_call_ns);
		assert_int_equal(a->call.positioned, b->call.positioned);
		assert_int_equal(a->call.position, b->call.position);
		assert_int_equal(a->call.head_size, b->call.head_size);
		if (a->call.head_size)
			assert_memory_equal(a->call.head, b->call.head, a->call.head_size);
		check_path(a->call.path, b->call.path);
		check_path(a->call.path2, b->call.path2);
		break;
	case RECORD_SIGNAL:
		assert_int_equal(a->signal.seq, b->signal.seq);
		assert_int_equal(a->signal.start_ns, b->signal.start_ns);
		assert_int_equal(a->signal.pid, b->signal.pid);
		assert_int_equal(a->signal.tid, b->signal.tid);
		assert_int_equal(a->signal.signo, b->signal.signo);
		assert_int_equal(a->signal.fatal, b->signal.fatal);
		break;
	case RECORD_FD:
		assert_string_equal(a->fd.path, b->fd.path);
		x.fd.path = y.fd.path = NULL;
		assert_memory_equal(&x.fd, &y.fd, sizeof(x.fd));
		break;
	case RECORD_FUSE: assert_memory_equal(&a->fuse, &b->fuse, sizeof(a->fuse)); break;
	case RECORD_MARK:
		assert_int_equal(a->mark.start_ns, b->mark.start_ns);
		assert_string_equal(a->mark.text, b->mark.text);
		break;
	case RECORD_UNSEEN:
		assert_int_equal(a->unseen.start_ns, b->unseen.start_ns);
		assert_int_equal(a->unseen.what, b->unseen.what);
		assert_int_equal(a->unseen.count, b->unseen.count);
		break;
	case RECORD_SUM: assert_memory_equal(&a->sum, &b->sum, sizeof(a->sum)); break;
	case RECORD_READING:
		assert_int_equal(a->reading.start_ns, b->reading.start_ns);
		assert_int_equal(a->reading.what, b->reading.what);
		assert_memory_equal(&a->reading.peer, &b->reading.peer, sizeof(a->reading.peer));
		assert_int_equal(a->reading.accepted, b->reading.accepted);
		assert_int_equal(a->reading.count, b->reading.count);
		assert_true(a->reading.sum == b->reading.sum && a->reading.max == b->reading.max);
		break;
	case RECORD_PROCESS:
		assert_string_equal(a->process.name, b->process.name);
		x.process.name = y.process.name = NULL;
		assert_int_equal(x.process.start_ns, y.process.start_ns);
		assert_int_equal(x.process.pid, y.process.pid);
		assert_int_equal(x.process.tid, y.process.tid);
		assert_int_equal(x.process.parent, y.process.parent);
		assert_int_equal(x.process.what, y.process.what);
		assert_int_equal(x.process.status, y.process.status);
		break;
	default:
		assert_int_equal(a->lost.start_ns, b->lost.start_ns);
		assert_int_equal(a->lost.cpu, b->lost.cpu);
		assert_int_equal(a->lost.count, b->lost.count);
	}
}

/* Writes 'n' drawn records, the same ones for the same seed. */
static void write_log(unsigned n, uint64_t seed, bool end)
{
	struct log_writer *w;
	struct record rec;
	struct err e;

	restart(seed);
	unlink(path);
	assert_int_equal(log_writer_new(path, "ptrace", &w, &e), 0);
	log_writer_bias(w, 1234);
	for (unsigned i = 0; i < n; i++) {
		fill(&rec);
		assert_int_equal(log_write(w, &rec, &e), 0);
		assert_int_equal(rec.number, i + 1);
		if (draw() % 500 == 0)
			assert_int_equal(log_flush(w, &e), 0);
	}
	if (end)
		assert_int_equal(log_writer_end(w, 7, &e), 0);
	else
		log_writer_free(w);
}

static void test_roundtrip(void **state)
{
	const unsigned n = 20000;
	const struct record *got;
	struct log_reader *r;
	struct record_end end;
	struct record want;
	uint64_t bytes;
	struct err e;

	(void)state;
	write_log(n, 4242424242, true);
	assert_int_equal(log_reader_new(path, &r, &e), 0);
	assert_int_equal(log_reader_head(r)->bias_ns, 1234);
	assert_string_equal(log_reader_head(r)->tracer, "ptrace");
	assert_int_equal(strlen(log_reader_head(r)->boot_id), 36);
	restart(4242424242);
	for (unsigned i = 0; i < n; i++) {
		fill(&want);
		draw();
		want.number = i + 1;
		if (log_next(r, &got, &e) != 1)
			fail_msg("record %u: %s", i + 1, e.text);
		check_same(&want, got);
	}
	assert_int_equal(log_next(r, &got, &e), 1);
	assert_int_equal(got->type, RECORD_END);
	assert_int_equal(got->end.records, n);
	assert_int_equal(got->end.lost, 7);
	assert_int_equal(log_next(r, &got, &e), 0);
	assert_int_equal(log_next(r, &got, &e), 0);
	log_reader_free(r);
	assert_int_equal(log_read_end(path, &end, &bytes, &e), 0);
	assert_int_equal(end.records, n);
	assert_int_equal(end.lost, 7);
}

/* MOVED reads blocks whole only if call_moved() needs it, and must give the same totals. Few call
 * numbers, so that blocks with and without such calls alternate. */
static void test_moved_bytes_are_the_same_in_brief(void **state)
{
	const struct call_arch *arch = call_arch("x86_64");
	const char *const receives[] = {"recvfrom", "recvmsg", "recvmmsg", "sendmmsg"};
	const struct record *whole, *brief;
	struct log_reader *r[2];
	struct log_writer *w;
	struct record rec;
	unsigned told = 0;
	struct err e;

	(void)state;
	restart(77);
	unlink(path);
	assert_int_equal(log_writer_new(path, "ptrace", &w, &e), 0);
	for (unsigned i = 0; i < 20000; i++) {
		fill(&rec);
		if (rec.type == RECORD_CALL) {
			const bool receive = i / 3000 % 2 && draw() % 64 == 0;
			const char *name = receive ? receives[draw() % 4] : "write";

			rec.call.nr = (uint32_t)call_number("x86_64", name);
			rec.call.tid = (uint32_t)draw() % 3; /* so that arguments are in slots */
			rec.call.result = (int64_t)(draw() % 1000);
			rec.call.args[2] = draw() % 1000;
			rec.call.args[3] = draw() & (MSG_PEEK | MSG_TRUNC);
		}
		assert_int_equal(log_write(w, &rec, &e), 0);
	}
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(log_reader_new(path, &r[i], &e), 0);
	log_reader_detail(r[1], LOG_MOVED);
	while (log_next(r[0], &whole, &e) == 1) {
		const struct call_info *info;

		assert_int_equal(log_next(r[1], &brief, &e), 1);
		assert_int_equal(brief->type, whole->type);
		assert_int_equal(brief->number, whole->number);
		if (whole->type != RECORD_CALL)
			continue;
		info = call_info(arch, whole->call.nr);
		assert_int_equal(brief->call.seq, whole->call.seq);
		assert_int_equal(brief->call.result, whole->call.result);
		assert_int_equal(call_moved(info, &brief->call), call_moved(info, &whole->call));
		told += call_moved(info, &whole->call) != whole->call.result &&
			!whole->call.unfinished;
	}
	assert_true(told > 20);
	for (int i = 0; i < 2; i++)
		log_reader_free(r[i]);
}

/* Reads a whole log; returns the last result and the number of records. */
static int read_all(const char *name, uint64_t *n, struct err *e)
{
	const struct record *rec;
	struct log_reader *r;
	int rc = log_reader_new(name, &r, e);

	*n = 0;
	if (rc < 0)
		return rc;
	while ((rc = log_next(r, &rec, e)) == 1) {
		++*n;
		if (rec->type == RECORD_FD || rec->type == RECORD_PROCESS)
			assert_true(strlen(rec->type == RECORD_FD ? rec->fd.path
								  : rec->process.name) < 8192);
		if (rec->type == RECORD_CALL && rec->call.head_size)
			assert_int_equal(rec->call.head[rec->call.head_size - 1] >> 8, 0);
		if (rec->type == RECORD_CALL)
			assert_true(rec->call.head_size <= RECORD_HEAD &&
				(!rec->call.path || strlen(rec->call.path) < 8192) &&
				(!rec->call.path2 || strlen(rec->call.path2) < 8192));
		if (rec->type == RECORD_READING)
			assert_non_null(reading_name(rec->reading.what));
		if (rec->type == RECORD_SUM)
			assert_true(rec->sum.fd_class < FD_CLASS_COUNT &&
				rec->sum.class < CALL_CLASS_COUNT);
	}
	log_reader_free(r);
	return rc;
}

static void put_bad(const char *data, size_t size)
{
	int fd = open(bad, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
	close(fd);
}

static void test_a_log_without_end_is_cut_short(void **state)
{
	struct record_end end;
	uint64_t n;
	struct err e;

	(void)state;
	write_log(5000, 43, false);
	assert_int_equal(read_all(path, &n, &e), -EBADMSG);
	assert_int_equal(n, 5000);
	assert_non_null(strstr(e.text, "cut short at byte"));
	assert_int_equal(log_read_end(path, &end, NULL, &e), -EBADMSG);
}

static void test_every_cut_is_found(void **state)
{
	uint64_t n, last = 0;
	size_t size;
	char *data;
	struct err e;

	(void)state;
	write_log(1500, 44, true);
	assert_int_equal(file_read(path, &data, &size, &e), 0);
	for (size_t cut = 0; cut < size; cut += 1 + draw() % 97) {
		put_bad(data, cut);
		assert_int_equal(read_all(bad, &n, &e), cut < 192 ? -EINVAL : -EBADMSG);
		assert_true(n >= last && n <= 1500);
		last = n;
	}
	assert_true(last > 0);
	free(data);
}

static void test_every_flipped_bit_is_found(void **state)
{
	uint64_t n;
	size_t size;
	char *data;
	struct err e;

	(void)state;
	write_log(800, 45, true);
	assert_int_equal(file_read(path, &data, &size, &e), 0);
	for (int round = 0; round < 1000; round++) {
		size_t at = draw() % size;
		char flip = (char)(1 << draw() % 8);

		data[at] ^= flip;
		put_bad(data, size);
		if (read_all(bad, &n, &e) >= 0)
			fail_msg("a flip at byte %zu was not found", at);
		data[at] ^= flip;
	}
	free(data);
}

static void test_damage_at_every_byte_is_found(void **state)
{
	uint64_t n;
	size_t size;
	char *data;
	struct err e;

	(void)state;
	write_log(40, 47, true);
	assert_int_equal(file_read(path, &data, &size, &e), 0);
	for (size_t at = 0; at < size; at++) {
		char was = data[at];

		data[at] = (char)~was;
		put_bad(data, size);
		e.text[0] = '\0';
		if (read_all(bad, &n, &e) >= 0 || !strstr(e.text, bad))
			fail_msg("damage at byte %zu was not reported: '%s'", at, e.text);
		data[at] = was;
	}
	free(data);
}

static void test_other_versions_are_refused(void **state)
{
	static const uint8_t versions[] = {1, LAYOUT_OLDEST - 1, LAYOUT_VERSION + 1};
	struct record_end end;
	char message[80];
	struct log_reader *r;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(versions); i++) {
		int fd;

		write_log(10, 48, true);
		fd = open(path, O_RDWR);
		assert_int_equal(pwrite(fd, &versions[i], 1, 8), 1);
		close(fd);
		assert_int_equal(log_reader_new(path, &r, &e), -EINVAL);
		snprintf(message, sizeof(message),
			"version %d; this program reads versions %d to %d", versions[i],
			LAYOUT_OLDEST, LAYOUT_VERSION);
		assert_non_null(strstr(e.text, message));
		assert_non_null(strstr(e.text, "read the log with the culprit that recorded it"));
		assert_int_equal(log_read_end(path, &end, NULL, &e), -EINVAL);
	}
}

/* A log of an older version cannot have newer record types: they count as damage. */
static void test_older_versions_lack_newer_records(void **state)
{
	struct record records[] = {
		{.type = RECORD_CALL, .call = {.offset = -1, .positioned = true}},
		{.type = RECORD_CALL, .call = {.offset = 1, .head_size = 1, .head = head}},
		{.type = RECORD_FUSE},
		{.type = RECORD_PROCESS, .process = {.what = PROCESS_NAME, .name = "x"}},
		{.type = RECORD_MARK, .mark = {.text = "on"}},
		{.type = RECORD_CALL, .call = {.offset = 1, .timed = true}},
		{.type = RECORD_FD, .fd = {.open = true, .path = "", .kind = FD_SOCKET, .peer = 1}},
		{.type = RECORD_UNSEEN},
		{.type = RECORD_SUM, .sum = {.messages = true, .bulk = true}},
	};
	enum { CAUSAL = 5, UNSEEN = 7, BULK = 8 /* the first versions after these features */ };
	struct log_writer *w;
	struct err e;
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		const uint8_t older = i < CAUSAL ? LAYOUT_FLOWS - 1
			: i < UNSEEN             ? LAYOUT_CAUSAL - 1
			: i < BULK               ? LAYOUT_UNSEEN - 1
						 : LAYOUT_BULK - 1;
		int fd;

		unlink(path);
		assert_int_equal(log_writer_new(path, "ebpf", &w, &e), 0);
		assert_int_equal(log_write(w, &records[i], &e), 0);
		assert_int_equal(log_writer_end(w, 0, &e), 0);
		assert_int_equal(read_all(path, &n, &e), 0);
		assert_int_equal(n, 2);
		fd = open(path, O_RDWR);
		assert_int_equal(pwrite(fd, &older, 1, 8), 1);
		close(fd);
		assert_int_equal(read_all(path, &n, &e), -EBADMSG);
		assert_int_equal(n, 0);
	}
}

/* The size of records: a field that is not set takes no space. */
static void test_size(void **state)
{
	static const struct {
		int64_t offset, result;
		const char *path;
		unsigned most; /* bytes for each call in a loop of reads */
		bool positioned;
		uint8_t head_size;
	} cases[] = {
		{-1, 4096, NULL, 13},
		{0, 4096, NULL, 14},
		{0, 4096, "/srv/brick/x", 14 + 15},
		{-1, 4096, NULL, 14, true}, /* as expected */
		{-1, 4096, NULL, 14 + 1 + RECORD_HEAD, true, RECORD_HEAD},
	};
	enum { N = 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct record rec = {.type = RECORD_CALL,
			.call = {.pid = 1,
				.tid = 1,
				.offset = cases[i].offset,
				.result = cases[i].result,
				.path = cases[i].path,
				.positioned = cases[i].positioned,
				.head_size = cases[i].head_size,
				.head = head}};
		struct record_end end;
		struct log_writer *w;
		uint64_t bytes;
		struct err e;

		unlink(path);
		assert_int_equal(log_writer_new(path, "ptrace", &w, &e), 0);
		for (int n = 0; n < N; n++) {
			rec.call.seq++;
			rec.call.start_ns += 30000;
			rec.call.service_ns = 100;
			rec.call.position += (uint32_t)rec.call.result; /* wraps */
			assert_int_equal(log_write(w, &rec, &e), 0);
			rec.call.offset += rec.call.offset >= 0 ? rec.call.result : 0;
		}
		assert_int_equal(log_writer_end(w, 0, &e), 0);
		assert_int_equal(log_read_end(path, &end, &bytes, &e), 0);
		if (bytes > LAYOUT_HEAD + N * cases[i].most + 200)
			fail_msg("case %zu: %llu bytes", i, (unsigned long long)bytes);
	}
}

/* The same with corrected checksums, as a malicious node could send: no crash, no endless loop, and
 * all returned data is within bounds (checked by ASan). */
static void test_decoder_trusts_nothing(void **state)
{
	uint64_t n, refused = 0;
	size_t size;
	char *data, *copy;
	struct err e;

	(void)state;
	write_log(200, 46, true);
	assert_int_equal(file_read(path, &data, &size, &e), 0);
	copy = malloc(size);
	for (int round = 0; round < 5000; round++) {
		size_t at = LAYOUT_HEAD;

		memcpy(copy, data, size);
		for (uint64_t i = 1 + draw() % 8; i; i--)
			copy[at + draw() % (size - at)] = (char)(draw() % 3 ? draw() : 0xff);
		while (at + LAYOUT_BLOCK_HEAD < size) {
			uint8_t *block = (uint8_t *)copy + at;
			uint32_t payload = bytes_get32(block + 4);

			if (payload > size - at - LAYOUT_BLOCK_HEAD)
				break;
			bytes_put32(block + 12, layout_crc(block, payload));
			at += LAYOUT_BLOCK_HEAD + payload;
		}
		put_bad(copy, size);
		refused += read_all(bad, &n, &e) < 0;
		assert_true(n <= size);
	}
	assert_true(refused > 1000 && refused < 5000);
	free(copy);
	free(data);
}

static void test_other_files_are_refused(void **state)
{
	uint64_t n;
	struct err e;

	(void)state;
	assert_int_equal(read_all("/proc/self/exe", &n, &e), -EINVAL);
	assert_non_null(strstr(e.text, "not a trace log"));
	assert_int_equal(read_all("/nonexistent", &n, &e), -ENOENT);
}

static void test_full_disk(void **state)
{
	struct log_writer *w;
	struct record rec = {.type = RECORD_LOST};
	struct rlimit old, small;
	struct err e;
	int rc = 0;

	(void)state;
	unlink(path);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 100000;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(log_writer_new(path, "ptrace", &w, &e), 0);
	for (int i = 0; i < 1000000 && rc == 0; i++) {
		rec.lost.count = draw();
		rc = log_write(w, &rec, &e);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rc, -EFBIG);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(log_write(w, &rec, &e), -EFBIG); /* also when there is room again */
	assert_int_equal(log_writer_end(w, 0, &e), -EFBIG);
	assert_int_equal(log_writer_new(path, "ptrace", &w, &e), -EEXIST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roundtrip),
		cmocka_unit_test(test_moved_bytes_are_the_same_in_brief),
		cmocka_unit_test(test_a_log_without_end_is_cut_short),
		cmocka_unit_test(test_every_cut_is_found),
		cmocka_unit_test(test_every_flipped_bit_is_found),
		cmocka_unit_test(test_damage_at_every_byte_is_found),
		cmocka_unit_test(test_other_versions_are_refused),
		cmocka_unit_test(test_older_versions_lack_newer_records),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_decoder_trusts_nothing),
		cmocka_unit_test(test_other_files_are_refused),
		cmocka_unit_test(test_full_disk),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
