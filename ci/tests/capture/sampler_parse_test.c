/* Tests that the sampler reads the kernel's texts and messages, also unusual ones, and the readings
 * made from two snapshots. */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/inet_diag.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "diag/capture/sampler/sampler.h"

static const char net_dev[] =
	"Inter-|   Receive                                                |  Transmit\n"
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
	"drop fifo colls carrier compressed\n"
	"    lo: 4407446  4000 0 0 0 0 0 0 4407446 4000 0 0 0 0 0 0\n"
	"  eth0:1500 10 1 2 0 0 0 0 2500 20 4 8 0 0 0 0\n"
	"veth@1: 18446744073709551615 3 0 0 0 0 0 0 5 6 0 0 0 0 0 0\n"
	"broken: 1 2 3\n"
	"odd: one two\n";
static const char
	diskstats[] = "   7       2 loop2 1 0 8 0 1 0 8 0 0 0 0\n"
		      "   8       0 sda 100 3 2048 70 50 1 4096 90 2 110 160 0 0 0 0 0 0\n"
		      "   8       1 sda1 5 0 6 7 8 9 10 11 0 12 13\n"
		      "   9       0 md0 5 0 6\n";
static const char stat_text[] = "cpu  30 3 30 300 6 0 3 5 9 9\n"
				"cpu0 10 1 10 100 2 0 1 5 9 9\n"
				"cpu1 20 2 20 200 4 0 2 0 0 0\n"
				"cpu2 20 2\n"
				"intr 34 1 2\n";
static const char
	meminfo[] = "MemTotal:       24684096 kB\nMemFree: 1000 kB\nMemAvailable:   23340000 kB\n"
		    "Buffers: 5 kB\nCached: 6 kB\nSwapCached: 7 kB\nShmem: 8 kB\nShmemHugePages: 9 "
		    "kB\n";
static const char vmstat[] = "pgpgin 1\npgfault 10\npgmajfault 3\nworkingset_refault_anon 4\n"
			     "workingset_refault_file 5\n";
static const char pressure[] =
	"some avg10=0.00 avg60=0.12 avg300=0.05 total=123456\nfull avg10=0.00 avg60=0.00 "
	"avg300=0.00 total=9\n";
static const char process[] =
	"1234 (a) b (\n) R 5) S 1 1234 1234 0 -1 4194304 10 0 0 0 150 50 9 9 20 0 31 0 98765 "
	"123456 789 "
	"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
static const char
	io[] = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 8192\nwrite_bytes: 4096\n"
	       "cancelled_write_bytes: 1\n";
static const char mountinfo[] =
	"22 1 0:21 / /proc rw - proc proc rw\n36 35 0:42 /mnt1 /mnt2 rw,noatime master:1 - btrfs "
	"/dev/vdb rw\n"
	"37 35 8:1 / /x rw shared:3 - ext4 /dev/sda1 rw\n38 35 8:2 / /y rw - ext4\n";

static uint64_t value(const struct thing *t, enum reading r)
{
	assert_true(t->has >> r & 1);
	return t->value[r];
}

static void interfaces_are_read_without_lo(void **state)
{
	struct sampler_snapshot s = {0};

	(void)state;
	text_net_dev(net_dev, &s);
	assert_int_equal(s.n, 3);
	assert_int_equal(value(&s.things[0], READING_LOOPBACK), 4407446);
	assert_int_equal(s.things[0].has >> READING_NIC_RECEIVED & 1, 0);
	assert_string_equal(s.things[0].name, "");
	assert_string_equal(s.things[1].name, "eth0");
	assert_int_equal(value(&s.things[1], READING_NIC_RECEIVED), 1500);
	assert_int_equal(value(&s.things[1], READING_NIC_SENT), 2500);
	assert_int_equal(value(&s.things[1], READING_NIC_RECEIVED_PACKETS), 10);
	assert_int_equal(value(&s.things[1], READING_NIC_SENT_PACKETS), 20);
	assert_int_equal(value(&s.things[1], READING_NIC_DROPPED), 15);
	assert_int_not_equal(s.things[1].id, s.things[2].id);
	snapshot_free(&s);
}

