-- Where the time of a request goes: a disk hog against the control, under writes and reads, with every call
-- recorded and tied to those that it caused on other nodes.
--
--   culprit lab up                  (or: culprit lab up --fs orangefs)
--   culprit run scenarios/flow.lua -o runs/flow
--   culprit slow runs/flow          the server and the layer that took the time
--   culprit timeline runs/flow --cell 2 -o t.html
--
-- heads = true lets the first 32 bytes, at most, of each message leave its node: the headers, by which
-- messages are told apart. A record of 4 MiB a client spans all servers of the lab.

---@type culprit.Scenario
return {
	name      = "flow",
	summary   = "requests followed from the application's call to the servers' disks, under a disk hog (3 minutes)",
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 } },
	faults    = { "none", "disk-hog" },
	detectors = { "peer-robust", "always-healthy", "always-same", "seeded-random" },
	tracer    = { "ebpf", mode = "flow", heads = true },
	phases    = { before = "10s", fault = "14s", after = "6s" },
}
