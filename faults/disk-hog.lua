-- A rogue process reads from the server's own disk (Kasick et al. 2009, section 5): dd reads large blocks
-- from an unused partition of the disk that holds the storage. The pages are dropped from the cache at
-- once, so that the next pass reads the disk again. Direct I/O would do that too, but a process in the
-- middle of a direct read of 256 MB cannot be killed until the disk has delivered it: on a slow disk that
-- takes longer than the guard's lease.
--
-- share = "25%" reads for a quarter of the time, which means the same on any disk. dd cannot do that,
-- because the kernel reads ahead while dd pauses. The agent's own reader can: direct reads of 1 MiB, about
-- what the disk gets from dd, and pauses of three times the reads. It has one read in flight; dd, with
-- read-ahead, has up to two, so on a busy disk dd gets more than twice what the reader gets at 50%.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "dd reads large blocks from the spare partition of the victim's storage disk",
	resource = "disk",
	needs    = "a spare device",
	params   = {
		block = { default = "256MiB", unit = "bytes", min = "4KiB", max = "1GiB", help = "bytes of one read of dd" },
		share = { default = "100%", unit = "percent", min = "1%", max = "100%", help = "share of the time spent reading" },
	},

	check = function(ctx)
		local spare, why = culprit.has_spare(ctx)
		if not spare then return nil, why end
		local probe = ctx.victim:run { argv = { "dd", "if=" .. ctx.victim.spare, "of=/dev/null", "bs=4k", "count=1" } }
		if probe.exit ~= 0 then return nil, ctx.victim.name .. ": cannot read the spare device: " .. probe.output end
		return true
	end,

	inject = function(ctx)
		local dd = { "dd", "if=" .. ctx.victim.spare, "of=/dev/null", "bs=" .. ctx.params.block, "iflag=nocache" }
		ctx.state.hog = ctx.params.share < 100 and culprit.read_spare(ctx, math.min(ctx.params.block, 1 << 20))
			-- dd ends at the end of the partition, and is started again.
			or ctx.victim:process { argv = dd, loop = true }
	end,

	-- By effect: bytes have come off the device since the last look.
	verify = function(ctx)
		local bytes, why = culprit.growth(ctx, ctx.state.hog, "read_bytes")
		return bytes and { read_bytes = bytes }, why
	end,
}
