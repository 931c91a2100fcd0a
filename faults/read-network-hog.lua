-- A rogue process on the server (001, section 5): the victim connects to a host that is neither server
-- nor client and sends it zeros, which fill the wire that the clients' reads go out by.

---@type culprit.Fault
return {
	summary  = "the victim sends zeros to a port of the first outsider",
	resource = "network/hog",
	needs    = "an outsider",
	params   = {
		port    = { default = 47200, integer = true, min = 1024, max = 60000,
		            help = "where the first server's arrive; the next port takes the second's" },
		senders = { default = 1, integer = true, min = 1, max = 64, help = "connections" },
		share   = { default = "100%", unit = "percent", min = "1%", max = "100%",
		            help = "share of the time in which each connection sends" },
	},

	check = function(ctx)
		if not ctx.outsiders[1] then return nil, "the inventory names no outsider, a host beside servers and clients" end
		return true
	end,

	inject = function(ctx)
		local sender, taker = ctx.victim, ctx.outsiders[1]
		-- Several victims send to one outsider: each has a port of its own.
		local port = ctx.params.port
		for i, server in ipairs(ctx.servers) do
			if server.name == sender.name then port = port + i - 1 end
		end
		local at = (taker.address:find(":") and "[%s]:%d" or "%s:%d"):format(taker.address, port)
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
		if not now.running then return nil, "nothing takes them: its port may be in use" end
		-- What it read to start itself does not count.
		if before == 0 or now.rchar < before + 65536 then
			return nil, ("%d bytes have arrived, not 64 KiB since the last look"):format(now.rchar)
		end
		return { received_bytes = now.rchar }
	end,
}
