-- A rogue reader on the server's own disk (001, section 5): dd reads large blocks from an unused
-- partition that shares the disk with the file system's storage. Pages read are dropped from the cache
-- at once, so that the next pass reads the disk again. Direct I/O would do that too, but a process in
-- the middle of one 256 MB direct read cannot be killed until the disk has delivered all of it: on a
-- slow disk that takes longer than the guard's lease.
--
-- A quarter of a hog (share = "25%") is the hog for a quarter of the time, which means the same on any
-- disk. dd cannot do that: the kernel reads ahead for it while it rests. The agent's own reader does, with
-- direct reads of 1 MiB, which is about what the disk gets from dd; it rests three times as long as its
-- reads took. It has one read under way, where dd, read ahead for, has up to two: beside a busy server dd
-- gets more than twice what the hog at a half does.

---@type culprit.Fault
return {
	summary  = "dd reads large blocks from the spare partition of the victim's storage disk",
	resource = "disk",
	needs    = "a spare device",
	params   = {
		block = { default = "256MiB", unit = "bytes", min = "4KiB", max = "1GiB", help = "bytes dd asks for at once" },
		share = { default = "100%", unit = "percent", min = "1%", max = "100%",
		          help = "share of the time in which it reads" },
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
		if ctx.params.share < 100 then
			local block = math.min(ctx.params.block // 4096 * 4096, 1 << 20)
			ctx.state.hog = ctx.victim:process {
				self = true,
				argv = { "read", "--share", ctx.params.share .. "%", "--block", tostring(block), ctx.victim.spare },
			}
			return
		end
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
