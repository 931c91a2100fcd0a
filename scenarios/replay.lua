-- Captured applications in place of benchmarks: a disk hog and the control under Pseudo, with and without a barrier
-- after each write. Put a trace of your own in their place: { "replay", trace = "my.app" } (culprit capture).

---@type culprit.Scenario
return {
	name      = "replay",
	summary   = "disk-hog against the control under replays of captured applications",
	workloads = { { "replay", trace = "pseudo" }, { "replay", trace = "psync" } },
	faults    = { "none", "disk-hog" },
	detectors = { "peer-robust", "always-healthy", "seeded-random" },
	phases    = { before = "10s", fault = "25s", after = "5s" },
}
