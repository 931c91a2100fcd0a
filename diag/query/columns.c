/* Declares the columns that several query tables share. */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "diag/query/columns_impl.h"
#include "diag/record/describe.h"

int64_t query_start_ns(const struct query_log *log, const struct log_head *head)
{
	if (!log->in_attempt)
		return head->start_ns;
	return log->start_ns + log->spec.clock_offset_ns;
}

const char *query_node(const struct query_log *log, const struct log_head *head)
{
	return log->node ? log->node : head->host;
}

const char *query_owner(const struct query_log *log)
{
	static const char *const names[] = {NULL, "server", "daemon", "app"};

	return names[log->spec.owner];
}

void get_time_ns(struct query_row *row, struct column_value *out)
{
	give_int(out, record_start_ns(row->item->record));
}

void get_t(struct query_row *row, struct column_value *out)
{
	int64_t ns = record_start_ns(row->item->record) - query_start_ns(row->log, row->head);

	give_real(out, (double)ns / 1e9);
}

void get_cell(struct query_row *row, struct column_value *out)
{
	if (row->log->in_attempt)
		give_int(out, row->log->cell);
}

void get_attempt(struct query_row *row, struct column_value *out)
{
	if (row->log->in_attempt)
		give_int(out, row->log->attempt);
}

void get_phase(struct query_row *row, struct column_value *out)
{
	const struct query_log *log = row->log;
	int64_t ns = record_start_ns(row->item->record) - log->spec.clock_offset_ns;

	if (!log->onset_ns)
		return;
	give_text(out,
		ns < log->onset_ns                               ? "before"
			: log->offset_ns && ns >= log->offset_ns ? "after"
								 : "during",
		true);
}

void get_node(struct query_row *row, struct column_value *out)
{
	give_text(out, query_node(row->log, row->head), row->log->node);
}

void get_log(struct query_row *row, struct column_value *out)
{
	give_text(out, row->log->name, true);
}

void get_owner(struct query_row *row, struct column_value *out)
{
	give_text(out, query_owner(row->log), true);
}

void get_number(struct query_row *row, struct column_value *out)
{
	give_int(out, (int64_t)row->item->record->number);
}

void get_pid(struct query_row *row, struct column_value *out)
{
	give_int(out, record_pid(row->item->record));
}

void get_tid(struct query_row *row, struct column_value *out)
{
	give_int(out, record_tid(row->item->record));
}

void get_process(struct query_row *row, struct column_value *out)
{
	const uint32_t pid = record_pid(row->item->record);

	give_text(out, stream_name(row->item->stream, pid, pid), false);
}

void get_thread(struct query_row *row, struct column_value *out)
{
	const struct record *rec = row->item->record;

	give_text(out, stream_name(row->item->stream, record_pid(rec), record_tid(rec)), false);
}

void give_kind(struct column_value *out, const struct record_fd *f)
{
	if (f)
		give_text(out, fd_kind_name(f->kind), true);
}

static bool is_tag(const struct file_tag *t)
{
	return t && (t->device || t->inode);
}

void give_device_number(struct query_row *row, struct column_value *out, uint64_t device)
{
	snprintf(row->text, sizeof(row->text), "%u:%u", major(device), minor(device));
	give_text(out, row->text, false);
}

void give_device(struct query_row *row, struct column_value *out, const struct file_tag *t)
{
	if (is_tag(t))
		give_device_number(row, out, t->device);
}

void give_inode(struct column_value *out, const struct file_tag *t)
{
	if (is_tag(t))
		give_int(out, (int64_t)t->inode);
}

void give_file(struct query_row *row, struct column_value *out, const struct file_tag *t)
{
	if (!is_tag(t))
		return;
	snprintf(row->text, sizeof(row->text), "%u:%u|%llu|%lld", major(t->device),
		minor(t->device), (unsigned long long)t->inode, (long long)t->first_ns);
	give_text(out, row->text, false);
}

void give_address(struct query_row *row, struct column_value *out, const struct sockaddr_storage *a)
{
	char text[ADDRESS_TEXT];

	snprintf(row->text, sizeof(row->text), "%s", address_text(a, text));
	give_text(out, row->text, false);
}

/* Calls. */

static const struct record_call *call_of(const struct query_row *row)
{
	return &row->item->record->call;
}

