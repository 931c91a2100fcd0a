/* Counters on the same axis: requests in flight by layer, and the sampler's readings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/flow/protocol.h"
#include "diag/record/reading.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/timeline/cell_impl.h"

#define SECOND_NS 1000000000

/* ---- in flight ---- */

static void depth(struct filling *c, uint32_t node, size_t layer, int32_t track)
{
	const struct flow *f = flows_flow(c->flows);
	const uint32_t counter = timeline_counter(
		c->t, track, flow_layer_name(f, layer), "in flight");
	const int32_t seconds = flow_seconds(f);

	for (int32_t s = 0; s < seconds; s++) {
		const int64_t at = c->start_ns + s * (int64_t)SECOND_NS;

		if (c->logs_to_s > 0 && (s < c->logs_from_s || s + 1 > c->logs_to_s))
			timeline_sample_add(c->t, counter, at, NAN);
		else if (at >= c->from_ns && at < c->to_ns)
			timeline_sample_add(
				c->t, counter, at, flow_depth(f, layer, node, s).average);
	}
	timeline_sample_add(c->t, counter, c->start_ns + seconds * (int64_t)SECOND_NS, NAN);
}

/* The node's own track shows the layer for comparing nodes at a glance: a server's disk calls, a
 * client's requests. */
void cell_depths(struct filling *c)
{
	const struct flow *f = flows_flow(c->flows);
	const struct flow_protocol *p = flows_protocol(c->flows);
	double average, each;

	for (uint32_t i = 0; i < c->n_nodes; i++)
		for (size_t l = 0; p && l < flow_layers(f); l++) {
			struct cell_node *n = &c->nodes[i];
			const enum flow_source from = p->layers[l].source;
			const bool shown = from == (n->server ? LAYER_DISK : LAYER_CALL);

			flow_depth_total(f, l, i, &average, &each);
			if (average > 0 || shown)
				depth(c, i, l, shown ? n->track : cell_group(c, n, GROUP_DEPTH));
		}
}

/* ---- readings ---- */

static const struct {
	enum reading what;
	enum cell_group group;
	const char *name, *unit;
	double factor;
} shown[] = {
	{READING_DISK_BUSY, GROUP_DISK, "disk busy", "%", 100},
	{READING_DISK_QUEUE, GROUP_DISK, "disk queue", "requests", 1},
	{READING_DISK_READ_BYTES, GROUP_DISK, "disk read", "MB/s", 1e-6},
	{READING_DISK_WRITTEN_BYTES, GROUP_DISK, "disk written", "MB/s", 1e-6},
	{READING_DISK_READS, GROUP_DISK, "disk reads", "/s", 1},
	{READING_DISK_WRITES, GROUP_DISK, "disk writes", "/s", 1},
	{READING_DISK_READ_TIME, GROUP_DISK, "reads in the disk", "s/s", 1},
	{READING_DISK_WRITE_TIME, GROUP_DISK, "writes in the disk", "s/s", 1},
	{READING_IO_PRESSURE, GROUP_DISK, "waiting for storage", "%", 100},
	{READING_PROCESS_IO_PRESSURE, GROUP_DISK, "processes waiting for storage", "%", 100},
	{READING_NIC_RECEIVED, GROUP_NETWORK, "received", "MB/s", 1e-6},
	{READING_NIC_SENT, GROUP_NETWORK, "sent", "MB/s", 1e-6},
	{READING_NIC_RECEIVED_PACKETS, GROUP_NETWORK, "packets received", "/s", 1},
	{READING_NIC_SENT_PACKETS, GROUP_NETWORK, "packets sent", "/s", 1},
	{READING_NIC_DROPPED, GROUP_NETWORK, "packets dropped", "/s", 1},
	{READING_QDISC_DROPPED, GROUP_NETWORK, "packets dropped in queues", "/s", 1},
	{READING_QDISC_BACKLOG, GROUP_NETWORK, "waiting in queues", "MB", 1e-6},
	{READING_TCP_RETRANSMITTED, GROUP_NETWORK, "segments retransmitted", "/s", 1},
	{READING_LOOPBACK, GROUP_NETWORK, "loopback", "MB/s", 1e-6},
	{READING_CPU_BUSY, GROUP_CPU, "processors busy", "", 1},
	{READING_CPU_IDLE, GROUP_CPU, "processors idle", "", 1},
	{READING_CPU_PRESSURE, GROUP_CPU, "waiting for a processor", "%", 100},
	{READING_CPU_THROTTLED, GROUP_CPU, "throttled by a quota", "s/s", 1},
	{READING_CPU_STEAL, GROUP_CPU, "processors stolen by other machines", "", 1},
	{READING_PROCESS_THROTTLED, GROUP_CPU, "processes throttled by a quota", "s/s", 1},
	{READING_PROCESS_CPU, GROUP_CPU, "processors of the processes", "", 1},
	{READING_PROCESS_WAIT, GROUP_CPU, "threads waiting for a processor", "", 1},
	{READING_MEMORY_AVAILABLE, GROUP_MEMORY, "memory available", "MB", 1e-6},
	{READING_MEMORY_USED, GROUP_MEMORY, "memory used", "MB", 1e-6},
	{READING_MEMORY_FREE, GROUP_MEMORY, "memory free", "MB", 1e-6},
	{READING_MEMORY_CACHED, GROUP_MEMORY, "memory cached", "MB", 1e-6},
	{READING_MEMORY_BUFFERS, GROUP_MEMORY, "memory in buffers", "MB", 1e-6},
	{READING_MEMORY_SHARED, GROUP_MEMORY, "memory shared", "MB", 1e-6},
	{READING_PROCESS_MEMORY, GROUP_MEMORY, "memory of the processes", "MB", 1e-6},
	{READING_MEMORY_FAULTS, GROUP_MEMORY, "page faults", "/s", 1},
	{READING_MEMORY_MAJOR_FAULTS, GROUP_MEMORY, "major page faults", "/s", 1},
	{READING_MEMORY_REFAULTS, GROUP_MEMORY, "pages refaulted", "/s", 1},
	{READING_MEMORY_PRESSURE, GROUP_MEMORY, "waiting for memory", "%", 100},
	{READING_PROCESS_MEMORY_PRESSURE, GROUP_MEMORY, "processes waiting for memory", "%", 100},
};
enum { SHOWN = sizeof(shown) / sizeof(*shown), THINGS = 4096 };

