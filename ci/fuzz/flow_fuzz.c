/* libFuzzer entry of diag/flow: make fuzz, then out/fuzz/flow_fuzz CORPUS. The bytes are the
 * records of three logs: sockets, calls with positions and heads, FUSE, threads that end, and the
 * heads of hostile peers. Whatever they are, memory stays bounded and nothing breaks. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ci/tests/flow/rpc.h"
#include "diag/flow/flow.h"
#include "diag/record/stream.h"

enum { LOGS = 3, LIMIT = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	const uint8_t *at, *end;
	struct record rec;
	int64_t now_ns;
	uint8_t head[RECORD_HEAD];
	int node;
};

static uint8_t byte(struct source *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static uint32_t word(struct source *s)
{
	uint32_t v = byte(s);

	return v | (uint32_t)byte(s) << 8;
}

static void address(struct sockaddr_storage *out, int node, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(0x0a000001u + (unsigned)node);
}

static void make_fd(struct source *s)
{
	struct record_fd *f = &s->rec.fd;
	uint8_t what = byte(s);
	int other = what % LOGS;

	memset(f, 0, sizeof(*f));
	s->rec.type = RECORD_FD;
	f->start_ns = s->now_ns;
	f->pid = 1;
	f->fd = what % 8;
	f->open = what & 0x40;
	f->kind = what & 0x80 ? FD_SOCKET : what & 0x20 ? FD_DEVICE : FD_FILE;
	f->path = f->kind == FD_DEVICE ? "/dev/fuse" : "/srv/f";
	f->sock_type = SOCK_STREAM;
	address(&f->local, s->node, s->node < other ? 1 : 2);
	address(&f->remote, other, s->node < other ? 2 : 1);
}

/* Heads that begin as the protocol's do, with what the bytes say in places that matter. */
static void make_head(struct source *s, struct record_call *c)
{
	memset(s->head, 0, sizeof(s->head));
	s->head[0] = byte(s);
	s->head[3] = byte(s);
	s->head[7] = byte(s) % 4;
	s->head[11] = byte(s) % 3;
	s->head[15] = 2;
	s->head[8] = s->head[12] = 0;
	c->head = s->head;
	c->head_size = byte(s) % (RECORD_HEAD + 1);
	if (!c->head_size)
		c->head = NULL;
}

static void make_call(struct source *s, uint8_t what)
{
	static const char *const names[] = {
		"readv", "writev", "epoll_wait", "pwrite64", "read", "write", "sendfile", "openat"};
	struct record_call *c = &s->rec.call;

	s->rec.type = RECORD_CALL;
	*c = (struct record_call){.start_ns = s->now_ns - byte(s) * 100,
		.pid = 1,
		.tid = 1 + what % 4,
		.nr = (uint32_t)call_number("x86_64", names[byte(s) % 8]),
		.offset = -1};
	c->service_ns = s->now_ns - c->start_ns;
	c->args[0] = byte(s) % 8;
	c->args[1] = byte(s) % 8;
	c->result = (int64_t)word(s) - 16;
	if (what & 0x40)
		c->result = INT64_MAX >> (byte(s) % 64);
	c->positioned = what & 0x80;
	c->position = word(s) << (byte(s) % 32);
	make_head(s, c);
}

static void make_other(struct source *s, uint8_t what)
{
	if (what & 1) {
		s->rec.type = RECORD_FUSE;
		s->rec.fuse = (struct record_fuse){.start_ns = s->now_ns,
			.tid = 1 + what % 4,
			.unique = byte(s),
			.opcode = 16,
			.ended = what & 2};
	} else if (what & 2) {
		s->rec.type = RECORD_LOST;
		s->rec.lost = (struct record_lost){.start_ns = s->now_ns, .count = 1};
	} else {
		s->rec.type = RECORD_PROCESS;
		s->rec.process = (struct record_process){.start_ns = s->now_ns,
			.pid = 1,
			.tid = 1 + byte(s) % 4,
			.name = "x",
			.what = what & 4 ? PROCESS_EXIT : PROCESS_NAME};
	}
}

static int next(void *ctx, const struct record **rec, struct err *e)
{
	struct source *s = ctx;
	uint8_t what;

	(void)e;
	if (s->at >= s->end)
		return 0;
	what = byte(s);
	s->now_ns += (int64_t)byte(s) << (what % 32);
	s->rec.number++;
	switch (what % 8) {
	case 0: make_fd(s); break;
	case 1: make_other(s, byte(s)); break;
	default: make_call(s, byte(s)); break;
	}
	*rec = &s->rec;
	return 1;
}

static int look(void *ctx, const struct flow_request *r, struct err *e)
{
	struct flow_parts p;
	static volatile int64_t sum;

	(void)ctx;
	(void)e;
	flow_request_parts(r, &p);
	for (size_t i = 0; i < r->n_disks; i++)
		sum += r->disks[i].begin_ns;
	if (r->fuse)
		sum += (int64_t)r->fuse->unique;
	if (r->client != FLOW_NO_NODE && r->client >= LOGS)
		abort();
	return 0;
}

/* Without checks, so that more of what is made up is mistaken for a message. */
static struct flow_protocol protocol(void)
{
	struct flow_protocol p = cluster_protocol();

	p.check[1].n = 0;
	p.n_layers = LAYER_SOURCES;
	for (int i = 0; i < LAYER_SOURCES; i++)
		p.layers[i].source = (enum flow_source)i;
	return p;
}

static void look_at_clocks(const struct flow *f)
{
	static const int64_t times[] = {0, 1700000000000000000, INT64_MAX / 2, -(INT64_MAX / 2)};
	struct flow_clock_summary over;
	const struct flow_step *steps;
	struct flow_offset to[LOGS];
	bool known[LOGS];

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		for (uint32_t a = 0; a < LOGS; a++) {
			flow_clocks_at(f, a, times[i], to, known);
			for (uint32_t b = 0; b < LOGS; b++)
				if (known[b] && to[b].lowest_ns > to[b].highest_ns)
					abort();
			flow_clock_over(f, a, (a + 1) % LOGS, times[0], times[i] / 2, &over);
			flow_clock_steps(f, a, (a + 1) % LOGS, &steps);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct stream_server servers[LOGS];
	struct flow_protocol p = protocol();
	struct flow_spec spec = {.protocol = &p, .limit = LIMIT, .seconds = 10};
	struct flow_sink sink = {.request = look};
	struct log_head head = {.arch = "x86_64"};
	struct source sources[LOGS];
	struct stream *s;
	struct flow *f;
	struct err e;

	if (size < LOGS)
		return 0;
	p.parts = data[0] & 1;
	flow_new(&spec, &sink, &f);
	for (int i = 0; i < LOGS; i++) {
		struct stream_source from = {next, &sources[i]};
		struct stream_spec stream = {.servers = servers,
			.n_servers = LOGS,
			.owner = i ? OWNER_SERVER : OWNER_DAEMON,
			.index = i};
		char name[2] = {(char)('a' + i), '\0'};

		sources[i] = (struct source){.at = data + size / LOGS * (size_t)i,
			.end = data + size / LOGS * (size_t)(i + 1),
			.node = i};
		if (stream_over(&from, &head, &stream, &s, &e) || flow_add(f, name, s, &e))
			abort();
	}
	if (flow_run(f, &e))
		abort();
	if (flow_counts(f)->requests_whole > flow_counts(f)->requests)
		abort();
	look_at_clocks(f);
	flow_free(f);
	return 0;
}