static void disks_are_found_by_number(void **state)
{
	struct thing t = {0};

	(void)state;
	assert_true(text_diskstats(diskstats, 8, 0, &t));
	assert_int_equal(value(&t, READING_DISK_READS), 100);
	assert_int_equal(value(&t, READING_DISK_READ_BYTES), 2048);
	assert_int_equal(value(&t, READING_DISK_READ_TIME), 70);
	assert_int_equal(value(&t, READING_DISK_WRITES), 50);
	assert_int_equal(value(&t, READING_DISK_WRITTEN_BYTES), 4096);
	assert_int_equal(value(&t, READING_DISK_WRITE_TIME), 90);
	assert_int_equal(value(&t, READING_DISK_BUSY), 110);
	assert_int_equal(value(&t, READING_DISK_QUEUE), 160);
	assert_true(text_drive(diskstats, 8, 0, &t));
	assert_int_equal(value(&t, READING_DRIVE_READ), 2048);
	assert_int_equal(value(&t, READING_DRIVE_WRITTEN), 4096);
	assert_int_equal(value(&t, READING_DRIVE_BUSY), 110);
	t.has = 0;
	assert_false(text_diskstats(diskstats, 9, 0, &t)); /* too short */
	assert_false(text_drive(diskstats, 9, 0, &t));
	assert_false(text_diskstats(diskstats, 8, 2, &t));
	assert_int_equal(t.has, 0);
}

static void node_texts_are_read(void **state)
{
	const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct sampler_snapshot s = {0};
	struct thing t = {0};
	char source[64];
	uint64_t v;

	(void)state;
	text_cpus(stat_text, &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(value(&s.things[0], READING_CPU_BUSY), 27 * tick_ns);
	assert_int_equal(value(&s.things[0], READING_CPU_IDLE), 102 * tick_ns);
	assert_string_equal(s.things[1].name, "cpu1");
	snapshot_clear(&s);
	text_usage_percpu("16059041373816 7 12x 9", &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(value(&s.things[0], READING_CPU_BUSY), 16059041373816);
	assert_string_equal(s.things[1].name, "cpu1");
	snapshot_free(&s);
	text_steal(stat_text, &t);
	assert_int_equal(value(&t, READING_CPU_STEAL), 5);
	t.has = 0;
	text_steal("cpu  30 3 30 300 6 0 3\n", &t); /* before Linux 2.6.11 */
	text_steal("cpu0 30 3 30 300 6 0 3 5 9 9\n", &t);
	assert_int_equal(t.has, 0);
	assert_true(text_pressure(pressure, &v));
	assert_int_equal(v, 123456);
	assert_false(text_pressure("full avg10=0.00 total=9\n", &v));
	assert_false(text_pressure("some avg10=0.00\nfull total=9\n", &v));
	text_meminfo(meminfo, &t);
	assert_int_equal(value(&t, READING_MEMORY_TOTAL), 24684096ull * 1024);
	assert_int_equal(value(&t, READING_MEMORY_FREE), 1000ull * 1024);
	assert_int_equal(value(&t, READING_MEMORY_USED), 24683096ull * 1024);
	assert_int_equal(value(&t, READING_MEMORY_AVAILABLE), 23340000ull * 1024);
	assert_int_equal(value(&t, READING_MEMORY_BUFFERS), 5 * 1024);
	assert_int_equal(value(&t, READING_MEMORY_CACHED), 6 * 1024);
	assert_int_equal(value(&t, READING_MEMORY_SHARED), 8 * 1024);
	t.has = 0;
	/* without a free part */
	text_meminfo("MemTotal: 3 kB\nMemFree: 4 kB\nMemAvailable 5x kB", &t);
	assert_int_equal(t.has, 1ull << READING_MEMORY_TOTAL | 1ull << READING_MEMORY_FREE);
	t.has = 0;
	text_faults(vmstat, "", &t);
	assert_int_equal(value(&t, READING_MEMORY_FAULTS), 10);
	assert_int_equal(value(&t, READING_MEMORY_MAJOR_FAULTS), 3);
	assert_int_equal(value(&t, READING_MEMORY_REFAULTS), 9);
	assert_true(text_named("a 1\nab: 2 kB\n", "ab", &v));
	assert_int_equal(v, 2);
	assert_false(text_named("ab 1\nb\nc", "c", &v));
	assert_true(text_mount_source(mountinfo, 0, 42, source, sizeof(source)));
	assert_string_equal(source, "/dev/vdb");
	assert_true(text_mount_source(mountinfo, 8, 1, source, sizeof(source)));
	assert_string_equal(source, "/dev/sda1");
	assert_false(text_mount_source(mountinfo, 8, 2, source, sizeof(source)));
}

static void process_texts_are_read(void **state)
{
	struct process_stat st;
	struct thing t = {0};
	uint64_t ns;

	(void)state;
	assert_true(text_process_stat(process, &st));
	assert_int_equal(st.state, 'S');
	assert_int_equal(st.cpu_ticks, 200);
	assert_int_equal(st.start_ticks, 98765);
	assert_int_equal(st.rss_pages, 789);
	assert_false(text_process_stat("1234 (a) S 1 2\n", &st));
	assert_true(text_schedstat("100 200 3\n", &ns));
	assert_int_equal(ns, 200);
	assert_false(text_schedstat("100\n", &ns));
	text_io(io, &t);
	assert_int_equal(value(&t, READING_PROCESS_READ), 8192);
	assert_int_equal(value(&t, READING_PROCESS_WRITTEN), 4096);
}

/* Netlink messages in the kernel's form. */
static char buffer[4096] __attribute__((aligned(8)));

static size_t put_socket(size_t at, uint64_t cookie, size_t info_size)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer + at);
	struct inet_diag_msg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	struct tcp_info info = {.tcpi_rtt = 1000,
		.tcpi_total_retrans = 7,
		.tcpi_bytes_sent = 5000,
		.tcpi_rcv_ooopack = 3};
	char longer[512] = {0};

	memcpy(longer, &info, sizeof(info));
	h->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	m->idiag_family = AF_INET6;
	m->idiag_state = 1;
	m->id.idiag_dport = htons(80);
	m->id.idiag_sport = htons(4000);
	inet_pton(AF_INET6, "::ffff:1.2.3.4", m->id.idiag_dst);
	memcpy(m->id.idiag_cookie, &cookie, sizeof(cookie));
	m->idiag_rqueue = 11;
	mnl_attr_put(h, INET_DIAG_INFO, info_size, longer);
	return at + MNL_ALIGN(h->nlmsg_len);
}

