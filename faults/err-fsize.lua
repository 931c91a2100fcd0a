-- Files of the server may not grow beyond a size (Kasick et al. 2009, section 5, RLIMIT_FSIZE): in PVFS a
-- write in the server fails with EFBIG, and SIGXFSZ ends the server.
--
-- GlusterFS 10.3: its I/O threads block all signals, so SIGXFSZ stays pending and the server goes on.
-- pwrite64 in the server and the client's write fail with EFBIG ("File too large"); dd ends. With
-- features/shard no file on a brick is larger than a shard (4 MiB in the lab): the limit must be below
-- that.
--
-- What the server does depends on SIGXFSZ, which is as it was when the server started: by default it ends the
-- server (PVFS in the paper); a server that was started with it ignored (env --ignore-signal=XFSZ) gets EFBIG.
-- This fault leaves it as it is, and the undo starts the server with it as it was.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "files of the victim's server may not grow beyond a size",
	resource = "files",
	workload_may_fail = true,
	params   = {
		limit = { default = "128MiB", unit = "bytes", min = "4KiB", max = "1TiB",
		          help = "largest file that the server may write (RLIMIT_FSIZE)" },
	},

	check = function(ctx)
		return culprit.each_server(ctx, "service.limit", { limits = { fsize = ctx.params.limit } })
	end,

	inject = function(ctx)
		culprit.limit_server(ctx, "fsize", ctx.params.limit)
	end,

	verify = culprit.limit_holds,
}
