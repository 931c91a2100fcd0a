/* Requests as a table: a flow of it says what the flow that has read the logs said, to the last
 * bit; damaged tables are refused or read as requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>

#include "ci/tests/flow/cluster.h"
#include "diag/flow/flow_impl.h"
#include "diag/flow/table.h"

enum { BLOCKS = 64 };

static struct flow_name names[] = {{1298437, 12, "READ"}, {1298437, 13, "WRITE"}};

/* Blocks in memory. */
struct memory {
	unsigned char *data[BLOCKS];
	size_t size[BLOCKS];
	uint32_t n;
};

static int put(void *ctx, uint32_t block, const void *data, size_t size, struct err *e)
{
	struct memory *m = ctx;

	(void)e;
	assert_true(block < BLOCKS);
	assert_null(m->data[block]);
	m->data[block] = alloc_zero(size, 1);
	memcpy(m->data[block], data, size);
	m->size[block] = size;
	m->n += block > 0;
	return 0;
}

static int get(void *ctx, uint32_t block, unsigned char **data, size_t *size, struct err *e)
{
	const struct memory *m = ctx;

	(void)e;
	if (block >= BLOCKS || !m->data[block])
		return 0;
	*size = m->size[block];
	*data = alloc_zero(*size, 1);
	memcpy(*data, m->data[block], *size);
	return 1;
}

static void memory_clear(struct memory *m)
{
	for (int i = 0; i < BLOCKS; i++)
		free(m->data[i]);
	*m = (struct memory){0};
}

/* ---- all that a flow says, as text ---- */

struct told {
	struct flow_sink also;
	FILE *out;
	char *text;
	size_t size;
};

static void tell_span(struct told *t, const struct flow_span *s)
{
	fprintf(t->out, " [%" PRId64 " %" PRId64 " %u %u %u %u %u]", s->begin_ns, s->end_ns,
		s->node, s->pid, s->tid, s->calls, s->how);
}

static void tell_disk(struct told *t, const struct flow_disk *d)
{
	fprintf(t->out,
		" {%" PRId64 " %" PRId64 " %u %u %u %u %u %" PRId64 " %" PRId64 " %" PRIu64
		" %" PRIu64 "}",
		d->begin_ns, d->end_ns, d->pid, d->tid, d->nr, d->how, d->class, d->result,
		d->offset, d->device, d->inode);
}

static void tell_fuse(struct told *t, const struct flow_fuse *u)
{
	fprintf(t->out, " fuse %" PRIu64 " %" PRIu64 " %u %u %d %d %u %u %" PRId64 " %" PRId64,
		u->unique, u->nodeid, u->device, u->opcode, u->error, u->ended, u->requests, u->nr,
		u->offset, u->result);
	fprintf(t->out, " '%s' '%s'", u->thread, u->path ? u->path : "(none)");
	tell_span(t, &u->kernel);
	tell_span(t, &u->daemon);
	tell_span(t, &u->call);
}

static int tell_request(void *ctx, const struct flow_request *r, struct err *e)
{
	struct told *t = ctx;

	fprintf(t->out,
		"request %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u '%s' %u %u %" PRIu64 " %" PRIu64
		" %u %u",
		r->number, r->id, r->connection, r->program, r->procedure,
		r->name ? r->name : "(none)", r->client, r->server, r->call_bytes, r->answer_bytes,
		r->call_messages, r->answer_messages);
	tell_span(t, &r->sent);
	tell_span(t, &r->received);
	tell_span(t, &r->answered);
	tell_span(t, &r->returned);
	fprintf(t->out, " %u %u %u '%s' %" PRId64 " %" PRId64 " %d %x", r->fuse_how, r->first_pid,
		r->first_tid, r->first_thread, r->offset_ns, r->width_ns, r->doubtful, r->reasons);
	for (size_t i = 0; i < r->n_disks; i++)
		tell_disk(t, &r->disks[i]);
	if (r->fuse)
		tell_fuse(t, r->fuse);
	fputc('\n', t->out);
	return t->also.request ? t->also.request(t->also.ctx, r, e) : 0;
}

static int tell_alone(void *ctx, uint32_t node, const struct flow_disk *d, struct err *e)
{
	struct told *t = ctx;

	fprintf(t->out, "disk of %u", node);
	tell_disk(t, d);
	fputc('\n', t->out);
	return t->also.disk ? t->also.disk(t->also.ctx, node, d, e) : 0;
}

