/* The tables that are made of all logs of an attempt: requests, failures. */
#include "diag/query/columns_impl.h"
#include "diag/query/requests.h"

void request_row_show(struct query_row *row, const struct request_row *r, struct stream_item *item,
	struct record *record)
{
	*record = (struct record){.type = RECORD_CALL, .number = r->number};
	record->call.start_ns = r->time_ns;
	*item = (struct stream_item){.record = record};
	row->item = item;
	row->request = r;
}

/* A number that is not known, or that there is not, is below 0. */
static void give_known(struct column_value *out, int64_t n)
{
	if (n >= 0)
		give_int(out, n);
}

#define NUMBER(name, field)                                                                        \
	GET(name)                                                                                  \
	{                                                                                          \
		give_known(out, row->request->field);                                              \
	}
#define TEXT(name, field)                                                                          \
	GET(name)                                                                                  \
	{                                                                                          \
		give_text(out, row->request->field, true);                                         \
	}

TEXT(client, client)
TEXT(server, server)
TEXT(procedure, procedure)
NUMBER(program, program)
NUMBER(procedure_number, procedure_number)
NUMBER(id, id)
NUMBER(connection, connection)
NUMBER(total_ns, total_ns)
NUMBER(disk_ns, disk_ns)
NUMBER(fuse_ns, fuse_ns)
NUMBER(daemon_ns, daemon_ns)
NUMBER(call_ns, call_ns)
NUMBER(call_bytes, call_bytes)
NUMBER(answer_bytes, answer_bytes)
NUMBER(disk_calls, disk_calls)
NUMBER(disk_bytes, disk_bytes)
NUMBER(disk_errors, disk_errors)
TEXT(disk_bound, disk_bound)
TEXT(fuse_bound, fuse_bound)
TEXT(fuse, fuse)
NUMBER(request_pid, pid)
NUMBER(request_tid, tid)
TEXT(request_thread, thread)
TEXT(call, call)
TEXT(path, path)
NUMBER(offset, offset)
TEXT(missing, missing)

NUMBER(waiting_ns, waiting_ns)
NUMBER(answering_ns, answering_ns)

/* Between two clocks a part may be below 0 by as much as they are uncertain; -1 is no value. */
#define WIRE(name)                                                                                 \
	GET(name)                                                                                  \
	{                                                                                          \
		if (row->request->name != -1)                                                      \
			give_int(out, row->request->name);                                         \
	}
WIRE(there_ns)
WIRE(back_ns)

GET(doubtful)
{
	give_int(out, row->request->doubtful);
}

