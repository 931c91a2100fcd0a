-- What logs of flows cost, as run times over the untraced run of the same block; events beside it. In the lab all
-- nodes share one kernel and its processors, so that each call pays, and each tracer takes time, that hosts of
-- their own would not share.

---@type culprit.Scenario
return {
	name      = "overhead-flow",
	summary   = "run time of two workloads under events and flows, over the same untraced",
	measure   = "runtime",
	tracers   = {
		"none", { "ebpf", mode = "events" }, { "ebpf", mode = "flow", heads = true },
	},
	workloads = { { "ddw", records = 1 }, { "postmark", transactions = 60, files = 30 } },
	limit     = "5min",
	repeats   = 5,
}
