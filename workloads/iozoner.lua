-- IOzone in read/reread mode on one prepared file per client (Kasick et al. 2009, section 5: 8 GB a client
-- in records of 16 MB, the most that IOzone takes; file = "8GiB"). The default size is for the lab.

local culprit = require "culprit"

-- A scenario may use several sizes.
local function argv(ctx, client, test)
	local file = culprit.file(ctx, client, "iozoner") .. (".%d.%d"):format(ctx.params.file, ctx.params.record)
	return culprit.iozone(ctx, file, test)
end

---@type culprit.Workload
return {
	summary = "IOzone reads and rereads a prepared file a client, in large records",
	params  = culprit.iozone_params,
	needs = { "iozone" },
	packages = { iozone = "iozone3, from non-free" },

	-- Written by IOzone's own write test, without its rewrite (-+n), and kept.
	prepare = function(ctx, client)
		local write = argv(ctx, client, "0")
		write[#write + 1] = "-+n"
		return culprit.iozone_prepare(ctx, client, write)
	end,

	command = function(ctx, client)
		return { argv = argv(ctx, client, "1"), loop = not ctx.once }
	end,

	result = function(output)
		return culprit.iozone_result(output, "read")
	end,
}