static size_t put_done(size_t at, int code)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer + at);

	memcpy(mnl_nlmsg_put_extra_header(h, sizeof(code)), &code, sizeof(code));
	h->nlmsg_type = NLMSG_DONE;
	return at + MNL_ALIGN(h->nlmsg_len);
}

static void sockets_have_the_kernels_values(void **state)
{
	struct sampler_snapshot s = {0};
	size_t n;

	(void)state;
	n = put_socket(0, 1, sizeof(struct tcp_info));
	n = put_socket(n, 2,
		offsetof(struct tcp_info, tcpi_bytes_sent) +
			4);        /* a truncated field, which does not occur */
	n = put_socket(n, 3, 400); /* of a future kernel */
	assert_int_equal(tcp_parse(buffer, n, &s), 1);
	assert_int_equal(s.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s.things[i].id, i + 1);
		assert_int_equal(value(&s.things[i], READING_TCP_RTT), 1000);
		assert_int_equal(value(&s.things[i], READING_TCP_RETRANSMITTED), 7);
		assert_int_equal(value(&s.things[i], READING_TCP_UNREAD), 11);
		assert_int_equal(s.things[i].has >> READING_TCP_SENT & 1, i != 1);
		assert_int_equal(s.things[i].has >> READING_TCP_OUT_OF_ORDER & 1, i != 1);
		assert_int_equal(s.things[i].peer.family, AF_INET);
		assert_memory_equal(s.things[i].peer.address, "\1\2\3\4", 4);
		assert_int_equal(s.things[i].local_port, 4000);
	}
	assert_int_equal(tcp_parse(buffer, put_done(0, 0), &s), 0);
	assert_int_equal(tcp_parse(buffer, put_done(0, -ENOENT), &s), -ENOENT);
	assert_int_equal(s.n, 3);
	snapshot_free(&s);
}

