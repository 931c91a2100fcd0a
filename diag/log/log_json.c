/* culprit log: records as JSON lines. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/fuse.h"
#include "diag/record/reading.h"
#include "harness/base/text.h"
#include "harness/base/json_text.h"
#include "diag/log/log_view.h"

static void json_name(json_t *o, const char *key, const char *s)
{
	json_object_set_new(o, key, json_text(s));
}

static void json_int(json_t *o, const char *key, json_int_t n)
{
	json_object_set_new(o, key, json_integer(n));
}

static void json_address(json_t *o, const char *key, const struct sockaddr_storage *a)
{
	char address[VIEW_ADDRESS];

	json_name(o, key, address_text(a, address));
}

static json_t *json_paths(const struct record_call *c)
{
	json_t *paths = json_array();

	json_array_append_new(paths, c->path ? json_text(c->path) : json_null());
	if (c->path2)
		json_array_append_new(paths, json_text(c->path2));
	return paths;
}

static void json_fd(json_t *o, const struct record_fd *f)
{
	int family = f->local.ss_family ? f->local.ss_family : f->remote.ss_family;

	json_name(o, "kind", fd_kind_name(f->kind));
	json_name(o, "path", f->path);
	if (f->tag.inode || f->tag.device)
		json_object_set_new(o, "tag",
			json_pack("{s:I s:I s:I}", "device", (json_int_t)f->tag.device, "inode",
				(json_int_t)f->tag.inode, "first_ns", (json_int_t)f->tag.first_ns));
	if (f->kind != FD_SOCKET)
		return;
	json_object_update_new(
		o, json_pack("{s:i s:i}", "sock_type", f->sock_type, "family", family));
	json_address(o, "local", &f->local);
	json_address(o, "remote", &f->remote);
}

static void json_head_of(json_t *o, const struct record_call *c)
{
	char hex[2 * RECORD_HEAD + 1];

	text_hex(c->head, c->head_size, hex);
	json_object_set_new(o, "head", json_string(hex));
}

static void json_call(json_t *o, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	json_t *args = json_array();

	json_object_update_new(o,
		json_pack("{s:I s:I s:s? s:I}", "seq", (json_int_t)c->seq, "service_ns",
			(json_int_t)c->service_ns, "call", info ? info->name : NULL, "nr",
			(json_int_t)c->nr));
	if (item->async)
		json_object_set_new(o, "async", json_true());
	for (int i = 0; i < 6; i++) {
		char hex[24];

		snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)c->args[i]);
		json_array_append_new(args, json_string(hex));
	}
	json_object_set_new(o, "args", args);
	json_object_set_new(o, "result", c->unfinished ? json_null() : json_integer(c->result));
	if (call_failed(c) && call_error_name(c->result))
		json_object_set_new(o, "errno", json_string(call_error_name(c->result)));
	if (c->offset != -1)
		json_int(o, "offset", c->offset);
	if (c->asked)
		json_int(o, info && info->messages ? "bytes" : "asked", c->asked);
	if (c->positioned)
		json_int(o, "position", c->position);
	if (c->head_size)
		json_head_of(o, c);
	if (c->path || c->path2)
		json_object_set_new(o, "paths", json_paths(c));
	if (info && info->fd >= 0) {
		const struct fd_state *s = item_fd(item);

		json_int(o, "fd", (int32_t)c->args[info->fd]);
		if (s)
			json_fd(o, &s->now);
	}
}

static void json_sum(json_t *o, const struct record_sum *s)
{
	json_t *histogram = json_array();
	int n = SUM_BUCKETS;

	json_object_update_new(o,
		json_pack("{s:s s:s s:b s:b s:b}", "class", call_class_name(s->class), "fd_class",
			fd_class_name(s->fd_class), "messages", s->messages, "bulk", s->bulk,
			"selected", s->selected));
	if (s->fd_class == FD_CLASS_DISK)
		json_int(o, "device", (json_int_t)s->device);
	if (s->local.ss_family)
		json_address(o, "local", &s->local);
	if (s->remote.ss_family)
		json_address(o, "remote", &s->remote);
	while (n && !s->histogram[n - 1])
		n--;
	for (int i = 0; i < n; i++)
		json_array_append_new(histogram, json_integer(s->histogram[i]));
	json_object_update_new(o,
		json_pack("{s:I s:I s:I s:I s:I s:I s:I s:o}", "count", (json_int_t)s->count,
			"errors", (json_int_t)s->errors, "failed", (json_int_t)s->failed,
			"failed_ns", (json_int_t)s->failed_ns, "bytes", (json_int_t)s->bytes,
			"total_ns", (json_int_t)s->total_ns, "max_ns", (json_int_t)s->max_ns,
			"histogram", histogram));
}

static void json_reading(json_t *o, const struct record_reading *r)
{
	json_name(o, "reading", reading_name(r->what));
	json_name(o, "unit", reading_unit(r->what));
	if (record_reading_thing(r)) {
		json_name(o, "thing", record_reading_thing(r));
	} else if (r->peer.ss_family) {
		json_address(o, "peer", &r->peer);
		json_object_set_new(o, "accepted", json_boolean(r->accepted));
	}
	json_object_update_new(o,
		json_pack("{s:I s:f s:f}", "count", (json_int_t)r->count, "sum", r->sum, "max",
			r->max));
}

static void json_fuse(json_t *o, const struct record_fuse *f)
{
	const char *name = fuse_opcode_name(f->opcode);
	char unique[24], nodeid[24];

	/* 64-bit numbers are printed as text, because JSON readers round them. */
	snprintf(unique, sizeof(unique), "%llu", (unsigned long long)f->unique);
	snprintf(nodeid, sizeof(nodeid), "%llu", (unsigned long long)f->nodeid);
	json_object_update_new(o,
		json_pack("{s:b s:s s:s s:I s:I s:s?}", "ended", f->ended, "unique", unique,
			"nodeid", nodeid, "device", (json_int_t)f->device, "opcode",
			(json_int_t)f->opcode, "request", name));
	if (f->ended)
		json_int(o, "error", f->error);
}

