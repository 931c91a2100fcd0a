-- A server has too little memory, as in a container whose limit was set too low: beyond a share of what it uses when the
-- fault begins, its memory is reclaimed while it waits (memory.high). No process is killed. memory-hog takes the host's
-- memory, this the server's alone.
--
-- Version 2 of control groups only, and a server that is alone in its group, such as a service of systemd or a container.

local function limit(ctx)
	return { pids = ctx.victim.pids, memory_pct = ctx.params.share }
end

---@type culprit.Fault
return {
	summary  = "memory of the victim's server processes is reclaimed",
	resource = "memory",
	needs    = "control groups of version 2",
	params   = {
		share = { default = "80%", unit = "percent", min = "10%", max = "100%",
		          help = "of the memory that the server uses at first, which it may keep" },
	},

	check = function(ctx)
		return ctx.victim:can("group.limit", limit(ctx))
	end,

	inject = function(ctx)
		ctx.state.group = ctx.victim:limit_group(limit(ctx))
		ctx.state.reclaims = ctx.state.group:usage().reclaims
	end,

	-- By effect: a process of the server has had to reclaim memory since the injection; at the end, since the onset.
	verify = function(ctx)
		local now, before = ctx.state.group:usage().reclaims, ctx.state.reclaims
		if now <= before then return nil, ("the server had to reclaim memory %d times, and lately not"):format(now) end
		ctx.state.reclaims = now
		return { reclaims = now }
	end,

	verify_timeout = "15s",
}
