-- The server has too little address space (Kasick et al. 2009, section 5, RLIMIT_AS): in PVFS mmap fails
-- with ENOMEM, and the server aborts.
--
-- GlusterFS 10.3: a brick maps 260 MB before it has a client, 800 to 1100 MB once clients are connected.
-- Started under 300,000 kB it listens, but no client can connect (EIO, ENOTCONN). So the limit is set while
-- it runs: mmap, brk and new threads fail with ENOMEM. After some requests the server drops the client's
-- connection, and the write fails with ENOTCONN. The process survives.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "the victim's server gets no more memory",
	resource = "memory",
	workload_may_fail = true,
	params   = {
		limit = { default = "300000KiB", unit = "bytes", min = "1MiB", max = "1TiB",
		          help = "address space of the server (RLIMIT_AS)" },
	},

	check = function(ctx)
		return culprit.each_server(ctx, "service.limit", { limits = { as = ctx.params.limit } })
	end,

	inject = function(ctx)
		culprit.limit_server(ctx, "as", ctx.params.limit)
	end,

	verify = culprit.limit_holds,
}
