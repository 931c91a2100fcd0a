/*
 * Made-up runs on a timeline, for tests and for the bench of the page:
 *     timeline_model WHAT SLICES html|perfetto|otlp|none [BYTES_MAX] >FILE
 *     timeline_model live
 * WHAT is "three" (three slices on one track), "requests" (clients and servers; the disk of s3 is
 * slow in the middle), "pair" (two such runs), "empty", or "hostile". Prints to standard error how
 * long filling and writing took, and the peak of the memory. With "live" it prints the address of a
 * live page, and publishes "requests" of so many slices for each number on standard input.
 */
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness/base/clock.h"
#include "harness/web/timeline/live.h"

enum { CLIENTS = 4, SERVERS = 4, THREADS = 4, SLICES_OF_A_REQUEST = 8, MS = 1000000 };
#define START_NS 1763800000123456789

static uint64_t seed = 1;

static double draw(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) * 0x1p-53;
}

/* Exponential with this mean. */
static int64_t wait_of(double mean_ns)
{
	return (int64_t)(-log(1 - draw()) * mean_ns) + 1;
}

static struct timeline_arg number(struct timeline *t, const char *key, int64_t value)
{
	return (struct timeline_arg){timeline_word(t, key), TIMELINE_NUMBER, value};
}

static uint32_t slice(struct timeline *t, int32_t track, const char *name, const char *category,
	int64_t start_ns, int64_t end_ns)
{
	return timeline_slice_add(t,
		&(struct timeline_slice){.track = track,
			.name = timeline_word(t, name),
			.category = timeline_word(t, category),
			.start_ns = start_ns,
			.duration_ns = end_ns - start_ns});
}

static void three(struct timeline *t)
{
	int32_t node, track;
	uint32_t a, b;

	timeline_title(t, "three", "run-3");
	node = timeline_track(t, TIMELINE_NONE, TIMELINE_NODE, "s1");
	track = timeline_track(t, node, TIMELINE_THREAD, "io-1");
	a = slice(t, track, "read", "disk", START_NS, START_NS + 10 * MS);
	b = slice(t, track, "send", "network", START_NS + 20 * MS, START_NS + 30 * MS);
	slice(t, track, "read", "disk", START_NS + 30 * MS, START_NS + 100 * MS);
	timeline_arrow_add(t, a, b, TIMELINE_BY_THREAD);
	timeline_note(t, "hosts", "s1");
}

struct node {
	int32_t node, layer, threads[THREADS], disk;
	uint32_t in_flight, busy;
	int64_t disk_free_ns, thread_free_ns[THREADS];
};

struct cluster {
	struct timeline *t;
	struct node clients[CLIENTS], servers[SERVERS];
	int64_t start_ns, fault_ns, healed_ns, end_ns;
	double slow; /* the disk of s3 while the fault acts */
};

static void make_node(
	struct cluster *c, struct node *n, int32_t root, const char *name, bool server)
{
	struct timeline *t = c->t;
	int32_t process;
	char text[32];

