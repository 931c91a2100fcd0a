/* Tests the stream: the role of each record in the cluster, and when the tables change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "diag/record/reading.h"
#include "diag/record/stream.h"

enum { PID = 50 };

static char path[64];
static struct stream_server servers[2] = {
	{.name = "s1", .storage = "/srv/brick/"}, {.name = "s2", .storage = "/srv/brick"}};

static void address(struct sockaddr_storage *out, const char *ip, unsigned port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	assert_int_equal(inet_pton(AF_INET, ip, &in->sin_addr), 1);
}

static struct log_writer *begin(void)
{
	struct log_writer *w;
	struct err e;

	snprintf(path, sizeof(path), "/tmp/stream_test.%d", getpid());
	unlink(path);
	address(&servers[0].address, "10.0.0.1", 24007);
	address(&servers[1].address, "10.0.0.2", 24007);
	assert_int_equal(log_writer_new(path, "ptrace", &w, &e), 0);
	return w;
}

static void put(struct log_writer *w, struct record r)
{
	struct err e;

	assert_int_equal(log_write(w, &r, &e), 0);
}

static void end(struct log_writer *w)
{
	struct err e;

	assert_int_equal(log_writer_end(w, 3, &e), 0);
}

static struct record call(uint32_t tid, const char *name, int fd)
{
	return (struct record){.type = RECORD_CALL,
		.call = {.pid = PID,
			.tid = tid,
			.nr = (uint32_t)call_number("x86_64", name),
			.args = {(uint64_t)fd},
			.offset = -1}};
}

static struct record descriptor(int fd, enum fd_kind kind, const char *where)
{
	return (struct record){.type = RECORD_FD,
		.fd = {.pid = PID, .fd = fd, .open = where, .kind = kind, .path = where}};
}

static struct record connection(
	int fd, const char *local, unsigned lport, const char *remote, unsigned rport)
{
	struct record r = descriptor(fd, FD_SOCKET, "socket:[1]");

	address(&r.fd.local, local, lport);
	address(&r.fd.remote, remote, rport);
	return r;
}

static struct record process(uint32_t tid, int what, const char *name)
{
	return (struct record){.type = RECORD_PROCESS,
		.process = {.pid = PID, .tid = tid, .what = what, .name = name}};
}

/* A consumer that writes down one word for each record. */
struct seen {
	char text[2000];
	int fed, finished, freed, fail_at;
};

static void note(struct seen *s, const char *fmt, ...)
{
	size_t n = strlen(s->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text + n, sizeof(s->text) - n, fmt, ap);
	va_end(ap);
}

static void note_ending(void *ctx, const struct fd_state *f)
{
	note(ctx, "-%d", f->now.fd);
}

static const char *object_name(struct object o)
{
	static const char *const names[] = {
		"unknown", "file", "storage", "mount", "service", "peer", "socket", "other"};

	return names[o.kind];
}

static int feed(void *ctx, struct stream_item *item, struct err *e)
{
	struct seen *s = ctx;
	const struct record *rec = item->record;

	if (++s->fed == s->fail_at)
		return err_set(e, -EDOM, "enough");
	switch (rec->type) {
	case RECORD_CALL:
		note(s, "%s%u:%llu,%llu ", object_name(item_object(item)), item_object(item).server,
			(unsigned long long)item->thread->last_call,
			(unsigned long long)stream_last_poll(item->stream, rec->call.tid));
		break;
	case RECORD_FD:
	case RECORD_PROCESS:
		item_each_ending(item, note_ending, s);
		note(s, "(%s)", stream_name(item->stream, PID, record_tid(rec)));
		note(s, rec->type == RECORD_FD && item_fd(item) ? "%s " : " ",
			rec->type == RECORD_FD && item_fd(item) ? item_fd(item)->now.path : "");
		break;
	case RECORD_SUM:
	case RECORD_READING:
		note(s, "%s%u ", object_name(item_object(item)), item_object(item).server);
		break;
	default: break;
	}
	return 0;
}

static int finish(void *ctx, struct err *e)
{
	(void)e;
	((struct seen *)ctx)->finished++;
	return 0;
}

static void freed(void *ctx)
{
	((struct seen *)ctx)->freed++;
}

static const struct stream_consumer noting = {
	.feed = feed, .finish = finish, .free = freed, .names = true};

