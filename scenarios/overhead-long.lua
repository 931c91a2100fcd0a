-- What tracing costs (Kasick et al. 2009, Table 2), on OrangeFS, in passes of about a minute: as overhead.lua,
-- which has passes of seconds for any lab. The sizes are for
--
--   culprit lab up --fs orangefs --servers 4 --clients 2 --outsiders 0 --disk-rate 4MB/s
--
-- where disks are the limit and the processors of two cores are not. A block (every workload under every
-- tracer, in random order) takes about half an hour. The table says below itself how many pairs, that is
-- blocks, would show 1 %: end the run (Ctrl-C) once it has them, and go on with it by 'culprit resume'.

---@type culprit.Scenario
return {
	name      = "overhead-long",
	summary   = "run and processor time of passes of a minute under each tracer, over the same untraced",
	measure   = "runtime",
	tracers   = { "none", "ebpf", "ptrace", "strace", "sysstat" },
	workloads = {
		{ "ddr", records = 20 }, { "ddw", records = 20 }, { "iozoner", file = "160MiB" },
		{ "iozonew", file = "160MiB" }, { "postmark", transactions = 1200, files = 300 },
	},
	limit     = "15min",
	repeats   = 30,
}
