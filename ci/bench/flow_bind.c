/* flow_bind [OPERATIONS]: how many records a second diag/flow binds on one core, and what it keeps
 * in memory meanwhile: a made-up cluster of 6 clients and 6 servers, its records in memory. */
#include <malloc.h>
#include <time.h>

#include "ci/tests/flow/cluster.h"

static size_t peak;

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static int look(void *ctx, const struct flow_request *r, struct err *e)
{
	(void)ctx;
	(void)e;
	if (r->number % 4096 == 0 && in_use() > peak)
		peak = in_use();
	return 0;
}

static double processor_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Records a second without binding: only the logs are read. */
static double read_only(struct cluster *c, uint64_t *records)
{
	double begin = processor_s();
	struct stream_item *item;
	struct stream *s;
	struct err e;

	*records = 0;
	for (int i = 0; i < c->n_nodes; i++) {
		s = cluster_stream(c, i);
		while (stream_next(s, &item, &e) == 1)
			++*records;
		stream_free(s);
	}
	return processor_s() - begin;
}

static double bind_all(struct cluster *c, const struct flow_protocol *p, struct flow_counts *out)
{
	struct flow_spec spec = {.protocol = p};
	struct flow_sink sink = {.request = look};
	struct flow *f;
	struct err e;
	double begin, took;
	char name[8];
	size_t before = in_use();

	peak = 0;
	flow_new(&spec, &sink, &f);
	for (int i = 0; i < c->n_nodes; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		if (flow_add(f, name, cluster_stream(c, i), &e))
			abort();
	}
	begin = processor_s();
	if (flow_run(f, &e))
		abort();
	took = processor_s() - begin;
	*out = *flow_counts(f);
	flow_free(f);
	peak = peak > before ? peak - before : 0;
	return took;
}

static void report(const char *what, double took, uint64_t records)
{
	printf("%-34s %9.0f records/s\n", what, (double)records / took);
}

int main(int argc, char **argv)
{
	const struct cluster_spec spec = {.seed = 1,
		.clients = 6,
		.servers = 6,
		.apps = 8,
		.io_threads = 8,
		.ops = argc > 1 ? atoi(argv[1]) : 4000,
		.fan = 3,
		.chain_pct = 20,
		.offset_s = 0.5,
		.drift_ppm = 20};
	struct flow_protocol p = cluster_protocol();
	static const enum flow_source sources[] = {
		LAYER_CALL, LAYER_WIRE, LAYER_REQUEST, LAYER_WAITING, LAYER_DISK};
	struct flow_counts counts;
	struct cluster *c = malloc(sizeof(*c));
	uint64_t records;
	double took;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		p.layers[i].name = (char *)flow_source_name(sources[i]);
		p.layers[i].source = sources[i];
		p.n_layers++;
	}
	cluster_make(c, &spec);
	took = read_only(c, &records);
	report("records read", took, records);
	took = bind_all(c, NULL, &counts);
	report("bound, without messages", took, counts.records);
	took = bind_all(c, &p, &counts);
	report("bound, requests and layers", took, counts.records);
	printf("%-34s %9zu KiB, %llu calls held\n", "peak memory", peak / 1024,
		(unsigned long long)counts.held_peak);
	printf("%-34s %9llu of %llu whole\n", "requests", (unsigned long long)counts.requests_whole,
		(unsigned long long)counts.requests);
	cluster_clear(c);
	free(c);
	return counts.requests_whole == counts.requests ? 0 : 1;
}