/* clang-format off */
const struct column columns_requests[] = {
	{"time_ns", COLUMN_INT, 0, get_time_ns,
		"when the client sent it (else: when the server had it): ns since 1970 on the "
		"orchestrator's clock", KEY_TIME_NS},
	{"t", COLUMN_REAL, OF_PLACE, get_t, "so, in s since the attempt's start", KEY_T},
	{"cell", COLUMN_INT, OF_PLACE, get_cell, "cells.number", KEY_CELL},
	{"attempt", COLUMN_INT, OF_PLACE, get_attempt, "attempts.id", KEY_ATTEMPT},
	{"phase", COLUMN_TEXT, OF_PLACE, get_phase, "as in events", KEY_PHASE},
	{"logs", COLUMN_TEXT, OF_PLACE, get_log, "folder of the logs that it was followed through, "
		"in the run's: a flight recorder may have written a request more than once"},
	{"number", COLUMN_INT, 0, get_number, "of the request in its attempt: 1, 2 ... as they "
		"ended"},
	{"client", COLUMN_TEXT, 0, get_client, "node that sent it; NULL: its calls are in no log"},
	{"server", COLUMN_TEXT, 0, get_server, "node that answered; NULL: its calls are in no log"},
	{"procedure", COLUMN_TEXT, 0, get_procedure, "what was asked for: READ, WRITE ...; "
		"NULL: not known"},
	{"program", COLUMN_INT, 0, get_program, "its number in the protocol"},
	{"nr", COLUMN_INT, 0, get_procedure_number, "the procedure's number in its program"},
	{"id", COLUMN_INT, 0, get_id, "the protocol's number of the request"},
	{"connection", COLUMN_INT, 0, get_connection, "1, 2 ...: a reconnect counts anew"},
	{"total_ns", COLUMN_INT, 0, get_total_ns, "client: from the send of the call to the "
		"answer: ns"},
	{"there_ns", COLUMN_INT, 0, get_there_ns, "of that: until the server had read it (two "
		"clocks)"},
	{"waiting_ns", COLUMN_INT, 0, get_waiting_ns, "of that: in the server, in no disk call"},
	{"disk_ns", COLUMN_INT, 0, get_disk_ns, "of that: in disk calls; overlapping ones count "
		"once"},
	{"answering_ns", COLUMN_INT, 0, get_answering_ns, "of that: from the last disk call to "
		"the answer"},
	{"back_ns", COLUMN_INT, 0, get_back_ns, "of that: until the client had the answer (two "
		"clocks)"},
	{"doubtful", COLUMN_INT, 0, get_doubtful,
		"1: the clocks are known too little to tell there_ns or back_ns from 0"},
	{"call_bytes", COLUMN_INT, 0, get_call_bytes, "from client to server"},
	{"answer_bytes", COLUMN_INT, 0, get_answer_bytes, "from server to client"},
	{"disk_calls", COLUMN_INT, 0, get_disk_calls, "the server's calls on files that served it"},
	{"disk_bytes", COLUMN_INT, 0, get_disk_bytes, "that they moved"},
	{"disk_errors", COLUMN_INT, 0, get_disk_errors, "of them that failed"},
	{"disk_bound", COLUMN_TEXT, 0, get_disk_bound,
		"how they were found: by thread, or by content (the only ones that fit); NULL: "
		"none"},
	{"fuse", COLUMN_TEXT, 0, get_fuse, "the FUSE request that caused it: READ, LOOKUP ..."},
	{"fuse_bound", COLUMN_TEXT, 0, get_fuse_bound, "how that was found; NULL: none"},
	{"fuse_ns", COLUMN_INT, 0, get_fuse_ns, "how long that one took in the kernel: ns"},
	{"daemon_ns", COLUMN_INT, 0, get_daemon_ns, "and in the client's daemon: ns"},
	{"call", COLUMN_TEXT, 0, get_call, "the application's call around the FUSE request"},
	{"call_ns", COLUMN_INT, 0, get_call_ns, "how long that call took: ns"},
	{"offset", COLUMN_INT, 0, get_offset, "in the file, of that call"},
	{"path", COLUMN_TEXT, 0, get_path, "file of that call"},
	{"thread", COLUMN_TEXT, 0, get_request_thread, "name of the application's thread"},
	{"pid", COLUMN_INT, 0, get_request_pid, "the client's process that sent the request"},
	{"tid", COLUMN_INT, 0, get_request_tid, "its thread"},
	{"missing", COLUMN_TEXT, 0, get_missing, "the first reason why parts are not known; "
		"NULL: none"},
	{0},
};
/* clang-format on */

/* Failures. */
void failure_row_show(struct query_row *row, const struct failure_row *f, struct stream_item *item,
	struct record *record)
{
	*record = (struct record){.type = RECORD_CALL, .number = f->number};
	record->call.start_ns = f->time_ns - f->clock_ns;
	*item = (struct stream_item){.record = record};
	row->item = item;
	row->failure = f;
}

