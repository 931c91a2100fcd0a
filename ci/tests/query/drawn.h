/* Logs that are drawn by chance, the same in every run: threads, names, files, sockets, calls of
 * all kinds, losses; in many small blocks. */
#ifndef CULPRIT_CI_TESTS_QUERY_DRAWN_H
#define CULPRIT_CI_TESTS_QUERY_DRAWN_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diag/record/log.h"

enum { DRAWN_PIDS = 12, DRAWN_FDS = 20 };

static uint64_t drawn_state = 88172645463325252u;

/* 0 .. n-1, by xorshift. */
static inline uint64_t draw(uint64_t n)
{
	drawn_state ^= drawn_state << 13;
	drawn_state ^= drawn_state >> 7;
	drawn_state ^= drawn_state << 17;
	return drawn_state % n;
}

static inline void drawn_address(struct sockaddr_storage *a, unsigned port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)a;

	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, "10.0.0.7", &in->sin_addr);
}

static inline struct record drawn_call(int64_t now, uint64_t seq)
{
	static const char *const names[] = {"read", "write", "pread64", "pwrite64", "fsync",
		"openat", "close", "futex", "recvfrom", "sendto", "epoll_wait", "renameat",
		"lseek"};
	const char *name = names[draw(draw(3) ? 4 : 13)];
	struct record r = {.type = RECORD_CALL};

	r.call.seq = seq;
	r.call.service_ns = (int64_t)draw(1u << draw(30));
	r.call.start_ns = now - r.call.service_ns;
	r.call.pid = 100 + (uint32_t)draw(DRAWN_PIDS);
	r.call.tid = r.call.pid + 1000 * (uint32_t)draw(3);
	r.call.nr = (uint32_t)call_number("x86_64", name);
	if (!draw(50))
		r.call.nr |= RECORD_ASYNC_NR;
	r.call.args[0] = draw(DRAWN_FDS);
	r.call.args[2] = draw(1 << 20);
	r.call.result = draw(20) ? (int64_t)draw(1 << 17) : -(int64_t)(1 + draw(30));
	r.call.unfinished = !draw(200);
	r.call.offset = draw(2) ? (int64_t)draw(1 << 30) : -1;
	if (!strcmp(name, "openat") || !strcmp(name, "renameat"))
		r.call.path = draw(2) ? "/data/some" : "file";
	if (!strcmp(name, "renameat"))
		r.call.path2 = "new";
	return r;
}

static inline struct record drawn_fd(int64_t now, char path[64])
{
	struct record r = {.type = RECORD_FD};

	r.fd.start_ns = now;
	r.fd.pid = 100 + (uint32_t)draw(DRAWN_PIDS);
	r.fd.fd = (int32_t)draw(DRAWN_FDS);
	r.fd.open = draw(4);
	r.fd.path = "";
	if (!r.fd.open)
		return r;
	snprintf(path, 64, "/data/%llu", (unsigned long long)draw(200));
	r.fd.path = path;
	r.fd.kind = draw(3) ? FD_FILE : FD_SOCKET;
	if (r.fd.kind == FD_FILE) {
		r.fd.tag.device = 0x801;
		r.fd.tag.inode = 1 + draw(200);
		r.fd.tag.first_ns = now - (int64_t)draw(1000000);
		return r;
	}
	r.fd.sock_type = SOCK_STREAM;
	drawn_address(&r.fd.local, 1 + (unsigned)draw(60000));
	drawn_address(&r.fd.remote, 1 + (unsigned)draw(60000));
	return r;
}

static inline struct record drawn_process(int64_t now, char name[64])
{
	struct record r = {.type = RECORD_PROCESS};

	r.process.start_ns = now;
	r.process.pid = 100 + (uint32_t)draw(DRAWN_PIDS);
	r.process.tid = r.process.pid + 1000 * (uint32_t)draw(3);
	r.process.what = draw(6) ? PROCESS_NAME : draw(3);
	snprintf(name, 64, "name%llu", (unsigned long long)draw(5));
	r.process.name = name;
	return r;
}

/* Writes a log of so many records; 'ended': with its END. 0, or a negative errno. */
static inline int drawn_log(const char *path, uint64_t records, bool ended, struct err *e)
{
	int64_t now = 1700000000000000000;
	struct log_writer *w;
	char text[64];
	int rc;

	unlink(path);
	rc = log_writer_new(path, "test", &w, e);
	for (uint64_t i = 1; !rc && i <= records; i++) {
		uint64_t kind = draw(100);
		struct record r = {.type = RECORD_LOST};

		now += (int64_t)draw(4000000);
		r.lost.start_ns = now;
		r.lost.count = 1;
		/* Calls alone for a while: zones without state. */
		if (kind < 90 || i / 3000 % 2)
			r = drawn_call(now, i);
		else if (kind < 97)
			r = drawn_fd(now, text);
		else if (kind < 99)
			r = drawn_process(now, text);
		rc = log_write(w, &r, e);
	}
	if (ended && !rc)
		return log_writer_end(w, 0, e);
	rc = rc ? rc : log_flush(w, e);
	log_writer_free(w);
	return rc;
}

#endif