static size_t put_qdisc(
	size_t at, int device, uint32_t parent, struct gnet_stats_queue q, size_t size)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer + at);
	struct tcmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	struct gnet_stats_basic basic = {.bytes = 77};
	struct nlattr *stats;

	h->nlmsg_type = RTM_NEWQDISC;
	m->tcm_ifindex = device;
	m->tcm_parent = parent;
	mnl_attr_put_strz(h, TCA_KIND, "tbf");
	stats = mnl_attr_nest_start(h, TCA_STATS2);
	mnl_attr_put(h, TCA_STATS_BASIC, sizeof(basic), &basic);
	mnl_attr_put(h, TCA_STATS_QUEUE, size, &q);
	mnl_attr_nest_end(h, stats);
	/* The old form, with the same data again. */
	mnl_attr_put(h, TCA_STATS, size, &q);
	return at + MNL_ALIGN(h->nlmsg_len);
}

static size_t put_qdiscs(void)
{
	const struct gnet_stats_queue root = {.backlog = 3000, .drops = 7, .overlimits = 40},
				      child = {.backlog = 3000, .drops = 5}, ingress = {.drops = 2};
	size_t n = put_qdisc(0, 4, TC_H_ROOT, root, sizeof(root));

	n = put_qdisc(n, 4, TC_H_MAKE(1 << 16, 1), child, sizeof(child));
	n = put_qdisc(n, 4, TC_H_INGRESS, ingress, sizeof(ingress));
	/* one field fewer, which does not occur */
	n = put_qdisc(n, 5, TC_H_ROOT, root, sizeof(root) - 4);
	return put_qdisc(n, 6, TC_H_ROOT, ingress, sizeof(ingress));
}

static void queues_of_a_device_are_added_up(void **state)
{
	struct sampler_snapshot s = {0};

	(void)state;
	assert_int_equal(qdisc_parse(buffer, put_done(put_qdiscs(), 0), &s), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.things[0].id, 4);
	assert_int_equal(value(&s.things[0], READING_QDISC_DROPPED), 9);
	assert_int_equal(value(&s.things[0], READING_QDISC_OVERLIMITS), 40);
	assert_int_equal(value(&s.things[0], READING_QDISC_BACKLOG), 3000);
	assert_int_equal(s.things[1].id, 6);
	assert_int_equal(value(&s.things[1], READING_QDISC_DROPPED), 2);
	assert_int_equal(qdisc_parse(buffer, put_done(0, -EOPNOTSUPP), &s), -EOPNOTSUPP);
	assert_int_equal(qdisc_read(NULL, &s), -EOPNOTSUPP);
	assert_int_equal(s.n, 2);
	snapshot_free(&s);
}

/* Every prefix of every text, and texts with random bytes changed, in heap blocks of exactly that
 * size. */
static void feed(const char *text, size_t n)
{
	struct sampler_snapshot s = {0};
	struct process_stat st;
	struct thing t = {0};
	char *copy = malloc(n + 1), source[8];
	uint64_t v;

	memcpy(copy, text, n);
	copy[n] = '\0';
	text_net_dev(copy, &s);
	text_cpus(copy, &s);
	text_steal(copy, &t);
	text_diskstats(copy, 8, 0, &t);
	text_pressure(copy, &v);
	text_usage_percpu(copy, &s);
	text_named(copy, "MemFree", &v);
	text_meminfo(copy, &t);
	text_faults(copy, "", &t);
	cgroup_place(copy, copy, CGROUP_MEMORY);
	cgroup_place(copy, copy, CGROUP_PRESSURE);
	text_process_stat(copy, &st);
	text_schedstat(copy, &v);
	text_io(copy, &t);
	text_mount_source(copy, 8, 1, source, sizeof(source));
	snapshot_sort(&s);
	assert_false(s.failed);
	snapshot_free(&s);
	free(copy);
}

static void hostile_texts_do_no_harm(void **state)
{
	static const char *const texts[] = {
		net_dev, diskstats, stat_text, meminfo, vmstat, pressure, process, io, mountinfo};
	static const char odd[] = "\n :)(-9 \t\xff"
				  "5c";
	(void)state;
	srand(6);
	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
		for (size_t n = 0; n <= strlen(texts[k]); n++)
			feed(texts[k], n);
	for (int k = 0; k < 20000; k++) {
		char text[1024];
		size_t n;

		snprintf(text, sizeof(text), "%s",
			texts[(size_t)rand() % (sizeof(texts) / sizeof(texts[0]))]);
		n = strlen(text);
		for (int i = rand() % 20; i >= 0; i--)
			text[(size_t)rand() % n] = odd[(size_t)rand() % (sizeof(odd) - 1)];
		feed(text, n);
	}
}

