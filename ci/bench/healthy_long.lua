-- As healthy.lua, in cells long enough for findings that compare a hundred seconds, such as threads-contend.
--
--   culprit lab up
--   culprit run ci/bench/healthy_long.lua -o runs/healthy-long
--   culprit findings runs/healthy-long

---@type culprit.Scenario
return {
	name      = "healthy-long",
	summary   = "long controls alone, every call recorded",
	workloads = { "ddw", "ddr", "postmark", "create" },
	faults    = { "none" },
	detectors = { "peer-robust" },
	tracer    = { "ebpf", mode = "flow", heads = true },
	phases    = { before = "10s", fault = "100s", after = "10s" },
	repeats   = 3,
}
