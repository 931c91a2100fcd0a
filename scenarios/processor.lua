-- A server short of processor time or of memory: the two halves of the unbalanced server of Dinh 2009
-- (section 6.3.2), each by itself, under three workloads, with controls.
--
-- The lab, whose nodes must have processors and memory of their own:
--
--   culprit lab up --cpus 0.5 --memory 512MiB
--
-- Half a processor is more than a server needs here, so that a control is not short of it. cpu-hog uses all
-- of the victim's share; memory-hog leaves 80 MB of 512 MiB, the same part as 200 MB of the paper's nodes.

---@type culprit.Scenario
return {
	name      = "processor",
	summary   = "processors or memory of one server are taken, under ddw, ddr and postmark",
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 }, "postmark" },
	faults    = { "none", "cpu-hog", { "memory-hog", leave = "80MB" } },
	detectors = { "peer-robust", "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- paper: one run, unbalanced from begin to end
	repeats   = 2,
}