/* A second's values of one reading and item, summed over its sockets. */
struct series {
	size_t row;
	char thing[64];
	uint32_t counter;
	int64_t at_ns;
	double sum;
	bool any;
};

struct sampled {
	struct filling *cell;
	struct cell_node *node;
	struct series *series;
	size_t n;
};

static void cell_counters_flush(struct sampled *s, struct series *one)
{
	const int64_t at = cell_difference(one->at_ns, cell_ahead(s->node, one->at_ns));

	if (one->any && at >= s->cell->from_ns && at < s->cell->to_ns)
		timeline_sample_add(
			s->cell->t, one->counter, at, one->sum * shown[one->row].factor);
}

/* Counters are in the order of the table, each before those of its processors or interfaces. */
static struct series *series_of(struct sampled *s, size_t row, const char *thing)
{
	const bool compared = s->cell->with_messages && !*thing &&
		(shown[row].what == READING_DISK_QUEUE || shown[row].what == READING_CPU_BUSY);
	struct series *one;
	char name[128];

	for (size_t i = 0; i < s->n; i++)
		if (s->series[i].row == row && !strcmp(s->series[i].thing, thing))
			return &s->series[i];
	if (s->n == THINGS)
		return NULL;
	s->series = alloc_room(s->series, s->n, sizeof(*s->series));
	one = &s->series[s->n++];
	*one = (struct series){.row = row};
	snprintf(one->thing, sizeof(one->thing), "%s", thing);
	snprintf(name, sizeof(name), "%s%s%s", shown[row].name, *thing ? " " : "", thing);
	one->counter = timeline_counter(s->cell->t,
		compared ? s->node->track : cell_group(s->cell, s->node, shown[row].group), name,
		shown[row].unit);
	return one;
}

static int cell_counters_feed(void *ctx, struct stream_item *item, struct err *e)
{
	struct sampled *s = ctx;
	const struct record_reading *r = &item->record->reading;
	const char *thing;
	struct series *one;
	size_t row = 0;

	(void)e;
	if (item->record->type != RECORD_READING)
		return 0;
	while (row < SHOWN && shown[row].what != (enum reading)r->what)
		row++;
	thing = record_reading_thing(r);
	one = row < SHOWN ? series_of(s, row, thing ? thing : "") : NULL;
	if (!one)
		return 0;
	if (!one->any || one->at_ns != r->start_ns) {
		cell_counters_flush(s, one);
		one->at_ns = r->start_ns;
		one->sum = 0;
		one->any = true;
	}
	one->sum += r->sum;
	return 0;
}

static void cell_counters_end(struct sampled *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct series *one = &s->series[i];

		cell_counters_flush(s, one);
		one->sum = NAN;
		one->at_ns = (int64_t)((uint64_t)one->at_ns + SECOND_NS);
		cell_counters_flush(s, one);
	}
	free(s->series);
}

static int read_node(struct filling *c, size_t i, const char *folder, struct err *e)
{
	static const struct stream_consumer consumer = {.feed = cell_counters_feed};
	const struct place *p = c->nodes[i].place;
	const struct stream_spec spec = places_stream(&c->places, p, PLACE_SAMPLES);
	struct sampled s = {.cell = c, .node = &c->nodes[i]};
	auto_free char *path = alloc_format(
		"%s/%s.%s", folder, p->name, place_log_names[PLACE_SAMPLES]);
	struct stream *stream;
	int rc = stream_new(path, &spec, &stream, e);

	if (rc)
		return rc;
	stream_add(stream, &consumer, &s);
	rc = stream_run(stream, e);
	cell_counters_end(&s);
	stream_free(stream);
	return rc;
}

int cell_readings(struct filling *c, const char *folder, struct err *first)
{
	struct err e;
	int failed = 0;

	for (size_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].place->sampled && read_node(c, i, folder, &e) && !failed++)
			*first = e;
	return failed;
}
