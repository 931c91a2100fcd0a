-- dd reads one file per client that was written before (Kasick et al. 2009, section 5). A record spans all
-- servers, 4 MiB for each, as in the paper (40 MB for ten). Direct I/O bypasses the page caches of clients
-- and servers.

local culprit = require "culprit"

---@type culprit.Workload
return {
	summary = "dd reads one prepared file a client, in records that span all servers",
	params  = {
		per_server = { default = "4MiB", unit = "bytes", min = "4KiB", max = "64MiB",
		               help = "share of a record for each server" },
		records    = { default = 8, unit = "number", min = 1, max = 1000000, integer = true,
		               help = "records in the file, a pass; then it is read again" },
	},
	needs = { "dd" },

	prepare = culprit.dd_prepare,

	command = function(ctx, client)
		local file = culprit.file(ctx, client, "dd")
		return { argv = culprit.dd(ctx, file, "/dev/null", "iflag=direct"), loop = not ctx.once }
	end,

	result = culprit.dd_result,
}
