-- A flight recorder: the tracer adds up (sums) and is judged, as in other scenarios; a second one keeps every call
-- of the last 20 s in memory, and they are written when the fault has acted for 5 s and when it ends.
--
--   culprit lab up
--   culprit run scenarios/recorder.lua -o runs/recorder
--   culprit slow runs/recorder      for each writing the server and the layer that took the time
--   culprit timeline runs/recorder --recording 1 -o t.html
--
-- Add trigger = "mine.lua" to have it written when a condition on the nodes' load holds (harness/live/capture.md).

---@type culprit.Scenario
return {
	name      = "recorder",
	summary   = "sums all along, and each call of the seconds around a disk hog's onset and end (3 minutes)",
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 } },
	faults    = { "none", "disk-hog" },
	detectors = { "peer-robust", "always-healthy", "always-same", "seeded-random" },
	recorder  = { "ebpf", mode = "flow", heads = true, ring = "20s", write = { after_onset = "5s", at_offset = true } },
	phases    = { before = "10s", fault = "14s", after = "6s" },
}
