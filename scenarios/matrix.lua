-- The six performance faults of Kasick et al. 2009 and the control under three workloads, on the lab of
-- 'culprit lab up --servers 4 --clients 3'. About 35 minutes; more with --repeats. The built-in detectors
-- were tuned on this matrix, so their scores here say little; their scores in table1.lua say more.

---@type culprit.Scenario
return {
	name      = "matrix",
	summary   = "six performance faults and the control, under ddw, ddr and postmark",
	workloads = { "ddw", "ddr", "postmark" },
	faults    = {
		"none", "disk-hog", "disk-busy", "write-network-hog", "read-network-hog", "receive-pktloss", "send-pktloss",
	},
	detectors = { "peer-robust", "peer-threshold" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- paper: 120 s, 300 s, the rest of about 600 s
	training  = { workloads = { "ddw", "ddr" }, repeats = 2 },      -- paper: ddw and ddr
	repeats   = 3,
}