static void tell_clocks(struct told *t, const struct flow *f, uint32_t b, int64_t from_ns)
{
	struct flow_clock_summary over;
	const struct flow_step *steps;
	struct flow_offset at;
	struct flow_clock c;
	size_t n = flow_clock_steps(f, 0, b, &steps);

	if (flow_clock(f, 0, b, &c))
		fprintf(t->out, "clock of %u: %" PRId64 " %" PRId64 " %" PRId64 " %u\n", b,
			c.lowest_ns, c.highest_ns, c.narrowest_ns, c.hops);
	for (int i = -2; i < 12; i++)
		if (flow_clock_at(f, 0, b, from_ns + i * 100000000, &at))
			fprintf(t->out, "at %d: %" PRId64 " %" PRId64 " %a %a %d %u\n", i,
				at.lowest_ns, at.highest_ns, at.least_ppm, at.most_ppm,
				(int)at.doubt, at.hops);
	if (flow_clock_over(f, 0, b, from_ns, from_ns + 1000000000, &over))
		fprintf(t->out, "over: %" PRId64 " %" PRId64 " %a %a\n", over.narrowest_ns,
			over.widest_ns, over.least_ppm, over.most_ppm);
	for (size_t i = 0; i < n; i++)
		fprintf(t->out, "step %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d\n",
			steps[i].from_ns, steps[i].to_ns, steps[i].least_ns, steps[i].most_ns,
			steps[i].known);
}

static void tell_answers(struct told *t, const struct flow *f)
{
	double average, each;

	flow_print_counts(f, t->out);
	for (size_t i = 0; i < sizeof(struct flow_counts) / sizeof(uint64_t); i++)
		fprintf(t->out, "%" PRIu64 " ", ((const uint64_t *)flow_counts(f))[i]);
	for (uint32_t i = 0; i < flow_nodes(f); i++) {
		fprintf(t->out, "\nnode %s %s\n", flow_node_name(f, i),
			flow_call_name(f, i, cluster_nr("pread64")));
		for (size_t l = 0; l < flow_layers(f); l++) {
			flow_depth_total(f, l, i, &average, &each);
			fprintf(t->out, "%s: %a %a", flow_layer_name(f, l), average, each);
			for (int32_t s = 0; s < flow_seconds(f); s++)
				fprintf(t->out, " %a %a", flow_depth(f, l, i, s).average,
					flow_depth(f, l, i, s).entered);
		}
		if (i)
			tell_clocks(t, f, i, f->now_ns + f->nodes[0].hint_ns - 1000000000);
	}
	fprintf(t->out, "%d seconds\n", flow_seconds(f));
}

static struct flow_sink telling(struct told *t, const struct flow_sink *also)
{
	t->also = also ? *also : (struct flow_sink){0};
	t->out = alloc_text(&t->text, &t->size);
	return (struct flow_sink){.request = tell_request, .disk = tell_alone, .ctx = t};
}

static struct flow_protocol protocol(void)
{
	struct flow_protocol p = cluster_protocol();

	p.names = names;
	p.n_names = 2;
	p.n_layers = LAYER_SOURCES;
	for (int i = 0; i < LAYER_SOURCES; i++) {
		p.layers[i].name = (char *)flow_source_name((enum flow_source)i);
		p.layers[i].source = (enum flow_source)i;
	}
	return p;
}

/* What the logs say, and their table. The caller frees. */
static char *of_logs(const struct cluster_spec *made, struct memory *m)
{
	struct flow_protocol p = protocol();
	const struct flow_spec spec = {.protocol = &p, .drift_ppm = 100};
	struct flow_table *table;
	struct flow_sink sink;
	struct told t;
	struct cluster c;
	struct flow *f;
	char name[8];
	struct err e;

	cluster_make(&c, made);
	flow_table_new(put, m, &table);
	sink = flow_table_sink(table);
	sink = telling(&t, &sink);
	flow_new(&spec, &sink, &f);
	for (int i = 0; i < c.n_nodes - made->quiet_nodes; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(flow_add(f, name, cluster_stream(&c, i), &e), 0);
	}
	assert_int_equal(flow_run(f, &e), 0);
	assert_int_equal(flow_table_end(table, f, &e), 0);
	tell_answers(&t, f);
	flow_table_free(table);
	flow_free(f);
	cluster_clear(&c);
	fclose(t.out);
	return t.text;
}

