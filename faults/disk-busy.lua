-- A RAID controller scans for media defects while the server works (Kasick et al. 2009, sections 3 and 5):
-- raw reads of 1 MB that bypass the page cache. Where the spare's disk has a generic node (/dev/sg*), sgm_dd
-- sends it SCSI commands; sg_dd reads any other block device directly. Requests stay at 1 MB: a process in
-- the middle of one cannot be killed until the disk has delivered it. With a share below 100%, the agent's
-- own reader makes the same requests of a block device, with pauses between them.

local culprit = require "culprit"

-- The generic node of the spare's disk, and where the spare lies on it in sectors of 512 bytes.
local GENERIC = [[
device=$(readlink -f "$1") && name=${device##*/} || exit 1
case $name in sg[0-9]*) echo "$device 0 0"; exit ;; esac
at=/sys/class/block/$name start=0
size=$(cat "$at/size") || exit 1
[ ! -e "$at/partition" ] || { start=$(cat "$at/start") && at=$(readlink -f "$at")/..; }
for node in "$at"/device/scsi_generic/sg*; do
	[ -c "/dev/${node##*/}" ] && echo "/dev/${node##*/} $start $size" && break
done
]]

local function generic(ctx)
	local said = ctx.victim:run { argv = { "sh", "-c", GENERIC, "sh", ctx.victim.spare } }.output
	local node, start, size = said:match("^(/dev/sg%d+) (%d+) (%d+)")
	return node and { node = node, start = tonumber(start), size = tonumber(size) }
end

-- The command that reads the device, or nil and the reason. A request moves bpt blocks of bs bytes; a SCSI
-- command needs the disk's own block size, and stays within the partition by skip and count.
local function reader(ctx)
	local sg, why = ctx.params.share == 100 and generic(ctx), nil
	local program, device = "sg_dd", ctx.victim.spare
	if sg then program, device = "sgm_dd", sg.node end
	if ctx.params.share < 100 and device:match("^/dev/sg%d+$") then
		return nil, ctx.victim.name .. ": a share of the time needs a block device, not " .. device
	end
	for _, bs in ipairs { 512, 4096 } do
		local argv = { program, "if=" .. device, "of=/dev/null", "bs=" .. bs, ("bpt=%d"):format(ctx.params.block // bs) }
		local limit
		if not sg then
			argv[#argv + 1] = "iflag=direct"
		elseif sg.size > 0 then
			argv[#argv + 1] = ("skip=%d"):format(sg.start * 512 // bs)
			limit = ("count=%d"):format(sg.size * 512 // bs)
		end
		argv[#argv + 1] = "count=8"
		local probe = ctx.victim:run { argv = argv }
		argv[#argv] = limit
		if probe.exit == 0 then return argv end
		why = why or probe.output
	end
	return nil, ("%s: %s cannot read the spare device: %s"):format(ctx.victim.name, program, why)
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
		if ctx.victim:run { argv = { "sh", "-c", "command -v sgm_dd && command -v sg_dd" } }.exit ~= 0 then
			return nil, ctx.victim.name .. ": has no sgm_dd or sg_dd; install sg3-utils there (Debian: apt install sg3-utils)"
		end
		return reader(ctx)
	end,

	inject = function(ctx)
		if ctx.params.share < 100 then
			ctx.state.by = "reader of the agent"
			ctx.state.reader = culprit.read_spare(ctx, ctx.params.block)
			return
		end
		local argv = assert(reader(ctx))
		ctx.state.by = argv[1] .. " " .. argv[2]
		-- It ends at the end of the partition, and is started again.
		ctx.state.reader = ctx.victim:process { argv = argv, loop = true }
	end,

	-- By effect: bytes have come off the device since the last look. The kernel does not account for SCSI
	-- commands; sgm_dd runs, and ends with an error if a command fails.
	verify = function(ctx)
		local field = ctx.state.by:match("^sgm_dd") and "cpu_s" or "read_bytes"
		local first = field == "cpu_s" and not ctx.state.cpu_s
		local value, why = culprit.growth(ctx, ctx.state.reader, field, field == "cpu_s" and 0.001 or 1)
		if first then return nil, why or "the reader was seen once" end
		return value and { [field] = value, by = ctx.state.by }, why
	end,
}
