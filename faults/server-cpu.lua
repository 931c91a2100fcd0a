-- A server gets too little processor time, as under a container's quota that was set too low, or on a host that is
-- oversubscribed: its processes together may use a part of a processor, by a control group that holds nobody else. What
-- else runs on the victim is not slowed down, and its processors are not busy.

local function limit(ctx)
	return { pids = ctx.victim.pids, cpus = ctx.params.cpus }
end

---@type culprit.Fault
return {
	summary  = "the victim's server processes get a part of a processor",
	resource = "cpu",
	needs    = "control groups with the controller 'cpu'",
	params   = {
		cpus = { default = 0.1, min = 0.05, max = 4096, help = "processors for all of them; 0.5 is half of one" },
	},

	check = function(ctx)
		return ctx.victim:can("group.limit", limit(ctx))
	end,

	inject = function(ctx)
		ctx.state.group = ctx.victim:limit_group(limit(ctx))
		ctx.state.throttled_s = ctx.state.group:usage().throttled_s
	end,

	-- By effect: the quota has held the server back since the injection; at the end, since the onset.
	verify = function(ctx)
		local now, before = ctx.state.group:usage(), ctx.state.throttled_s
		if now.throttled_s <= before then
			return nil, ("the server does not use up its quota: it did in %d of %d periods, and lately in none"):format(
				now.throttled, now.periods)
		end
		ctx.state.throttled_s = now.throttled_s
		return { throttled_s = now.throttled_s, throttled = now.throttled, periods = now.periods }
	end,

	verify_timeout = "20s",
}
