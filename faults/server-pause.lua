-- A server pauses again and again, as under garbage collection, on a host that swaps, or in a virtual machine that is
-- not scheduled: its processes are stopped (SIGSTOP) for a part of each period, by a program on the victim. As under
-- 'hang' its sockets stay open, and the kernel still acknowledges what arrives.

---@type culprit.Fault
return {
	summary  = "the victim's server processes are stopped for a part of the time",
	resource = "service",
	params   = {
		pause = { default = "300ms", unit = "seconds", min = "50ms", max = "20s", help = "length of a pause" },
		every = { default = "1s", unit = "seconds", min = "0s", max = "30s", help = "from a pause to the next; 0: once" },
	},

	check = function(ctx)
		local p = ctx.params
		if p.every > 0 and p.every < p.pause + 0.05 then
			return nil, ("'every' (%g s) must be 50 ms above 'pause' (%g s); 'hang' stops a server all the time"):format(
				p.every, p.pause)
		end
		return ctx.victim:can("signal.pause")
	end,

	inject = function(ctx)
		local p = ctx.params
		ctx.state.pauses = ctx.victim:pause { pids = ctx.victim.pids, pause_s = p.pause, every_s = p.every > 0 and p.every or nil }
	end,

	-- By effect: every thread was seen stopped. At the end, again since then, and for the share that was asked for: the time
	-- counts from when all were seen stopped, and a busy victim may wake late.
	verify = function(ctx)
		local p, now, before = ctx.params, ctx.state.pauses:pauses(), ctx.state.stops
		if not now.running then return nil, "the program that pauses the server has ended" end
		ctx.state.stops = before or now.stops > 0 and now.stops or nil
		if not before then return now.stops > 0 and { stops = now.stops } or nil, "not stopped yet" end
		local asked = p.every > 0 and now.whole_s * p.pause / p.every or p.pause
		if now.whole_s == 0 or (p.every > 0 and now.stops == before) then return nil, "not stopped since the last look" end
		if now.stopped_s < 0.7 * asked or now.stopped_s > 1.5 * asked then
			return nil, ("stopped for %.3f s of %.3f s, not for %.3f s"):format(now.stopped_s, now.whole_s, asked)
		end
		return { stops = now.stops, stopped_s = now.stopped_s, of_s = now.whole_s }
	end,

	verify_timeout = "40s",
}
