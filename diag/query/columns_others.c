/* Tables of records that are no calls. */
#include <stdio.h>
#include <string.h>

#include "diag/query/columns_impl.h"
#include "diag/record/describe.h"
#include "diag/record/fuse.h"
#include "diag/record/reading.h"

#define RECORD(row) (row)->item->record

const struct query_table query_tables[] = {
	{"events", RECORD_CALL, columns_events, "system calls, in the order in which they ended"},
	{"totals", RECORD_CALL, columns_totals,
		"events summed up by those of its columns that the query names: many times as fast "
		"as grouping events",
		.summed = true},
	{"descriptors", RECORD_FD, columns_descriptors,
		"descriptors that were opened, inherited or closed"},
	{"processes", RECORD_PROCESS, columns_processes,
		"processes and threads that started, changed program or name, or ended"},
	{"signals", RECORD_SIGNAL, columns_signals, "signals that were delivered"},
	{"readings", RECORD_READING, columns_readings, "what samplers read, second by second"},
	{"sums", RECORD_SUM, columns_sums, "calls summed up on the node (--mode sums)"},
	{"fuse", RECORD_FUSE, columns_fuse, "requests of the kernel's FUSE client"},
	{"losses", RECORD_LOST, columns_losses, "records that tracers lost"},
	{"unseen", RECORD_UNSEEN, columns_unseen,
		"what happened under trace and is not in the log, though nothing was lost"},
	{"requests", 0, columns_requests,
		"requests between clients and servers, each followed through the logs of its "
		"attempt "
		"(mode flow); only of runs",
		.made = true},
	{"failures", 0, columns_failures,
		"calls of servers on files that failed, with the request that they were made for, "
		"the client's FUSE request and the application's call around it (app_..); only of "
		"attempts recorded with flows",
		.made = true, .unshipped = true},
	{0},
};

/* Descriptors. */
#define FD(row) RECORD(row)->fd

GET(fd)
{
	give_int(out, FD(row).fd);
}

GET(open)
{
	give_int(out, FD(row).open);
}

GET(kind)
{
	if (FD(row).open)
		give_kind(out, &FD(row));
}

GET(path)
{
	give_text(out, FD(row).path, false);
}

GET(device)
{
	give_device(row, out, &FD(row).tag);
}

GET(inode)
{
	give_inode(out, &FD(row).tag);
}

GET(file)
{
	give_file(row, out, &FD(row).tag);
}

GET(local)
{
	give_address(row, out, &FD(row).local);
}

GET(peer)
{
	give_address(row, out, &FD(row).remote);
}

const struct column columns_descriptors[] = {
	COLUMNS_PLACE,
	{"pid", COLUMN_INT, 0, get_pid, "process", KEY_PID},
	{"process", COLUMN_TEXT, NEEDS_STATE, get_process, "name of the process"},
	{"fd", COLUMN_INT, 0, get_fd, "its number in the process"},
	{"open", COLUMN_INT, 0, get_open, "1: it means this from now on; 0: it was closed"},
	{"kind", COLUMN_TEXT, 0, get_kind, "file, dir, device, pipe, socket or other"},
	{"path", COLUMN_TEXT, 0, get_path, "of the file"},
	{"device", COLUMN_TEXT, 0, get_device, "of the file: major:minor"},
	{"inode", COLUMN_INT, 0, get_inode, "of the file"},
	{"file", COLUMN_TEXT, 0, get_file, "tag of the file: device|inode|first seen (ns)"},
	{"local", COLUMN_TEXT, 0, get_local, "a socket's own address"},
	{"peer", COLUMN_TEXT, 0, get_peer, "the other end's address"},
	{0},
};

/* Processes. */
#define PROCESS(row) RECORD(row)->process

GET(parent)
{
	if (PROCESS(row).parent)
		give_int(out, PROCESS(row).parent);
}

GET(what)
{
	static const char *const whats[] = {"start", "exec", "exit", "name"};

	give_text(out, whats[PROCESS(row).what], true);
}

GET(status)
{
	if (PROCESS(row).what == PROCESS_EXIT)
		give_int(out, PROCESS(row).status);
}

