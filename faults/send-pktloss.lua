-- A faulty switch port (Kasick et al. 2009, sections 3 and 5): packets that one server sends are lost at
-- random. They are dropped at every client, where they arrive, so that the server's own TCP does not learn
-- of the loss.

---@type culprit.Fault
return {
	summary  = "a share of the packets that the victim sends is dropped at random, at every client",
	resource = "network/send-loss",
	needs    = "nftables or iptables",
	params   = {
		loss = { default = "5%", unit = "percent", min = "0.01%", max = "100%", help = "share of packets dropped" },
	},

	check = function(ctx)
		for _, client in ipairs(ctx.clients) do
			local able, why = client:can("packets.drop")
			if not able then return nil, why end
		end
		return true
	end,

	inject = function(ctx)
		ctx.state.rules = {}
		for i, client in ipairs(ctx.clients) do
			ctx.state.rules[i] = client:drop_packets {
				percent = ctx.params.loss, direction = "in", from = { ctx.victim.address },
			}
		end
	end,

	-- By effect: the clients' rules together have dropped packets since the last success. A client without
	-- files on the victim gets no packets from it, and one with few may lose none for a while: a rule does not
	-- act only if it let pass so many packets that ten should have been lost (an acting one does so less than
	-- once in 20,000 times).
	verify = function(ctx)
		local seen, dropped, before = 0, 0, ctx.state.before or 0
		for i, client in ipairs(ctx.clients) do
			local now = ctx.state.rules[i]:counters()
			if now.dropped == 0 and now.seen * ctx.params.loss / 100 >= 10 then
				return nil, ("%s: none of %d packets dropped"):format(client.name, now.seen)
			end
			seen, dropped = seen + now.seen, dropped + now.dropped
		end
		if dropped <= before then
			return nil, ("%d of %d packets dropped, none since the last look"):format(dropped, seen)
		end
		ctx.state.before = dropped
		return { seen = seen, dropped = dropped }
	end,

	verify_timeout = "10s",
}
