-- The smallest strength at which detectors notice a fault: the six performance faults of Kasick et al.
-- 2009, each at four strengths, under three workloads.
--
-- The lab:
--
--   culprit lab up --servers 6 --clients 4 --layout disperse --disk-rate 6MB/s --nic 80Mbit/s
--
-- Stripes over six servers, other disks and other NICs: neither the lab of scenarios/matrix.lua, on which
-- detectors were tuned, nor that of table1.lua. A hog at 25% is active for a quarter of the time; the paper
-- lost 5 % of the packets.
--
-- A repeat has 132 cells of about 29 s: a little over an hour. 60 of them are controls. Each repeat has
-- every combination once, so that it is a sweep by itself. Then:
--
--   culprit table RUN --by strength

local faults = { "none" }
for _, hog in ipairs { "disk-hog", "disk-busy", "write-network-hog", "read-network-hog" } do
	for _, share in ipairs { "10%", "25%", "50%", "100%" } do faults[#faults + 1] = { hog, share = share } end
end
for _, direction in ipairs { "receive-pktloss", "send-pktloss" } do
	for _, loss in ipairs { "0.5%", "1%", "2%", "5%" } do faults[#faults + 1] = { direction, loss = loss } end
end

---@type culprit.Scenario
return {
	name      = "dose",
	summary   = "six performance faults, each at four strengths, under ddw, ddr and postmark, on a lab of stripes",
	-- A record takes about a second: a program in the middle of one cannot be ended.
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 }, "postmark" },
	faults    = faults,
	detectors = { "peer-robust", "peer-threshold", "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- paper: 120 s, 300 s, the rest of about 600 s
	training  = { workloads = { "ddw", "ddr" }, repeats = 2 },      -- paper: ddw and ddr
	repeats   = 2,
	controls  = 20,
}
