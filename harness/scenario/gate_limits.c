/* Reads a scenario's limits for hosts and clocks. */
#include "harness/scenario/gate_limits.h"

const struct gates gate_defaults = {.load_pct = 30,
	.process_pct = 50,
	.steal_pct = 10,
	.pressure_pct = 50,
	.memory_pct = 5,
	.disk_bytes = 64 << 20,
	.clock_s = 0.05,
	.drift_s = 0.02,
	.window_s = 0.5,
	.wait_s = 300};

double gates_onset_s(const struct gates *g, double fault_s)
{
	if (g->onset_s >= 0)
		return g->onset_s;
	return fault_s < 10 ? 5 : fault_s / 2;
}

void gates_init(struct gates *g)
{
	*g = (struct gates){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
}

int gates_read(lua_State *L, const struct luax_source *src, struct gates *g, struct err *e)
{
#define LIMIT(key, u, least, most, to)                                                             \
	{                                                                                          \
		.name = key, .type = LUAX_QUANTITY, .unit = u, .min = least, .max = most,          \
		.out = to                                                                          \
	}
	const struct luax_field fields[] = {
		LIMIT("load", UNIT_PERCENT, 0, 100, &g->load_pct),
		LIMIT("process", UNIT_PERCENT, 0, 100000, &g->process_pct),
		LIMIT("steal", UNIT_PERCENT, 0, 100, &g->steal_pct),
		LIMIT("pressure", UNIT_PERCENT, 0, 100, &g->pressure_pct),
		LIMIT("memory", UNIT_PERCENT, 0, 100, &g->memory_pct),
		LIMIT("disk", UNIT_BYTES, 0, 1e15, &g->disk_bytes),
		LIMIT("clock", UNIT_SECONDS, 0, 1e9, &g->clock_s),
		LIMIT("drift", UNIT_SECONDS, 0, 1e9, &g->drift_s),
		LIMIT("window", UNIT_SECONDS, 0.1, 600, &g->window_s),
		LIMIT("onset", UNIT_SECONDS, 0, 86400, &g->onset_s),
		LIMIT("wait", UNIT_SECONDS, 0, 86400, &g->wait_s),
		{NULL},
	};
#undef LIMIT

	return luax_read(L, -1, src, "gates", fields, false, e);
}