static void damage(
	size_t whole, int (*parse)(const void *data, size_t size, struct sampler_snapshot *s))
{
	char sound[sizeof(buffer)];

	memcpy(sound, buffer, whole);
	for (size_t n = 0; n < whole + 20000; n++) {
		struct sampler_snapshot s = {0};
		size_t size = n <= whole ? n : whole;
		char *copy = malloc(size + 1);

		memcpy(copy, sound, size);
		for (int i = rand() % 8; n > whole && i > 0; i--)
			copy[(size_t)rand() % size] = (char)rand();
		assert_true(parse(copy, size, &s) <= 1);
		assert_true(s.n <= size / sizeof(struct nlmsghdr));
		snapshot_sort(&s);
		snapshot_free(&s);
		free(copy);
	}
}

static void damaged_messages_do_no_harm(void **state)
{
	(void)state;
	srand(7);
	damage(put_done(put_socket(put_socket(0, 1, sizeof(struct tcp_info)), 2, 200), 0),
		tcp_parse);
	damage(put_done(put_qdiscs(), 0), qdisc_parse);
}

/* Snapshots made by hand. */
struct seen {
	struct sampled r[256];
	size_t n;
};

static int see(void *ctx, const struct sampled *r)
{
	struct seen *x = ctx;

	assert_true(x->n < 256);
	x->r[x->n++] = *r;
	return 0;
}

static const struct sampled *of(const struct seen *x, enum reading r)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->r[i].what == r)
			return &x->r[i];
	return NULL;
}

static struct thing *socket_of(
	struct sampler_snapshot *s, uint64_t id, uint8_t last_byte, uint64_t sent, uint64_t again)
{
	struct thing *t = snapshot_add(s, THING_SOCKET, id);

	t->judged = t->ours = true;
	t->peer = (struct socket_peer){
		.family = AF_INET, .address = {10, 0, 0, last_byte}, .port = htons(80)};
	thing_set(t, READING_TCP_SENT, sent);
	thing_set(t, READING_TCP_RETRANSMITTED, again);
	thing_set(t, READING_TCP_WINDOW, 10 * id);
	return t;
}

static void differences_need_both_ends(void **state)
{
	struct sampler_snapshot a = {0}, b = {0};
	struct seen x = {.n = 0};
	struct thing *t;

	(void)state;
	socket_of(&a, 1, 9, 1000, UINT32_MAX - 1);
	socket_of(&a, 2, 9, 500, 0);
	socket_of(&a, 3, 9, 700, 5); /* closed in between */
	socket_of(&a, 4, 1, 900, 0)->missing = 1;
	t = snapshot_add(&a, THING_INTERFACE, 1);
	thing_set(t, READING_NIC_SENT, 100);
	snapshot_sort(&a);

	socket_of(&b, 1, 9, 1600, 2); /* a 32-bit counter wraps in between */
	socket_of(&b, 2, 9, 500, 0);
	socket_of(&b, 4, 1, 5000, 0); /* missing in the previous list: its interval is unknown */
	socket_of(&b, 5, 9, 250, 1)->fresh = true;
	socket_of(&b, 6, 9, 9999, 9); /* not fresh, and not seen before */
	socket_of(&b, 7, 9, 9999, 9)->missing = 1;
	t = socket_of(&b, 8, 9, 9999, 9);
	t->ours = false;
	t = snapshot_add(&b, THING_INTERFACE, 1);
	thing_set(t, READING_NIC_SENT, 60); /* restarted */
	t = snapshot_add(&b, THING_INTERFACE, 2);
	thing_set(t, READING_NIC_SENT, 60); /* new */
	snapshot_sort(&b);

	assert_int_equal(snapshot_readings(&a, &b, true, see, &x), 0);
	assert_null(of(&x, READING_NIC_SENT));
	/* Peers in order: 10.0.0.1 has only a level. */
	assert_int_equal(x.r[0].what, READING_TCP_WINDOW);
	assert_int_equal(x.r[0].peer->address[3], 1);
	assert_int_equal(of(&x, READING_TCP_SENT)->peer->address[3], 9);
	assert_int_equal(of(&x, READING_TCP_SENT)->count, 3);
	assert_true(of(&x, READING_TCP_SENT)->sum == 850);
	assert_true(of(&x, READING_TCP_SENT)->max == 600);
	assert_true(of(&x, READING_TCP_RETRANSMITTED)->sum == 5);
	assert_int_equal(x.r[x.n - 1].count, 4);
	assert_true(x.r[x.n - 1].sum == 140);
	for (size_t i = 0; i < x.n; i++)
		assert_null(x.r[i].name);

	/* Over a gap: no differences, but levels. */
	x.n = 0;
	assert_int_equal(snapshot_readings(&a, &b, false, see, &x), 0);
	assert_null(of(&x, READING_TCP_SENT));
	assert_non_null(of(&x, READING_TCP_WINDOW));
	snapshot_free(&a);
	snapshot_free(&b);
}

