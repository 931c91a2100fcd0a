/*
 * Tests a log of flows: compares positions of calls on TCP connections, and the first bytes that
 * they moved, with the notes of a program that has both ends of its connections. The traced program
 * is this one, started again with --talk.
 */
#include "ci/tests/capture/tracing.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum { OURS = 200 /* descriptors from here on are the ends */, ENTRIES = 8192, STREAMS = 64 };

struct moved {
	uint32_t tid, nr;
	int64_t result;
	uint32_t total; /* bytes of the stream up to the last one that the call moved */
	uint8_t stream; /* 0: none, the call has no position */
	uint8_t head_size, head[RECORD_HEAD];
};

static struct side {
	_Atomic uint32_t n, streams;
	struct moved entry[ENTRIES];
} * side;

static char self[4096], side_file[128];

/* One end of a connection. */
struct end {
	int fd;
	uint8_t out, in; /* streams */
	uint32_t sent, received;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

#define MUST(call)                                                                                 \
	__extension__({                                                                            \
		long must_rc = (long)(call);                                                       \
		if (must_rc < 0)                                                                   \
			die(#call);                                                                \
		must_rc;                                                                           \
	})

/* ---- the traced program ---- */

static struct moved *note(uint32_t nr, int64_t result)
{
	struct moved *m = &side->entry[side->n++];

	m->tid = (uint32_t)gettid();
	m->nr = nr;
	m->result = result;
	return m;
}

static void note_head(struct moved *m, const void *bytes, int64_t size)
{
	m->head_size = (uint8_t)(size < RECORD_HEAD ? size : RECORD_HEAD);
	memcpy(m->head, bytes, m->head_size);
}

/* 'head' NULL: the record must have no head. */
static void sent(struct end *e, uint32_t nr, int64_t result, const void *head)
{
	struct moved *m = note(nr, result);

	if (result <= 0)
		die("send");
	e->sent += (uint32_t)result;
	m->stream = e->out;
	m->total = e->sent;
	if (head)
		note_head(m, head, result);
}

static void received(struct end *e, uint32_t nr, int64_t result, const void *head)
{
	struct moved *m = note(nr, result);

	if (result <= 0)
		die("receive");
	e->received += (uint32_t)result;
	m->stream = e->in;
	m->total = e->received;
	if (head)
		note_head(m, head, result);
}

static int ours(int fd)
{
	int up = (int)MUST(fcntl(fd, F_DUPFD_CLOEXEC, OURS));

	close(fd);
	return up;
}

static void join(struct end e[2], int a, int b)
{
	uint8_t stream = (uint8_t)(side->streams += 2);

	e[0] = (struct end){.fd = ours(a), .out = stream, .in = stream + 1};
	e[1] = (struct end){.fd = ours(b), .out = stream + 1, .in = stream};
}

static void connect_pair(struct end e[2], int family)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
	socklen_t size = family == AF_INET ? sizeof(in) : sizeof(in6);
	int l = (int)MUST(socket(family, SOCK_STREAM, 0)), a;

	MUST(bind(l, at, size));
	MUST(listen(l, 1));
	MUST(getsockname(l, at, &size));
	a = (int)MUST(socket(family, SOCK_STREAM, 0));
	MUST(connect(a, at, size));
	join(e, a, (int)MUST(accept(l, NULL, NULL)));
	close(l);
}

static void set(int fd, int name, uint32_t value)
{
	MUST(setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value)));
}

/* A socket in the connected state, with the given next sequence numbers. */
static int repaired(struct sockaddr_in *own, uint32_t send_seq, uint32_t receive_seq)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
	socklen_t size = sizeof(*own);

	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	set(fd, TCP_REPAIR, 1);
	set(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
	set(fd, TCP_QUEUE_SEQ, send_seq);
	set(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
	set(fd, TCP_QUEUE_SEQ, receive_seq);
	MUST(bind(fd, (struct sockaddr *)own, sizeof(*own)));
	MUST(getsockname(fd, (struct sockaddr *)own, &size));
	return fd;
}

/* A connection whose sequence numbers are about to wrap, in both directions. */
static void wrapping_pair(struct end e[2])
{
	struct sockaddr_in at[2] = {
		{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}},
		{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}},
	};
	int a = repaired(&at[0], UINT32_MAX - 6, UINT32_MAX - 40);
	int b = repaired(&at[1], UINT32_MAX - 40, UINT32_MAX - 6);

	MUST(connect(a, (struct sockaddr *)&at[1], sizeof(at[1])));
	MUST(connect(b, (struct sockaddr *)&at[0], sizeof(at[0])));
	set(a, TCP_REPAIR, 0);
	set(b, TCP_REPAIR, 0);
	join(e, a, b);
}

