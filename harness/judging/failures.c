/* Finds the requests behind servers' failed calls. */
#include "harness/judging/failures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "diag/record/describe.h"
#include "diag/record/fuse.h"
#include "harness/base/alloc.h"
#include "harness/judging/flows.h"

struct failures {
	struct failures_spec spec;
	uint64_t unique; /* the current FUSE request, whose calls may still be retried */
	struct failure_row *v;
	size_t n;
	uint64_t written;
};

struct failures *failures_new(const struct failures_spec *spec)
{
	struct failures *f = alloc_zero(1, sizeof(*f));

	f->spec = *spec;
	return f;
}

void failures_free(struct failures *f)
{
	if (!f)
		return;
	free(f->v);
	free(f);
}

static const char *failures_keep(const struct failures *f, const char *text)
{
	return f->spec.keep(f->spec.ctx, text);
}

static struct failure_row *failures_add(
	struct failures *f, uint32_t node, const struct flow_disk *d)
{
	const struct flow *flow = flows_flow(f->spec.flows);
	struct failure_row *row;
	char device[32];

	snprintf(device, sizeof(device), "%u:%u", major(d->device), minor(d->device));
	f->v = alloc_room(f->v, f->n, sizeof(*f->v));
	row = &f->v[f->n++];
	*row = (struct failure_row){.number = f->written + f->n,
		.time_ns = d->begin_ns,
		.clock_ns = flows_clock_ns(f->spec.flows, node),
		.node = failures_keep(f, flow_node_name(flow, node)),
		.call = failures_keep(f, flow_call_name(flow, node, d->nr)),
		.class = call_class_name(d->class),
		.error = call_error_name(d->result),
		.device = failures_keep(f, device),
		.pid = d->pid,
		.tid = d->tid,
		.inode = (int64_t)d->inode,
		.offset = d->offset,
		.app_pid = -1,
		.app_tid = -1,
		.app_offset = -1};
	return row;
}

static void add_application(
	const struct failures *f, struct failure_row *row, const struct flow_fuse *u)
{
	row->fuse = fuse_opcode_name(u->opcode);
	if (u->ended && u->error < 0)
		row->fuse_error = call_error_name(u->error);
	if (!u->call.how)
		return;
	row->app_pid = u->call.pid;
	row->app_tid = u->call.tid;
	row->app_thread = failures_keep(f, u->thread);
	row->app_call = failures_keep(
		f, flow_call_name(flows_flow(f->spec.flows), u->call.node, u->nr));
	row->app_path = failures_keep(f, u->path);
	row->app_offset = u->offset;
	row->app_result = u->result;
	row->app_time_ns = u->call.begin_ns;
}

static int write_all(struct failures *f, struct err *e)
{
	if (f->n && fwrite(f->v, sizeof(*f->v), f->n, f->spec.rows) != f->n)
		return err_errno(e, -errno, "cannot write to a temporary file");
	f->written += f->n;
	f->n = 0;
	return 0;
}

/* The requests of one FUSE request are sequential. */
static int begin_cause(struct failures *f, const struct flow_request *r, struct err *e)
{
	const uint64_t unique = r->fuse ? r->fuse->unique : 0, before = f->unique;

	f->unique = unique;
	return unique && unique == before ? 0 : write_all(f, e);
}

/* 'd' succeeded, so earlier failures with the same cause were repaired. */
static void mend(struct failures *f, const struct flow_disk *d)
{
	for (size_t i = 0; i < f->n; i++)
		if (d->offset != -1 && d->offset == f->v[i].offset &&
			!strcmp(f->v[i].class, call_class_name(d->class)))
			f->v[i].again = true;
}

int failures_request(struct failures *f, const struct flow_request *r, struct err *e)
{
	int rc = begin_cause(f, r, e);

	for (size_t i = 0; !rc && i < r->n_disks; i++) {
		const struct flow_disk *d = &r->disks[i];
		struct failure_row *row;

		if (d->result >= 0) {
			mend(f, d);
			continue;
		}
		row = failures_add(f, r->server, d);
		row->by = flow_how_name((enum flow_how)d->how);
		row->request = r->name ? failures_keep(f, r->name) : "?";
		if (r->client != FLOW_NO_NODE)
			row->client = failures_keep(
				f, flow_node_name(flows_flow(f->spec.flows), r->client));
		if (r->fuse)
			add_application(f, row, r->fuse);
	}
	return rc;
}

int failures_disk(struct failures *f, uint32_t node, const struct flow_disk *d, struct err *e)
{
	(void)e;
	if (d->result < 0)
		failures_add(f, node, d);
	return 0;
}

int failures_end(struct failures *f, uint64_t *n, struct err *e)
{
	int rc = write_all(f, e);

	*n = f->written;
	return rc;
}