	n->node = timeline_track(t, root, TIMELINE_NODE, name);
	process = timeline_track(t, n->node, TIMELINE_PROCESS, server ? "glusterfsd" : "dd");
	for (int i = 0; i < THREADS; i++) {
		snprintf(text, sizeof(text), server ? "io-%d" : "dd-%d", i);
		n->threads[i] = timeline_track(t, process, TIMELINE_THREAD, text);
		n->thread_free_ns[i] = c->start_ns;
	}
	if (!server)
		process = timeline_track(t, n->node, TIMELINE_PROCESS, "glusterfs");
	n->layer = timeline_track(t, process, TIMELINE_LAYER, server ? "requests waiting" : "RPC");
	n->disk = timeline_track(
		t, server ? n->node : process, TIMELINE_LAYER, server ? "disk" : "FUSE");
	n->in_flight = timeline_counter(t, n->node, "in flight", "requests");
	if (server)
		n->busy = timeline_counter(t, n->node, "disk queue", "ms");
	n->disk_free_ns = c->start_ns;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* One request: the application's call, FUSE, the RPC, the wait in the server, the io-thread that
 * does it, its disk call, the answer. Returns when the call ended. */
static int64_t request(struct cluster *c, int64_t at, unsigned client, unsigned thread)
{
	struct timeline *t = c->t;
	unsigned which = (unsigned)(draw() * SERVERS), io = 0;
	struct node *n = &c->clients[client], *s = &c->servers[which];
	bool reads = draw() < .6, slow = which == 2 && at > c->fault_ns && at < c->healed_ns;
	const char *what = reads ? "READ" : "WRITE", *call = reads ? "pread64" : "pwrite64";
	int64_t fuse = at + wait_of(8e3), sent = fuse + wait_of(20e3), there, begin, disk, at_disk,
		done, back;
	struct timeline_arg args[3] = {number(t, "fd", 5 + thread),
		number(t, "offset_bytes", (int64_t)(draw() * 1e6) * 4096),
		number(t, "size_bytes", 131072)};
	uint32_t made[8];

	there = sent + wait_of(190e3);
	for (unsigned i = 1; i < THREADS; i++)
		if (s->thread_free_ns[i] < s->thread_free_ns[io])
			io = i;
	begin = later(there + 5000, s->thread_free_ns[io]);
	disk = begin + wait_of(15e3);
	at_disk = later(disk, s->disk_free_ns);
	done = at_disk + wait_of(slow ? 400e3 * c->slow : 400e3);
	s->disk_free_ns = done;
	back = done + 2000 + wait_of(50e3);
	s->thread_free_ns[io] = back;
	made[0] = timeline_slice_add(t,
		&(struct timeline_slice){.track = n->threads[thread],
			.name = timeline_word(t, call),
			.category = timeline_word(t, "application"),
			.start_ns = at,
			.duration_ns = back + 260000 - at,
			.args = args,
			.n_args = 3});
	made[1] = slice(
		t, n->disk, reads ? "FUSE_READ" : "FUSE_WRITE", "FUSE", fuse, back + 240000);
	made[2] = slice(t, n->layer, what, "RPC", sent, back + 200000);
	made[3] = slice(t, s->layer, what, "waiting", there, begin);
	made[4] = slice(t, s->threads[io], what, "service", begin, back);
	made[5] = timeline_slice_add(t,
		&(struct timeline_slice){.track = s->threads[io],
			.name = timeline_word(t, call),
			.category = timeline_word(t, "disk call"),
			.start_ns = disk,
			.duration_ns = done - disk,
			.flags = draw() < .001 ? TIMELINE_FAILED : 0,
			.args = args + 1,
			.n_args = 2});
	made[6] = slice(t, s->disk, reads ? "read" : "write", "disk", at_disk, done);
	made[7] = slice(t, s->threads[io], "writev", "answer", done + 1000, back);
	timeline_arrow_add(t, made[0], made[1], TIMELINE_EXACT);
	timeline_arrow_add(t, made[1], made[2], TIMELINE_EXACT);
	timeline_arrow_add(t, made[2], made[3], TIMELINE_EXACT);
	timeline_arrow_add(t, made[3], made[4], TIMELINE_BY_THREAD);
	timeline_arrow_add(t, made[4], made[5], TIMELINE_BY_THREAD);
	timeline_arrow_add(t, made[5], made[6], TIMELINE_BY_CONTENT);
	timeline_arrow_add(t, made[4], made[7], TIMELINE_EXACT);
	timeline_arrow_add(t, made[7], made[2], TIMELINE_EXACT);
	timeline_sample_add(t, s->busy, there, (double)(done - there) / 1e6);
	return back + 260000;
}

static void fill(struct cluster *c, uint64_t slices)
{
	int64_t free_ns[CLIENTS][THREADS];

	for (int i = 0; i < CLIENTS * THREADS; i++)
		free_ns[i / THREADS][i % THREADS] = c->start_ns + wait_of(1e6);
	for (uint64_t i = 0; i < slices / SLICES_OF_A_REQUEST; i++) {
		unsigned least = 0;

		for (unsigned k = 1; k < CLIENTS * THREADS; k++)
			if (free_ns[k / THREADS][k % THREADS] <
				free_ns[least / THREADS][least % THREADS])
				least = k;
		free_ns[least / THREADS]
		       [least % THREADS] = request(c, free_ns[least / THREADS][least % THREADS],
						   least / THREADS, least % THREADS) +
			wait_of(300e3);
		c->end_ns = free_ns[least / THREADS][least % THREADS];
	}
}

static void requests(
	struct timeline *t, uint64_t slices, const char *name, int64_t start_ns, double slow)
{
	/* A request takes 1.7 ms of four disks, roughly. */
	int64_t length = (int64_t)(slices / SLICES_OF_A_REQUEST) * 240000 + 10 * MS;
	struct cluster c = {.t = t, .start_ns = start_ns, .slow = slow};
	int32_t root = timeline_track(t, TIMELINE_NONE, TIMELINE_CLUSTER, name);
	char text[64];