/* Waits until 'n' bytes can be read at once, since sent data may arrive in pieces, and peeks at
 * them, which moves nothing. */
static void wait_bytes(const struct end *e, int n)
{
	char bytes[4096];
	int there = 0;

	while (there < n) {
		MUST(ioctl(e->fd, FIONREAD, &there));
		sched_yield();
	}
	note(SYS_recvfrom, recv(e->fd, bytes, (size_t)n, MSG_PEEK));
}

static char text[4096];

static void do_send(struct end *e, size_t n)
{
	const char *from = text + e->sent % 1000;

	sent(e, SYS_sendto, send(e->fd, from, n, 0), from);
}

static void do_receive(struct end *e, size_t n, int flags)
{
	char bytes[4096];

	received(e, SYS_recvfrom, recv(e->fd, bytes, n, flags), bytes);
}

static void talk_plainly(struct end e[2])
{
	char bytes[4096];

	sent(&e[0], SYS_write, write(e[0].fd, text, 5), text);
	received(&e[1], SYS_read, read(e[1].fd, bytes, 100), bytes);
	/* One message in several reads, several messages in one. */
	do_send(&e[1], 100);
	do_receive(&e[0], 3, 0);
	do_receive(&e[0], 29, 0);
	wait_bytes(&e[0], 68);
	do_receive(&e[0], 1000, 0);
	for (size_t i = 0; i < 3; i++)
		do_send(&e[0], 10 + i);
	wait_bytes(&e[1], 33);
	do_receive(&e[1], 33, MSG_WAITALL);
	/* Peeking moves nothing; discarded bytes are moved, but into no buffer. */
	do_send(&e[0], 20);
	wait_bytes(&e[1], 20);
	received(&e[1], SYS_recvfrom, recv(e[1].fd, bytes, 12, MSG_TRUNC), NULL);
	do_receive(&e[1], 12, 0);
}

static struct iovec part(const void *base, size_t size)
{
	return (struct iovec){.iov_base = (void *)base, .iov_len = size};
}

static void talk_in_vectors(struct end e[2])
{
	char in[100] = "", single[10];
	struct iovec out[] = {
		part(text, 4), part(text + 4, 0), part(text + 4, 20), part(text + 24, 70)};
	struct iovec into[] = {part(in, 1), part(in + 1, 2), part(in + 3, 40), part(in + 43, 57)};
	struct iovec one[10];
	struct msghdr m = {.msg_iov = out, .msg_iovlen = 4}, n = {.msg_iov = into, .msg_iovlen = 4};

	sent(&e[0], SYS_sendmsg, sendmsg(e[0].fd, &m, 0), text);
	wait_bytes(&e[1], 94);
	received(&e[1], SYS_recvmsg, recvmsg(e[1].fd, &n, 0), in);
	sent(&e[0], SYS_writev, writev(e[0].fd, out, 3), text);
	wait_bytes(&e[1], 24);
	received(&e[1], SYS_readv, readv(e[1].fd, into, 4), in);
	sent(&e[0], SYS_pwritev2, pwritev2(e[0].fd, out, 4, -1, 0), text);
	wait_bytes(&e[1], 94);
	received(&e[1], SYS_preadv2, preadv2(e[1].fd, into, 4, -1, 0), in);
	/* More buffers than a head is gathered from. */
	for (size_t i = 0; i < 10; i++)
		one[i] = part(single + i, 1);
	memcpy(single, text + 500, 10);
	sent(&e[0], SYS_writev, writev(e[0].fd, one, 10), single);
	side->entry[side->n - 1].head_size = 8;
	memset(side->entry[side->n - 1].head + 8, 0, RECORD_HEAD - 8);
	wait_bytes(&e[1], 10);
	do_receive(&e[1], 100, 0);
}

static void talk_without_buffers(struct end e[2])
{
	FILE *f = tmpfile();
	off_t from = 7;
	int p[2];

	if (!f || fwrite(text, 1, 600, f) != 600 || fflush(f) || pipe(p) < 0)
		die("tmpfile");
	sent(&e[0], SYS_sendfile, sendfile(e[0].fd, fileno(f), &from, 500), NULL);
	wait_bytes(&e[1], 500);
	received(&e[1], SYS_splice, splice(e[1].fd, NULL, p[1], NULL, 300, 0), NULL);
	do_receive(&e[1], 200, MSG_WAITALL);
	sent(&e[1], SYS_splice, splice(p[0], NULL, e[1].fd, NULL, 300, 0), NULL);
	do_receive(&e[0], 300, MSG_WAITALL);
	fclose(f);
	close(p[0]);
	close(p[1]);
}

