-- The recording behind results/fleet/example.csv.gz: ten servers for twelve minutes. The lab:
--
--   culprit lab up --servers 10 --clients 6 --disk-rate 4MB/s --disk-seek 6ms --nic 50Mbit/s

---@type culprit.Scenario
return {
	name      = "fleet-example",
	summary   = "ten servers for twelve minutes; other work on one disk for ten of them, bursts on another",
	workloads = { "./example-mixed.lua" },
	faults    = { { "./example-two.lua", victims = 2 } },
	detectors = { "peer-robust" },
	phases    = { before = "90s", fault = "10min", after = "60s" },
	seed      = 15,
	attempts  = 1,
}