	c.fault_ns = start_ns + length * 2 / 5;
	c.healed_ns = start_ns + length * 7 / 10;
	for (int i = 0; i < SERVERS; i++) {
		snprintf(text, sizeof(text), "s%d", i + 1);
		make_node(&c, &c.servers[i], root, text, true);
	}
	for (int i = 0; i < CLIENTS; i++) {
		snprintf(text, sizeof(text), "c%d", i + 1);
		make_node(&c, &c.clients[i], root, text, false);
	}
	fill(&c, slices);
	for (int64_t at = start_ns; at < c.end_ns; at += length / 200 + 1)
		for (int i = 0; i < CLIENTS; i++)
			timeline_sample_add(
				t, c.clients[i].in_flight, at, floor(draw() * THREADS + 1));
	for (int64_t at = start_ns; at < c.end_ns; at += length / 200 + 1)
		for (int i = 0; i < SERVERS; i++)
			timeline_sample_add(t, c.servers[i].in_flight, at,
				i == 2 && at > c.fault_ns && at < c.healed_ns
					? 10 + floor(draw() * 5)
					: floor(draw() * 4));
	timeline_mark_add(t, TIMELINE_PHASE, root, start_ns, c.fault_ns, "before");
	if (slow > 1) {
		timeline_mark_add(t, TIMELINE_FAULT, c.servers[2].node, c.fault_ns, c.healed_ns,
			"disk-hog on s3");
		timeline_mark_add(t, TIMELINE_VERDICT, c.servers[2].node, c.fault_ns + length / 10,
			c.fault_ns + length / 10, "peer-robust: s3, storage");
	}
}

static void several(struct timeline *t, uint64_t slices, bool pair)
{
	timeline_title(t, "flow, cell 7: ddr, disk-hog on s3", "flow-20261122");
	timeline_note(t, "hosts", "s1 s2 s3 s4 c1 c2 c3 c4 (lab)");
	timeline_note(t, "clock of s2", "3.2 ms ahead of s1, between 3.1 and 3.3 ms");
	if (pair)
		slices /= 2;
	requests(t, slices, pair ? "run A" : "lab", START_NS, 8);
	if (pair)
		requests(t, slices, "run B: without the fault", START_NS + 3600000000000, 1);
}

static const char *const hostile_names[] = {"</script><script>window.ran=1</script>",
	"<img src=x onerror=\"window.ran=1\">", "a\nb\tc\x01\x7f", "bytes \xff\xfe\xc0\x80",
	"\xe2\x80\xae"
	"right to left",
	"constructor", "__proto__", "", "toString", "{{script}}", "<!--",
	"' onclick='window.ran=1"};

static void hostile(struct timeline *t)
{
	enum { NAMES = sizeof(hostile_names) / sizeof(*hostile_names) };
	static const int64_t times[] = {0, 1, -1, 1000000000000000000, -1000000000000000000,
		INT64_MAX, INT64_MIN, START_NS};
	int32_t track = TIMELINE_NONE;
	char *huge = malloc(100000);
	uint32_t last = UINT32_MAX;

	memset(huge, 'x', 99999);
	huge[99999] = 0;
	timeline_title(t, hostile_names[0], hostile_names[1]);
	timeline_note(t, hostile_names[1], hostile_names[3]);
	timeline_note(t, huge, huge);
	for (int i = 0; i < NAMES; i++) {
		uint32_t counter;

		track = timeline_track(t, i % 3 ? track : TIMELINE_NONE,
			(enum timeline_kind)(i % 5), hostile_names[i]);
		counter = timeline_counter(
			t, track, hostile_names[i], hostile_names[(i + 1) % NAMES]);
		for (int k = 0; k < 64; k++) {
			struct timeline_arg args[2] = {
				number(t, hostile_names[k % NAMES], times[k % 8]),
				{timeline_word(t, hostile_names[i]), TIMELINE_TEXT,
					timeline_word(t, hostile_names[k % NAMES])}};
			struct timeline_slice s = {.track = track,
				.name = timeline_word(t, hostile_names[k % NAMES]),
				.category = timeline_word(t, hostile_names[(i + k) % NAMES]),
				.start_ns = times[k / 8],
				.duration_ns = times[k % 8],
				.args = args,
				.n_args = 2,
				.flags = (uint8_t)k};
			uint32_t made = timeline_slice_add(t, &s);

			timeline_arrow_add(t, last, made, (enum timeline_link)(k % 3));
			timeline_arrow_add(t, made, last, (enum timeline_link)99);
			last = made;
			timeline_sample_add(t, counter, times[k % 8], k % 5 ? k : NAN);
		}
		timeline_mark_add(t, (enum timeline_mark)(i % 4), track, times[i % 8],
			times[(i + 3) % 8], hostile_names[i]);
	}
	timeline_slice_add(t, &(struct timeline_slice){.track = 12345});
	timeline_sample_add(t, 999, 0, 0);
	timeline_arrow_add(t, 1, 4000000000u, TIMELINE_EXACT);
	timeline_track(t, 12345, TIMELINE_NODE, huge);
	free(huge);
}

/* One line on standard input is one publication, answered by a line. */
static int serve_live(struct err *e)
{
	struct timeline_live *l = NULL;
	char line[64];
	int rc = timeline_live_open(0, &l, e);

	if (!rc)
		printf("%s\n", timeline_live_url(l));
	fflush(stdout);
	while (!rc && fgets(line, sizeof(line), stdin)) {
		struct timeline *t = NULL;

		seed = 1;
		rc = timeline_new(&t, e);
		if (!rc) {
			several(t, strtoull(line, NULL, 10), false);
			rc = timeline_live_publish(l, t, e);
		}
		timeline_free(t);
		puts("published");
		fflush(stdout);
	}
	timeline_live_close(l);
	return rc;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "", *how = argc > 3 ? argv[3] : "";
	uint64_t slices = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t bytes = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
	struct timeline *t = NULL;
	struct err e = {0};
	struct rusage used;
	double begun = clock_mono_s(), filled;
	int rc;

	if (argc == 2 && !strcmp(argv[1], "live")) {
		rc = serve_live(&e);
		if (rc)
			fprintf(stderr, "timeline_model: %s\n", e.text);
		return rc ? 2 : 0;
	}
	rc = timeline_new(&t, &e);
	if (!strcmp(what, "three"))
		three(t);
	else if (!strcmp(what, "requests") || !strcmp(what, "pair"))
		several(t, slices, *what == 'p');
	else if (!strcmp(what, "hostile"))
		hostile(t);
	else if (strcmp(what, "empty") != 0)
		rc = err_set(&e, -1,
			"usage: timeline_model three|requests|pair|empty|hostile SLICES "
			"html|perfetto|otlp|none [BYTES_MAX]");
	filled = clock_mono_s();
	if (!rc && !strcmp(how, "html"))
		rc = timeline_html(t, stdout, bytes, &e);
	if (!rc && !strcmp(how, "perfetto"))
		rc = timeline_perfetto(t, stdout, &e);
	if (!rc && !strcmp(how, "otlp"))
		rc = timeline_otlp(t, stdout, &e);
	getrusage(RUSAGE_SELF, &used);
	if (rc)
		fprintf(stderr, "timeline_model: %s\n", e.text);
	else
		fprintf(stderr, "filled in %.2f s, written in %.2f s, %ld MiB\n", filled - begun,
			clock_mono_s() - filled, used.ru_maxrss / 1024);
	timeline_free(t);
	return rc ? 2 : 0;
}
