/* libFuzzer entry of diag/causal: make fuzz, then out/fuzz/causal_fuzz CORPUS. The bytes are the
 * records of a log: processes and threads that come and go, descriptors, calls on files, pipes and
 * sockets, in any order; if the first byte says so, of two logs, the second one of a launcher.
 * Whatever they are, the trace that is made of them can be opened: its edges form no cycle. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/causal/causal.h"
#include "diag/record/calls.h"
#include "diag/record/log.h"
#include "harness/base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	const uint8_t *at, *end;
	int64_t now_ns;
	char text[64];
};

static char dir[] = "/tmp/causal_fuzz.XXXXXX", log_paths[2][64], trace_path[64];

static void remove_dir(void)
{
	file_remove_tree(dir, NULL);
}

static uint8_t byte(struct source *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static void address(struct sockaddr_storage *out, uint8_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons(port % 4);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static void make_fd(struct source *s, struct record *rec)
{
	static const char *const paths[] = {"/r/a", "/r/b", "/r", "/elsewhere", "/r/../x", "/r/a"};
	struct record_fd *f = &rec->fd;
	uint8_t what = byte(s);

	rec->type = RECORD_FD;
	f->start_ns = s->now_ns;
	f->pid = 1 + byte(s) % 4;
	f->fd = what & 8 ? byte(s) * 3000 : byte(s) % 8;
	f->open = what & 7;
	f->path = s->text;
	if ((what & 7) < 3) {
		f->kind = what & 16 ? FD_DIR : FD_FILE;
		snprintf(s->text, sizeof(s->text), "%s", paths[byte(s) % 6]);
	} else if ((what & 7) < 5) {
		f->kind = FD_PIPE;
		snprintf(s->text, sizeof(s->text), "pipe:[%d]", byte(s) % 4);
	} else {
		f->kind = FD_SOCKET;
		f->sock_type = SOCK_STREAM;
		snprintf(s->text, sizeof(s->text), "socket:[%d]", byte(s) % 4);
		f->peer = byte(s) % 4;
		f->local.ss_family = AF_UNIX;
		if (what & 16) {
			address(&f->local, byte(s));
			address(&f->remote, byte(s));
		}
	}
}

static void make_process(struct source *s, struct record *rec)
{
	rec->type = RECORD_PROCESS;
	rec->process = (struct record_process){.start_ns = s->now_ns,
		.pid = 1 + byte(s) % 4,
		.parent = byte(s) % 5,
		.name = "x",
		.what = byte(s) % 4};
	rec->process.tid = byte(s) % 2 ? rec->process.pid : 1 + byte(s) % 6;
}

static void make_call(struct source *s, struct record *rec)
{
	static const char *const names[] = {"read", "write", "pread64", "pwrite64", "openat",
		"close", "dup2", "clone", "wait4", "futex", "futex", "splice", "sendfile", "mmap",
		"unlink", "rename", "stat", "chdir", "lseek", "fallocate", "poll", "sched_yield",
		"nanosleep", "recvfrom", "sendto", "ftruncate", "fcntl", "mkdir", "getdents64",
		"fork"};
	static const char *const paths[] = {"/r/a", "b", "../../..", "", "/r/./c//d", NULL};
	struct record_call *c = &rec->call;

	rec->type = RECORD_CALL;
	c->pid = 1 + byte(s) % 4;
	c->tid = byte(s) % 2 ? c->pid : 1 + byte(s) % 6;
	c->start_ns = s->now_ns - byte(s) * 100;
	c->service_ns = (int64_t)byte(s) * 50;
	c->nr = (uint32_t)call_number("x86_64", names[byte(s) % 30]);
	for (int i = 0; i < 4; i++)
		c->args[i] = byte(s) % 16 == 15 ? UINT64_MAX >> byte(s) % 64 : byte(s) % 8;
	c->result = (int64_t)byte(s) - 16;
	if (c->result > 200)
		c->result = INT64_MAX >> byte(s) % 64;
	c->offset = (int64_t)byte(s) - 1;
	c->positioned = byte(s) & 1;
	c->position = (uint32_t)byte(s) << byte(s) % 24;
	c->timed = true;
	c->cpu_ns = (uint64_t)byte(s) << byte(s) % 56;
	c->cpu_call_ns = byte(s);
	c->unfinished = !(byte(s) % 16);
	c->path = paths[byte(s) % 6];
	c->path2 = paths[byte(s) % 6];
}

static void write_log(struct source *s, const char *log_path)
{
	struct log_writer *w;

	unlink(log_path);
	if (log_writer_new(log_path, "ebpf", &w, NULL))
		abort();
	log_writer_how(w, LOG_FLOW | LOG_CAUSAL);
	while (s->at < s->end) {
		struct record rec = {0};
		uint8_t what = byte(s);

		s->now_ns += byte(s) * 1000;
		if (what % 8 == 0)
			make_fd(s, &rec);
		else if (what % 8 == 1)
			make_process(s, &rec);
		else
			make_call(s, &rec);
		if (log_write(w, &rec, NULL))
			abort();
	}
	if (log_writer_end(w, 0, NULL))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct causal_log logs[2] = {{.path = log_paths[0], .node = "a", .root = "/r", .cwd = "/r"},
		{.path = log_paths[1],
			.node = "b",
			.root = "/r",
			.cwd = "/",
			.launcher = true,
			.address = "127.0.0.1"}};
	struct causal_spec spec = {.logs = logs, .n_logs = 1, .comment = "", .kernel = ""};
	struct source s = {data, data + size, 1700000000000000000, ""};
	struct causal_counts counts;
	struct app_trace *t;
	struct err e;
	uint8_t how;

	if (!*trace_path) {
		if (!mkdtemp(dir))
			abort();
		for (int i = 0; i < 2; i++)
			snprintf(log_paths[i], sizeof(log_paths[i]), "%s/log%d", dir, i);
		snprintf(trace_path, sizeof(trace_path), "%s/trace", dir);
		atexit(remove_dir);
	}
	how = byte(&s);
	if (how & 1) {
		spec.n_logs = 2;
		s.end -= (s.end - s.at) / 2;
		write_log(&s, log_paths[0]);
		s.end = data + size;
		s.now_ns = 1700000000000000000 + ((int64_t)how - 128) * 10000;
		logs[1].offset_ns = how & 2 ? 1000000 : INT64_MIN;
		logs[1].node = how & 4 ? "a" : "b";
		write_log(&s, log_paths[1]);
	} else {
		write_log(&s, log_paths[0]);
	}
	if (causal_make(trace_path, &spec, &counts, &e))
		return 0;
	if (app_open(trace_path, &t, &e)) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	if (app_n_ops(t) != counts.operations || app_n_edges(t) != counts.edges)
		abort();
	app_free(t);
	return 0;
}