GET(name)
{
	give_text(out, PROCESS(row).name, false);
}

const struct column columns_processes[] = {
	COLUMNS_PLACE,
	{"pid", COLUMN_INT, 0, get_pid, "process", KEY_PID},
	{"tid", COLUMN_INT, 0, get_tid, "thread; pid: the process as a whole", KEY_TID},
	{"parent", COLUMN_INT, 0, get_parent, "process that made it"},
	{"what", COLUMN_TEXT, 0, get_what, "start, exec, exit or name"},
	{"status", COLUMN_INT, 0, get_status, "of an exit, as waitpid's"},
	{"name", COLUMN_TEXT, 0, get_name, "its name from now on"},
	{0},
};

/* Signals. */
GET(signal)
{
	give_int(out, RECORD(row)->signal.signo);
}

GET(fatal)
{
	give_int(out, RECORD(row)->signal.fatal);
}

const struct column columns_signals[] = {
	COLUMNS_PLACE,
	COLUMNS_THREAD,
	{"signal", COLUMN_INT, 0, get_signal, "its number"},
	{"fatal", COLUMN_INT, 0, get_fatal, "1: it killed the process"},
	{0},
};

/* Readings. */
#define READING(row) RECORD(row)->reading

GET(reading)
{
	give_text(out, reading_name(READING(row).what), true);
}

GET(unit)
{
	give_text(out, reading_unit(READING(row).what), true);
}

GET(thing)
{
	give_text(out, record_reading_thing(&READING(row)), false);
}

GET(reading_peer)
{
	if (!record_reading_thing(&READING(row)))
		give_address(row, out, &READING(row).peer);
}

GET(accepted)
{
	if (READING(row).peer.ss_family && !record_reading_thing(&READING(row)))
		give_int(out, READING(row).accepted);
}

GET(count)
{
	give_int(out, READING(row).count);
}

GET(sum)
{
	give_real(out, READING(row).sum);
}

GET(max)
{
	give_real(out, READING(row).max);
}

const struct column columns_readings[] = {
	COLUMNS_PLACE,
	{"reading", COLUMN_TEXT, 0, get_reading, "its name (culprit list readings)"},
	{"unit", COLUMN_TEXT, 0, get_unit, "of sum and max"},
	{"thing", COLUMN_TEXT, 0, get_thing, "the one processor or interface that it is of"},
	{"peer", COLUMN_TEXT, 0, get_reading_peer, "of TCP's readings: the other end"},
	{"accepted", COLUMN_INT, 0, get_accepted, "1: sockets that were accepted; 0: connected"},
	{"count", COLUMN_INT, 0, get_count, "sockets, devices or interfaces in sum"},
	{"sum", COLUMN_REAL, 0, get_sum, "of that second, over them"},
	{"max", COLUMN_REAL, 0, get_max, "the largest of them"},
	{0},
};

/* Sums. */
#define SUM(row) RECORD(row)->sum

GET(sum_class)
{
	give_text(out, call_class_name(SUM(row).class), true);
}

GET(fd_class)
{
	give_text(out, fd_class_name(SUM(row).fd_class), true);
}

GET(messages)
{
	give_int(out, SUM(row).messages);
}

GET(bulk)
{
	give_int(out, SUM(row).bulk);
}

GET(sum_device)
{
	if (SUM(row).fd_class == FD_CLASS_DISK)
		give_device_number(row, out, SUM(row).device);
}

GET(sum_local)
{
	give_address(row, out, &SUM(row).local);
}

GET(sum_peer)
{
	give_address(row, out, &SUM(row).remote);
}

GET(calls)
{
	give_int(out, (int64_t)SUM(row).count);
}

GET(errors)
{
	give_int(out, (int64_t)SUM(row).errors);
}

GET(bytes)
{
	give_int(out, (int64_t)SUM(row).bytes);
}

GET(total_ns)
{
	give_int(out, (int64_t)SUM(row).total_ns);
}

GET(max_ns)
{
	give_int(out, (int64_t)SUM(row).max_ns);
}

