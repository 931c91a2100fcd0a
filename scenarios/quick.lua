-- The smallest whole experiment: two faults and the control under two workloads, once each.

---@type culprit.Scenario
return {
	name      = "quick",
	summary   = "disk-hog and receive-pktloss against the control, under ddw and ddr",
	workloads = { "ddw", "ddr" },
	faults    = { "none", "disk-hog", "receive-pktloss" },
	detectors = { "peer-robust", "peer-threshold", "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "8s", fault = "20s", after = "2s" }, -- paper: 120 s, 300 s, the rest of about 600 s
	training  = { workloads = { "ddw", "ddr" }, repeats = 1 },
}
