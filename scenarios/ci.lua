-- A regression test for detectors on a small lab ('culprit lab up'): a slow, a lossy and a hung server, and
-- controls. 16 cells of half a minute each, including training.

---@type culprit.Scenario
return {
	name      = "ci",
	summary   = "a slow, a lossy and a hung server, and controls, for detectors in CI (8 minutes)",
	workloads = { "ddw", "ddr" },
	faults    = { "none", "disk-hog", "receive-pktloss", { "hang", workloads = { "ddw" } } },
	detectors = {
		"peer-robust", "peer-threshold", { "crash-hang", timeout = "5s" }, "always-healthy", "always-same", "seeded-random",
	},
	phases    = { before = "6s", fault = "18s", after = "1s" },
	training  = { workloads = { "ddw", "ddr" }, repeats = 1 },
	repeats   = 2,
}
