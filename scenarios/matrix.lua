-- A matrix for the night: the six performance faults of 001 and the control under three workloads, on the lab as
-- `culprit lab up --servers 4 --clients 3` makes it. Some 35 minutes; raise --repeats for more. It is also what built-in
-- detectors were tuned on: what they score here says little, what they score in table1.lua says more.

---@type culprit.Scenario
return {
	name      = "matrix",
	summary   = "six performance faults and the control, under ddw, ddr and postmark",
	workloads = { "ddw", "ddr", "postmark" },
	faults    = {
		"none", "disk-hog", "disk-busy", "write-network-hog", "read-network-hog", "receive-pktloss", "send-pktloss",
	},
	detectors = { "peer-robust", "peer-threshold" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- 001: 120 s, 300 s, the rest of about 600 s
	training  = { workloads = { "ddw", "ddr" }, repeats = 2 },      -- 001: ddw and ddr
	repeats   = 3,
}
