-- A rogue sender (001, section 5): a host that is neither server nor client connects to a port of the
-- victim and sends zeros, which fill the wire that the clients' writes come in by.

---@type culprit.Fault
return {
	summary  = "the first outsider sends zeros to a port of the victim",
	resource = "network/hog",
	needs    = "an outsider",
	params   = {
		port    = { default = 47200, integer = true, min = 1024, max = 65535, help = "port that takes the zeros" },
		senders = { default = 1, integer = true, min = 1, max = 64, help = "connections" },
		share   = { default = "100%", unit = "percent", min = "1%", max = "100%",
		            help = "share of the time in which each connection sends" },
	},

	check = function(ctx)
		if not ctx.outsiders[1] then return nil, "the inventory names no outsider, a host beside servers and clients" end
		return true
	end,

	inject = function(ctx)
		local sender, taker = ctx.outsiders[1], ctx.victim
		local at = (taker.address:find(":") and "[%s]:%d" or "%s:%d"):format(taker.address, ctx.params.port)
		ctx.state.taker = taker:process { self = true, argv = { "sink", "--listen", at, "--from", sender.address } }
		local words = ctx.params.share < 100 and { "send", "--share", ctx.params.share .. "%", at } or { "send", at }
		ctx.state.senders = {}
		for i = 1, ctx.params.senders do
			ctx.state.senders[i] = sender:process { self = true, argv = words }
		end
	end,

	-- By effect: bytes have arrived since the last look.
	verify = function(ctx)
		local now = ctx.state.taker:status()
		local before = ctx.state.arrived or 0
		ctx.state.arrived = now.rchar
		if not now.running then return nil, ("nothing takes them: port %d may be in use"):format(ctx.params.port) end
		-- What it read to start itself does not count.
		if before == 0 or now.rchar < before + 65536 then
			return nil, ("%d bytes have arrived, not 64 KiB since the last look"):format(now.rchar)
		end
		return { received_bytes = now.rchar }
	end,
}
