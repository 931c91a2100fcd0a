-- Propagated errors, crashes and hangs (Kasick et al. 2009, sections 5 and 7), each under the workload that
-- brings it out. Sizes are scaled to the lab's disks (8 MB/s; the paper's wrote about 60 MB/s). The faults'
-- defaults are the paper's values.

---@type culprit.Scenario
return {
	name      = "errors",
	summary   = "errors that reach the application, crashed and hung servers, and controls",
	workloads = { "create", { "ddw", fresh = 1, records = 1000 } },
	faults    = {
		"none",
		-- propagated errors
		{ "err-inodes", workloads = { "create" }, spare = 4 }, -- free at first, or a few more; the paper: 2048 in all
		{ "err-files", workloads = { "create" } },
		"err-remount", -- under create an error, under ddw a hang (in the paper)
		-- crashes and hangs
		{ "err-space", workloads = { "ddw" }, size = "24MiB" },
		{ "err-fsize", workloads = { "ddw" }, limit = "2MiB" }, -- GlusterFS shards are 4 MiB files
		{ "err-vmsize", workloads = { "ddw" } },
		{ "kill", workloads = { "ddw" } },
		{ "hang", workloads = { "ddw" } },
	},
	-- The paper's timeout is 30 s; both are scaled as the phases are.
	detectors = { "errno-propagation", { "errno-silent", listen = "5s" }, { "crash-hang", timeout = "5s" },
		"always-healthy", "always-same", "seeded-random" },
	phases    = { before = "4s", fault = "12s", after = "1s" }, -- paper: about 60 s, the fault throughout
	training  = { workloads = { "session" } }, -- one whole client session
	repeats   = 5,
}