/* What the table says; NULL: it was refused, as the error says. The caller frees. */
static char *of_table(struct memory *m, const struct flow_protocol *p, int *rc, struct err *e)
{
	const struct flow_spec spec = {.protocol = p, .drift_ppm = 100};
	struct flow_sink sink;
	struct told t;
	struct flow *f;

	sink = telling(&t, NULL);
	flow_new(&spec, &sink, &f);
	*rc = flow_table_open(f, "it", get, m, e);
	if (*rc == 1)
		*rc = flow_run(f, e) ?: 1;
	if (*rc == 1)
		tell_answers(&t, f);
	flow_free(f);
	fclose(t.out);
	if (*rc == 1)
		return t.text;
	free(t.text);
	return NULL;
}

static void expect_same(const struct cluster_spec *made)
{
	struct flow_protocol p = protocol();
	struct memory m = {0};
	char *logs = of_logs(made, &m), *table;
	struct err e;
	int rc;

	table = of_table(&m, &p, &rc, &e);
	if (rc != 1)
		fail_msg("%d: %s", rc, rc < 0 ? e.text : "there is none");
	assert_string_equal(logs, table);
	assert_non_null(strstr(logs, "request 1 "));
	free(table);
	free(logs);
	memory_clear(&m);
}

static const struct cluster_spec busy = {.seed = 1,
	.clients = 3,
	.servers = 3,
	.apps = 4,
	.io_threads = 3,
	.ops = 60,
	.fan = 3,
	.chain_pct = 20,
	.offset_s = 240,
	.drift_ppm = 40,
	.cut_send_pct = 20};

static void a_table_says_what_the_logs_say(void **state)
{
	struct cluster_spec spec = busy;

	(void)state;
	expect_same(&spec);
	spec.seed = 2;
	spec.helpers = true; /* disk calls that only content ties, or nothing */
	expect_same(&spec);
	spec = busy;
	spec.lose_pct_100 = 20; /* legs are missing */
	expect_same(&spec);
	spec = busy;
	spec.quiet_nodes = 1;
	expect_same(&spec);
	spec = busy;
	spec.step_s = 2;
	spec.step_at_s = 0.1;
	expect_same(&spec);
	spec = busy;
	spec.ops = 1200; /* several blocks */
	expect_same(&spec);
}

static void another_layer_or_version_is_no_table(void **state)
{
	struct flow_protocol p = protocol();
	struct memory m = {0};
	struct err e;
	size_t at = 0;
	int rc;

	(void)state;
	assert_null(of_table(&m, &p, &rc, &e));
	assert_int_equal(rc, 0);
	free(of_logs(&busy, &m));
	p.n_layers--;
	assert_null(of_table(&m, &p, &rc, &e));
	assert_int_equal(rc, 0);
	p = protocol();
	assert_null(of_table(&m, NULL, &rc, &e));
	assert_int_equal(rc, 0);
	/* The first piece: its size, the number of numbers, how they are written, the version. */
	while (m.data[0][at++] & 0x80)
		;
	assert_int_equal(m.data[0][at + 2], 2);
	m.data[0][at + 2] = 4;
	assert_null(of_table(&m, &p, &rc, &e));
	assert_int_equal(rc, 0);
	memory_clear(&m);
}

/* Each with one byte changed, or cut short. */
static void damaged_tables_are_refused_or_read(void **state)
{
	struct cluster_spec spec = busy;
	struct flow_protocol p = protocol();
	struct memory m = {0};
	uint64_t refused = 0;
	char *whole, *text;
	struct err e;
	int rc;

	(void)state;
	spec.ops = 3;
	whole = of_logs(&spec, &m);
	for (uint32_t block = 0; block <= m.n; block++)
		for (size_t i = 0; i < m.size[block]; i += 1 + i / 200) {
			const unsigned char was = m.data[block][i];
			const size_t size = m.size[block];

			m.data[block][i] ^= (unsigned char)(1 + i * 37 % 255);
			text = of_table(&m, &p, &rc, &e);
			refused += rc < 0;
			assert_true(rc >= 0 || rc == -EBADMSG);
			free(text);
			m.data[block][i] = was;
			m.size[block] = i;
			assert_null(of_table(&m, &p, &rc, &e));
			assert_int_equal(rc, -EBADMSG);
			assert_int_equal(e.class, ERR_DAMAGED);
			assert_non_null(strstr(e.text, "it: the stored requests are damaged"));
			m.size[block] = size;
		}
	assert_true(refused > 100);
	free(m.data[m.n]);
	m.data[m.n] = NULL;
	assert_null(of_table(&m, &p, &rc, &e));
	assert_int_equal(rc, -EBADMSG);
	free(whole);
	memory_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_says_what_the_logs_say),
		cmocka_unit_test(another_layer_or_version_is_no_table),
		cmocka_unit_test(damaged_tables_are_refused_or_read),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
