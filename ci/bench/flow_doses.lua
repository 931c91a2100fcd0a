-- For flow_depth.sh: a disk hog at four strengths, with every call recorded. On culprit lab up.

---@type culprit.Scenario
return {
	name      = "flow-doses",
	summary   = "a disk hog at four strengths, with requests followed",
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 } },
	faults    = { "none", { "disk-hog", share = "10%" }, { "disk-hog", share = "25%" }, { "disk-hog", share = "50%" }, "disk-hog" },
	detectors = { "peer-robust", "always-healthy" },
	tracer    = { "ebpf", mode = "flow", heads = true },
	phases    = { before = "10s", fault = "14s", after = "6s" },
}
