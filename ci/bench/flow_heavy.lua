-- For flow_coverage.sh: many requests at once (four dd a client) and much metadata (PostMark). On a lab of four
-- clients: culprit lab up --clients 4

---@type culprit.Scenario
return {
	name      = "flow-heavy",
	summary   = "requests followed where many are in flight, and metadata",
	workloads = {
		{ "ddw", per_server = "256KiB", records = 16, jobs = 4 },
		{ "ddr", per_server = "256KiB", records = 16, jobs = 4 },
		"postmark",
	},
	faults    = { "none", "disk-hog" },
	detectors = { "peer-robust", "always-healthy" },
	tracer    = { "ebpf", mode = "flow", heads = true },
	phases    = { before = "6s", fault = "10s", after = "4s" },
}