static int run(struct seen *s, enum stream_owner owner, int32_t index, struct err *e)
{
	const struct stream_spec spec = {.servers = servers,
		.n_servers = 2,
		.owner = owner,
		.index = index,
		.mount = "/mnt/fs/"};
	struct stream *stream;
	int rc = stream_new(path, &spec, &stream, e);

	if (rc)
		return rc;
	stream_add(stream, &noting, s);
	rc = stream_run(stream, e);
	if (!rc)
		assert_int_equal(stream_lost(stream), 3);
	assert_int_equal(s->freed, 0);
	stream_free(stream);
	assert_int_equal(s->freed, 1);
	return rc;
}

static void records_are_classified_by_owner(void **state)
{
	static const struct {
		enum stream_owner owner;
		int32_t index;
		const char *files, *sockets, *rest;
	} cases[] = {
		{OWNER_SERVER, 1, "file1 storage1 storage1 other0 other0 ",
			"service1 peer0 socket0 ", "file1 service1 unknown0 service1 "},
		{OWNER_DAEMON, 0, "other0 other0 other0 other0 other0 ", "socket0 peer0 socket0 ",
			"other0 socket0 unknown0 socket0 "},
		{OWNER_APP, 0, "other0 other0 other0 other0 mount0 ", "socket0 peer0 socket0 ",
			"other0 socket0 unknown0 socket0 "},
		{OWNER_UNKNOWN, -1, "other0 other0 other0 other0 other0 ", "socket0 peer0 socket0 ",
			"other0 socket0 unknown0 socket0 "},
	};
	struct log_writer *w = begin();
	struct record sum = {
		.type = RECORD_SUM, .sum = {.fd_class = FD_CLASS_DISK, .selected = true}};
	struct record reading = {
		.type = RECORD_READING, .reading = {.what = READING_DISK_READS, .count = 1}};
	struct err e;

	(void)state;
	put(w, descriptor(3, FD_FILE, "/srv/brick/a"));
	put(w, descriptor(4, FD_DIR, "/srv/brick/b"));
	put(w, descriptor(5, FD_DIR, "/srv/brick"));
	put(w, descriptor(6, FD_FILE, "/srv/brick2/a"));
	put(w, descriptor(7, FD_FILE, "/mnt/fs/x"));
	put(w, connection(8, "10.0.0.2", 24007, "10.0.0.9", 1000));
	put(w, connection(9, "10.0.0.9", 1000, "10.0.0.1", 24007));
	put(w, connection(10, "10.0.0.9", 1000, "10.0.0.1", 24008));
	for (int fd = 3; fd <= 10; fd++)
		put(w, call(PID, "fstat", fd));
	put(w, call(PID, "fstat", 99));
	put(w, sum);
	sum.sum.fd_class = FD_CLASS_SERVER;
	address(&sum.sum.local, "10.0.0.2", 24007);
	put(w, sum);
	put(w, reading);
	reading.reading.what = READING_TCP_RTT;
	reading.reading.accepted = true;
	put(w, reading);
	end(w);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen s = {0};
		char want[400] = "", got[2000] = "";

		assert_int_equal(run(&s, cases[i].owner, cases[i].index, &e), 0);
		snprintf(want, sizeof(want), "%s%sunknown0 %s", cases[i].files, cases[i].sockets,
			cases[i].rest);
		/* Keep only the names of the objects; the part after ':' belongs to the next
		 * test. */
		for (char *at = strtok(s.text, " "); at; at = strtok(NULL, " "))
			if (*at != '(')
				snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s ",
					(int)strcspn(at, ":"), at);
		assert_string_equal(got, want);
	}
	unlink(path);
}

/* Expects these objects of calls, sums and readings, seen by server 1. */
static void expect_objects(const char *want)
{
	struct seen s = {0};
	char got[2000] = "";
	struct err e;

	assert_int_equal(run(&s, OWNER_SERVER, 1, &e), 0);
	for (char *at = strtok(s.text, " "); at; at = strtok(NULL, " "))
		if (*at >= 'a' && *at <= 'z')
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s ",
				(int)strcspn(at, "0123456789"), at);
	assert_string_equal(got, want);
	unlink(path);
}

static struct record device(int fd, const char *name, uint64_t number, uint64_t inode)
{
	struct record r = descriptor(fd, FD_DEVICE, name);

	r.fd.tag.device = number;
	r.fd.tag.inode = inode;
	r.fd.tag.first_ns = 1;
	return r;
}

