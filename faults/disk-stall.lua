-- A disk that does nothing for a while and then continues as if nothing had been: garbage collection in an SSD, a drive
-- that recovers a sector or resets its link. No request fails; all wait.

local function asked(ctx)
	local p = ctx.params
	return { path = ctx.victim.storage, stall_s = p.stall, every_s = p.every > 0 and p.every or nil }
end

---@type culprit.Fault
return {
	summary  = "the victim's storage disk stalls again and again",
	resource = "disk",
	needs    = "a disk of the lab",
	params   = {
		stall = { default = "2s", unit = "seconds", min = "10ms", max = "10min", help = "length of a stall" },
		every = { default = "5s", unit = "seconds", max = "1h", help = "from one stall's begin to the next; 0: one stall" },
	},

	check = function(ctx)
		local p = ctx.params
		if p.every > 0 and p.every < p.stall + 0.1 then
			return nil, "'every' must be longer than 'stall', by 100ms at least"
		end
		return ctx.victim:can("disk.degrade", asked(ctx))
	end,

	inject = function(ctx)
		ctx.state.disk, ctx.state.held = ctx.victim:degrade_disk(asked(ctx)), 0
	end,

	-- By effect: a stall has held requests, the last one no longer ago than stalls are apart.
	verify = function(ctx)
		local p, now = ctx.params, ctx.state.disk:disk_counters()
		if now.held > ctx.state.held then
			ctx.state.held, ctx.state.seen = now.held, now.seconds
		elseif not ctx.state.seen then
			return nil, ("no request has met a stall; %d are in flight"):format(now.in_flight)
		elseif p.every > 0 and now.seconds - ctx.state.seen > p.every + p.stall then
			return nil, ("no request has met a stall for %.1f s"):format(now.seconds - ctx.state.seen)
		end
		return { backend = now.backend, held = now.held, last_seen_s = ctx.state.seen, in_flight = now.in_flight }
	end,
}
