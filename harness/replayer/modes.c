/* Names of replay modes, shared with the orchestrator. */
#include "harness/replayer/replayer.h"

const char *const replay_mode_names[REPLAY_MODES] = {
	[REPLAY_CAUSAL] = "causal",
	[REPLAY_AFAP] = "afap",
	[REPLAY_THINK] = "think",
	[REPLAY_WALL] = "wall",
};

unsigned replayer_node(uint32_t rank, uint32_t ranks, unsigned nodes)
{
	return (unsigned)((uint64_t)rank * nodes / ranks);
}
