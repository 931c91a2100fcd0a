-- A server is short of memory, so that its caches shrink (Dinh 2009, section 6.3.2, the unbalanced
-- experiment: 200 MB of one node left free). bytes = 0 asks for that; it is not the default, because nodes
-- of a lab share one memory. The hog is the first to be killed if memory runs out.

local function available_bytes(node)
	local text = node:run { argv = { "cat", "/proc/meminfo" } }.output
	return tonumber(text:match("MemAvailable:%s*(%d+) kB") or 0) * 1024
end

---@type culprit.Fault
return {
	summary  = "memory of the victim is taken",
	resource = "memory",
	params   = {
		bytes = { default = "512MiB", unit = "bytes", min = "0B", max = "1TiB",
		          help = "memory taken; 0: all but 'leave', as in Dinh 2009" },
		leave = { default = "200MB", unit = "bytes", min = "50MB", max = "1TiB", help = "least memory left free" },
	},

	check = function(ctx)
		local p, free = ctx.params, available_bytes(ctx.victim)
		if free < math.max(p.bytes, 1) + p.leave then
			return nil, ("%s: has %d MB of memory available, too little to take %d MB and leave %d MB"):format(
				ctx.victim.name, free // 1e6, p.bytes // 1e6, p.leave // 1e6)
		end
		return true
	end,

	inject = function(ctx)
		local p = ctx.params
		local bytes = p.bytes > 0 and p.bytes or available_bytes(ctx.victim) - p.leave
		ctx.state.bytes = math.max(bytes // 1, 1)
		ctx.state.hog = ctx.victim:process { self = true, argv = { "memory", "--bytes", ("%d"):format(ctx.state.bytes) } }
	end,

	-- By effect: it holds what was asked for, within 2 %.
	verify = function(ctx)
		local now = ctx.state.hog:status()
		if not now.running then return nil, "the hog has ended (exit " .. tostring(now.exit) .. ")" end
		if now.rss_bytes < ctx.state.bytes * 0.98 then
			return nil, ("the hog holds %d of %d bytes"):format(now.rss_bytes, ctx.state.bytes)
		end
		return { rss_bytes = now.rss_bytes }
	end,

	verify_timeout = "30s",
}
