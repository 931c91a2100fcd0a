-- dd reads one file per client that was written before (Kasick et al. 2009, section 5). A record spans all
-- servers, 4 MiB for each, as in the paper (40 MB for ten). Direct I/O bypasses the page caches of clients
-- and servers; a file system that lacks it is read through a cache whose pages are dropped. A client that sends
-- the requests of one call one after the other (ceph-fuse, 128 KiB each) keeps no disk busy: it needs 'jobs', or
-- 'direct' 0.

local culprit = require "culprit"

---@type culprit.Workload
return {
	summary = "dd reads one prepared file a client, in records that span all servers",
	params  = culprit.dd_params,
	needs = { "dd" },

	prepare = culprit.dd_prepare,

	command = function(ctx, client)
		local argv = culprit.dd(ctx, "if", culprit.file(ctx, client, "dd"), culprit.dd_flag(ctx, "iflag"))
		return { argv = argv, loop = not ctx.once }
	end,

	result = culprit.dd_result,
}
