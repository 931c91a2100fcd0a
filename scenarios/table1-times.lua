-- Table 1 of Kasick et al. 2009 in the paper's times: as table1.lua, but everything is 64 times as small
-- and as slow as there, so that a transfer takes as long. There a server gets 4 MB at once, which takes 34
-- ms on its NIC and some 60 ms on its disk (70 MB/s, and a seek). Here it is the 64 KiB of a strip:
--
--   culprit lab up --fs orangefs,timeout=120s --servers 10 --clients 10 --disk-rate 1.1MB/s --disk-seek 8ms \
--                  --nic 16Mbit/s --nic-queue 8ms --no-offload --tcp-2009
--
-- results/table1-times-lab.md has the proportions, published and here, and was written before the first scored
-- cell. The machine must do nothing else: requests take 0.03 ms, and busy processors spoil thresholds.
--
-- The queue of a NIC holds eleven packets, as few as TCP does well with: a quarter of a transfer. There it
-- was less: 128 KB in a switch, if it had so much, are a 32nd of a transfer. Packets are sent one by one,
-- as by NICs of that time, so that loss meets packets and not bursts of 64 KiB. In table1.lua transfers are
-- as small, but disks and NICs three to four times as fast, and the queue holds five transfers.

---@type culprit.Scenario
return {
	name      = "table1-times",
	summary   = "Table 1 of Kasick et al. 2009 on a lab where transfers take as long as there",
	workloads = {
		{ "ddw", per_server = "256KiB", records = 8 }, { "ddr", per_server = "256KiB", records = 8 },
		{ "iozonew", file = "16MiB", record = "2MiB" }, { "iozoner", file = "16MiB", record = "2MiB" },
		{ "postmark", transactions = 50, files = 20 },
	},
	faults    = {
		"none", "disk-hog", "disk-busy", "write-network-hog", "read-network-hog", "receive-pktloss", "send-pktloss",
	},
	detectors = {
		"peer-robust", { "peer-threshold", mean = true }, { "peer-threshold", published = true }, "peer-threshold",
		"always-healthy", "always-same", "seeded-random",
	},
	phases    = { before = "5s", fault = "12.5s", after = "7.5s" }, -- as table1.lua
	training  = { workloads = { "ddw", "ddr" }, repeats = 5 },
	repeats   = 5,
	controls  = 2,
}