const struct column columns_sums[] = {
	COLUMNS_PLACE,
	{"pid", COLUMN_INT, 0, get_pid, "process", KEY_PID},
	{"process", COLUMN_TEXT, NEEDS_STATE, get_process, "name of the process"},
	{"class", COLUMN_TEXT, 0, get_sum_class, "of the calls: read, write ..."},
	{"fd_class", COLUMN_TEXT, 0, get_fd_class,
		"of their descriptors: disk, server (accepted), client (connected), other, none"},
	{"messages", COLUMN_INT, 0, get_messages, "1: whole messages are counted, not calls"},
	{"bulk", COLUMN_INT, 0, get_bulk, "1: messages of bulk data, not requests or responses"},
	{"device", COLUMN_TEXT, 0, get_sum_device, "disk: major:minor"},
	{"local", COLUMN_TEXT, 0, get_sum_local, "own address of the sockets"},
	{"peer", COLUMN_TEXT, 0, get_sum_peer, "the other end's address"},
	{"calls", COLUMN_INT, 0, get_calls, "that ended within the second"},
	{"errors", COLUMN_INT, 0, get_errors, "of them that failed, without EAGAIN"},
	{"bytes", COLUMN_INT, 0, get_bytes, "that they moved"},
	{"total_ns", COLUMN_INT, 0, get_total_ns, "their service time: ns"},
	{"max_ns", COLUMN_INT, 0, get_max_ns, "the longest that did not fail: ns"},
	{0},
};

/* FUSE. */
#define FUSE(row) RECORD(row)->fuse

GET(ended)
{
	give_int(out, FUSE(row).ended);
}

GET(unique)
{
	give_int(out, (int64_t)FUSE(row).unique);
}

GET(nodeid)
{
	give_int(out, (int64_t)FUSE(row).nodeid);
}

GET(mount)
{
	give_int(out, FUSE(row).device);
}

GET(request)
{
	give_text(out, fuse_opcode_name(FUSE(row).opcode), true);
}

GET(opcode)
{
	give_int(out, FUSE(row).opcode);
}

GET(fuse_errno)
{
	if (FUSE(row).ended && FUSE(row).error < 0)
		give_text(out, call_error_name(FUSE(row).error), true);
}

const struct column columns_fuse[] = {
	COLUMNS_PLACE,
	COLUMNS_THREAD,
	{"ended", COLUMN_INT, 0, get_ended, "0: the request began; 1: it ended"},
	{"id", COLUMN_INT, 0, get_unique, "the request's number at its mount; 0: not told"},
	{"nodeid", COLUMN_INT, 0, get_nodeid, "file, as the daemon numbers it"},
	{"mount", COLUMN_INT, 0, get_mount, "minor number of the mount's device"},
	{"request", COLUMN_TEXT, 0, get_request, "READ, WRITE, LOOKUP ..."},
	{"opcode", COLUMN_INT, 0, get_opcode, "its number"},
	{"errno", COLUMN_TEXT, 0, get_fuse_errno, "how it failed; NULL: it did not"},
	{0},
};

/* Losses. */
GET(cpu)
{
	give_int(out, RECORD(row)->lost.cpu);
}

GET(lost)
{
	give_int(out, (int64_t)RECORD(row)->lost.count);
}

const struct column columns_losses[] = {
	COLUMNS_PLACE,
	{"cpu", COLUMN_INT, 0, get_cpu, "processor, where it is counted by processor"},
	{"count", COLUMN_INT, 0, get_lost, "records that were lost here"},
	{0},
};

/* What was not seen. */
GET(unseen)
{
	give_text(out, unseen_name(RECORD(row)->unseen.what), true);
}

GET(unseen_about)
{
	give_text(out, unseen_text(RECORD(row)->unseen.what), true);
}

GET(unseen_count)
{
	give_int(out, (int64_t)RECORD(row)->unseen.count);
}

const struct column columns_unseen[] = {
	COLUMNS_PLACE,
	{"what", COLUMN_TEXT, 0, get_unseen, "rings, requests, mappings, 32-bit calls or changes"},
	{"about", COLUMN_TEXT, 0, get_unseen_about, "what that is"},
	{"count", COLUMN_INT, 0, get_unseen_count, "how many, since the last such record"},
	{0},
};
