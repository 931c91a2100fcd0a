-- A RAID controller scans for media defects while the server works (Kasick et al. 2009, sections 3 and 5):
-- raw reads of 1 MB that bypass the page cache. sgm_dd sends SCSI commands to a generic node (/dev/sg*);
-- sg_dd reads any other block device directly. Requests stay at 1 MB: a process in the middle of one cannot
-- be killed until the disk has delivered it. With a share below 100%, the agent's own reader makes the same
-- requests of a block device, with pauses between them.

local culprit = require "culprit"

local function program(ctx)
	return ctx.victim.spare:match("^/dev/sg%d+$") and "sgm_dd" or "sg_dd"
end

-- The command that reads the device, or nil and the reason. A request moves bpt blocks of bs bytes; a SCSI
-- command needs the disk's own block size.
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
		share = { default = "100%", unit = "percent", min = "1%", max = "100%", help = "share of the time spent reading" },
	},

	check = function(ctx)
		local spare, why = culprit.has_spare(ctx)
		if not spare then return nil, why end
		if ctx.victim:run { argv = { "sh", "-c", "command -v " .. program(ctx) } }.exit ~= 0 then
			return nil, ("%s: has no %s; install sg3-utils there (Debian: apt install sg3-utils)"):format(
				ctx.victim.name, program(ctx))
		end
		return reader(ctx)
	end,

	inject = function(ctx)
		ctx.state.reader = ctx.params.share < 100 and culprit.read_spare(ctx, ctx.params.block)
			-- sg_dd ends at the end of the partition, and is started again.
			or ctx.victim:process { argv = assert(reader(ctx)), loop = true }
	end,

	-- By effect: bytes have come off the device since the last look. The kernel does not account for SCSI
	-- commands; sgm_dd runs, and ends with an error if a command fails.
	verify = function(ctx)
		local field = program(ctx) == "sgm_dd" and "cpu_s" or "read_bytes"
		local first = field == "cpu_s" and not ctx.state.cpu_s
		local value, why = culprit.growth(ctx, ctx.state.reader, field, field == "cpu_s" and 0.001 or 1)
		if first then return nil, why or "the reader was seen once" end
		return value and { [field] = value }, why
	end,
}
