-- A detector's regression test on a small lab (culprit lab up): two workloads, a slow server, a lossy one, a hung one,
-- and as many controls as faulty cells of a kind. Twice each is 18 cells of half a minute, training included.

---@type culprit.Scenario
return {
	name      = "ci",
	summary   = "a slow, a lossy and a hung server beside controls, for detectors in CI (8 minutes)",
	workloads = { "ddw", "ddr" },
	faults    = { "none", "disk-hog", "receive-pktloss", { "hang", workloads = { "ddw" } } },
	detectors = { "peer-threshold", { "crash-hang", timeout = "5s" }, "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "6s", fault = "18s", after = "1s" },
	training  = { workloads = { "ddw", "ddr" }, repeats = 2 },
	repeats   = 4,
}
