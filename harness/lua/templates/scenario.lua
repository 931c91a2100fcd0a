-- Describe here the question that this scenario answers. Try it on the embedded lab:
--
--     culprit run my-scenario.lua --dry-run      the plan only; no node is touched
--     culprit lab up
--     culprit run my-scenario.lua                takes minutes; 'culprit lab down' ends the lab
--
-- On your own hosts: culprit run my-scenario.lua --inventory my-hosts.lua ('culprit new inventory my-hosts').
-- 'culprit list' shows the available parts, 'culprit list faults' also their parameters.

---@type culprit.Scenario
return {
	name    = "my-scenario",
	summary = "a hogged disk and lost packets against the control, under writes and reads",

	-- Each workload runs under each fault. An entry is a name, the path of a file ("./my-fault.lua"), or either
	-- with parameters. "none" is the control, which measures how often a detector raises a false alarm.
	workloads = { "ddw", { "ddr", records = 16 } },
	faults    = { "none", "disk-hog", { "receive-pktloss", loss = "2%" } },

	-- Detectors see only measurements. Tables also show three null detectors, which guess.
	detectors = { "peer-robust" },

	-- A cell: the workload runs for this long before the fault, under it, and after it.
	phases = { before = "8s", fault = "20s", after = "2s" },

	-- Cells of each kind. Few repeats make rates uncertain: the table says how many are needed.
	repeats = 2,

	-- Detectors that learn what is normal ('train' in 'culprit list detectors --json') need fault-free runs:
	-- training = { workloads = { "ddw", "ddr" }, repeats = 2 },
}
