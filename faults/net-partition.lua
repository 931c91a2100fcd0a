-- The network parts the victim from its peers, as a switch does that has lost a route, or a firewall with a wrong rule.
-- Packets are dropped where they arrive, so that the sender's own TCP does not learn of it: under direction "in" the victim
-- no longer hears its peers, but they hear it. Other hosts are not cut off. An agent refuses to drop what comes from the host of
-- culprit's own SSH session, and the fault is then skipped.

local culprit = require "culprit"

-- What 'node' drops: all that comes from any of 'nodes'.
local function all_from(nodes)
	local from = {}
	for i, node in ipairs(nodes) do from[i] = node.address end
	return { percent = 100, direction = "in", from = from }
end

---@type culprit.Fault
return {
	summary  = "all packets between the victim and its peers are dropped",
	resource = "network",
	needs    = "nftables or iptables",
	params   = {
		peers     = { default = "all", choices = "all|servers|clients", help = "from which nodes it is parted" },
		direction = { default = "both", choices = "both|in|out", help = "packets to the victim, from it, or both" },
	},
	workload_may_fail = true,

	-- Both sides, whatever the direction: the session over SSH needs packets both ways.
	check = function(ctx)
		local others = culprit.peers(ctx, ctx.params.peers)
		if #others == 0 then return nil, ("%s: there are no other %s"):format(ctx.victim.name, ctx.params.peers) end
		local able, why = ctx.victim:can("packets.drop", all_from(others))
		for _, node in ipairs(others) do
			if able then able, why = node:can("packets.drop", all_from { ctx.victim }) end
		end
		return able, why
	end,

	inject = function(ctx)
		local others, rules = culprit.peers(ctx, ctx.params.peers), {}
		if ctx.params.direction ~= "out" then rules[1] = ctx.victim:drop_packets(all_from(others)) end
		for _, node in ipairs(ctx.params.direction ~= "in" and others or {}) do
			rules[#rules + 1] = node:drop_packets(all_from { ctx.victim })
		end
		ctx.state.rules = rules
	end,

	-- By effect: packets came and were dropped, and none has passed. Growth is not asked for: TCP gives up little by little.
	verify = function(ctx)
		local dropped = 0
		for _, rule in ipairs(ctx.state.rules) do
			local now = rule:counters()
			if now.dropped < now.seen then return nil, ("%d of %d packets passed"):format(now.seen - now.dropped, now.seen) end
			dropped = dropped + now.dropped
		end
		if dropped == 0 then return nil, "no packet between them has come that could be dropped" end
		return { dropped = dropped, rules = #ctx.state.rules }
	end,

	verify_timeout = "15s",
}
