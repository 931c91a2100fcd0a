-- IOzone in write/rewrite mode, one file per client (Kasick et al. 2009, section 5): large sequential I/O
-- with few metadata operations, an fsync after each half, and a change half-way from a new file to an
-- existing one. The paper: 8 GB a client in records of 16 MB, the most that IOzone takes (file = "8GiB").
-- The default size is for the lab.

local culprit = require "culprit"

---@type culprit.Workload
return {
	summary = "IOzone writes and rewrites a file a client, in large records",
	params  = culprit.iozone_params,
	needs = { "iozone" },
	packages = { iozone = "iozone3, from non-free" },

	prepare = function(ctx, client)
		return culprit.iozone_prepare(ctx, client)
	end,

	-- The next pass truncates the file and writes it anew to the same servers: a file system that places by
	-- name or number would put a new file elsewhere each time.
	command = function(ctx, client)
		return { argv = culprit.iozone(ctx, culprit.file(ctx, client, "iozonew"), "0"), loop = not ctx.once }
	end,

	result = function(output)
		return culprit.iozone_result(output, "write")
	end,
}
