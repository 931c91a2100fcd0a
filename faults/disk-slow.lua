-- A disk that answers every request, but slowly: a drive that retries reads, a controller that has lost its cache, a
-- link that has negotiated down. Nothing else reads from it, unlike under the disk hogs. The head of the lab's disk is
-- busy with a longer request, so those behind it also wait.

-- What is not asked for is left out.
local function asked(ctx)
	local p = ctx.params
	local factor = p.factor == 0 and p.latency == 0 and p.rate == 0 and 10 or p.factor
	return {
		path = ctx.victim.storage,
		latency_s = p.latency > 0 and p.latency or nil,
		rate = p.rate > 0 and p.rate or nil,
		factor = factor > 1 and factor or nil,
		pids = ctx.victim.pids,
	}
end

---@type culprit.Fault
return {
	summary  = "each request to the victim's storage disk takes longer",
	resource = "disk",
	needs    = "a disk of the lab; for a rate alone, cgroups with blkio or io",
	params   = {
		latency = { default = "0ms", unit = "seconds", max = "60s", help = "added to each request" },
		rate    = { default = "0B/s", unit = "bytes_per_second", max = "1000GB/s",
		            help = "bytes a second at most, 64KiB/s or more; 0: the disk's own" },
		factor  = { default = 0, unit = "number", min = 0, max = 1000,
		            help = "a request takes so many times its own time; 0: 10, unless latency or rate is given" },
	},

	check = function(ctx)
		local p = ctx.params
		if p.rate > 0 and p.rate < 65536 then return nil, "a 'rate' below 64KiB/s is too low: one request takes seconds" end
		if p.factor > 0 and p.factor < 1 then return nil, "a 'factor' below 1 would make the disk faster" end
		return ctx.victim:can("disk.degrade", asked(ctx))
	end,

	inject = function(ctx)
		ctx.state.disk = ctx.victim:degrade_disk(asked(ctx))
		ctx.state.was = ctx.state.disk:disk_counters()
	end,

	-- By effect, since the last success. The modelled disk has delayed requests; and the kernel's own figures agree:
	-- on average they took the latency at least, and no more bytes passed than the rate lets. A control group counts
	-- no delays: there the rate must be what holds the server back, so that half of it passes at least.
	verify = function(ctx)
		local p, was, now = ctx.params, ctx.state.was, ctx.state.disk:disk_counters()
		local ios, rate = now.ios - was.ios, (now.bytes - was.bytes) / (now.seconds - was.seconds)
		local delayed = now.delayed and now.delayed - was.delayed
		if ios == 0 or delayed == 0 then return nil, ("%d requests, none of them delayed"):format(ios) end
		local mean_s = (now.ios_s - was.ios_s) / ios
		if mean_s < p.latency then return nil, ("%d requests took %.4f s on average"):format(ios, mean_s) end
		if p.rate > 0 and (rate > 1.1 * p.rate or not delayed and rate < 0.5 * p.rate) then
			return nil, ("%d bytes a second passed"):format(rate // 1)
		end
		ctx.state.was = now
		return { backend = now.backend, requests = ios, delayed = delayed, mean_s = mean_s, bytes_per_second = rate }
	end,
}
