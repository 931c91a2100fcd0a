-- Two servers whose disks have other work, as neighbours on one disk array have: on the first victim for
-- a share of every fifth of a second, on the second in bursts with long pauses.

local culprit = require "culprit"

local bursts = [[while :; do dd if="$1" of=/dev/null bs=1M count="$2" iflag=direct || exit; sleep "$3"; done]]

---@type culprit.Fault
return {
	summary  = "other reads on two servers' disks: all the time on one, in bursts on the other (victims = 2)",
	resource = "disk",
	needs    = "a spare device",
	params   = {
		share = { default = "80%", unit = "percent", min = "1%", max = "99%", help = "share of the time, on the first" },
		count = { default = 60, unit = "number", min = 1, max = 10000, integer = true, help = "MiB in a burst, on the second" },
		pause = { default = "30s", unit = "seconds", min = "1s", max = "1h", help = "between two bursts" },
	},

	check = function(ctx) return culprit.has_spare(ctx) end,

	inject = function(ctx)
		ctx.shared.first = ctx.shared.first or ctx.victim.name
		ctx.state.reader = ctx.shared.first == ctx.victim.name and culprit.read_spare(ctx, 1 << 20)
			or ctx.victim:process { argv = { "sh", "-c", bursts, "bursts", ctx.victim.spare, ("%d"):format(ctx.params.count),
			                                 ("%g"):format(ctx.params.pause) } }
	end,

	-- By effect: bytes have come off the device since the last look.
	verify = function(ctx)
		local bytes, why = culprit.growth(ctx, ctx.state.reader, "read_bytes")
		return bytes and { read_bytes = bytes }, why
	end,
}
