-- Table 1 of Kasick et al. 2009: six faults that slow a server down x five workloads, and controls.
--
-- The lab, of GlusterFS or of OrangeFS (PVFS's successor, on which the paper's table would stand today):
--
--   culprit lab up --servers 10 --clients 10 --disk-rate 4MB/s --disk-seek 6ms --nic 50Mbit/s
--   culprit lab up --fs orangefs,timeout=120s --servers 10 --clients 10 --disk-rate 4MB/s --disk-seek 6ms --nic 50Mbit/s
--
-- Ten servers and ten clients as in the paper; NICs move about one and a half times what disks do, as there
-- (1 Gbit/s NICs, disks of some 70 MB/s). Its shape and speeds differ from those of scenarios/matrix.lua,
-- on which detectors were tuned.
--
-- The detectors' parameters are their defaults, chosen before any cell was run. peer-threshold's window of
-- 10 s is not the paper's proportion (1 s of 600 s, which here would be less than one call) but what its
-- one-second means need. A fault of 12.5 s is longer than half of the window, so it can be noticed.

---@type culprit.Scenario
return {
	name      = "table1",
	summary   = "Table 1 of Kasick et al. 2009: six faults x five workloads on ten servers, with 100 controls",
	workloads = {
		-- paper: 17 GB and 27 GB a client in records of 40 MB; 8 GB in records of 16 MB; 9,000 transactions. A
		-- record here takes some 4 s (with 40 MB, 15 s: a program in the middle of one cannot be ended).
		{ "ddw", per_server = "1MiB", records = 8 }, { "ddr", per_server = "1MiB", records = 8 },
		{ "iozonew", file = "32MiB", record = "8MiB" }, { "iozoner", file = "32MiB", record = "8MiB" },
		{ "postmark", transactions = 50, files = 20 },
	},
	faults    = {
		"none", "disk-hog", "disk-busy", "write-network-hog", "read-network-hog", "receive-pktloss", "send-pktloss",
	},
	detectors = { "peer-robust", "peer-threshold", "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- paper: 120 s, 300 s, the rest of about 600 s
	training  = { workloads = { "ddw", "ddr" }, repeats = 2 },
	repeats   = 10,  -- 400 cells, about four hours; each block of 40 has every combination once, so half a run is a table, too
	controls  = 2,   -- per workload and repeat: 100 in all
}
