-- netem as an administrator sets it: the victim's packets leave late.

local function queue(ctx)
	return ctx.victim:run { argv = { "tc", "-s", "qdisc", "show", "dev", "eth0" } }.output
end

---@type culprit.Fault
return {
	summary  = "the victim's packets leave 40 ms late",
	resource = "network",

	inject = function(ctx)
		ctx.victim:command {
			argv    = { "tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "40ms" },
			inverse = { "tc", "qdisc", "del", "dev", "eth0", "root" },
			check   = { "sh", "-c", "tc qdisc show dev eth0 | grep -q netem" },
		}
	end,

	verify = function(ctx)
		local packets = tonumber(queue(ctx):match("netem.-Sent %d+ bytes (%d+) pkt") or 0)
		local before = ctx.state.packets
		ctx.state.packets = packets
		if not before or packets <= before then return nil, "no packet was delayed since the last look" end
		return { packets = packets }
	end,
}