static void a_storage_may_be_a_device_under_any_name_or_a_file(void **state)
{
	struct log_writer *w = begin();

	(void)state;
	servers[1].storage = "/var/lib/osd/block";
	servers[1].storage_device = makedev(7, 5);
	put(w, device(3, "/dev/loop5", makedev(7, 5), 0));
	put(w, device(4, "/dev/loop6", makedev(7, 6), 0));
	put(w,
		device(5, "/dev/null", makedev(7, 5),
			12)); /* not a block device: the tag is that of its file */
	put(w, device(6, "/var/lib/osd/block", makedev(7, 7), 0));
	put(w, descriptor(7, FD_FILE, "/var/lib/osd/block"));
	put(w, descriptor(8, FD_DIR, "/var/lib/osd/block"));
	put(w, descriptor(9, FD_FILE, "/var/lib/osd/blocks"));
	for (int fd = 3; fd <= 9; fd++)
		put(w, call(PID, "fstat", fd));
	end(w);
	expect_objects("file other other file file storage other ");
	servers[1].storage = "/srv/brick";
	servers[1].storage_device = 0;
}

static struct record listener(int fd, const char *local, unsigned port)
{
	struct record r = connection(fd, local, port, "0.0.0.0", 0);

	r.fd.remote = (struct sockaddr_storage){0};
	r.fd.sock_type = SOCK_STREAM;
	return r;
}

static struct record accepted(int fd, unsigned port, const char *remote)
{
	struct record r = connection(fd, "10.0.0.2", port, remote, 40000);

	r.fd.sock_type = SOCK_STREAM;
	return r;
}

/* Ports 6801 and 6802 are the server's; 10.0.0.1 is another server. */
static void without_a_port_clients_are_accepted_sockets_except_from_servers(void **state)
{
	struct log_writer *w = begin();

	(void)state;
	address(&servers[0].address, "10.0.0.1", 0);
	address(&servers[1].address, "10.0.0.2", 0);
	put(w, accepted(3, 6801, "10.0.0.9")); /* described before its listening socket */
	put(w, listener(4, "0.0.0.0", 6801));
	put(w, listener(5, "10.0.0.2", 6802));
	put(w, accepted(6, 6802, "10.0.0.9"));
	put(w, accepted(7, 6802, "10.0.0.1"));  /* a heartbeat */
	put(w, accepted(8, 6802, "10.0.0.2"));  /* from itself */
	put(w, accepted(9, 50000, "10.0.0.8")); /* made by connect, to a monitor */
	put(w, listener(10, "10.0.0.2", 6803));
	put(w, accepted(10, 6803, "10.0.0.8")); /* bound, then connected */
	put(w, accepted(11, 6804, "10.0.0.9"));
	put(w, listener(12, "10.0.0.3", 6805));
	for (int fd = 3; fd <= 12; fd++)
		put(w, call(PID, "read", fd));
	end(w);
	expect_objects("service socket socket service peer peer socket socket socket socket ");
}

static void sums_and_readings_without_a_port_exclude_servers(void **state)
{
	static const char *const from[] = {"10.0.0.9", "10.0.0.1", "::ffff:10.0.0.1"};
	struct log_writer *w = begin();
	struct record sum = {.type = RECORD_SUM, .sum = {.fd_class = FD_CLASS_SERVER}};
	struct record reading = {.type = RECORD_READING,
		.reading = {.what = READING_TCP_RTT, .count = 1, .accepted = true}};

	(void)state;
	address(&servers[0].address, "10.0.0.1", 0);
	address(&servers[1].address, "10.0.0.2", 0);
	address(&sum.sum.local, "10.0.0.2", 6801);
	for (size_t i = 0; i < 3; i++) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sum.sum.remote;

		memset(&sum.sum.remote, 0, sizeof(sum.sum.remote));
		if (!strchr(from[i], ':')) {
			address(&sum.sum.remote, from[i], 0);
		} else {
			in6->sin6_family = AF_INET6;
			assert_int_equal(inet_pton(AF_INET6, from[i], &in6->sin6_addr), 1);
		}
		reading.reading.peer = sum.sum.remote;
		put(w, sum);
		put(w, reading);
	}
	sum.sum.fd_class =
		FD_CLASS_CLIENT; /* made by connect: to a monitor on another host, to a server */
	address(&sum.sum.remote, "10.0.0.8", 3300);
	put(w, sum);
	address(&sum.sum.remote, "10.0.0.1", 6809);
	put(w, sum);
	end(w);
	expect_objects("service service peer socket peer socket socket peer ");
}

