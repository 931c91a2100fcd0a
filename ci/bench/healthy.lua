-- Cells without a fault, every call recorded: culprit findings is to find nothing in them.
--
--   culprit lab up
--   culprit run ci/bench/healthy.lua -o runs/healthy
--   culprit findings runs/healthy

---@type culprit.Scenario
return {
	name      = "healthy",
	summary   = "controls alone, every call recorded",
	workloads = { "ddw", "ddr", "postmark", "create" },
	faults    = { "none" },
	detectors = { "peer-robust" },
	tracer    = { "ebpf", mode = "flow", heads = true },
	phases    = { before = "1s", fault = "3s", after = "1s" },
	repeats   = 11,
}