#define FAILURE_TEXT(name)                                                                         \
	GET(failure_##name)                                                                        \
	{                                                                                          \
		give_text(out, row->failure->name, true);                                          \
	}
#define FAILURE_NUMBER(name)                                                                       \
	GET(failure_##name)                                                                        \
	{                                                                                          \
		give_int(out, row->failure->name);                                                 \
	}
#define FAILURE_KNOWN(name)                                                                        \
	GET(failure_##name)                                                                        \
	{                                                                                          \
		give_known(out, row->failure->name);                                               \
	}

FAILURE_NUMBER(time_ns)
FAILURE_TEXT(node)
FAILURE_NUMBER(pid)
FAILURE_NUMBER(tid)
FAILURE_TEXT(call)
FAILURE_TEXT(class)
FAILURE_TEXT(error)
FAILURE_TEXT(device)
FAILURE_NUMBER(inode)
FAILURE_KNOWN(offset)
FAILURE_TEXT(by)
FAILURE_TEXT(request)
FAILURE_TEXT(client)
FAILURE_TEXT(fuse)
FAILURE_TEXT(fuse_error)
FAILURE_KNOWN(app_pid)
FAILURE_KNOWN(app_tid)
FAILURE_TEXT(app_thread)
FAILURE_TEXT(app_call)
FAILURE_TEXT(app_path)
FAILURE_KNOWN(app_offset)

GET(failure_again)
{
	if (row->failure->again)
		give_int(out, 1);
}

GET(failure_app_result)
{
	if (row->failure->app_pid >= 0)
		give_int(out, row->failure->app_result);
}

GET(failure_app_time_ns)
{
	if (row->failure->app_pid >= 0)
		give_int(out, row->failure->app_time_ns);
}

/* clang-format off */
const struct column columns_failures[] = {
	{"cell", COLUMN_INT, OF_PLACE, get_cell, "cells.number", KEY_CELL},
	{"attempt", COLUMN_INT, OF_PLACE, get_attempt, "attempts.id", KEY_ATTEMPT},
	{"node", COLUMN_TEXT, 0, get_failure_node, "the server"},
	{"time_ns", COLUMN_INT, 0, get_failure_time_ns,
		"when the call began: as in events of its node"},
	{"t", COLUMN_REAL, OF_PLACE, get_t, "so, in s since the attempt's start"},
	{"phase", COLUMN_TEXT, OF_PLACE, get_phase, "as in events"},
	{"logs", COLUMN_TEXT, OF_PLACE, get_log, "as in requests"},
	{"pid", COLUMN_INT, 0, get_failure_pid, "process"},
	{"tid", COLUMN_INT, 0, get_failure_tid, "thread"},
	{"call", COLUMN_TEXT, 0, get_failure_call, "pread64, fsetxattr ..."},
	{"class", COLUMN_TEXT, 0, get_failure_class, "read, write, sync ..."},
	{"errno", COLUMN_TEXT, 0, get_failure_error, "how it failed"},
	{"device", COLUMN_TEXT, 0, get_failure_device, "of the file: MAJOR:MINOR"},
	{"inode", COLUMN_INT, 0, get_failure_inode, "of the file"},
	{"offset", COLUMN_INT, 0, get_failure_offset, "in the file; NULL: none"},
	{"again", COLUMN_INT, 0, get_failure_again,
		"1: it was done again for the same cause and went well"},
	{"by", COLUMN_TEXT, 0, get_failure_by, "how the request is known; NULL: it is not"},
	{"request", COLUMN_TEXT, 0, get_failure_request, "that it was made for: READ, WRITE ..."},
	{"client", COLUMN_TEXT, 0, get_failure_client, "node that sent the request"},
	{"fuse", COLUMN_TEXT, 0, get_failure_fuse, "the client's FUSE request"},
	{"fuse_errno", COLUMN_TEXT, 0, get_failure_fuse_error,
		"how that one failed; NULL: it did not"},
	{"app_pid", COLUMN_INT, 0, get_failure_app_pid, "process of the application's call"},
	{"app_tid", COLUMN_INT, 0, get_failure_app_tid, "its thread"},
	{"app_thread", COLUMN_TEXT, 0, get_failure_app_thread, "name of that thread"},
	{"app_call", COLUMN_TEXT, 0, get_failure_app_call, "the application's call"},
	{"app_path", COLUMN_TEXT, 0, get_failure_app_path, "its file"},
	{"app_offset", COLUMN_INT, 0, get_failure_app_offset, "in that file; NULL: none"},
	{"app_result", COLUMN_INT, 0, get_failure_app_result, "what it returned"},
	{"app_time_ns", COLUMN_INT, 0, get_failure_app_time_ns,
		"when it began, on the client's clock"},
	{0},
};
/* clang-format on */