static const struct record_fd *fd_of(struct query_row *row)
{
	const struct fd_state *s = item_fd(row->item);

	return s ? &s->now : NULL;
}

GET(seq)
{
	give_int(out, (int64_t)call_of(row)->seq);
}

GET(call)
{
	give_text(out, row->item->call ? row->item->call->name : NULL, true);
}

GET(class)
{
	const struct call_info *info = row->item->call;

	give_text(out, call_class_name(info ? info->class : CALL_OTHER), true);
}

GET(async)
{
	give_int(out, row->item->async);
}

GET(result)
{
	if (!call_of(row)->unfinished)
		give_int(out, call_of(row)->result);
}

GET(errno)
{
	const struct record_call *c = call_of(row);

	if (!c->unfinished && c->result < 0)
		give_text(out, call_error_name(c->result), true);
}

GET(service_ns)
{
	give_int(out, call_of(row)->service_ns);
}

GET(fd)
{
	const struct call_info *info = row->item->call;

	if (info && info->fd >= 0)
		give_int(out, (int32_t)call_of(row)->args[info->fd]);
}

GET(kind)
{
	give_kind(out, fd_of(row));
}

GET(path)
{
	give_text(out, call_file(row->item, false, row->text, sizeof(row->text)), false);
}

GET(path2)
{
	give_text(out, call_file(row->item, true, row->text, sizeof(row->text)), false);
}

GET(flags)
{
	give_text(out, call_open_flags(row->item, row->text), false);
}

GET(device)
{
	const struct record_fd *f = fd_of(row);

	give_device(row, out, f ? &f->tag : NULL);
}

GET(inode)
{
	const struct record_fd *f = fd_of(row);

	give_inode(out, f ? &f->tag : NULL);
}

GET(file)
{
	const struct record_fd *f = fd_of(row);

	give_file(row, out, f ? &f->tag : NULL);
}

GET(offset)
{
	if (call_of(row)->offset != -1)
		give_int(out, call_of(row)->offset);
}

GET(asked)
{
	int64_t asked = call_asked(row->item->call, call_of(row));

	if (asked >= 0)
		give_int(out, asked);
}

GET(bytes)
{
	const int64_t moved = call_moved(row->item->call, call_of(row));

	if (moved >= 0)
		give_int(out, moved);
}

GET(local)
{
	const struct record_fd *f = fd_of(row);

	if (f && f->kind == FD_SOCKET)
		give_address(row, out, &f->local);
}

GET(peer)
{
	const struct record_fd *f = fd_of(row);

	if (f && f->kind == FD_SOCKET)
		give_address(row, out, &f->remote);
}

GET(position)
{
	if (call_of(row)->positioned)
		give_int(out, call_of(row)->position);
}

GET(second)
{
	int64_t ns = record_start_ns(row->item->record) - query_start_ns(row->log, row->head);

	give_int(out, ns / 1000000000 - (ns % 1000000000 < 0));
}

GET(slot)
{
	const int64_t slot_ns = row->slot_ns ? row->slot_ns : 1000000000;
	int64_t ns = record_start_ns(row->item->record) - query_start_ns(row->log, row->head);
	int64_t in = ns % slot_ns;

	give_int(out, ns - (in < 0 ? in + slot_ns : in));
}