static void consumers_see_the_state_before_and_names_after(void **state)
{
	struct log_writer *w = begin();
	struct seen s = {0};
	struct err e;

	(void)state;
	put(w, process(PID, PROCESS_START, "sh"));
	put(w, descriptor(3, FD_FILE, "/a"));
	put(w, descriptor(3, FD_FILE, "/b")); /* replaced after this record: still /a */
	put(w, call(PID, "epoll_wait", 4));   /* record 4 */
	put(w, call(PID, "read", 3));         /* last call 4, last wait 4 */
	put(w, call(PID, "read", 3));
	put(w, descriptor(3, FD_OTHER, NULL));
	put(w, descriptor(4, FD_FILE, "/c"));
	put(w, process(PID, PROCESS_EXEC, "dd")); /* 4 ends; the name is already the new one */
	put(w, descriptor(5, FD_FILE, "/d"));
	put(w, process(PID, PROCESS_NAME, "ee")); /* no descriptor ends */
	put(w, (struct record){.type = RECORD_FUSE, .fuse = {.pid = PID, .tid = PID}});
	put(w, process(PID, PROCESS_EXIT, ""));
	put(w, call(PID, "read", 5)); /* no descriptor is left */
	end(w);
	assert_int_equal(run(&s, OWNER_UNKNOWN, 0, &e), 0);
	assert_string_equal(s.text,
		"(sh) (sh) -3(sh)/a unknown0:0,0 other0:4,4 other0:5,4 -3(sh)/b (sh) -4(dd) (dd) "
		"(ee) -5(ee) unknown0:0,0 ");
	assert_int_equal(s.finished, 1);
	unlink(path);
}

static void errors_end_the_reading_and_free_consumers(void **state)
{
	struct log_writer *w = begin();
	struct seen s = {.fail_at = 2}, t = {0};
	struct err e;

	(void)state;
	put(w, call(PID, "read", 3));
	put(w, call(PID, "read", 3));
	put(w, call(PID, "read", 3));
	assert_int_equal(log_flush(w, &e), 0);
	assert_int_equal(run(&s, OWNER_UNKNOWN, 0, &e), -EDOM);
	assert_string_equal(e.text, "enough");
	assert_int_equal(s.fed, 2);
	assert_int_equal(s.finished, 0);
	log_writer_free(w);
	assert_int_equal(run(&t, OWNER_UNKNOWN, 0, &e), -EBADMSG); /* cut short */
	assert_int_equal(t.fed, 3);
	assert_int_equal(t.finished, 0);
	assert_int_equal(run(&t, OWNER_SERVER, 2, &e), -EINVAL);
	unlink(path);
}

/* A consumer of one class of calls that keeps the largest connection number. */
struct ids {
	uint32_t most;
	unsigned calls;
};

static int feed_ids(void *ctx, struct stream_item *item, struct err *e)
{
	struct ids *ids = ctx;
	struct object o = item_object(item);

	(void)e;
	if (item->record->type != RECORD_CALL)
		return 0;
	assert_string_equal(item->call->name, "read");
	assert_int_equal(o.kind, OBJECT_PEER);
	ids->most = o.id > ids->most ? o.id : ids->most;
	ids->calls++;
	return 0;
}

static void numbers_and_memory_follow_open_descriptors(void **state)
{
	static const struct stream_consumer consumer = {
		.feed = feed_ids, .classes = 1 << CALL_READ};
	const struct stream_spec spec = {.servers = servers, .n_servers = 2, .owner = OWNER_DAEMON};
	struct log_writer *w = begin();
	struct rusage before, after;
	struct stream *stream;
	struct ids ids = {0};
	struct err e;

	(void)state;
	/* At most two connections at once, each of a thread that ends afterwards. */
	for (uint32_t i = 0; i < 300000; i++) {
		int fd = 5 + (int)(i % 3);

		put(w, connection(fd, "10.0.0.9", 1000, "10.0.0.2", 24007));
		put(w, call(1000 + i, "read", fd));
		put(w, call(1000 + i, "write", fd));
		put(w, process(1000 + i, PROCESS_EXIT, ""));
		if (i % 2)
			put(w, descriptor(fd, FD_OTHER, NULL));
	}
	end(w);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(stream_new(path, &spec, &stream, &e), 0);
	stream_add(stream, &consumer, &ids);
	assert_int_equal(stream_run(stream, &e), 0);
	getrusage(RUSAGE_SELF, &after);
	stream_free(stream);
	assert_int_equal(ids.calls, 300000);
	assert_int_equal(ids.most, 1);
#ifndef __SANITIZE_ADDRESS__                                    /* it keeps freed memory */
	assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
#endif
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_classified_by_owner),
		cmocka_unit_test(a_storage_may_be_a_device_under_any_name_or_a_file),
		cmocka_unit_test(without_a_port_clients_are_accepted_sockets_except_from_servers),
		cmocka_unit_test(sums_and_readings_without_a_port_exclude_servers),
		cmocka_unit_test(consumers_see_the_state_before_and_names_after),
		cmocka_unit_test(errors_end_the_reading_and_free_consumers),
		cmocka_unit_test(numbers_and_memory_follow_open_descriptors),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
