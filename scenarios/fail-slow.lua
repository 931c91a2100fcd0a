-- Parts that are slow, not broken: a disk, a link, a server, each at four strengths, and work that only looks like it.
--
--   culprit lab up --servers 4 --clients 2 --disk-rate 6MB/s --nic 80Mbit/s --cpus 1
--   culprit lab up --fs orangefs,timeout=120s --servers 4 --clients 2 --disk-rate 6MB/s --nic 80Mbit/s --cpus 1
--
-- 198 cells of about half a minute: 96 faults, 60 controls, 42 look-alikes (27 on OrangeFS, which has every file on all
-- servers). Detectors are those of the version that runs it; peer-robust was not tuned on any of these faults.
-- 'culprit table RUN --by strength' shows from which strength on the application suffers, and the detectors see it.
local faults = { "none" }

local function each(name, parameter, doses)
	for _, dose in ipairs(doses) do faults[#faults + 1] = { name, [parameter] = dose } end
end

each("disk-slow", "latency", { "5ms", "20ms", "80ms", "320ms" })
each("disk-slow", "rate", { "4MB/s", "2MB/s", "1MB/s", "500kB/s" }) -- of 6 MB/s
each("disk-stall", "stall", { "250ms", "500ms", "1s", "2s" })       -- of every 5 s
each("net-delay", "latency", { "1ms", "5ms", "20ms", "80ms" })
each("net-rate", "rate", { "5MB/s", "2MB/s", "1MB/s", "500kB/s" })  -- of 10 MB/s
each("server-pause", "pause", { "100ms", "250ms", "500ms", "800ms" }) -- of every second
each("server-cpu", "cpus", { 0.4, 0.2, 0.1, 0.05 })
-- A partition has no strength, but sides. Servers of GlusterFS do not speak to each other.
for _, direction in ipairs { "in", "out", "both" } do
	faults[#faults + 1] = { "net-partition", direction = direction, peers = "clients" }
end
faults[#faults + 1] = "net-partition"

each("hot-file", "readers", { 1, 2, 4, 8, 16 })
each("metadata-storm", "processes", { 1, 2, 4, 8 })
each("scrub", "pause", { "0s", "30ms", "100ms", "300ms", "1s" })

---@type culprit.Scenario
return {
	name      = "fail-slow",
	summary   = "slow disks, links and servers at four strengths, and look-alikes, under three workloads",
	workloads = { { "ddw", per_server = "1MiB", records = 16 }, { "ddr", per_server = "1MiB", records = 16 }, "postmark" },
	faults    = faults,
	detectors = { "peer-robust", "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- those of dose.lua
	controls  = 20,
}
