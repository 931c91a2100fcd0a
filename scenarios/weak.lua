-- Disk hogs at four strengths, with controls: does a detector see one that takes a part of the disk's time only?
--
--   culprit lab up --servers 6 --clients 4 --layout disperse --disk-rate 6MB/s --nic 80Mbit/s
--
-- The lab is that of dose.lua. 84 cells of about half a minute.
local faults = { "none" }
for _, hog in ipairs { "disk-hog", "disk-busy" } do
	for _, share in ipairs { "10%", "25%", "50%", "100%" } do faults[#faults + 1] = { hog, share = share } end
end
---@type culprit.Scenario
return {
	name      = "weak",
	summary   = "disk hogs at four strengths under three workloads",
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 }, "postmark" },
	faults    = faults,
	detectors = { "peer-robust", "always-healthy" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- those of dose.lua
	controls  = 20,
}
