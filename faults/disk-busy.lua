-- A RAID controller that looks for media defects while the server works (001, sections 3 and 5): raw
-- 1 MB reads that pass by the page cache. sgm_dd speaks SCSI to a generic node (/dev/sg*); sg_dd reads any
-- other block device directly. Requests stay at 1 MB each: a process in the middle of one cannot be killed
-- until the disk has delivered it.

-- One command moves bpt blocks of bs bytes.
local BLOCK = 512

local function reader(ctx)
	local generic = ctx.victim.spare:match("^/dev/sg%d+$")
	local argv = { generic and "sgm_dd" or "sg_dd", "if=" .. ctx.victim.spare, "of=/dev/null", "bs=" .. BLOCK,
	               ("bpt=%d"):format(ctx.params.block // BLOCK) }
	if not generic then argv[#argv + 1] = "iflag=direct" end
	return argv
end

---@type culprit.Fault
return {
	summary  = "raw reads of 1 MB from the spare partition of the victim's storage disk",
	resource = "disk",
	params   = {
		block = { default = "1MiB", unit = "bytes", min = "4KiB", max = "4MiB", help = "bytes of one read" },
	},

	check = function(ctx)
		local victim = ctx.victim
		if not victim.spare then
			return nil, victim.name .. ": the inventory names no 'spare' device on its storage disk"
		end
		local argv = reader(ctx)
		if victim:run { argv = { "sh", "-c", "command -v " .. argv[1] } }.exit ~= 0 then
			return nil, ("%s: has no %s; install sg3-utils there (Debian: apt install sg3-utils)"):format(victim.name, argv[1])
		end
		argv[#argv + 1] = "count=8"
		local probe = victim:run { argv = argv }
		if probe.exit ~= 0 then
			return nil, ("%s: %s cannot read the spare device: %s"):format(victim.name, argv[1], probe.output)
		end
		return true
	end,

	inject = function(ctx)
		-- It ends at the end of the partition: again and again, until it is undone.
		ctx.state.reader = ctx.victim:process { argv = reader(ctx), loop = true }
	end,

	-- By effect: bytes have come off the device since the last look. SCSI commands pass by the kernel's
	-- accounts of reading; there the reader runs and ends with an error when a command fails.
	verify = function(ctx)
		local now = ctx.state.reader:status()
		local before = ctx.state.read_bytes or 0
		if not now.running then return nil, "the reader has ended (exit " .. tostring(now.exit) .. ")" end
		if ctx.victim.spare:match("^/dev/sg%d+$") then
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
