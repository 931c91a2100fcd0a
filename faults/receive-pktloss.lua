-- A faulty switch port or an overloaded switch (Kasick et al. 2009, sections 3 and 5): packets that arrive
-- at one server are lost at random.

---@type culprit.Fault
return {
	summary  = "a share of the packets that arrive at the victim is dropped at random",
	resource = "network/receive-loss",
	needs    = "nftables or iptables",
	params   = {
		loss = { default = "5%", unit = "percent", min = "0.01%", max = "100%", help = "share of packets dropped" },
	},

	check = function(ctx)
		return ctx.victim:can("packets.drop")
	end,

	inject = function(ctx)
		ctx.state.rule = ctx.victim:drop_packets { percent = ctx.params.loss, direction = "in" }
	end,

	-- By effect: the rule has dropped packets since the last look.
	verify = function(ctx)
		local now = ctx.state.rule:counters()
		local before = ctx.state.dropped or 0
		ctx.state.dropped = now.dropped
		if now.dropped <= before then
			return nil, ("%d of %d packets dropped, none since the last look"):format(now.dropped, now.seen)
		end
		return { seen = now.seen, dropped = now.dropped }
	end,
}
