-- IOzone in read/reread mode on one prepared file a client (001, section 5). 001: 8 GB a client in records of
-- 16 MB, the most that IOzone takes: file = "8GiB". The default is for the lab.

-- Scenarios may use it with several sizes.
local function path(ctx, client)
	return ("%s/%s/iozoner.%s.%d.%d"):format(client.mount, ctx.run, client.name, ctx.params.file, ctx.params.record)
end

local function argv(ctx, client, test)
	local p = ctx.params
	local words = { "iozone", "-i", test, "-w", "-s", p.file // 1024 .. "k", "-r", p.record // 1024 .. "k", "-f",
	                path(ctx, client) }
	if p.direct == 1 then words[#words + 1] = "-I" end
	return words
end

---@type culprit.Workload
return {
	summary = "IOzone reads and rereads a prepared file a client, in large records",
	params  = {
		file   = { default = "32MiB", unit = "bytes", min = "64KiB", max = "1TiB", integer = true,
		           help = "size of the file; a multiple of the record" },
		record = { default = "16MiB", unit = "bytes", min = "4KiB", max = "16MiB", integer = true,
		           help = "size of a record; a power of two" },
		direct = { default = 1, unit = "number", min = 0, max = 1, integer = true,
		           help = "1: O_DIRECT, which keeps the client's page cache out; 0: for mounts that refuse it" },
	},
	needs = { "iozone" },
	packages = { iozone = "iozone3, from non-free" },

	-- Written by IOzone's own write test, without its rewrite, and kept.
	prepare = function(ctx, client)
		if ctx.params.file % ctx.params.record ~= 0 then error("iozoner: 'file' must be a multiple of 'record'", 0) end
		local write = argv(ctx, client, "0")
		write[#write + 1] = "-+n"
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run }, write }
	end,

	command = function(ctx, client)
		return { argv = argv(ctx, client, "1"), loop = not ctx.once }
	end,

	-- The line below the titles, one a pass: kB, record's kB, then kB/s of read and reread. What was cut short has fewer.
	result = function(output)
		local n, bytes, read_s, reread_s = 0, 0, 0, 0
		for kb, r, rr in output:gmatch("\n%s+(%d+)%s+%d+%s+(%d+)%s+(%d+)%s*\n") do
			n, bytes = n + 1, bytes + 1024 * kb
			read_s, reread_s = read_s + kb / r, reread_s + kb / rr
		end
		if n == 0 then -- cut short in its first pass, or never begun
			if output:find("\n%s+%d+%s+%d+%s") then return { passes = 0, bytes = 0 } end
			return nil, "iozone did not read"
		end
		return { passes = n, bytes = 2 * bytes, seconds = read_s + reread_s, read_bytes_per_second = bytes / read_s,
		         reread_bytes_per_second = bytes / reread_s }
	end,
}