/* An urgent byte is in the stream, but a receive skips it. */
static void talk_urgently(struct end e[2])
{
	char byte;

	sent(&e[0], SYS_sendto, send(e[0].fd, text, 3, MSG_OOB), text);
	wait_bytes(&e[1], 2);
	note(SYS_recvfrom, recv(e[1].fd, &byte, 1, MSG_OOB));
	do_receive(&e[1], 100, 0);
	do_send(&e[0], 2);
	e[1].received++;
	do_receive(&e[1], 2, MSG_WAITALL);
}

/* The end of a stream has its own number, which counts with the last byte. */
static void end_talk(struct end e[2], bool at_once)
{
	struct pollfd gone = {.fd = e[1].fd, .events = POLLRDHUP};
	char bytes[100];

	do_send(&e[0], 30);
	shutdown(e[0].fd, SHUT_WR);
	while (!(gone.revents & POLLRDHUP))
		poll(&gone, 1, -1);
	if (at_once) {
		do_receive(&e[1], 100, 0);
	} else {
		do_receive(&e[1], 10, 0);
		do_receive(&e[1], 20, 0);
	}
	note(SYS_recvfrom, recv(e[1].fd, bytes, sizeof(bytes), 0));
	/* The other direction continues. */
	do_send(&e[1], 9);
	do_receive(&e[0], 9, MSG_WAITALL);
	close(e[0].fd);
	close(e[1].fd);
}

/* Sockets without positions. */
static void talk_elsewhere(void)
{
	const int kinds[][3] = {
		{AF_UNIX, SOCK_STREAM, 0}, {AF_UNIX, SOCK_DGRAM, 0}, {AF_INET, SOCK_DGRAM, 0}};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	char bytes[10];

	for (size_t i = 0; i < 3; i++) {
		int fd[2];

		if (kinds[i][0] == AF_UNIX) {
			MUST(socketpair(AF_UNIX, kinds[i][1], 0, fd));
			fd[0] = ours(fd[0]);
		} else {
			fd[0] = ours((int)MUST(socket(AF_INET, SOCK_DGRAM, 0)));
			fd[1] = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
			MUST(bind(fd[1], (struct sockaddr *)&at, size));
			MUST(getsockname(fd[1], (struct sockaddr *)&at, &size));
			MUST(connect(fd[0], (struct sockaddr *)&at, size));
		}
		fd[1] = ours(fd[1]);
		note(SYS_sendto, send(fd[0], text, 10, 0));
		note(SYS_recvfrom, recv(fd[1], bytes, 10, 0));
		close(fd[0]);
		close(fd[1]);
	}
}

/* A separate connection with both ends and random sizes. */
static void *talk_at_length(void *seed)
{
	unsigned r = (unsigned)(uintptr_t)seed;
	struct end e[2];

	connect_pair(e, AF_INET);
	for (int i = 0; i < 100; i++) {
		size_t n = 1 + (size_t)rand_r(&r) % 3000, got;
		int from = rand_r(&r) & 1;

		do_send(&e[from], n);
		for (got = 0; got < n; got = e[!from].received - (e[from].sent - n))
			do_receive(&e[!from], 1 + (size_t)rand_r(&r) % 1500, 0);
	}
	end_talk(e, r & 1);
	return NULL;
}

/* The other end receives everything in one call, which waits in between. */
static void *send_in_pieces(void *ctx)
{
	for (int i = 0; i < 5; i++) {
		do_send(ctx, 17);
		usleep(2000);
	}
	return NULL;
}

