/* What the agent takes in from the orchestrator: a line becomes an op with arguments that are what
 * the op was promised, or it is refused with a sentence. The ops themselves are not run: they
 * act. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agent/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned outcomes;

void agent_refuse(struct agent *a, json_t *id, int code, const struct err *e)
{
	(void)a;
	if (code >= 0 || !*e->text || (id && !json_is_integer(id)))
		abort();
	outcomes++;
}

void agent_end(struct agent *a, int exit_code, const char *why)
{
	(void)a;
	if (exit_code != 2 || !*why)
		abort();
	outcomes++;
}

void guard_beat(struct guard *g)
{
	(void)g;
}

/* What every op may rely on. */
static int promised(json_t *id, json_t *args, const char *const texts[],
	const char *const numbers[], const char *const lists[])
{
	if (!json_is_integer(id) || !json_is_object(args))
		abort();
	for (; *texts; texts++)
		if (!json_is_string(json_object_get(args, *texts)))
			abort();
	for (; *numbers; numbers++)
		if (!json_is_number(json_object_get(args, *numbers)))
			abort();
	for (; *lists; lists++)
		if (!json_array_size(json_object_get(args, *lists)))
			abort();
	outcomes++;
	return 0;
}

#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__ __VA_OPT__(, ) NULL                                                    \
	}
#define OP(name, texts, numbers, lists)                                                            \
	int name(struct agent *a, json_t *id, json_t *args, struct err *e)                         \
	{                                                                                          \
		(void)a, (void)e;                                                                  \
		return promised(id, args, texts, numbers, lists);                                  \
	}
#define PLAIN(name) OP(name, NAMES(), NAMES(), NAMES())

PLAIN(op_ping)
PLAIN(op_processes)
PLAIN(op_fingerprint)
PLAIN(op_load)
PLAIN(op_quarantine)
PLAIN(op_bye)
OP(op_check, NAMES("what"), NAMES(), NAMES())
OP(op_run, NAMES(), NAMES(), NAMES("argv"))
OP(op_process_start, NAMES(), NAMES(), NAMES("argv"))
OP(op_process_status, NAMES("handle"), NAMES(), NAMES())
OP(op_process_stop, NAMES("handle"), NAMES(), NAMES())
OP(op_command, NAMES(), NAMES(), NAMES("argv", "inverse", "check"))
OP(op_service_kill, NAMES(), NAMES("pid"), NAMES())
OP(op_service_limit, NAMES(), NAMES("pid"), NAMES())
OP(op_service_restart, NAMES(), NAMES("pid"), NAMES())
OP(op_fs_readonly, NAMES("path"), NAMES(), NAMES())
OP(op_fs_info, NAMES("path"), NAMES(), NAMES())
OP(op_packets_drop, NAMES(), NAMES("percent"), NAMES())
OP(op_packets_counters, NAMES("handle"), NAMES(), NAMES())
OP(op_limits_get, NAMES(), NAMES("pid"), NAMES())
OP(op_limits_set, NAMES("resource"), NAMES("pid", "soft"), NAMES())
OP(op_signal_stop, NAMES(), NAMES("pid"), NAMES())
OP(op_trace_start, NAMES("out"), NAMES(), NAMES("pids"))
OP(op_trace_stop, NAMES("handle"), NAMES(), NAMES())
OP(op_undo, NAMES("handle"), NAMES(), NAMES())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent a = {0};

	outcomes = 0;
	agent_line(&a, (const char *)data, size);
	/* Nobody waits for an answer that does not come. */
	if (outcomes != 1)
		abort();
	return 0;
}