/* Named things are listed if there are several. */
static void processors_are_listed_separately(void **state)
{
	struct sampler_snapshot a = {0}, b = {0};
	struct seen x = {.n = 0};

	(void)state;
	text_usage_percpu("1000000000 2000000000", &a);
	text_net_dev("lo: 0 0 0 0 0 0 0 0 1 0 0 0\neth0: 0 0 0 0 0 0 0 0 1 0 0 0\n", &a);
	snapshot_sort(&a);
	/* the last one has just appeared */
	text_usage_percpu("1250000000 2500000000 7000000000", &b);
	text_net_dev("lo: 0 0 0 0 0 0 0 0 4 0 0 0\neth0: 0 0 0 0 0 0 0 0 6 0 0 0\n", &b);
	snapshot_sort(&b);
	assert_int_equal(snapshot_readings(&a, &b, true, see, &x), 0);
	for (size_t i = 0; i < x.n; i++) {
		static const char *const names[] = {"cpu0", "cpu1"};
		static const double sums[] = {0.75, 0.25, 0.5};

		if (x.r[i].what == READING_NIC_SENT)
			assert_null(x.r[i].name);
		if (x.r[i].what != READING_CPU_BUSY)
			continue;
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(x.r[i + k].what, READING_CPU_BUSY);
			assert_int_equal(x.r[i + k].count, k ? 1 : 2);
			assert_float_equal(x.r[i + k].sum, sums[k], 1e-9);
			if (k)
				assert_string_equal(x.r[i + k].name, names[k - 1]);
		}
		break;
	}
	assert_true(of(&x, READING_CPU_BUSY)->max == 0.5);
	assert_true(of(&x, READING_LOOPBACK)->sum == 3);
	assert_true(of(&x, READING_NIC_SENT)->sum == 5);
	snapshot_free(&a);
	snapshot_free(&b);
}

static void one_thing_is_counted_once(void **state)
{
	struct sampler_snapshot s = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		socket_of(&s, (uint64_t)(i % 100), 1, 0, 0);
	snapshot_sort(&s);
	assert_int_equal(s.n, 100);
	assert_int_equal(snapshot_find(&s, THING_SOCKET, 42)->id, 42);
	assert_null(snapshot_find(&s, THING_TASK, 42));
	snapshot_free(&s);
}

static void paths_lead_to_disks(void **state)
{
	struct disk_device d = {0};
	struct err e;

	(void)state;
	assert_int_equal(disk_find("/proc", &d, &e), -ENODEV);
	assert_string_equal(e.text, "'/proc' is not on a block device");
	assert_int_equal(disk_find("/nowhere/at/all", &d, &e), -ENODEV);
	assert_false(d.there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interfaces_are_read_without_lo),
		cmocka_unit_test(disks_are_found_by_number),
		cmocka_unit_test(node_texts_are_read),
		cmocka_unit_test(process_texts_are_read),
		cmocka_unit_test(sockets_have_the_kernels_values),
		cmocka_unit_test(queues_of_a_device_are_added_up),
		cmocka_unit_test(hostile_texts_do_no_harm),
		cmocka_unit_test(damaged_messages_do_no_harm),
		cmocka_unit_test(differences_need_both_ends),
		cmocka_unit_test(processors_are_listed_separately),
		cmocka_unit_test(one_thing_is_counted_once),
		cmocka_unit_test(paths_lead_to_disks),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
