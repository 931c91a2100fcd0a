-- A RAID controller that looks for media defects while the server works (001, sections 3 and 5): raw
-- 1 MB reads that pass by the page cache. sgm_dd speaks SCSI to a generic node (/dev/sg*); sg_dd reads any
-- other block device directly. Requests stay at 1 MB each: a process in the middle of one cannot be killed
-- until the disk has delivered it. For less than all the time (share = "25%"; see disk-hog) the agent's own
-- reader makes the same requests of a block device, with rests between them.

local function program(ctx)
	return ctx.victim.spare:match("^/dev/sg%d+$") and "sgm_dd" or "sg_dd"
end

-- The command that reads the device, or nil and why it cannot be read. One request moves bpt blocks of
-- bs bytes, and a SCSI command wants the disk's own block size.
local function reader(ctx)
	local why
	if ctx.params.share < 100 and program(ctx) == "sgm_dd" then
		return nil, ctx.victim.name .. ": a share of the time needs a block device, not " .. ctx.victim.spare
	end
	for _, bs in ipairs { 512, 4096 } do
		local argv = { program(ctx), "if=" .. ctx.victim.spare, "of=/dev/null", "bs=" .. bs,
		               ("bpt=%d"):format(ctx.params.block // bs) }
		if argv[1] == "sg_dd" then argv[#argv + 1] = "iflag=direct" end
		local probe = ctx.victim:run { argv = { "sh", "-c", "exec \"$@\" count=8", "sh", table.unpack(argv) } }
		if probe.exit == 0 then return argv end
		why = why or probe.output
	end
	return nil, ("%s: %s cannot read the spare device: %s"):format(ctx.victim.name, program(ctx), why)
end

---@type culprit.Fault
return {
	summary  = "raw reads of 1 MB from the spare partition of the victim's storage disk",
	resource = "disk",
	needs    = "a spare device, sg3-utils",
	params   = {
		block = { default = "1MiB", unit = "bytes", min = "4KiB", max = "4MiB", help = "bytes of one read" },
		share = { default = "100%", unit = "percent", min = "1%", max = "100%",
		          help = "share of the time in which it reads" },
	},

	check = function(ctx)
		local victim = ctx.victim
		if not victim.spare then
			return nil, victim.name .. ": the inventory names no 'spare' device on its storage disk"
		end
		if victim:run { argv = { "sh", "-c", "command -v " .. program(ctx) } }.exit ~= 0 then
			return nil, ("%s: has no %s; install sg3-utils there (Debian: apt install sg3-utils)"):format(
				victim.name, program(ctx))
		end
		return reader(ctx)
	end,

	inject = function(ctx)
		if ctx.params.share < 100 then
			local block = ctx.params.block // 4096 * 4096
			ctx.state.reader = ctx.victim:process {
				self = true,
				argv = { "read", "--share", ctx.params.share .. "%", "--block", tostring(block), ctx.victim.spare },
			}
			return
		end
		-- It ends at the end of the partition: again and again, until it is undone.
		ctx.state.reader = ctx.victim:process { argv = assert(reader(ctx)), loop = true }
	end,

	-- By effect: bytes have come off the device since the last look. SCSI commands pass by the kernel's
	-- accounts of reading; there the reader runs and ends with an error when a command fails.
	verify = function(ctx)
		local now = ctx.state.reader:status()
		local before = ctx.state.read_bytes or 0
		if not now.running then return nil, "the reader has ended (exit " .. tostring(now.exit) .. ")" end
		if program(ctx) == "sgm_dd" then
			local cpu = ctx.state.cpu_s
			ctx.state.cpu_s = now.cpu_s
			if not cpu or now.cpu_s <= cpu then return nil, "the reader runs, but has not worked since the last look" end
			return { cpu_s = now.cpu_s }
		end
		ctx.state.read_bytes = now.read_bytes
		if now.read_bytes <= before then
			return nil, ("%d bytes read, none since the last look"):format(now.read_bytes)
		end
		return { read_bytes = now.read_bytes }
	end,
}