static void json_print(json_t *o)
{
	json_line(o);
	json_decref(o);
}

void json_record(struct stream_item *item)
{
	static const char *const types[] = {"", "call", "signal", "fd", "process", "lost", "end",
		"sum", "reading", "fuse", "mark", "unseen"};
	static const char *const whats[] = {"start", "exec", "exit", "name"};
	const struct record *rec = item->record;
	const uint32_t pid = record_pid(rec), tid = record_tid(rec);
	json_t *o = json_object();

	json_object_update_new(o,
		json_pack("{s:s s:I s:I}", "type", types[rec->type], "number",
			(json_int_t)rec->number, "start_ns", (json_int_t)record_start_ns(rec)));
	if (pid)
		json_int(o, "pid", pid);
	if (pid && rec->type != RECORD_PROCESS && *stream_name(item->stream, pid, tid))
		json_name(o, "name", stream_name(item->stream, pid, tid));
	if (tid)
		json_int(o, "tid", tid);
	switch (rec->type) {
	case RECORD_CALL: json_call(o, item); break;
	case RECORD_SIGNAL:
		json_object_update_new(o,
			json_pack("{s:I s:I s:b}", "seq", (json_int_t)rec->signal.seq, "signal",
				(json_int_t)rec->signal.signo, "fatal", rec->signal.fatal));
		break;
	case RECORD_FD:
		json_object_update_new(
			o, json_pack("{s:i s:b}", "fd", rec->fd.fd, "open", rec->fd.open));
		if (rec->fd.open)
			json_fd(o, &rec->fd);
		break;
	case RECORD_PROCESS:
		json_object_update_new(o,
			json_pack("{s:s s:I s:i}", "what", whats[rec->process.what], "parent",
				(json_int_t)rec->process.parent, "status", rec->process.status));
		json_name(o, "name", rec->process.name);
		break;
	case RECORD_LOST:
		json_object_update_new(o,
			json_pack("{s:I s:I}", "cpu", (json_int_t)rec->lost.cpu, "count",
				(json_int_t)rec->lost.count));
		break;
	case RECORD_SUM: json_sum(o, &rec->sum); break;
	case RECORD_READING: json_reading(o, &rec->reading); break;
	case RECORD_FUSE: json_fuse(o, &rec->fuse); break;
	case RECORD_UNSEEN:
		json_object_update_new(o,
			json_pack("{s:s s:I s:s}", "what", unseen_name(rec->unseen.what), "count",
				(json_int_t)rec->unseen.count, "about",
				unseen_text(rec->unseen.what)));
		break;
	case RECORD_MARK: json_name(o, "text", rec->mark.text); break;
	case RECORD_END:
		json_object_update_new(o,
			json_pack("{s:I s:I}", "records", (json_int_t)rec->end.records, "lost",
				(json_int_t)rec->end.lost));
		break;
	}
	json_print(o);
}

void json_head(const struct log_head *h)
{
	static const char *const modes[] = {NULL, "events", "sums", "flow"};
	const uint32_t mode = h->how & LOG_MODE;

	json_print(json_pack("{s:s s:i s:s s:s s:s s:s s:I s:I s:s? s:b s:b}", "type", "head",
		"version", (int)h->version, "arch", h->arch, "tracer", h->tracer, "host", h->host,
		"boot_id", h->boot_id, "start_ns", (json_int_t)h->start_ns, "bias_ns",
		(json_int_t)h->bias_ns, "mode", mode < 4 ? modes[mode] : NULL, "heads",
		!!(h->how & LOG_HEADS), "ring", !!(h->how & LOG_RING)));
}
