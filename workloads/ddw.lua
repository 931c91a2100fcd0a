-- dd writes zeros into one file per client (Kasick et al. 2009, section 5): a constant data-write rate,
-- like that of HPC checkpoints. A record spans all servers, 4 MiB for each, as in the paper (40 MB for
-- ten). Direct I/O bypasses the page caches of clients and servers. The file is written before the run, so
-- that every pass does the same work: it overwrites and never allocates. 'jobs' and 'direct' 0: see ddr.lua.

local culprit = require "culprit"

-- With 'fresh', every attempt writes a new file, and allocates.
local function path(ctx, client)
	if ctx.params.fresh == 0 then return culprit.file(ctx, client, "dd") end
	return culprit.file(ctx, client, "fresh") .. "." .. ctx.attempt
end

local params = {
	fresh = { default = 0, unit = "number", min = 0, max = 1, integer = true,
	          help = "1: a new file in every attempt (as in Kasick et al. 2009; allocates), 0: the prepared one" },
}
for name, param in pairs(culprit.dd_params) do params[name] = param end

---@type culprit.Workload
return {
	summary = "dd writes zeros to one file a client, in records that span all servers",
	params  = params,
	needs = { "dd" },

	prepare = function(ctx, client)
		if ctx.params.fresh == 1 then return { culprit.make_folder(ctx, client) } end
		return culprit.dd_prepare(ctx, client)
	end,

	command = function(ctx, client)
		return { argv = culprit.dd(ctx, "of", path(ctx, client), "count=" .. ctx.params.records,
		                           culprit.dd_flag(ctx, "oflag"), culprit.dd_conversion(ctx)), loop = not ctx.once }
	end,

	cleanup = function(ctx, client)
		if ctx.params.fresh == 1 then return { "rm", "-f", table.unpack(culprit.dd_files(ctx, path(ctx, client))) } end
	end,

	result = culprit.dd_result,
}
