/*
 * flow_logs FILE-SYSTEM NODE:OWNER:LOG[:STORAGE] ...
 *
 * Binds recorded flows; prints what was bound, the clocks, the depth of layers, and the median
 * parts of requests by procedure. OWNER: server, daemon or app.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diag/flow/flow.h"
#include "diag/flow/protocol.h"
#include "diag/record/stream.h"
#include "harness/base/alloc.h"
#include "harness/fs/fs.h"

enum { PARTS = 6, KINDS = 32 };

struct kind {
	const char *name;
	int64_t *parts[PARTS];
	size_t n, room;
	size_t fuse[4]; /* by enum flow_how */
};

static struct kind kinds[KINDS];
static size_t n_kinds;

static struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < n_kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	if (n_kinds == KINDS)
		return &kinds[KINDS - 1];
	kinds[n_kinds].name = name;
	return &kinds[n_kinds++];
}

static int note(void *ctx, const struct flow_request *r, struct err *e)
{
	struct kind *k = kind_of(r->name ? r->name : "?");
	struct flow_parts p;
	const int64_t *values = &p.total;

	(void)ctx;
	(void)e;
	flow_request_parts(r, &p);
	if (k->n == k->room) {
		k->room = k->room ? k->room * 2 : 64;
		for (int i = 0; i < PARTS; i++)
			k->parts[i] = alloc_resize(k->parts[i], k->room, sizeof(int64_t));
	}
	for (int i = 0; i < PARTS; i++)
		k->parts[i][k->n] = values[i];
	k->fuse[r->fuse ? r->fuse_how : FLOW_UNBOUND]++;
	k->n++;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(int64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return (double)v[n / 2] * 1e-3;
}

static void print_parts(void)
{
	printf("%-14s %8s %10s %10s %10s %10s %10s %10s (medians, us) %s\n", "procedure", "n",
		"total", "there", "waiting", "disk", "answering", "back", "FUSE");
	for (size_t i = 0; i < n_kinds; i++) {
		printf("%-14s %8zu", kinds[i].name, kinds[i].n);
		for (int k = 0; k < PARTS; k++)
			printf(" %10.1f", median_us(kinds[i].parts[k], kinds[i].n));
		printf(" thread %zu content %zu none %zu\n", kinds[i].fuse[FLOW_THREAD],
			kinds[i].fuse[FLOW_CONTENT], kinds[i].fuse[FLOW_UNBOUND]);
	}
}

static void print_nodes(const struct flow *f)
{
	struct flow_clock c;
	double average, each;

	for (uint32_t i = 1; i < flow_nodes(f); i++)
		if (flow_clock(f, 0, i, &c))
			printf("clock %s - %s: %.1f us, width %.1f us (narrowest %.1f), %u hops\n",
				flow_node_name(f, i), flow_node_name(f, 0),
				(double)(c.lowest_ns + c.highest_ns) * 5e-4,
				(double)(c.highest_ns - c.lowest_ns) * 1e-3,
				(double)c.narrowest_ns * 1e-3, c.hops);
	for (size_t l = 0; l < flow_layers(f); l++)
		for (uint32_t i = 0; i < flow_nodes(f); i++) {
			flow_depth_total(f, l, i, &average, &each);
			if (average > 0)
				printf("layer %-12s %-6s %8.3f in flight, %10.1f us each\n",
					flow_layer_name(f, l), flow_node_name(f, i), average,
					each * 1e6);
		}
}

static int add(struct flow *f, char *text, struct err *e)
{
	char *node = strsep(&text, ":"), *owner = strsep(&text, ":"), *path = strsep(&text, ":");
	struct stream_server *server = alloc_zero(1, sizeof(*server));
	struct stream_spec spec = {.servers = server, .n_servers = 1};
	struct stream *s;
	int rc;

	if (!path)
		return err_set(e, -1, "expected NODE:OWNER:LOG[:STORAGE]");
	server->name = node;
	server->storage = text;
	spec.owner = !strcmp(owner, "server") ? OWNER_SERVER
		: !strcmp(owner, "app")       ? OWNER_APP
					      : OWNER_DAEMON;
	rc = stream_new(path, &spec, &s, e);
	return rc ? rc : flow_add(f, node, s, e);
}

int main(int argc, char **argv)
{
	struct flow_sink sink = {.request = note};
	struct flow_spec spec = {0};
	struct flow *f;
	struct fs *fs;
	struct err e;
	clock_t begin;
	int rc;

	if (argc < 3 || fs_load(argv[1], &fs, &e)) {
		fprintf(stderr, "%s\n", argc < 3 ? "see the top of flow_logs.c" : e.text);
		return 2;
	}
	spec.protocol = fs_protocol(fs);
	flow_new(&spec, &sink, &f);
	for (int i = 2; i < argc; i++)
		if (add(f, argv[i], &e)) {
			fprintf(stderr, "%s\n", e.text);
			return 2;
		}
	begin = clock();
	rc = flow_run(f, &e);
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	printf("%" PRIu64 " records, %.0f a second\n", flow_counts(f)->records,
		(double)flow_counts(f)->records * CLOCKS_PER_SEC / (double)(clock() - begin));
	flow_print_counts(f, stdout);
	print_nodes(f);
	print_parts();
	flow_free(f);
	fs_free(fs);
	return 0;
}
