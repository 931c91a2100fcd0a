-- A rogue reader on the server's own disk (001, section 5): dd reads large blocks from an unused
-- partition that shares the disk with the file system's storage. Pages read are dropped from the cache
-- at once, so that the next pass reads the disk again. Direct I/O would do that too, but a process in
-- the middle of one 256 MB direct read cannot be killed until the disk has delivered all of it: on a
-- slow disk that takes longer than the guard's lease.

---@type culprit.Fault
return {
	summary  = "dd reads large blocks from the spare partition of the victim's storage disk",
	resource = "disk",
	needs    = "a spare device",
	params   = {
		block = { default = "256MiB", unit = "bytes", min = "4KiB", max = "1GiB", help = "bytes dd asks for at once" },
	},

	check = function(ctx)
		if not ctx.victim.spare then
			return nil, ctx.victim.name .. ": the inventory names no 'spare' device on its storage disk"
		end
		local probe = ctx.victim:run { argv = { "dd", "if=" .. ctx.victim.spare, "of=/dev/null", "bs=4k", "count=1" } }
		if probe.exit ~= 0 then return nil, ctx.victim.name .. ": cannot read the spare device: " .. probe.output end
		return true
	end,

	inject = function(ctx)
		-- dd ends at the end of the partition: again and again, until it is undone.
		ctx.state.hog = ctx.victim:process {
			argv = { "dd", "if=" .. ctx.victim.spare, "of=/dev/null",
			         "bs=" .. ctx.params.block, "iflag=nocache" },
			loop = true,
		}
	end,

	-- By effect: bytes have come off the device since the last look.
	verify = function(ctx)
		local now = ctx.state.hog:status()
		local before = ctx.state.read_bytes or 0
		ctx.state.read_bytes = now.read_bytes
		if not now.running then return nil, "the hog has ended (exit " .. tostring(now.exit) .. ")" end
		if now.read_bytes <= before then
			return nil, ("the hog has read %d bytes, none since the last look"):format(now.read_bytes)
		end
		return { read_bytes = now.read_bytes }
	end,
}
