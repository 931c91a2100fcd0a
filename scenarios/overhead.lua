-- What tracing costs (Kasick et al. 2009, Table 2): each workload is run once to its end under each tracer,
-- in random order within blocks, and compared with the untraced run of its block.
--
-- All servers and clients are traced, as in the paper. In the lab all nodes share one kernel, so the
-- in-kernel tracers of all nodes see the system calls of each, which does not happen on separate hosts: the
-- two cells "one server" trace a single server, as a tracer on a host of its own does.

---@type culprit.Scenario
return {
	name      = "overhead",
	summary   = "run time of five workloads under each tracer, over the same untraced",
	measure   = "runtime",
	tracers   = {
		"none", "ebpf", { "ebpf", mode = "events" }, "ptrace", "strace", "sysstat",
		{ "ebpf", nodes = "one-server", workloads = { "postmark" } },
		{ "ebpf", mode = "events", nodes = "one-server", workloads = { "postmark" } },
	},
	-- Sizes for the lab's disks: a few seconds a pass, untraced (the paper: some 600 s).
	workloads = {
		{ "ddr", records = 1 }, { "ddw", records = 1 }, { "iozoner", file = "8MiB", record = "8MiB" },
		{ "iozonew", file = "16MiB" }, { "postmark", transactions = 100, files = 40 },
	},
	limit     = "5min",
	repeats   = 10,
}