static void talk(void)
{
	pthread_t thread[4], sender;
	struct end e[2];

	for (int family = 0; family < 3; family++) {
		if (family == 2)
			wrapping_pair(e);
		else
			connect_pair(e, family ? AF_INET6 : AF_INET);
		talk_plainly(e);
		talk_in_vectors(e);
		talk_without_buffers(e);
		talk_urgently(e);
		pthread_create(&sender, NULL, send_in_pieces, &e[0]);
		do_receive(&e[1], 85, MSG_WAITALL);
		pthread_join(sender, NULL);
		end_talk(e, family & 1);
	}
	talk_elsewhere();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, talk_at_length, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* ---- the log ---- */

static bool is_ours(const struct record_call *c, const struct call_info *info)
{
	if (!info || info->class < CALL_READ || info->class > CALL_COPY || c->unfinished)
		return false;
	return (c->args[0] >= OURS && c->args[0] < 2 * OURS) ||
		(c->nr == SYS_splice && c->args[2] >= OURS && c->args[2] < 2 * OURS);
}

static struct moved *next_of(uint32_t tid, uint32_t *at)
{
	while (*at < side->n && side->entry[*at].tid != tid)
		++*at;
	return *at < side->n ? &side->entry[(*at)++] : NULL;
}

struct checked {
	struct {
		uint32_t tid, at;
	} threads[64];
	struct {
		bool known;
		uint32_t base;
	} streams[STREAMS];
	unsigned calls, positions, heads, wraps;
};

static void check_moved(struct checked *k, const struct record_call *c, bool heads)
{
	struct moved *m;
	size_t i = 0;

	while (k->threads[i].tid && k->threads[i].tid != c->tid)
		i++;
	assert_true(i < 64);
	k->threads[i].tid = c->tid;
	m = next_of(c->tid, &k->threads[i].at);
	assert_non_null(m);
	assert_int_equal(c->nr, m->nr);
	assert_int_equal(c->result, m->result);
	if (c->positioned != (m->stream != 0))
		fail_msg("%s of %lld bytes has %s position", call_name(ARCH, c->nr),
			(long long)c->result, c->positioned ? "a" : "no");
	assert_int_equal(c->head_size, heads ? m->head_size : 0);
	if (heads && m->head_size)
		assert_memory_equal(c->head, m->head, m->head_size);
	k->calls++;
	k->heads += c->head_size != 0;
	if (!c->positioned)
		return;
	k->positions++;
	/* The same byte has the same number at both ends. */
	if (!k->streams[m->stream].known)
		k->streams[m->stream].base = c->position - m->total;
	k->streams[m->stream].known = true;
	assert_int_equal(c->position - m->total, k->streams[m->stream].base);
	k->wraps += c->position < m->total && c->position - m->total > c->position;
}

static void check_log(bool heads)
{
	const struct record *rec;
	struct checked k = {0};
	struct log_reader *r;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		if (rec->type == RECORD_END)
			assert_int_equal(rec->end.lost, 0);
		if (rec->type == RECORD_CALL &&
			is_ours(&rec->call, call_info(call_arch(ARCH), rec->call.nr)))
			check_moved(&k, &rec->call, heads);
	}
	if (rc < 0)
		fail_msg("%s", e.text);
	log_reader_free(r);
	print_message(
		"# %u calls on sockets, %u with a position, %u with a head, %u behind a wrap\n",
		k.calls, k.positions, k.heads, k.wraps);
	assert_int_equal(k.calls, side->n);
	assert_true(k.positions > 800);
	assert_true(k.wraps > 20);
	assert_int_equal(k.heads > 0, heads);
}

static void run_talk(bool heads)
{
	/* Room for all calls in case the tracer does not run for a while. */
	const char *what[] = {"--memory", "512MiB", "--mode", "flow", "--heads", "--", self,
		"--talk", side_file, NULL};

	if (!heads)
		memmove(&what[4], &what[5], 5 * sizeof(what[0]));
	memset(side, 0, sizeof(*side));
	assert_int_equal(wait_exit(trace(what, NULL)), 0);
}

static void test_positions_and_heads(void **state)
{
	(void)state;
	run_talk(true);
	check_log(true);
}

static void test_heads_only_on_request(void **state)
{
	(void)state;
	run_talk(false);
	check_log(false);
}

/* Events have neither positions nor heads. */
static void test_events_have_no_flows(void **state)
{
	const char *what[] = {"--", self, "--talk", side_file, NULL};
	const struct record *rec;
	struct log_reader *r;
	struct err e;

	(void)state;
	memset(side, 0, sizeof(*side));
	assert_int_equal(wait_exit(trace(what, NULL)), 0);
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1)
		if (rec->type == RECORD_CALL)
			assert_false(rec->call.positioned || rec->call.head_size);
	log_reader_free(r);
}

static void test_other_tracers_refuse_flows(void **state)
{
	(void)state;
	tracer_name = "ptrace";
	assert_int_equal(
		wait_exit(trace((const char *const[]){"--mode", "flow", "--", "true", NULL}, NULL)),
		2);
	tracer_name = "ebpf";
	assert_int_equal(
		wait_exit(trace((const char *const[]){"--heads", "--", "true", NULL}, NULL)), 2);
	assert_int_not_equal(access(log_path, F_OK), 0);
}

static bool map_side(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*side)) < 0)
		return false;
	side = mmap(NULL, sizeof(*side), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return side != MAP_FAILED;
}

static int setup_side(void **state)
{
	if (setup(state))
		return -1;
	snprintf(side_file, sizeof(side_file), "%s/moved", dir);
	return map_side(side_file) ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct err why;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_positions_and_heads, fresh),
		cmocka_unit_test_setup(test_heads_only_on_request, fresh),
		cmocka_unit_test_setup(test_events_have_no_flows, fresh),
		cmocka_unit_test_setup(test_other_tracers_refuse_flows, fresh),
	};

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7 + i / 251);
	if (argc == 3 && !strcmp(argv[1], "--talk")) {
		if (!map_side(argv[2]))
			die(argv[2]);
		patient_alarm(600);
		talk();
		return 0;
	}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup_side, teardown);
}