#define DETAILS NEEDS_DETAILS
#define MEANING (NEEDS_DETAILS | NEEDS_STATE)
const struct column columns_events[] = {
	COLUMNS_PLACE,
	{"seq", COLUMN_INT, 0, get_seq, "order in which calls began, over the threads of a log"},
	COLUMNS_THREAD,
	{"call", COLUMN_TEXT, 0, get_call, "name of the system call", KEY_CALL},
	{"class", COLUMN_TEXT, 0, get_class, "read, write, copy, open, close, poll, sync or other",
		KEY_CLASS},
	{"async", COLUMN_INT, 0, get_async,
		"1: an operation of io_submit or io_uring that does what the call does"},
	{"result", COLUMN_INT, 0, get_result, "as the kernel returned it; NULL: it did not return",
		KEY_RESULT},
	{"errno", COLUMN_TEXT, 0, get_errno, "name of the error; NULL: none", KEY_ERRNO},
	{"service_ns", COLUMN_INT, 0, get_service_ns, "how long it took: ns", KEY_SERVICE_NS},
	{"fd", COLUMN_INT, DETAILS, get_fd, "its descriptor"},
	{"kind", COLUMN_TEXT, MEANING, get_kind,
		"what the descriptor is of: file, dir, device, pipe, socket or other"},
	{"path", COLUMN_TEXT, MEANING, get_path, "file that it names, else that of its descriptor"},
	{"path2", COLUMN_TEXT, MEANING, get_path2,
		"second file: rename, link, symlink, splice ..."},
	{"flags", COLUMN_TEXT, DETAILS, get_flags, "of open and openat: O_WRONLY|O_CREAT ..."},
	{"device", COLUMN_TEXT, MEANING, get_device, "of the descriptor's file: major:minor"},
	{"inode", COLUMN_INT, MEANING, get_inode, "of the descriptor's file"},
	{"file", COLUMN_TEXT, MEANING, get_file,
		"tag of the descriptor's file: device|inode|first seen (ns); it tells a file from "
		"a later one with the same inode number"},
	{"offset", COLUMN_INT, DETAILS, get_offset,
		"position in the file at which a read or write began; after lseek the new one"},
	{"asked", COLUMN_INT, DETAILS, get_asked, "bytes that it asked to move"},
	{"bytes", COLUMN_INT, NEEDS_MOVED, get_bytes,
		"bytes that it moved; NULL: it moves none, or only looks (MSG_PEEK), or its result "
		"does not say it (sendmmsg, recvmmsg, a datagram cut short)"},
	{"local", COLUMN_TEXT, MEANING, get_local, "own address of the descriptor's socket"},
	{"peer", COLUMN_TEXT, MEANING, get_peer, "the other end's address"},
	{"position", COLUMN_INT, DETAILS, get_position,
		"in a log of flows: TCP sequence number behind its last byte"},
	{0},
};

const struct column columns_totals[] = {
	{"cell", COLUMN_INT, OF_PLACE, get_cell, "cells.number", KEY_CELL},
	{"attempt", COLUMN_INT, OF_PLACE, get_attempt, "attempts.id", KEY_ATTEMPT},
	{"phase", COLUMN_TEXT, OF_PLACE, get_phase, "as in events", KEY_PHASE},
	{"node", COLUMN_TEXT, OF_PLACE, get_node, "as in events", KEY_NODE},
	{"log", COLUMN_TEXT, OF_PLACE, get_log, "as in events", KEY_LOG},
	{"owner", COLUMN_TEXT, OF_PLACE, get_owner, "as in events", KEY_OWNER},
	{"second", COLUMN_INT, OF_PLACE, get_second, "t of the events, without its fraction",
		KEY_SECOND},
	{"slot", COLUMN_INT, OF_PLACE, get_slot,
		"t of the events in ns, rounded down to a whole slot (--slot, 1 s)"},
	COLUMNS_THREAD,
	{"call", COLUMN_TEXT, 0, get_call, "as in events", KEY_CALL},
	{"class", COLUMN_TEXT, 0, get_class, "as in events", KEY_CLASS},
	{"errno", COLUMN_TEXT, 0, get_errno, "as in events", KEY_ERRNO},
	{"kind", COLUMN_TEXT, MEANING, get_kind, "as in events"},
	{"path", COLUMN_TEXT, MEANING, get_path, "as in events"},
	{"device", COLUMN_TEXT, MEANING, get_device, "as in events"},
	{"file", COLUMN_TEXT, MEANING, get_file, "as in events"},
	{"peer", COLUMN_TEXT, MEANING, get_peer, "as in events"},
	{"calls", COLUMN_INT, 0, NULL, "how many"},
	{"errors", COLUMN_INT, 0, NULL, "of them that failed"},
	{"bytes", COLUMN_INT, NEEDS_MOVED, NULL, "that they moved, without NULLs of the events"},
	{"total_ns", COLUMN_INT, 0, NULL, "their service time: ns"},
	{"max_ns", COLUMN_INT, 0, NULL, "the longest: ns"},
	{"p50_ns", COLUMN_INT, 0, NULL, "half took no longer: ns, estimated from powers of two"},
	{"p99_ns", COLUMN_INT, 0, NULL, "99 % took no longer: ns, estimated from powers of two"},
	{0},
};
